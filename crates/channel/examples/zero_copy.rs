//! Numbers are written into the ring and summed up where they lie: no copy on either side.

use std::error::Error;
use std::thread;

use headwater_channel::{Channel, ReceiveError};

const NUMBERS: usize = 8 << 10;
const MESSAGES: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let (a, b) = Channel::pair(1 << 20)?;
    let producer = thread::spawn(move || {
        for message in 0..MESSAGES {
            let mut room = a.reserve(NUMBERS * 8).expect("room");
            for (i, place) in room.chunks_exact_mut(8).enumerate() {
                place.copy_from_slice(&(message + i as u64).to_ne_bytes());
            }
            room.commit(NUMBERS * 8);
        }
    });
    let mut sum = 0u64;
    loop {
        match b.wait_readable(None) {
            Ok(()) => {}
            Err(ReceiveError::Closed) => break,
            Err(e) => return Err(e.into()),
        }
        while let Ok(Some(frame)) = b.peek() {
            for place in frame.chunks_exact(8) {
                sum += u64::from_ne_bytes(place.try_into()?);
            }
            let all = frame.len();
            frame.consume(all);
        }
    }
    producer.join().expect("the producer ends");
    let expected: u64 = (0..MESSAGES)
        .map(|m| (0..NUMBERS as u64).map(|i| m + i).sum::<u64>())
        .sum();
    assert_eq!(sum, expected);
    println!(
        "{MESSAGES} messages of {} KiB, sum {sum}",
        NUMBERS * 8 / 1024
    );
    Ok(())
}
