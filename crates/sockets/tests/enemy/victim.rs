//! The victim: serves the enemy, calls it, and serves somebody honest, over and over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::common::calls::{self, Socket, piece};
use super::common::world::{leave, soon};
use super::{World, exchange};

static PANICKED: AtomicBool = AtomicBool::new(false);
/// Descriptors that a few dead peers may still cost.
const SLACK: usize = 64;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count())
}

pub fn live(world: &World) {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        PANICKED.store(true, Ordering::Relaxed);
    }));
    let (listener, port) = calls::listen(false, 0);
    world.port.store(port as u32, Ordering::Release);
    let before = descriptors();
    loop {
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
    }
    // What was shared with the dead goes with later calls, after a while.
    let until = soon();
    while descriptors() > before + SLACK {
        if Instant::now() > until {
            eprintln!(
                "victim: {before} descriptors at first, {} at last",
                descriptors()
            );
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
