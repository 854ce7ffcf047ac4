//! The servers: a thread per connection that echoes or counts, and one epoll loop that echoes.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::thread;

use crate::echo::options::Options;
use crate::lan::serve::{count, end_with_input};
use crate::lan::stream::verdict;
use crate::net::{Listener, Stream, Unsent};
use crate::pattern::{Pattern, Place};
use crate::poll::Poll;
use crate::sys;

const BUFFER: usize = 128 * 1024;

pub fn run(options: &Options) -> io::Result<()> {
    let serve: fn(&mut Stream) -> io::Result<u64> = match options.mode.as_str() {
        "echo" => echo,
        "sink" => sink,
        "epoll" => {
            sys::allow_connections(options.connections)?;
            let listener = open(options)?;
            return echo_many(&listener, options);
        }
        mode => return Err(io::Error::other(format!("no server {mode}"))),
    };
    let listener = open(options)?;
    loop {
        let mut stream = listener.accept(options.setup)?;
        thread::spawn(move || {
            // The peer sees the end when it is counted.
            let outcome = serve(&mut stream);
            let bytes = *outcome.as_ref().unwrap_or(&0);
            // A connection that breaks is the other end's to tell.
            count(
                bytes,
                outcome.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData),
            );
        });
    }
}

fn open(options: &Options) -> io::Result<Listener> {
    let listener = Listener::bind(&options.address, options.setup)?;
    println!("listening {}", listener.address(&options.address)?);
    if options.until_eof {
        let start = sys::usage();
        thread::spawn(move || end_with_input(start));
    }
    Ok(listener)
}

fn echo(stream: &mut Stream) -> io::Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(bytes),
            len => {
                stream.write_all(&buffer[..len])?;
                bytes += len as u64;
            }
        }
    }
}

/// Takes a one-way stream to its end, then answers with the count and whether every byte was right.
fn sink(stream: &mut Stream) -> io::Result<u64> {
    let pattern = Pattern::new(BUFFER);
    let mut buffer = vec![0; BUFFER];
    let (mut at, mut bytes, mut right) = (Place::default(), 0u64, true);
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            len => {
                right &= pattern.matches(at, &buffer[..len]);
                at.advance(len);
                bytes += len as u64;
            }
        }
    }
    stream.write_all(&verdict(bytes, right))?;
    if !right {
        return Err(headwater_load::wrong_bytes("a stream"));
    }
    Ok(bytes)
}

/// A connection of the epoll loop.
struct Connection {
    stream: Stream,
    unsent: Unsent,
}

fn echo_many(listener: &Listener, options: &Options) -> io::Result<()> {
    const LISTENER: u64 = u64::MAX;
    let mut poll = Poll::new()?;
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let mut buffer = vec![0; BUFFER];
    let mut ready = Vec::new();
    listener.set_nonblocking()?;
    poll.add(listener.as_raw_fd(), LISTENER)?;
    loop {
        ready.clear();
        ready.extend(poll.wait()?.map(|event| event.token));
        for &token in &ready {
            if token == LISTENER {
                accept_all(listener, options, &poll, &mut connections)?;
                continue;
            }
            let Some(connection) = connections.get_mut(&token) else {
                continue;
            };
            match connection.turn(&poll, &mut buffer) {
                Ok(true) => {}
                Ok(false) | Err(_) => {
                    connections.remove(&token);
                    count(0, false);
                }
            }
        }
    }
}

fn accept_all(
    listener: &Listener,
    options: &Options,
    poll: &Poll,
    connections: &mut HashMap<u64, Connection>,
) -> io::Result<()> {
    loop {
        let stream = match listener.accept(options.setup) {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nonblocking()?;
        let token = stream.as_raw_fd() as u64;
        poll.add(stream.as_raw_fd(), token)?;
        let unsent = Unsent::default();
        connections.insert(token, Connection { stream, unsent });
    }
}

impl Connection {
    /// Echoes what there is; false at the end of the stream.
    fn turn(&mut self, poll: &Poll, buffer: &mut [u8]) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let waits = self.unsent.go_on(&mut self.stream)?;
            self.wait(poll, waits)?;
        }
        if !self.unsent.is_empty() {
            return Ok(true);
        }
        match self.stream.read(buffer) {
            Ok(0) => Ok(false),
            Ok(len) => {
                let waits = self.unsent.send(&mut self.stream, &buffer[..len])?;
                self.wait(poll, waits).map(|()| true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// For room to write, or no longer.
    fn wait(&self, poll: &Poll, waits: Option<bool>) -> io::Result<()> {
        let fd = self.stream.as_raw_fd();
        waits.map_or(Ok(()), |waits| poll.want_write(fd, fd as u64, waits))
    }
}
