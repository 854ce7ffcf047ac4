//! An end goes while the ring holds what it has sent, and its peer reads only the kernel from here on, or soon will. The peer gets all
//! of it, whoever else was said to hold that end, and then the end of file.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};

use common::calls::{self, Socket};
use common::stream::Stream;
use common::world::{Child, End, Stage, leave, load, run_workers, shared, soon};
use headwater_channel::bell;
use headwater_host::board::State;
use headwater_host::counters::{self, Counter};
use headwater_host::image::Image;
use headwater_sockets::record::Takeover;
use headwater_sockets::segment::Tx;
use headwater_sockets::{boards, lend, pins, takeover};

const STREAM: Stream = Stream { seed: 11 };
/// Less than the ring holds, and more than a kernel with small buffers does.
const BYTES: u64 = 50_000;
const SMALL: i32 = 8_000;

struct World {
    port: AtomicU32,
    stage: Stage,
}

/// How the end goes that has sent.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Goes {
    Killed,
    Closes,
    Exits,
    /// Closes, and a sibling keeps it that makes no call.
    Leaves,
}

/// When its peer pins itself to the kernel.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Pins {
    Before,
    After,
}

/// What for.
#[derive(Clone, Copy, PartialEq, Debug)]
enum For {
    Image,
    Good,
}

#[test]
fn what_the_ring_holds_is_read_however_its_sender_goes() {
    assert!(run_workers("goes", 1, &[]));
}

#[test]
fn who_sleeps_hears_of_every_fork_that_makes_its_end_a_shared_one() {
    assert!(run_workers("forks", 1, &[]));
}

#[test]
fn a_ring_that_a_call_has_taken_reaches_others_though_the_call_is_left_for_good() {
    assert!(run_workers("leaves", 1, &[]));
}

#[test]
fn who_shares_an_end_begins_no_takeover_that_its_death_would_leave_under_way() {
    assert!(run_workers("shares", 1, &[]));
}

#[test]
#[ignore = "started by the test above"]
fn goes() {
    if common::world::share().is_none() {
        return;
    }
    load();
    for goes in [Goes::Killed, Goes::Closes, Goes::Exits, Goes::Leaves] {
        for pins in [Pins::Before, Pins::After] {
            if (goes, pins) == (Goes::Leaves, Pins::After) {
                // Nobody is left to ask.
                continue;
            }
            for what in [For::Image, For::Good] {
                let case = format!("{goes:?}, pinned {pins:?} for {what:?}");
                let world: &'static World = shared();
                let mut sender = Child::run(|| send(world, goes, pins));
                let mut reader = Child::run(|| receive(world, pins, what));
                if goes == Goes::Killed {
                    world.stage.wait(if pins == Pins::Before { 3 } else { 2 });
                    sender.signal(libc::SIGKILL);
                }
                assert_eq!(reader.wait(soon()), Some(End::Exit(0)), "{case}");
                assert!(sender.wait(soon()).is_some(), "{case}");
            }
        }
    }
}

fn send(world: &World, goes: Goes, pins: Pins) {
    let (listener, port) = calls::listen(false, SMALL);
    world.port.store(port as u32, Ordering::Relaxed);
    world.stage.reached(1);
    let socket = calls::accept(listener);
    calls::talk(socket, false);
    let sibling = Child::run(sleep_for_ever);
    // Once killed it counts as a holder ever after.
    let _sibling = (goes == Goes::Leaves).then_some(sibling);
    let mut bytes = vec![0; BYTES as usize];
    STREAM.fill(0, &mut bytes);
    socket.write_all(&bytes).expect("room in the ring");
    let v = socket.view().expect("carried");
    assert!(Tx(v.out().send.tx.load(Ordering::Relaxed)).by_ring());
    world.stage.reached(2);
    if goes == Goes::Killed {
        sleep_for_ever();
    }
    if pins == Pins::Before {
        world.stage.wait(3);
    }
    if matches!(goes, Goes::Closes | Goes::Leaves) {
        socket.close();
    }
    if goes == Goes::Leaves {
        world.stage.wait(4);
    }
    leave(0);
}

fn sleep_for_ever() {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

fn receive(world: &World, pins: Pins, what: For) {
    world.stage.wait(1);
    let port = world.port.load(Ordering::Relaxed) as u16;
    let socket = calls::connect(false, port, SMALL);
    calls::talk(socket, true);
    world.stage.wait(2);
    if pins == Pins::After {
        let bare = Socket {
            bare: true,
            ..socket
        };
        assert!(bare.poll(libc::POLLRDHUP, 20_000) != 0, "the end has come");
    }
    match what {
        For::Image => drop(lend::before(false, || Image::Stranger)),
        For::Good => {
            socket.freeze();
        }
    }
    world.stage.reached(3);
    let mut pos = 0;
    let mut buf = [0; 3000];
    loop {
        let n = socket.read(&mut buf).expect("no reset");
        if n == 0 {
            break;
        }
        assert_eq!(STREAM.difference(pos, &buf[..n]), None);
        pos += n as u64;
        if pos == BYTES {
            world.stage.reached(4);
        }
    }
    assert_eq!(pos, BYTES);
    assert_eq!(socket.read(&mut buf), Ok(0));
    leave(0);
}

// ---- sleepers ----

#[test]
#[ignore = "started by the test above"]
fn forks() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut forker = Child::run(|| fork_twice(world));
    let mut sleeper = Child::run(|| sleep(world));
    assert_eq!(sleeper.wait(soon()), Some(End::Exit(0)));
    assert_eq!(forker.wait(soon()), Some(End::Exit(0)));
}

fn fork_twice(world: &World) {
    let (listener, port) = calls::listen(false, 0);
    world.port.store(port as u32, Ordering::Relaxed);
    world.stage.reached(1);
    let socket = calls::accept(listener);
    calls::talk(socket, false);
    let mut first = Child::run(|| socket.close());
    assert_eq!(first.wait(soon()), Some(End::Exit(0)));
    world.stage.reached(2);
    world.stage.wait(3);
    let second = Child::run(sleep_for_ever);
    world.stage.reached(4);
    world.stage.wait(5);
    drop(second);
    socket.write_all(b".").expect("the end of the sleep");
    leave(0);
}

/// A thread sleeps until something comes; the other sees that it looks now and then, once somebody may be killed with its wake-up.
fn sleep(world: &World) {
    world.stage.wait(1);
    let port = world.port.load(Ordering::Relaxed) as u16;
    let socket = calls::connect(false, port, 0);
    calls::talk(socket, true);
    world.stage.wait(2);
    let v = socket.view().expect("carried");
    let reader = std::thread::spawn(move || socket.read(&mut [0]));
    let asleep = || v.inn().ring.sleep.readers.any();
    wait_until("asleep", asleep);
    world.stage.reached(3);
    world.stage.wait(4);
    let before = counters::read(Counter::Sleeps);
    wait_until("awake again", || {
        counters::read(Counter::Sleeps) > before + 1
    });
    world.stage.reached(5);
    assert_eq!(reader.join().expect("the reader"), Ok(1));
    leave(0);
}

#[test]
#[ignore = "started by the test above"]
fn leaves() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut sender = Child::run(|| {
        let (listener, port) = calls::listen(false, 0);
        world.port.store(port as u32, Ordering::Relaxed);
        world.stage.reached(1);
        let socket = calls::accept(listener);
        calls::talk(socket, false);
        socket.switch();
        world.stage.wait(2);
        socket.write_all(b".").expect("what both wait for");
        world.stage.wait(3);
        leave(0);
    });
    let mut leaver = Child::run(|| leave_with_a_ring(world));
    assert_eq!(leaver.wait(soon()), Some(End::Exit(0)));
    assert_eq!(sender.wait(soon()), Some(End::Exit(0)));
}

/// As if a handler's siglongjmp(3) left a call between the ring that it took and those that it was for, too.
fn leave_with_a_ring(world: &World) {
    world.stage.wait(1);
    let port = world.port.load(Ordering::Relaxed) as u16;
    let socket = calls::connect(false, port, 0);
    calls::talk(socket, true);
    let (c, v) = socket.conn().zip(socket.view()).expect("carried");
    v.in_ring().reader_sleeps();
    let here = 0u8;
    assert!(pins::pin(c, &v, (&raw const here).addr()).is_some());
    pins::fall_asleep(&v, pins::Sleep::Reading);
    bell::take(v.own_bell());
    world.stage.reached(2);
    wait_until("rung", || bell::take(v.own_bell()));
    pins::unwound_to(usize::MAX);
    assert!(bell::take(v.own_bell()), "the other one was not rung for");
    world.stage.reached(3);
    leave(0);
}

// ---- takeovers ----

#[test]
#[ignore = "started by the test above"]
fn shares() {
    if common::world::share().is_none() {
        return;
    }
    load();
    let world: &'static World = shared();
    let mut server = Child::run(|| {
        let (listener, port) = calls::listen(false, 0);
        world.port.store(port as u32, Ordering::Relaxed);
        world.stage.reached(1);
        let socket = calls::accept(listener);
        world.stage.wait(2);
        for _ in 0..4 {
            socket.read_exact(&mut [0]).expect("a word");
        }
        world.stage.reached(3);
        world.stage.wait(4);
        leave(0);
    });
    let mut client = Child::run(|| attach_in_vain(world));
    assert_eq!(client.wait(soon()), Some(End::Exit(0)));
    assert_eq!(server.wait(soon()), Some(End::Exit(0)));
}

/// A takeover is due, and the end shared: however often it is tried, an onlooker sees none under way.
fn attach_in_vain(world: &World) {
    world.stage.wait(1);
    let port = world.port.load(Ordering::Relaxed) as u16;
    let socket = calls::connect(false, port, 0);
    let c = socket.conn().expect("looked after");
    for _ in 0..4 {
        socket.write_all(b"?").expect("room");
    }
    world.stage.reached(2);
    world.stage.wait(3);
    let offer = c.offer().expect("made");
    let state = boards::of(offer).expect("its board").state(offer);
    assert!(state == State::Accepted);
    let _sibling = Child::run(sleep_for_ever);
    let (looks, over) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        let onlooker = scope.spawn(|| {
            let mut seen = 0;
            while over.load(Ordering::Relaxed) == 0 {
                seen += (c.record().takeover() == Takeover::Changing) as u32;
                looks.fetch_add(1, Ordering::Relaxed);
            }
            seen
        });
        let mut tries = 0;
        while tries < 100_000 || looks.load(Ordering::Relaxed) < 2_000_000 {
            takeover::progress(c, socket.fd);
            tries += 1;
        }
        over.store(1, Ordering::Relaxed);
        assert_eq!(onlooker.join().expect("the onlooker"), 0);
    });
    world.stage.reached(4);
    leave(0);
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}
