//! One process: writes until the pipe takes no more, then reads all of it, and so on.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Instant;

use crate::perftest::ends::{self, Ends};
use crate::perftest::message::Message;
use crate::perftest::options::Options;
use crate::perftest::result::Measured;
use crate::sys::usage_of_all;

/// How long an empty pipe may refuse to be written to.
const TIMEOUT_MS: i32 = 2000;

pub fn run(options: &Options) -> io::Result<String> {
    let ends = Ends::new(options.kind)?;
    for (fd, module) in [
        (&ends.reading, &options.push_reading),
        (&ends.writing, &options.push_writing),
    ] {
        if let Some(module) = module {
            ends::push(fd, module)?;
        }
    }
    ends::set_nonblocking(&ends.writing)?;
    let mut pipe = Pipe::new(ends, options.size());
    let mut measured = Measured::default();
    for (time, check_all) in [(options.warm_up(), true), (options.time, false)] {
        let (used, before, start) = (usage_of_all(), pipe.read, Instant::now());
        while start.elapsed() < time {
            pipe.fill()?;
            pipe.drain(check_all)?;
        }
        measured.time = start.elapsed();
        measured.messages = pipe.read - before;
        measured.used = usage_of_all().since(used);
    }
    measured.all_messages = pipe.read;
    Ok(measured.line(options.size()))
}

struct Pipe {
    ends: Ends,
    next: Message,
    /// Bytes of `next` that are written already.
    begun: usize,
    expected: Message,
    buffer: Vec<u8>,
    /// Bytes of `expected` that are in the buffer.
    have: usize,
    outstanding: usize,
    /// Whole messages.
    read: u64,
}

impl Pipe {
    fn new(ends: Ends, size: usize) -> Pipe {
        Pipe {
            ends,
            next: Message::new(size),
            begun: 0,
            expected: Message::new(size),
            buffer: vec![0; size],
            have: 0,
            outstanding: 0,
            read: 0,
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let size = self.buffer.len();
        loop {
            match self.ends.writing.write(&self.next.bytes()[self.begun..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.outstanding += count;
                    self.begun += count;
                    if self.begun == size {
                        self.begun = 0;
                        self.next.advance();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.outstanding > 0 {
                        return Ok(());
                    }
                    if !ends::wait_for_room(&self.ends.writing, TIMEOUT_MS)? {
                        return Err(io::Error::other("an empty pipe takes nothing"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn drain(&mut self, check_all: bool) -> io::Result<()> {
        let size = self.buffer.len();
        while self.outstanding > 0 {
            let count = self.ends.reading.read(&mut self.buffer[self.have..])?;
            if count == 0 || count > self.outstanding {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.outstanding -= count;
            self.have += count;
            if self.have == size {
                self.have = 0;
                self.expected.compare(&self.buffer, check_all)?;
                self.expected.advance();
                self.read += 1;
            }
        }
        Ok(())
    }
}
