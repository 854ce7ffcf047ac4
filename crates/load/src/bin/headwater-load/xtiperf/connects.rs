//! Connections one after the other: made, accepted on a fresh descriptor, perhaps used for a byte, ended by the server, and closed
//! at both ends.

use std::io;

use headwater_load::wrong_bytes;

use crate::xtiperf::board::Board;
use crate::xtiperf::measure;
use crate::xtiperf::options::Options;
use crate::xtiperf::stream::{Listener, Stream};

pub fn serve(options: &Options) -> io::Result<String> {
    let board = Board::create(&options.board)?;
    let (listener, at) = Listener::bind(options)?;
    crate::xtiperf::ready(&at);
    while !board.is_stopped() {
        let mut stream = listener.accept(options)?;
        if options.greeting {
            stream.receive(&mut [0])?;
        }
    }
    board.receiver(0).set_done();
    Ok("done".to_string())
}

pub fn drive(options: &Options) -> io::Result<String> {
    let board = Board::open(&options.board)?;
    let connect = |_| {
        let mut stream = Stream::connect(options)?;
        if options.greeting {
            stream.send_all(&[1])?;
        }
        match stream.receive(&mut [0])? {
            0 => Ok(()),
            _ => Err(wrong_bytes("nobody sends")),
        }
    };
    let measured = measure::run(options, board, connect, |number| number)?;
    board.stop();
    // A server that has seen it before is gone, which is what is wanted.
    let _ = connect(0);
    board.wait_done()?;
    Ok(measured.line())
}
