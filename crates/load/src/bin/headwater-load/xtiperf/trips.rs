//! A byte there and back.

use std::io;

use headwater_load::wrong_bytes;

use crate::xtiperf::board::Board;
use crate::xtiperf::measure;
use crate::xtiperf::options::Options;
use crate::xtiperf::stream::Stream;

pub fn serve(_: &Board, mut stream: Stream) -> io::Result<()> {
    let mut request = [0];
    while stream.receive(&mut request)? > 0 {
        stream.send_all(&request)?;
    }
    Ok(())
}

pub fn drive(options: &Options) -> io::Result<String> {
    let board = Board::open(&options.board)?;
    let mut stream = Stream::connect(options)?;
    let buffers = stream.buffers(options)?;
    let mut answer = [0];
    let trip = |number| {
        stream.send_all(&[number as u8])?;
        match stream.receive(&mut answer)? {
            1 if answer[0] == number as u8 => Ok(()),
            _ => Err(wrong_bytes("an answer")),
        }
    };
    let mut measured = measure::run(options, board, trip, |number| number)?;
    measured.buffers = buffers.map(|mine| [mine, board.receiver(0).buffers()]);
    stream.finish()?;
    board.wait_done()?;
    Ok(measured.line())
}
