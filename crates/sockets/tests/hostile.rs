//! A peer that writes nonsense into the shared words spoils its own connection and nothing else: no panic, no hang, and the
//! next connection works.

mod common;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use common::calls::{self, Socket, piece};
use common::stream::Random;
use common::world::{Child, End, load, run_workers, shared, soon};
use headwater_channel::bell;
use headwater_sockets::segment::{Header, View};

const CASES: u64 = 120;

struct World {
    port: AtomicU32,
    /// Connections that were carried when the attack began.
    carried: AtomicU64,
    /// How the victim's calls ended: with an error, or by the end of file.
    errors: AtomicU64,
    ends: AtomicU64,
}

static PANICKED: AtomicBool = AtomicBool::new(false);

#[test]
fn a_peer_that_scribbles_into_the_segment_costs_its_own_connection_only() {
    assert!(run_workers("worker", 1, &[]));
}

#[test]
#[ignore = "started by the test above"]
fn worker() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let seed = std::env::var("HEADWATER_TEST_SEED").map_or(None, |s| s.parse::<u64>().ok());
    let cases = seed.map_or(0..CASES, |s| s..s + 1);
    let count = cases.end - cases.start;
    let mut victim = Child::run(|| serve(world, count));
    let waiting = soon();
    while world.port.load(Ordering::Acquire) == 0 && std::time::Instant::now() < waiting {
        std::thread::yield_now();
    }
    for seed in cases {
        let mut attacker = Child::run(|| attack(world, seed));
        // It may hurt itself as well: then it is the victim of its own doing.
        if attacker.wait(soon()).is_none() {
            eprintln!("seed {seed}: the attacker hangs");
        }
        drop(attacker);
        let mut honest = Child::run(|| {
            let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
            let ok = exchange(socket, true).is_ok();
            socket.close();
            common::world::leave(!ok as i32);
        });
        assert_eq!(honest.wait(soon()), Some(End::Exit(0)), "after seed {seed}");
    }
    assert_eq!(victim.wait(soon()), Some(End::Exit(0)));
    let carried = world.carried.load(Ordering::Relaxed);
    assert!(
        carried * 2 > count,
        "{carried} attacks on carried connections"
    );
}

/// Rounds with content that is checked: enough for the takeover to pay, or the listener would be left alone.
fn exchange(socket: Socket, client: bool) -> Result<(), calls::Errno> {
    let mut buf = [0u8; 300];
    for i in 0..64u8 {
        if client {
            socket.write_all(&[i; 300])?;
        }
        socket.read_exact(&mut buf)?;
        if buf != [i; 300] {
            return Err(libc::EBADMSG);
        }
        if !client {
            socket.write_all(&[i; 300])?;
        }
    }
    Ok(())
}

// ---- the victim ----

fn serve(world: &'static World, count: u64) {
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}");
        PANICKED.store(true, Ordering::Relaxed);
    }));
    let (listener, port) = calls::listen(false, 0);
    world.port.store(port as u32, Ordering::Release);
    for _ in 0..count {
        suffer(world, calls::accept(listener));
        let socket = calls::accept(listener);
        let served = exchange(socket, false);
        socket.close();
        if served.is_err() || PANICKED.load(Ordering::Relaxed) {
            eprintln!("victim: {served:?}");
            common::world::leave(1);
        }
    }
}

/// Reads and writes until the connection has ended, in whatever way.
fn suffer(world: &World, socket: Socket) {
    if exchange(socket, false).is_err() {
        return socket.close();
    }
    let count = |error: bool| {
        let of = if error { &world.errors } else { &world.ends };
        of.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = vec![0; 10_000];
            loop {
                socket.poll(libc::POLLIN, 1);
                match socket.recv(&[piece(&buf[..5])], libc::MSG_PEEK | libc::MSG_DONTWAIT) {
                    Ok(0) => return count(false),
                    Ok(_) | Err(libc::EAGAIN) => {}
                    Err(_) => return count(true),
                }
                match socket.read(&mut buf) {
                    Ok(0) => return count(false),
                    Ok(_) => {}
                    Err(_) => return count(true),
                }
            }
        });
        let buf = vec![7; 5_000];
        while socket.write(&buf).is_ok() {}
    });
    socket.close();
}

// ---- the attacker ----

fn attack(world: &World, seed: u64) {
    let mut random = Random::new(seed);
    let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
    if exchange(socket, true).is_err() {
        common::world::leave(2);
    }
    let Some(v) = socket.view() else {
        return socket.close();
    };
    world.carried.fetch_add(1, Ordering::Relaxed);
    // Nothing but nonsense, or nonsense between proper calls.
    let polite = random.one_in(2);
    let mut buf = [0u8; 3000];
    for _ in 0..random.scale(1, 400) {
        for _ in 0..random.scale(1, 8) {
            scribble(&v, &mut random);
        }
        bell::ring(v.peer_bell());
        if polite {
            let _ = socket.send(&[piece(&buf[..random.below(3000)])], libc::MSG_DONTWAIT);
            let _ = socket.recv(&[piece(&buf)], libc::MSG_DONTWAIT);
        } else if random.one_in(4) {
            std::thread::yield_now();
        }
        buf[0] = buf[0].wrapping_add(1);
    }
    if random.one_in(2) {
        // SAFETY: ends this process at once, with the descriptors as they are.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    // SAFETY: ends this process without a word to the peer.
    unsafe { libc::_exit(0) };
}

/// Changes one shared word.
fn scribble(v: &View<'_>, random: &mut Random) {
    let base = v.header as *const Header as *const AtomicU32;
    let words = if random.one_in(4) {
        // The bytes of a ring: frame headers and payload.
        let ring = v.mapped.segment.ring_data(random.below(2));
        let at = ring.at(random.next() & !7) as *const AtomicU32;
        // SAFETY: inside the mapping and aligned.
        unsafe { &*at }
    } else {
        let at = random.below(size_of::<Header>() / 4);
        // SAFETY: inside the header.
        unsafe { &*base.add(at) }
    };
    let seen = words.load(Ordering::Relaxed);
    let value = match random.below(6) {
        0 => 0,
        1 => u32::MAX,
        2 => random.next() as u32,
        3 => seen ^ 1 << random.below(32),
        4 => seen.wrapping_add(random.below(64) as u32),
        _ => seen.wrapping_sub(random.below(64) as u32),
    };
    words.store(value, Ordering::Relaxed);
}
