//! Segments are used again, connection after connection, and nobody who is late sees anything of the next one.

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use common::calls::{self, Socket, listen};
use common::stream::{Hash, Random, Stream};
use common::world::{Child, End, load, run_workers, shared, soon};
use headwater_host::counters::{self, Counter};

const LANES: u64 = 6;
const CONNECTIONS: u64 = 60;

struct World {
    port: AtomicU32,
    /// Carried at the server's end.
    carried: AtomicU64,
    /// Connections that were closed under a call.
    closed: AtomicU64,
}

#[test]
fn late_readers_of_pooled_segments_get_their_own_connection_and_nothing_leaks() {
    assert!(run_workers("reuse", 1, &[]));
}

#[test]
fn a_reader_whose_socket_is_closed_by_another_thread_never_gets_bytes_of_the_next_connection() {
    assert!(run_workers("closed_under", 1, &[]));
}

#[test]
fn what_is_known_of_a_connection_that_was_closed_under_a_call_is_forgotten() {
    assert!(run_workers("forgotten", 1, &[]));
}

/// Rounds of one byte each way; after a few the connection is taken over.
fn talk(socket: Socket, client: bool, rounds: usize) -> Result<(), calls::Errno> {
    let mut byte = [0u8];
    for _ in 0..rounds {
        if client {
            socket.write_all(b"?")?;
            socket.read_exact(&mut byte)?;
        } else {
            socket.read_exact(&mut byte)?;
            socket.write_all(b"!")?;
        }
    }
    Ok(())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count())
}

// ---- many connections, in lanes, with late readers ----

#[test]
#[ignore = "started by the test above"]
fn reuse() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut server = Child::run(|| serve(world));
    let mut client = Child::run(|| {
        let deadline = soon();
        while world.port.load(Ordering::Acquire) == 0 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        let before = descriptors();
        std::thread::scope(|scope| {
            for lane in 0..LANES {
                scope.spawn(move || call(world, lane));
            }
        });
        settle("client", before);
    });
    let deadline = soon() + std::time::Duration::from_secs(20);
    assert_eq!(client.wait(deadline), Some(End::Exit(0)));
    assert_eq!(server.wait(deadline), Some(End::Exit(0)));
    let carried = world.carried.load(Ordering::Relaxed);
    assert!(carried > CONNECTIONS * LANES / 3, "{carried} carried");
}

/// Each lane opens one connection after the other: {seed, length, bytes}, then often closes without waiting.
fn call(world: &World, lane: u64) {
    for i in 0..CONNECTIONS {
        let seed = lane << 32 | i;
        let mut random = Random::new(seed);
        let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
        // Three rounds: claimed by the server, but closed before the client attaches.
        let rounds = random.pick(&[3, 4, 6, 6, 6]);
        let length = if rounds < 6 {
            0
        } else {
            random.scale(1, 60_000)
        };
        let mut bytes = vec![0; length];
        Stream { seed }.fill(0, &mut bytes);
        let mut head = [0; 16];
        head[..8].copy_from_slice(&seed.to_le_bytes());
        head[8..].copy_from_slice(&(length as u64).to_le_bytes());
        let waits = random.one_in(2);
        let result = (|| {
            socket.write_all(&[rounds as u8])?;
            talk(socket, true, rounds)?;
            socket.write_all(&head)?;
            socket.write_all(&bytes)?;
            if waits {
                let mut answer = [0; 8];
                socket.read_exact(&mut answer)?;
                let mut hash = Hash::new();
                hash.add(&bytes);
                assert_eq!(u64::from_le_bytes(answer), hash.0, "seed {seed}");
            }
            Ok::<(), calls::Errno>(())
        })();
        assert_eq!(result, Ok(()), "seed {seed}");
        socket.close();
    }
}

fn serve(world: &'static World) {
    let (listener, port) = listen(false, 0);
    let before = descriptors();
    world.port.store(port as u32, Ordering::Release);
    let mut threads = Vec::new();
    for _ in 0..LANES * CONNECTIONS {
        let socket = calls::accept(listener);
        threads.push(std::thread::spawn(move || answer(world, socket)));
    }
    for t in threads {
        t.join().expect("a connection");
    }
    settle("server", before);
}

fn answer(world: &World, socket: Socket) {
    let mut rounds = [0];
    let mut head = [0; 16];
    let begun = socket
        .read_exact(&mut rounds)
        .and_then(|()| talk(socket, false, rounds[0] as usize))
        .and_then(|()| socket.read_exact(&mut head));
    assert_eq!(begun, Ok(()));
    let [seed, length] = [0, 8].map(|i| u64::from_le_bytes(head[i..i + 8].try_into().unwrap()));
    let mut random = Random::new(!seed);
    // Late: the client has often closed, and opened its next connection, before this reads on.
    for _ in 0..random.below(300) {
        std::thread::yield_now();
    }
    let (stream, mut hash, mut pos) = (Stream { seed }, Hash::new(), 0);
    let mut buf = vec![0; random.scale(100, 20_000)];
    while pos < length {
        let n = socket.read(&mut buf).expect("bytes");
        assert!(n > 0, "seed {seed}: end of file at {pos} of {length}");
        assert_eq!(stream.difference(pos, &buf[..n]), None, "seed {seed}");
        hash.add(&buf[..n]);
        pos += n as u64;
    }
    world
        .carried
        .fetch_add(socket.view().is_some() as u64, Ordering::Relaxed);
    // The client may have gone without waiting for this.
    let _ = socket.write_all(&hash.0.to_le_bytes());
    match socket.read(&mut buf) {
        Ok(0) | Err(libc::ECONNRESET) => {}
        other => panic!("seed {seed}: after the end: {other:?}"),
    }
    socket.close();
}

/// What is left open are the pool's descriptors: a few for each lane, not for each connection.
fn settle(who: &str, before: usize) {
    let after = descriptors();
    let most = 40 * LANES as usize;
    assert!(
        after < before + most,
        "{who}: {before} descriptors, then {after}"
    );
    assert!(counters::read(Counter::Accelerated) > 0);
}

// ---- closed while a thread is blocked in it ----

#[test]
#[ignore = "started by the test above"]
fn closed_under() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut server = Child::run(|| close_under_readers(world));
    let mut client = Child::run(|| {
        let deadline = soon();
        while world.port.load(Ordering::Acquire) == 0 && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        for i in 0..40 {
            let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
            talk(socket, true, 6).expect("greeting");
            // Wait for the next connection to be under way, then say something on the old one.
            let next = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
            talk(next, true, 6).expect("greeting");
            let _ = socket.write_all(&[i; 100]);
            next.write_all(&[200 + i; 3000]).expect("next");
            socket.close();
            let mut byte = [0];
            next.read_exact(&mut byte).expect("all has been seen");
            next.close();
        }
    });
    let deadline = soon();
    assert_eq!(client.wait(deadline), Some(End::Exit(0)));
    assert_eq!(server.wait(deadline), Some(End::Exit(0)));
}

fn close_under_readers(world: &World) {
    let (listener, port) = listen(false, 0);
    world.port.store(port as u32, Ordering::Release);
    for i in 0..40u8 {
        let socket = calls::accept(listener);
        talk(socket, false, 6).expect("greeting");
        let reader = std::thread::spawn(move || {
            // Once: by the next call the number may be another socket's.
            let mut buf = [0; 256];
            let n = socket.read(&mut buf).unwrap_or(0);
            buf[..n].to_vec()
        });
        wait_for_a_caller(socket, i % 2 == 0);
        socket.close();
        let next = calls::accept(listener);
        talk(next, false, 6).expect("greeting");
        let mut all = [0; 3000];
        next.read_exact(&mut all)
            .expect("the next connection's bytes");
        assert!(all.iter().all(|&b| b == 200 + i), "only its own bytes");
        next.write_all(b".").expect("answer");
        next.close();
        let seen = reader.join().expect("the reader");
        assert!(
            seen.iter().all(|&b| b == i),
            "the old connection's bytes alone: {seen:?}"
        );
    }
}

/// Until somebody is inside a blocking call on the connection, `asleep` or about to be.
fn wait_for_a_caller(socket: Socket, asleep: bool) {
    let deadline = soon();
    let inside = || {
        let c = socket.conn().expect("looked after");
        match socket.view() {
            None => c.record().is_busy(),
            Some(v) if asleep => v.inn().ring.sleep.readers.any(),
            Some(_) => c.pins.load(Ordering::Relaxed) > 0,
        }
    };
    while !inside() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
}

// ---- many connections, each closed while another thread is inside a call on it ----

const CLOSED: usize = 300;

#[test]
#[ignore = "started by the test above"]
fn forgotten() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut server = Child::run(|| outlast(world));
    let mut client = Child::run(|| close_under_calls(world));
    let deadline = soon() + std::time::Duration::from_secs(20);
    assert_eq!(client.wait(deadline), Some(End::Exit(0)));
    assert_eq!(server.wait(deadline), Some(End::Exit(0)));
}

/// In every other connection few enough that it is not carried: the call is one in the kernel.
fn rounds_of(i: usize) -> usize {
    if i.is_multiple_of(2) { 1 } else { 6 }
}

fn outlast(world: &World) {
    let (listener, port) = listen(false, 0);
    world.port.store(port as u32, Ordering::Release);
    for i in 0..CLOSED {
        let socket = calls::accept(listener);
        talk(socket, false, rounds_of(i)).expect("greeting");
        // The kernel keeps a connection for as long as a call is inside it, so this end is the one that ends it.
        let deadline = soon();
        while world.closed.load(Ordering::Acquire) <= i as u64 {
            assert!(std::time::Instant::now() < deadline, "closed");
            std::thread::yield_now();
        }
        socket.close();
    }
}

fn close_under_calls(world: &World) {
    let deadline = soon();
    while world.port.load(Ordering::Acquire) == 0 && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let mut records = std::collections::HashSet::new();
    let mut entries = std::collections::HashSet::new();
    let mut busy = [0; 2];
    for i in 0..CLOSED {
        let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
        talk(socket, true, rounds_of(i)).expect("greeting");
        let c = socket.conn().expect("looked after");
        records.insert(core::ptr::from_ref(c.record()).addr());
        entries.insert(core::ptr::from_ref(c).addr());
        busy[socket.view().is_some() as usize] += 1;
        let reader = std::thread::spawn(move || {
            let _ = socket.read(&mut [0; 256]);
        });
        wait_for_a_caller(socket, true);
        socket.close();
        world.closed.store(i as u64 + 1, Ordering::Release);
        reader.join().expect("the reader");
    }
    // A few at a time are there: one that was freed is the next one's.
    let used = [records.len(), entries.len()];
    assert!(
        used.iter().all(|&n| n <= 8),
        "{used:?} for {CLOSED} connections"
    );
    assert!(
        busy.iter().all(|&n| n > CLOSED / 4),
        "carried or not: {busy:?}"
    );
}
