//! Round trips between two threads, or two processes: how long one takes.
//!
//! ```text
//! ping_pong [--processes] [--cpus A,B] [--bytes N] [--rounds N] [--sleep]
//! ```
//!
//! `--cpus` pins the two sides, `--sleep` forbids spinning and yielding.

use std::error::Error;
use std::time::Instant;

use headwater_channel::{Channel, ReceiveError};

struct Options {
    processes: bool,
    cpus: Option<(usize, usize)>,
    bytes: usize,
    rounds: u32,
    spin: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let (near, far) = Channel::builder().spin(options.spin).pair()?;
    if options.processes {
        in_two_processes(&options, near, far)
    } else {
        in_two_threads(&options, near, far)
    }
}

fn in_two_threads(options: &Options, near: Channel, far: Channel) -> Result<(), Box<dyn Error>> {
    std::thread::scope(|s| {
        s.spawn(|| {
            pin(options.cpus.map(|(_, far)| far));
            echo(far)
        });
        pin(options.cpus.map(|(near, _)| near));
        measure(options, near)
    })
}

fn in_two_processes(options: &Options, near: Channel, far: Channel) -> Result<(), Box<dyn Error>> {
    // SAFETY: there is one thread.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => {
            // Or the child itself would keep the channel open.
            drop(near);
            pin(options.cpus.map(|(_, far)| far));
            echo(far);
            Ok(())
        }
        child => {
            drop(far);
            pin(options.cpus.map(|(near, _)| near));
            let result = measure(options, near);
            // SAFETY: our child, which ends since `near` was dropped.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            result
        }
    }
}

/// Answers every message with itself, until the other end is dropped.
fn echo(end: Channel) {
    let mut buf = vec![0; end.max_message()];
    loop {
        match end.recv(&mut buf) {
            Ok(n) => end.send(&buf[..n]).unwrap(),
            Err(ReceiveError::Interrupted) => {}
            Err(ReceiveError::Closed) => return,
            Err(e) => panic!("{e}"),
        }
    }
}

fn measure(options: &Options, end: Channel) -> Result<(), Box<dyn Error>> {
    let message = vec![42; options.bytes];
    let mut answer = vec![0; options.bytes];
    let round = |answer: &mut [u8]| -> Result<(), Box<dyn Error>> {
        end.send(&message)?;
        end.recv(answer)?;
        Ok(())
    };
    for _ in 0..options.rounds / 10 {
        round(&mut answer)?;
    }
    let start = Instant::now();
    for _ in 0..options.rounds {
        round(&mut answer)?;
    }
    let each = start.elapsed() / options.rounds.max(1);
    assert_eq!(answer, message);
    println!("{} bytes: {} ns/round trip", options.bytes, each.as_nanos());
    Ok(())
}

/// Keeps this thread on one CPU, if one is given.
fn pin(cpu: Option<usize>) {
    let Some(cpu) = cpu else { return };
    // SAFETY: a cpu_set_t of zeroes is empty, and outlives the call.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set) != 0
    };
    if failed {
        eprintln!(
            "can't run on CPU {cpu}: {}",
            std::io::Error::last_os_error()
        );
    }
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        processes: false,
        cpus: None,
        bytes: 64,
        rounds: 200_000,
        spin: true,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} wants a value"));
        match arg.as_str() {
            "--processes" => options.processes = true,
            "--sleep" => options.spin = false,
            "--bytes" => options.bytes = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--cpus" => {
                let value = value()?;
                let (near, far) = value.split_once(',').ok_or("--cpus wants A,B")?;
                options.cpus = Some((near.parse()?, far.parse()?));
            }
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    Ok(options)
}
