//! One way: the sender as fast as it can, the receiver into large buffers. Messages are counted where they are sent, bytes where
//! they are received.

use std::io;

use headwater_load::wrong_bytes;

use crate::pattern::{Pattern, Place};
use crate::xtiperf::board::Board;
use crate::xtiperf::measure;
use crate::xtiperf::options::Options;
use crate::xtiperf::stream::Stream;

/// That of netperf as the seeds used it.
const BUFFER: usize = 131_071;
/// What is compared of a received piece while it counts.
const GLANCE: usize = 64;

pub fn serve(board: &Board, mut stream: Stream) -> io::Result<()> {
    let pattern = Pattern::new(GLANCE);
    let mut buffer = vec![0; BUFFER];
    let (mut at, mut received) = (Place::default(), 0);
    loop {
        let count = stream.receive(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let looked_at = if board.in_hurry() {
            count.min(GLANCE)
        } else {
            count
        };
        if !pattern.matches(at, &buffer[..looked_at]) {
            return Err(wrong_bytes("a stream"));
        }
        at.advance(count);
        received += count as u64;
        board.receiver(0).set_received(received);
    }
}

pub fn drive(options: &Options) -> io::Result<String> {
    let board = Board::open(&options.board)?;
    let mut stream = Stream::connect(options)?;
    let buffers = stream.buffers(options)?;
    let size = options.size;
    let pattern = Pattern::new(size);
    let mut at = Place::default();
    let send = |_| {
        stream.send_all(pattern.piece(at, size))?;
        at.advance(size);
        Ok(())
    };
    let mut measured = measure::run(options, board, send, |_| board.received() / size as u64)?;
    measured.buffers = buffers.map(|mine| [mine, board.receiver(0).buffers()]);
    stream.finish()?;
    board.wait_done()?;
    if board.received() != measured.all_sent * size as u64 {
        return Err(wrong_bytes("too few or too many"));
    }
    Ok(measured.line())
}
