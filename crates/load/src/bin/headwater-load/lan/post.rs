//! One-way messages to a reader in a child process: through a pipe, through a ring (copied in, copied out), or straight from the
//! writer's memory into that of the reader, who has said where and sleeps (receive posting).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use headwater_channel::{Channel, DEFAULT_RING, ReceiveError};
use headwater_load::raw::Wire as End;

use crate::lan::options::{Options, Wire, Work};
use crate::lan::raw::reap;
use crate::lan::result::Driven;
use crate::pattern::{Pattern, Place};
use crate::sys::{self, Usage};

pub fn run(options: &Options) -> io::Result<Driven> {
    let ring = || Channel::pair(DEFAULT_RING).map_err(io::Error::other);
    let Work::Post(wire) = options.work else {
        unreachable!("`post` is given a wire")
    };
    match wire {
        Wire::Pipe => {
            let (reader, writer) = io::pipe()?;
            let (reader, writer) = (
                File::from(OwnedFd::from(reader)),
                File::from(OwnedFd::from(writer)),
            );
            measure(options, |_| Bytes(writer), Bytes(reader))
        }
        Wire::Ring => {
            let (writer, reader) = ring()?;
            measure(options, |_| Bytes(writer), Bytes(reader))
        }
        Wire::Posted => {
            let (channel, theirs) = ring()?;
            let reader = Posted {
                channel: theirs,
                reader: 0,
            };
            measure(options, |reader| Posted { channel, reader }, reader)
        }
    }
}

/// `writer` makes this end once the reader's process is known; until then it holds what that is made of.
fn measure<W: End>(
    options: &Options,
    writer: impl FnOnce(i32) -> W,
    mut reader: impl End,
) -> io::Result<Driven> {
    let (mut back, mut forth) = UnixStream::pair()?;
    // The reader is the child: Yama lets a process write into its descendants only.
    let mut writer = Some(writer);
    let child = sys::fork("lan", || {
        drop(writer.take());
        sys::pin(options.server_cpu.as_slice())?;
        let (bytes, right) = read(&mut reader, options.request)?;
        forth.write_all(&bytes.to_le_bytes())?;
        Ok(right)
    })?;
    drop((reader, forth));
    sys::pin(options.client_cpu.as_slice())?;
    let writer = writer.take().map(|writer| writer(child));
    let mut writer = writer.ok_or(io::ErrorKind::NotFound)?;
    let outcome = write(&mut writer, options);
    drop(writer);
    let (driven, start, usage) = match outcome {
        Ok(written) => written,
        Err(error) => {
            // The reader ends when it finds the writer's end closed.
            reap(&[child])?;
            return Err(error);
        }
    };
    let mut received = [0; 8];
    let told = back.read_exact(&mut received);
    let time = start.elapsed();
    let spent = sys::usage().since(usage);
    let served = reap(&[child])?;
    let sent = driven.all_messages * options.request as u64;
    Ok(Driven {
        spent,
        congestion: "none".to_string(),
        verified: told.is_ok() && received == sent.to_le_bytes() && served.verified,
        served: Some(served),
        ..driven.timed(time)
    })
}

fn write(writer: &mut impl End, options: &Options) -> io::Result<(Driven, Instant, Usage)> {
    let size = options.request;
    let pattern = Pattern::new(size);
    let mut at = Place::default();
    let mut driven = Driven::default();
    let (mut start, mut usage) = (Instant::now(), Usage::default());
    for time in [options.warm_up(), options.time] {
        (start, usage, driven.messages) = (Instant::now(), sys::usage(), 0);
        while start.elapsed() < time {
            writer.send(pattern.piece(at, size))?;
            at.advance(size);
            driven.messages += 1;
        }
        driven.all_messages += driven.messages;
    }
    driven.bytes = driven.messages * size as u64;
    Ok((driven, start, usage))
}

/// Reads to the end; how many bytes, and whether all were right.
fn read(reader: &mut impl End, size: usize) -> io::Result<(u64, bool)> {
    let pattern = Pattern::new(size);
    let mut message = vec![0; size];
    let (mut at, mut bytes, mut right) = (Place::default(), 0, true);
    while reader.receive(&mut message)? {
        right &= pattern.matches(at, &message);
        at.advance(size);
        bytes += size as u64;
    }
    Ok((bytes, right))
}

/// A pipe's or a channel's end as a stream of bytes.
struct Bytes<T>(T);

impl<T: Read + Write> End for Bytes<T> {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.0.write_all(message)
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<bool> {
        let mut done = 0;
        while done < message.len() {
            match self.0.read(&mut message[done..])? {
                0 if done == 0 => return Ok(false),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                len => done += len,
            }
        }
        Ok(true)
    }
}

/// The reader sends the place of its buffer and waits; the writer takes that, fills the buffer and says so.
struct Posted {
    channel: Channel,
    /// Known to the writer only.
    reader: i32,
}

impl End for Posted {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let mut place = [0; 8];
        match self.channel.recv(&mut place) {
            Ok(8) => {}
            Ok(_) => return Err(headwater_load::wrong_bytes("an address")),
            Err(error) => return Err(io::Error::other(error)),
        }
        fill(self.reader, u64::from_le_bytes(place), message)?;
        self.channel.send(&[1]).map_err(io::Error::other)
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<bool> {
        let place = message.as_mut_ptr() as u64;
        match self.channel.send(&place.to_le_bytes()) {
            Ok(()) => {}
            Err(_) => return Ok(false),
        }
        match self.channel.recv(&mut [0]) {
            Ok(_) => Ok(true),
            Err(ReceiveError::Closed) => Ok(false),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// Writes the whole message into the memory of another process.
fn fill(reader: i32, place: u64, message: &[u8]) -> io::Result<()> {
    let mut done = 0;
    while done < message.len() {
        let rest = &message[done..];
        let from = libc::iovec {
            iov_base: rest.as_ptr() as *mut libc::c_void,
            iov_len: rest.len(),
        };
        let to = libc::iovec {
            iov_base: (place + done as u64) as *mut libc::c_void,
            iov_len: rest.len(),
        };
        // SAFETY: `from` describes our own bytes, which are only read; the other process's memory is the kernel's care.
        let len = unsafe { libc::process_vm_writev(reader, &from, 1, &to, 1, 0) };
        if len <= 0 {
            let error = io::Error::last_os_error();
            let text = format!("process_vm_writev is not permitted or not there: {error}");
            return Err(io::Error::new(error.kind(), text));
        }
        done += len as usize;
    }
    Ok(())
}
