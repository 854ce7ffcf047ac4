//! The victim: serves the enemy, calls it, and serves somebody honest, over and over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::common::calls::{self, Socket, piece};
use super::common::world::{leave, soon};
use super::{World, exchange};

static PANICKED: AtomicBool = AtomicBool::new(false);

/// What this process holds.
#[derive(Clone, Copy, Debug)]
struct Holds {
    descriptors: usize,
    mappings: usize,
    /// KiB, of its own and shared; a page that two have counts half.
    memory: usize,
}

/// What a few dead peers may still cost.
const SLACK: Holds = Holds {
    descriptors: 64,
    mappings: 128,
    memory: 16 << 10,
};
/// Cases after which what is made once has been made.
const WARM: u64 = 100;

impl Holds {
    fn now() -> Holds {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        let rollup = read("/proc/self/smaps_rollup");
        let kib = |line: &str| -> usize {
            let number = line.split_whitespace().nth(1);
            number.and_then(|n| n.parse().ok()).unwrap_or(0)
        };
        let counted = |l: &&str| l.starts_with("Pss_Anon:") || l.starts_with("Pss_Shmem:");
        Holds {
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count()),
            mappings: read("/proc/self/maps").lines().count(),
            memory: rollup.lines().filter(counted).map(kib).sum(),
        }
    }

    /// Has it grown since?
    fn is_above(self, before: Holds) -> bool {
        self.descriptors > before.descriptors + SLACK.descriptors
            || self.mappings > before.mappings + SLACK.mappings
            || self.memory > before.memory + SLACK.memory
    }
}

pub fn live(world: &World) {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        PANICKED.store(true, Ordering::Relaxed);
    }));
    let (listener, port) = calls::listen(false, 0);
    world.port.store(port as u32, Ordering::Release);
    let mut before = Holds::now();
    for cases in 1.. {
        let socket = calls::accept(listener);
        if world.over.load(Ordering::Acquire) != 0 {
            serve(socket);
            break;
        }
        suffer(socket);
        // It may be dead already.
        let to = world.enemy_port.load(Ordering::Acquire) as u16;
        if let Some(socket) = calls::try_connect(to) {
            suffer(socket);
        }
        world.done.fetch_add(1, Ordering::AcqRel);
        serve(calls::accept(listener));
        world.done.fetch_add(1, Ordering::AcqRel);
        if cases == WARM {
            before.mappings = Holds::now().mappings;
            before.memory = Holds::now().memory;
        }
    }
    // What was shared with the dead goes with later calls, after a while.
    let until = soon();
    eprintln!("victim: {before:?} at first, {:?} at last", Holds::now());
    while Holds::now().is_above(before) {
        if Instant::now() > until {
            eprintln!("victim: {before:?} at first, {:?} at last", Holds::now());
            leave(1);
        }
        serve(calls::accept(listener));
    }
}

/// Somebody honest.
fn serve(socket: Socket) {
    let served = exchange(socket, false);
    socket.close();
    if served.is_err() || PANICKED.load(Ordering::Relaxed) {
        eprintln!("victim: {served:?}");
        leave(1);
    }
}

/// Reads and writes until the connection has ended, in whatever way.
fn suffer(socket: Socket) {
    // The enemy's end calls first, whoever connected.
    if exchange(socket, false).is_err() {
        return socket.close();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = vec![0; 10_000];
            for turn in 0u32.. {
                socket.poll(libc::POLLIN, 1);
                let peek = libc::MSG_PEEK | libc::MSG_DONTWAIT;
                match socket.recv(&[piece(&buf[..5])], peek) {
                    Ok(0) => return,
                    Ok(_) | Err(libc::EAGAIN) => {}
                    Err(_) => return,
                }
                let taken = if turn % 4 == 3 {
                    socket.recv(&[piece(&buf)], libc::MSG_TRUNC)
                } else {
                    socket.read(&mut buf)
                };
                match taken {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
        });
        let buf = vec![7; 5_000];
        while socket.write(&buf).is_ok() {}
    });
    socket.close();
}
