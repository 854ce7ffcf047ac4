//! Data through shared memory: rings of the channel crate, and a signal for each frame.
//!
//! A connection has so many windows, rings that its frames use in turn. A message that is larger than a slot goes in several
//! frames, each with a signal of its own, so that the reader copies one while the writer copies the next.

use std::io;

use headwater_channel::wait::Learner;
use headwater_channel::{Channel, FrameRef};
use headwater_load::wrong_bytes;

use crate::speed::options::{Carrier, Options};
use crate::speed::signal::Signal;
use crate::speed::wire::{self, Reading, Writing};

/// Both directions of a connection, whose messages are copied out of the ring.
pub struct End {
    windows: Vec<Channel>,
    incoming: Signal,
    outgoing: Signal,
    /// The most of a message that goes as one frame.
    frame: usize,
}

/// The same, whose messages are read where they lie.
pub struct InPlace(pub End);

/// Both ends, made before the fork that shares them out.
pub fn pair(options: &Options) -> io::Result<(End, End)> {
    let signal = || match options.carrier {
        Carrier::Eventfd => Signal::eventfd(),
        _ => Signal::semaphore(),
    };
    // A full ring is waited for as a message is: an eventfd's user does not spin.
    let builder = Channel::builder()
        .ring_bytes(options.ring())
        .spin(options.carrier != Carrier::Eventfd);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for _ in 0..options.windows {
        let (a, b) = builder.pair()?;
        first.push(a);
        second.push(b);
    }
    let (there, back) = (signal()?, signal()?);
    let end = |windows, incoming: &Signal, outgoing: &Signal| End {
        windows,
        incoming: incoming.clone(),
        outgoing: outgoing.clone(),
        frame: options.payload(),
    };
    Ok((end(first, &back, &there), end(second, &there, &back)))
}

/// The windows one after the other, for ever.
struct Turn<'a> {
    windows: &'a [Channel],
    next: usize,
}

impl<'a> Turn<'a> {
    #[inline]
    fn take(&mut self) -> &'a Channel {
        let window = &self.windows[self.next];
        self.next += 1;
        if self.next == self.windows.len() {
            self.next = 0;
        }
        window
    }
}

pub struct Writer<'a> {
    turn: Turn<'a>,
    signal: &'a Signal,
    frame: usize,
}

/// Copies messages out of the ring.
pub struct Reader<'a> {
    turn: Turn<'a>,
    signal: &'a Signal,
    learner: Learner,
    frame: usize,
    message: Vec<u8>,
}

/// Copies them into the ring in the place that was reserved.
pub struct InPlaceWriter<'a>(Writer<'a>);

/// Shows them where they lie.
pub struct InPlaceReader<'a> {
    turn: Turn<'a>,
    signal: &'a Signal,
    learner: Learner,
    shown: Option<FrameRef<'a>>,
}

impl wire::End for End {
    type Reader<'a> = Reader<'a>;
    type Writer<'a> = Writer<'a>;

    fn halves(&self, size: usize) -> (Reader<'_>, Writer<'_>) {
        let reader = Reader {
            turn: self.turn(),
            signal: &self.incoming,
            learner: Learner::new(),
            frame: self.frame,
            message: vec![0; size],
        };
        (reader, self.writer())
    }
}

impl wire::End for InPlace {
    type Reader<'a> = InPlaceReader<'a>;
    type Writer<'a> = InPlaceWriter<'a>;

    fn halves(&self, _size: usize) -> (InPlaceReader<'_>, InPlaceWriter<'_>) {
        let reader = InPlaceReader {
            turn: self.0.turn(),
            signal: &self.0.incoming,
            learner: Learner::new(),
            shown: None,
        };
        (reader, InPlaceWriter(self.0.writer()))
    }
}

impl End {
    fn writer(&self) -> Writer<'_> {
        Writer {
            turn: self.turn(),
            signal: &self.outgoing,
            frame: self.frame,
        }
    }

    fn turn(&self) -> Turn<'_> {
        let windows = &self.windows;
        Turn { windows, next: 0 }
    }
}

impl Writing for Writer<'_> {
    #[inline]
    fn write(&mut self, message: &[u8]) -> io::Result<()> {
        for piece in message.chunks(self.frame) {
            self.turn.take().send(piece)?;
            self.signal.post()?;
        }
        Ok(())
    }
}

impl Reading for Reader<'_> {
    #[inline]
    fn read(&mut self) -> io::Result<&[u8]> {
        for piece in self.message.chunks_mut(self.frame) {
            self.signal.wait(&self.learner)?;
            if self.turn.take().try_recv(piece)? != piece.len() {
                return Err(cut_differently());
            }
        }
        Ok(&self.message)
    }
}

impl Writing for InPlaceWriter<'_> {
    #[inline]
    fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let mut room = self.0.turn.take().reserve(message.len())?;
        room.copy_from_slice(message);
        room.commit(message.len());
        self.0.signal.post()
    }
}

impl Reading for InPlaceReader<'_> {
    #[inline]
    fn read(&mut self) -> io::Result<&[u8]> {
        self.signal.wait(&self.learner)?;
        let frame = self.turn.take().peek()?.ok_or_else(cut_differently)?;
        Ok(self.shown.insert(frame))
    }

    #[inline]
    fn done(&mut self) {
        if let Some(frame) = self.shown.take() {
            let all = frame.len();
            frame.consume(all);
        }
    }
}

fn cut_differently() -> io::Error {
    wrong_bytes("no frame of the right size")
}
