//! The program `headwater-load raw`: a forked pair of processes that send each other messages over a `Wire`.
//!
//! It runs apart from the measuring process so that nothing learnt in one sample lives on in the next.

pub mod cache_line;
mod channel;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::latency::Recorder;
use crate::{sys, wrong_bytes};

/// One end of something that carries messages.
pub trait Wire {
    fn send(&mut self, message: &[u8]) -> io::Result<()>;
    /// Takes one message of exactly this length; false at the end.
    fn receive(&mut self, message: &mut [u8]) -> io::Result<bool>;
}

/// What was asked for on the command line: WIRE MODE SIZE SECONDS SERVER-CPU CLIENT-CPU, a CPU being `any` or a number.
struct Work {
    one_way: bool,
    size: usize,
    time: Duration,
    cpus: [Option<usize>; 2],
}

/// Prints one line of JSON, as `headwater-load echo` does; CPU time and switches are those of both ends.
pub fn main(words: &[String]) -> ExitCode {
    let Some((wire, work)) = parse(words) else {
        eprintln!(
            "usage: headwater-load raw cache-line|channel rtt|stream SIZE SECONDS SERVER-CPU|any CLIENT-CPU|any"
        );
        return ExitCode::from(2);
    };
    let outcome = match wire {
        // A line carries one byte, however long the message it stands for.
        "cache-line" => cache_line::pair().and_then(|(a, b)| run(a, b, &Work { size: 1, ..work })),
        "channel" => channel::pair(work.size).and_then(|(a, b)| run(a, b, &work)),
        _ => Err(io::Error::other("no such wire")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headwater-load raw: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[String]) -> Option<(&str, Work)> {
    let [wire, mode, size, seconds, server, client] = words else {
        return None;
    };
    let cpu = |word: &str| word.parse().ok();
    Some((
        wire,
        Work {
            one_way: mode == "stream",
            size: size.parse().ok().filter(|&size| size > 0)?,
            time: Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?,
            cpus: [cpu(server), cpu(client)],
        },
    ))
}

fn run(mut server: impl Wire, client: impl Wire, work: &Work) -> io::Result<()> {
    let mut client = Some(client);
    // What went wrong is said while the server's end is still there: the other end, which then ends this one, can't notice before.
    let child = sys::fork("raw", || {
        // Each process keeps its own end only, so that the other notices when it is gone.
        drop(client.take());
        pin(work.cpus[0]);
        serve(&mut server, work).map(|()| true)
    })?;
    drop(server);
    pin(work.cpus[1]);
    let mut client = client.ok_or(io::ErrorKind::NotConnected)?;
    let outcome = measure(&mut client, work);
    drop(client);
    if outcome.is_err() {
        // SAFETY: the child is ours and not yet reaped.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    let served = sys::wait(child);
    let (messages, time, latency) = outcome?;
    if !served? {
        return Err(io::Error::other("the other end failed"));
    }
    let used = sys::usage_of_all();
    let (cpu, switches) = (used.cpu_ns(), used.switches());
    println!(
        "{{\"messages\":{messages},\"all_messages\":{messages},\"seconds\":{:.9},\"bytes\":{},{latency},\
         \"user_ns\":{cpu},\"system_ns\":0,\"voluntary\":{switches},\"involuntary\":0,\"congestion\":\"none\",\
         \"verified\":true}}",
        time.as_secs_f64(),
        messages * work.size as u64,
    );
    Ok(())
}

/// The first byte of the message that ends a run, which no other has.
const LAST: u8 = 0xff;

/// The message of each turn: a fixed body, and the turn at both edges.
struct Script {
    message: Vec<u8>,
}

impl Script {
    fn new(size: usize) -> Script {
        let message = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        Script { message }
    }

    #[inline]
    fn turn(&mut self, turn: u64) -> &[u8] {
        let (turn, end) = ((turn % 251) as u8, self.message.len() - 1);
        self.message[0] = turn;
        self.message[end] = turn;
        &self.message
    }
}

fn serve(wire: &mut impl Wire, work: &Work) -> io::Result<()> {
    let mut script = Script::new(work.size);
    let mut message = vec![0; work.size];
    for turn in 0.. {
        if !wire.receive(&mut message)? {
            break;
        }
        let last = message[0] == LAST;
        // Round trips are checked where they end, as in any echo.
        if work.one_way && !last && message != script.turn(turn) {
            return Err(wrong_bytes("a message"));
        }
        if !work.one_way || last {
            wire.send(&message)?;
        }
        if last {
            break;
        }
    }
    Ok(())
}

fn measure(wire: &mut impl Wire, work: &Work) -> io::Result<(u64, Duration, String)> {
    let mut script = Script::new(work.size);
    let mut answer = vec![0; work.size];
    let mut turn = 0u64;
    let batch = if work.one_way { 64 } else { 1 };
    let mut times = Recorder::new();
    let start = Instant::now();
    let mut last = start;
    script.turn(turn);
    while last - start < work.time {
        for _ in 0..batch {
            wire.send(&script.message)?;
            if !work.one_way && (!wire.receive(&mut answer)? || answer != script.message) {
                return Err(wrong_bytes("an answer"));
            }
            turn += 1;
            script.turn(turn);
        }
        let now = Instant::now();
        if !work.one_way {
            times.record_time(now - last);
        }
        last = now;
    }
    answer[0] = LAST;
    wire.send(&answer)?;
    wire.receive(&mut answer)?;
    let latency = format!(
        "\"p50_ns\":{},\"p99_ns\":{}",
        times.quantile(0.5),
        times.quantile(0.99)
    );
    Ok((turn, start.elapsed(), latency))
}

/// Where that can't be, it runs where it did.
pub fn pin(cpu: Option<usize>) {
    let _ = sys::pin(cpu.as_slice());
}
