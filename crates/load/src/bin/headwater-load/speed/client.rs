//! The client: writes a message and reads it back, in a thread for each connection.

use std::io;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use crate::speed::child::{Child, OWN_WORDS, give_up};
use crate::speed::message::{LAST, Message, START};
use crate::speed::options::Options;
use crate::speed::report::{Report, Told, latencies};
use crate::speed::watch::{Watch, note, time};
use crate::speed::wire::{End, Reading, Writing};
use crate::sys::{self, Usage};
use crate::until::Until;

/// Messages between two looks at the clock, which cost as much as a small copy.
const BATCH: u64 = 16;
const LARGE: usize = 16 << 10;

/// Uses all connections at once, then waits for the server's report.
pub fn converse<E: End>(ends: Vec<E>, options: &Options, server: Child) -> io::Result<Report> {
    let server = server.watch("the server");
    let start = Start {
        warm: Barrier::new(ends.len()),
        go: Barrier::new(ends.len()),
        before: Mutex::default(),
    };
    let talks: Vec<Talked> = thread::scope(|scope| {
        let talk = |(connection, end)| {
            let start = &start;
            scope.spawn(move || {
                let talked = talk(end, connection, options, start);
                // Other threads wait for this one.
                talked.unwrap_or_else(|error| {
                    if error.kind() != io::ErrorKind::InvalidData {
                        // Most likely the server has gone; who watches it knows more.
                        thread::sleep(2 * OWN_WORDS);
                    }
                    give_up(&format!("the client: {error}"))
                })
            })
        };
        let threads: Vec<_> = ends.iter().enumerate().map(talk).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|talked| talked.unwrap_or_else(|_| give_up("a thread failed")))
            .collect()
    });
    let before = start
        .before
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let spent = sys::usage().since(before.usage);
    let loopback = headwater_load::network::loopback_bytes() - before.loopback;
    let served = Told::parse(&server.finish()?)?;
    let mut report = summary(&talks, options)?;
    if served.messages != report.all_messages {
        let (came, sent) = (served.messages, report.all_messages);
        return Err(io::Error::other(format!(
            "the server got {came} messages of {sent}"
        )));
    }
    report.loopback_bytes = loopback;
    report.spent = served.spent.plus(spent);
    report.latencies.extend(served.latencies);
    Ok(report)
}

/// What all threads begin with together.
struct Start {
    warm: Barrier,
    go: Barrier,
    before: Mutex<Before>,
}

/// What was used when measuring begins.
#[derive(Default)]
struct Before {
    usage: Usage,
    loopback: u64,
}

/// What came of one connection.
struct Talked {
    start: Instant,
    end: Instant,
    messages: u64,
    all_messages: u64,
    watch: Watch,
}

fn summary(talks: &[Talked], options: &Options) -> io::Result<Report> {
    let start = talks.iter().map(|talk| talk.start).min();
    let end = talks.iter().map(|talk| talk.end).max();
    let (Some(start), Some(end)) = (start, end) else {
        return Err(io::Error::other("no connection"));
    };
    let messages = talks.iter().map(|talk| talk.messages).sum();
    let mut watch = Watch::default();
    for talk in talks {
        watch.read.merge(&talk.watch.read);
        watch.write.merge(&talk.watch.write);
        watch.round_trip.merge(&talk.watch.round_trip);
    }
    let named = [
        ("client_read", &watch.read),
        ("client_write", &watch.write),
        ("round_trip", &watch.round_trip),
    ];
    Ok(Report {
        messages,
        all_messages: talks.iter().map(|talk| talk.all_messages).sum(),
        seconds: (end - start).as_secs_f64(),
        bytes: messages * options.size as u64,
        latencies: latencies(named),
        ..Report::default()
    })
}

fn talk<E: End>(
    end: &E,
    connection: usize,
    options: &Options,
    start: &Start,
) -> io::Result<Talked> {
    let (reader, writer) = end.halves(options.size);
    let mut talk = Talk {
        reader,
        writer,
        message: Message::new(options.size, connection),
        sent: 0,
        received: 0,
        timed: false,
        watch: Watch::default(),
    };
    for _ in 1..options.ahead {
        talk.write(0)?;
    }
    talk.run(options.warm_up(), 0, options.size)?;
    if start.warm.wait().is_leader()
        && let Ok(mut before) = start.before.lock()
    {
        before.loopback = headwater_load::network::loopback_bytes();
        before.usage = sys::usage();
    }
    start.go.wait();
    talk.timed = options.latencies;
    let (before, begun) = (talk.received, Instant::now());
    talk.run(options.until(), START, options.size)?;
    let (messages, ended) = (talk.received - before, Instant::now());
    talk.timed = false;
    talk.write(LAST)?;
    while talk.received < talk.sent {
        talk.read()?;
    }
    Ok(Talked {
        start: begun,
        end: ended,
        messages,
        all_messages: talk.received,
        watch: talk.watch,
    })
}

struct Talk<R, W> {
    reader: R,
    writer: W,
    message: Message,
    sent: u64,
    received: u64,
    timed: bool,
    watch: Watch,
}

impl<R: Reading, W: Writing> Talk<R, W> {
    /// Writes and reads in turn; `flags` go with the first message.
    fn run(&mut self, until: Until, mut flags: u64, size: usize) -> io::Result<()> {
        let batch = match until {
            Until::Time(_) if size < LARGE => BATCH,
            _ => 1,
        };
        let (start, before) = (Instant::now(), self.received);
        while !until.reached(start.elapsed(), self.received - before) {
            for _ in 0..batch {
                let begun = self.write(flags)?;
                let ended = self.read()?;
                note(&mut self.watch.round_trip, begun, ended);
                flags = 0;
            }
        }
        Ok(())
    }

    /// Gives the time before it.
    #[inline]
    fn write(&mut self, flags: u64) -> io::Result<Option<Instant>> {
        let bytes = self.message.stamped(self.sent | flags);
        let begun = time(self.timed);
        self.writer.write(bytes)?;
        let ended = time(self.timed);
        note(&mut self.watch.write, begun, ended);
        self.sent += 1;
        Ok(begun)
    }

    /// Gives the time after it.
    #[inline]
    fn read(&mut self) -> io::Result<Option<Instant>> {
        let begun = time(self.timed);
        let bytes = self.reader.read()?;
        let ended = time(self.timed);
        self.message.check(bytes, self.received)?;
        self.reader.done();
        note(&mut self.watch.read, begun, ended);
        self.received += 1;
        Ok(ended)
    }
}
