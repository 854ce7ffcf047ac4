//! Single bytes, each after a silence: how long until the other process has it.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use headwater_load::wrong_bytes;

use crate::xtiperf::board::{self, Board};
use crate::xtiperf::measure::Measured;
use crate::xtiperf::options::Options;
use crate::xtiperf::stream::Stream;
use crate::xtiperf::sys::{now_ns, used_with};

const SILENCE: Duration = Duration::from_millis(5);

pub fn serve(board: &Board, mut stream: Stream) -> io::Result<()> {
    let mut buffer = [0; 64];
    let receiver = board.receiver(0);
    let mut received = 0;
    loop {
        let count = stream.receive(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        receiver.set_stamp(now_ns());
        received += count as u64;
        receiver.set_received(received);
    }
}

pub fn drive(options: &Options) -> io::Result<String> {
    let board = Board::open(&options.board)?;
    let mut stream = Stream::connect(options)?;
    let receiver = board.receiver(0);
    let mut measured = Measured::default();
    let (used, start) = (used_with(board.server()), Instant::now());
    while start.elapsed() < options.time {
        thread::sleep(SILENCE);
        let sent_at = now_ns();
        stream.send_all(&[measured.sent as u8])?;
        measured.sent += 1;
        // Without a call that the library could take for a sign to send.
        while options.computing && now_ns() - sent_at < SILENCE.as_nanos() as u64 {
            hint::spin_loop();
        }
        board::wait(|| receiver.received() >= measured.sent)?;
        measured
            .delays
            .record(receiver.stamp().saturating_sub(sent_at));
    }
    measured.time = start.elapsed();
    measured.used = used_with(board.server()).since(used);
    stream.finish()?;
    board.wait_done()?;
    if receiver.received() != measured.sent {
        return Err(wrong_bytes("too many"));
    }
    measured.received = measured.sent;
    measured.all_sent = measured.sent;
    Ok(measured.line())
}
