//! Datagrams as fast as they can be sent; what counts is what arrives.

use std::io;
use std::thread;
use std::time::Duration;

use headwater_load::wrong_bytes;

use crate::pattern::{Pattern, Place};
use crate::xtiperf::batched::NUMBER;
use crate::xtiperf::board::Board;
use crate::xtiperf::datagram::{Receiver, Sender};
use crate::xtiperf::measure::{self, Measured};
use crate::xtiperf::options::Options;

pub fn serve(options: &Options) -> io::Result<String> {
    let board = Board::create(&options.board)?;
    let receivers: Vec<_> = (0..options.receivers())
        .map(|index| Receiver::bind(options, index))
        .collect::<io::Result<_>>()?;
    if let Some(bytes) = options.buffers {
        for (index, (receiver, _)) in receivers.iter().enumerate() {
            board
                .receiver(index)
                .set_buffers(receiver.set_buffers(bytes)?);
        }
    }
    let addresses: Vec<&str> = receivers.iter().map(|(_, at)| at.as_str()).collect();
    crate::xtiperf::ready(&addresses.join(","));
    let mut receivers = receivers.into_iter().map(|(receiver, _)| receiver);
    let first = receivers.next().expect("there is always one");
    thread::scope(|scope| {
        // The only one is received on the first thread, whose switches are counted.
        let second = receivers
            .next()
            .map(|receiver| scope.spawn(|| receive(options, board, 1, receiver)));
        receive(options, board, 0, first)?;
        second.map_or(Ok(()), |second| {
            second.join().expect("a receiver does not panic")
        })
    })?;
    Ok("done".to_string())
}

fn receive(
    options: &Options,
    board: &Board,
    index: usize,
    mut receiver: Receiver,
) -> io::Result<()> {
    let mut buffer = vec![0; 128 * 1024];
    let check = Check::new(options);
    let mut received = 0;
    loop {
        let datagram = receiver.receive(&mut buffer)?;
        if board.is_stopped() {
            board.receiver(index).set_done();
            return Ok(());
        }
        check.look(datagram, received, board.in_hurry())?;
        received += 1;
        board.receiver(index).set_received(received);
    }
}

pub fn drive(options: &Options) -> io::Result<String> {
    let board = Board::open(&options.board)?;
    let mut sender = Sender::new(options)?;
    let set = options.buffers.map(|bytes| sender.set_buffers(bytes));
    let buffers = set.transpose()?;
    let (mut even, mut odd) = (content(options.size), content(options.size + 1));
    let mixed = options.mixed;
    let mut send = |number: u64| {
        // Neither the receiver nor, at any one of them, the size is that of the datagram before.
        let (target, bytes) = match (mixed, number % 4) {
            (false, _) => (0, &mut even),
            (true, 0) => (0, &mut even),
            (true, 1) => (1, &mut even),
            (true, 2) => (0, &mut odd),
            (true, _) => (1, &mut odd),
        };
        if bytes.len() >= NUMBER {
            bytes[..NUMBER].copy_from_slice(&(number as u32).to_le_bytes());
        }
        sender.send(target, bytes)
    };
    let mut measured = measure::run(options, board, &mut send, |_| board.received())?;
    sender.flush()?;
    board.wait_quiet();
    measured.buffers = buffers.map(|mine| [mine, board.receiver(0).buffers()]);
    measured.loss = Some(loss(options, &measured, board.received())?);
    board.stop();
    for _ in 0..1000 {
        for target in 0..options.receivers() {
            // A receiver that is gone already is what is wanted.
            let _ = sender.send(target, &even).and_then(|()| sender.flush());
        }
        thread::sleep(Duration::from_millis(1));
        if board.is_done(options.receivers()) {
            return Ok(measured.line());
        }
    }
    Err(io::Error::other("the receiver does not end"))
}

fn loss(options: &Options, measured: &Measured, received: u64) -> io::Result<f64> {
    let lost = measured.all_sent as i64 - received as i64;
    if lost < 0 {
        return Err(wrong_bytes("more datagrams than were sent"));
    }
    if lost > 0 && options.lossless {
        return Err(io::Error::other(format!("{lost} datagrams were lost")));
    }
    Ok(lost as f64 / measured.all_sent.max(1) as f64)
}

fn content(size: usize) -> Vec<u8> {
    Pattern::new(size).piece(Place::default(), size).to_vec()
}

struct Check {
    size: usize,
    mixed: bool,
    lossless: bool,
    content: Vec<u8>,
}

impl Check {
    fn new(options: &Options) -> Check {
        Check {
            size: options.size,
            mixed: options.mixed,
            lossless: options.lossless,
            content: content(options.size + 1),
        }
    }

    /// Compares the length, and all bytes or, in a hurry, some; where nothing may be lost the number too.
    #[inline]
    fn look(&self, bytes: &[u8], received: u64, hurry: bool) -> io::Result<()> {
        let count = bytes.len();
        if count != self.size && !(self.mixed && count == self.size + 1) {
            return Err(wrong_bytes("the length of a datagram"));
        }
        let begin = if count < NUMBER { 0 } else { NUMBER };
        let end = if hurry { count.min(64) } else { count };
        if bytes[begin..end] != self.content[begin..end] {
            return Err(wrong_bytes("a datagram"));
        }
        if self.lossless && begin > 0 && bytes[..NUMBER] != (received as u32).to_le_bytes() {
            return Err(wrong_bytes("the number of a datagram"));
        }
        Ok(())
    }
}
