//! Two processes: a child writes as fast as it can, this one reads. Time and messages are those of the reader.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::perftest::ends::{self, Ends};
use crate::perftest::message::Message;
use crate::perftest::options::Options;
use crate::perftest::result::Measured;
use crate::sys;

/// How long the writer may take to notice that nobody reads any more.
const TIMEOUT: Duration = Duration::from_secs(3);

pub fn run(options: &Options) -> io::Result<String> {
    let Ends { reading, writing } = Ends::new(options.kind)?;
    let mut reading = Some(reading);
    // This process gives up its writing end with the closure.
    let child = sys::fork("perftest", || {
        drop(reading.take());
        be_writer(writing, options).map(|()| true)
    })?;
    let reading = reading.ok_or(ErrorKind::NotConnected)?;
    if let Some(module) = &options.push_reading {
        ends::push(&reading, module)?;
    }
    // Closes it, so that the writer ends.
    let outcome = read_all(reading, options);
    let ended = wait_for(child);
    let mut measured = outcome?;
    ended?;
    // The child's account covers all of its life, so this one's does too.
    measured.used = sys::usage_of_all().scaled(measured.messages, measured.all_messages);
    Ok(measured.line(options.size()))
}

/// Writes until nobody reads any more.
fn be_writer(mut pipe: File, options: &Options) -> io::Result<()> {
    sys::pin(options.writer_cpu.as_slice())?;
    if let Some(module) = &options.push_writing {
        ends::push(&pipe, module)?;
    }
    let mut message = Message::new(options.size());
    loop {
        let mut begun = 0;
        while begun < options.size() {
            match pipe.write(&message.bytes()[begun..]) {
                Ok(count) => begun += count,
                Err(error) if gone(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        message.advance();
    }
}

/// A closed UNIX socket with unread data resets its peer.
fn gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
    )
}

fn read_all(mut pipe: File, options: &Options) -> io::Result<Measured> {
    let size = options.size();
    let mut expected = Message::new(size);
    let mut buffer = vec![0; size];
    let mut measured = Measured::default();
    // Asking for the time costs as much as reading a small message.
    let batch = (64 * 1024 / size).clamp(1, 64) as u64;
    for (time, check_all) in [(options.warm_up(), true), (options.time, false)] {
        let start = Instant::now();
        measured.messages = 0;
        while start.elapsed() < time {
            for _ in 0..batch {
                let mut have = 0;
                while have < size {
                    have += match pipe.read(&mut buffer[have..])? {
                        0 => return Err(ErrorKind::UnexpectedEof.into()),
                        count => count,
                    };
                }
                expected.compare(&buffer, check_all)?;
                expected.advance();
            }
            measured.messages += batch;
        }
        measured.time = start.elapsed();
        measured.all_messages += measured.messages;
    }
    Ok(measured)
}

/// Waits for the writer's end, and kills it where it does not come.
fn wait_for(child: i32) -> io::Result<()> {
    let start = Instant::now();
    let mut status = 0;
    // SAFETY: the child is ours and not yet reaped; the pointer outlives the calls.
    unsafe {
        while libc::waitpid(child, &mut status, libc::WNOHANG) == 0 {
            if start.elapsed() > TIMEOUT {
                libc::kill(child, libc::SIGKILL);
                libc::waitpid(child, &mut status, 0);
                return Err(io::Error::other("the writer did not notice the end"));
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
    match status {
        0 => Ok(()),
        _ => Err(io::Error::other("the writer failed")),
    }
}
