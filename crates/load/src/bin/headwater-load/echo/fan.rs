//! Many connections from one epoll loop, each with one request under way.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Instant;

use headwater_load::latency::Recorder;

use crate::echo::options::Options;
use crate::echo::result::Measured;
use crate::net::Stream;
use crate::pattern::{Pattern, Place};
use crate::poll::Poll;
use crate::sys;

/// Exchanges of each connection before the measurement: by then it has found its way.
const WARM: u64 = 8;

struct Connection {
    stream: Stream,
    /// Where the current request begins in the pattern, and how much of it and of its echo has passed.
    at: Place,
    sent: usize,
    received: usize,
    waits_for_room: bool,
    since: Instant,
}

pub fn run(options: &Options) -> io::Result<Measured> {
    sys::allow_connections(options.connections)?;
    let size = options.size;
    let pattern = Pattern::new(size);
    let mut poll = Poll::new()?;
    let mut connections = Vec::new();
    for token in 0..options.connections {
        let stream = options.connect()?;
        stream.set_nonblocking()?;
        poll.add(stream.as_raw_fd(), token as u64)?;
        connections.push(Connection {
            stream,
            at: Place::default(),
            sent: 0,
            received: 0,
            waits_for_room: false,
            since: Instant::now(),
        });
    }
    let congestion = connections[0].stream.congestion();
    for (token, connection) in connections.iter_mut().enumerate() {
        connection.send(&poll, token as u64, &pattern, size)?;
    }

    let mut buffer = vec![0; size];
    let mut measured = Measured {
        verified: true,
        congestion,
        ..Measured::default()
    };
    let warm = WARM * options.connections as u64;
    for (until, least) in [(options.warm_up(), warm), (options.until, 0)] {
        let usage = sys::usage();
        let start = Instant::now();
        let (mut now, mut count) = (start, 0);
        let mut latency = Recorder::new();
        while (count < least || !until.reached(now - start, count)) && measured.verified {
            let ready: Vec<_> = poll.wait()?.collect();
            for event in ready {
                let connection = &mut connections[event.token as usize];
                if event.writable {
                    connection.send(&poll, event.token, &pattern, size)?;
                }
                if !event.readable {
                    continue;
                }
                measured.verified &= connection.receive(&pattern, &mut buffer)?;
                if connection.received == size {
                    now = Instant::now();
                    latency.record_time(now - connection.since);
                    count += 1;
                    connection.next(now, size);
                    connection.send(&poll, event.token, &pattern, size)?;
                }
            }
        }
        measured.messages = count;
        measured.all_messages += count;
        measured.time = now - start;
        measured.bytes = count * size as u64;
        measured.latency = latency;
        measured.usage = sys::usage().since(usage);
    }
    Ok(measured)
}

impl Connection {
    fn send(&mut self, poll: &Poll, token: u64, pattern: &Pattern, size: usize) -> io::Result<()> {
        while self.sent < size {
            match self
                .stream
                .write(&pattern.piece(self.at, size)[self.sent..])
            {
                Ok(len) => self.sent += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let waits = self.sent < size;
        if waits != self.waits_for_room {
            poll.want_write(self.stream.as_raw_fd(), token, waits)?;
            self.waits_for_room = waits;
        }
        Ok(())
    }

    /// Takes what has come; false where it is not the echo.
    fn receive(&mut self, pattern: &Pattern, buffer: &mut [u8]) -> io::Result<bool> {
        let room = buffer.len() - self.received;
        let len = match self.stream.read(&mut buffer[..room]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error),
        };
        let mut at = self.at;
        at.advance(self.received);
        self.received += len;
        Ok(pattern.matches(at, &buffer[..len]))
    }

    fn next(&mut self, now: Instant, size: usize) {
        self.at.advance(size);
        self.sent = 0;
        self.received = 0;
        self.since = now;
    }
}
