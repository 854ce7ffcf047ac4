//! Connections between users that name each other: they are carried, and nobody else gets between two ends. Needs root, for
//! three users.

mod common;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use common::calls::{self, Socket};
use common::users::{self, ANYBODY, ENEMY, FRIEND, VICTIM};
use common::world::{Child, End, load, shared, soon};
use headwater_host::board::{self, Addr, Board, State, Tuple};
use headwater_host::process;
use headwater_sockets::{handover, link};
use headwater_testkit::needs;

struct World {
    stage: AtomicU32,
    /// Of the listener and of the client.
    ports: [AtomicU32; 2],
    /// Ends that were carried: the client's, the server's.
    carried: [AtomicU32; 2],
}

impl World {
    fn reached(&self, stage: u32) {
        self.stage.fetch_max(stage, Ordering::AcqRel);
    }

    fn await_stage(&self, stage: u32) {
        let until = soon();
        while self.stage.load(Ordering::Acquire) < stage {
            assert!(Instant::now() < until, "stage {stage}");
            std::thread::yield_now();
        }
    }

    fn port(&self, of: usize) -> u16 {
        self.ports[of].load(Ordering::Acquire) as u16
    }

    fn tuple(&self) -> Tuple {
        let addr = |port| Addr {
            ip: 0xffff << 32 | 0x7f00_0001,
            port,
        };
        Tuple {
            client: addr(self.port(1)),
            server: addr(self.port(0)),
            netns: process::netns(),
        }
    }

    fn carried(&self) -> [u32; 2] {
        self.carried.each_ref().map(|n| n.load(Ordering::Acquire))
    }
}

/// Without a spin, so that each wait ends by a bell.
fn run(worker: &str) {
    users::run(worker, &[("HEADWATER_SPIN", "0")]);
}

#[test]
fn users_that_name_each_other_are_carried() {
    needs!("root");
    run("between_users");
}

#[test]
fn who_offers_a_connection_of_others_gets_nothing() {
    needs!("root");
    run("offered_by_a_stranger");
}

#[test]
fn who_claims_a_connection_of_others_gets_nothing() {
    needs!("root");
    run("claimed_by_a_stranger");
}

#[test]
fn who_floods_the_mailbox_keeps_nobody_out_for_long() {
    needs!("root");
    run("flooded_by_a_friend");
    run("flooded_by_anybody");
}

fn world() -> Option<&'static World> {
    common::world::share()?;
    load();
    Some(shared())
}

fn rounds(socket: Socket, client: bool, count: u8) {
    let mut byte = [0];
    for i in 0..count {
        if client {
            socket.write_all(&[i]).unwrap();
        }
        socket.read_exact(&mut byte).unwrap();
        assert_eq!(byte[0], i);
        if !client {
            socket.write_all(&[i]).unwrap();
        }
    }
}

fn plain_local_port(fd: i32) -> u16 {
    let name = headwater_host::sys::sock_name(fd, false).unwrap();
    board::addr_of(&name).unwrap().port
}

/// Talks until the stranger has had its chance, and some more. `bare`: without the library.
fn call(world: &World, bare: bool) {
    world.await_stage(1);
    let socket = calls::connect(false, world.port(0), 0);
    let socket = Socket { bare, ..socket };
    world.ports[1].store(plain_local_port(socket.fd) as u32, Ordering::Release);
    world.reached(2);
    rounds(socket, true, 4);
    world.await_stage(3);
    rounds(socket, true, 20);
    if socket.view().is_some() {
        world.carried[0].store(1, Ordering::Release);
    }
    socket.close();
}

fn serve(world: &World, bare: bool) {
    let (listener, port) = calls::listen(false, 0);
    world.ports[0].store(port as u32, Ordering::Release);
    world.reached(1);
    let socket = calls::accept(listener);
    let socket = Socket { bare, ..socket };
    rounds(socket, false, 4);
    rounds(socket, false, 20);
    if socket.view().is_some() {
        world.carried[1].store(1, Ordering::Release);
    }
    socket.close();
}

fn finish(mut children: Vec<Child>) {
    for (i, child) in children.iter_mut().enumerate() {
        assert_eq!(child.wait(soon()), Some(End::Exit(0)), "child {i}");
    }
}

#[test]
#[ignore = "started by a test above"]
fn between_users() {
    let Some(world) = world() else { return };
    world.reached(3);
    world.stage.store(0, Ordering::Release);
    let server = users::child(FRIEND, || serve(world, false));
    let client = users::child(VICTIM, || {
        world.await_stage(1);
        world.reached(3);
        call(world, false);
    });
    finish(vec![client, server]);
    assert_eq!(world.carried(), [1, 1]);
}

#[test]
#[ignore = "started by a test above"]
fn offered_by_a_stranger() {
    let Some(world) = world() else { return };
    let server = users::child(FRIEND, || serve(world, false));
    let client = users::child(VICTIM, || call(world, true));
    let stranger = users::child(ENEMY, || {
        world.await_stage(2);
        let board = Board::open(&board::folder(), true).unwrap();
        assert!(link::open_mailbox());
        let offer = board.offer(world.tuple()).unwrap();
        world.reached(3);
        // As long as the server might take it.
        let until = soon();
        while board.state(offer) == State::Offered && Instant::now() < until {
            if world.stage.load(Ordering::Acquire) >= 4 {
                break;
            }
            std::thread::yield_now();
        }
        board.advance(offer, State::Accepted, State::Attached);
        world.await_stage(4);
    });
    finish(vec![client, server]);
    world.reached(4);
    finish(vec![stranger]);
    assert_eq!(world.carried(), [0, 0]);
}

#[test]
#[ignore = "started by a test above"]
fn claimed_by_a_stranger() {
    let Some(world) = world() else { return };
    let server = users::child(FRIEND, || serve(world, true));
    let client = users::child(VICTIM, || call(world, false));
    let stranger = users::child(ENEMY, || {
        world.await_stage(2);
        let board = Board::open(&board::folder(), true).unwrap();
        let until = soon();
        let offer = loop {
            assert!(Instant::now() < until, "no offer");
            if let Some(offer) = board.find(&world.tuple()) {
                break offer;
            }
            std::thread::yield_now();
        };
        let mapped = link::segment_for(board.slot(offer).client(), |_| true).unwrap();
        mapped.accept(&world.tuple());
        board.slot(offer).sign(mapped.link, mapped.index as u64);
        assert!(board.advance(offer, State::Offered, State::Accepted));
        world.reached(3);
        world.await_stage(4);
    });
    finish(vec![client, server]);
    world.reached(4);
    finish(vec![stranger]);
    assert_eq!(world.carried(), [0, 0]);
}

/// Serves until the client says that it has seen enough.
fn serve_new_links(world: &World) {
    let (listener, port) = calls::listen(false, 0);
    world.ports[0].store(port as u32, Ordering::Release);
    world.reached(1);
    while world.stage.load(Ordering::Acquire) < 5 {
        let socket = calls::accept(listener);
        rounds(socket, false, 64);
        // The client says it before it closes.
        assert_eq!(socket.read(&mut [0]), Ok(0));
        socket.close();
    }
}

fn connect_to_mailboxes() -> Vec<i32> {
    let prefix = format!("@headwater.{}.", board::abi());
    let list = std::fs::read("/proc/net/unix").unwrap();
    let list = String::from_utf8_lossy(&list);
    let names = list.lines().filter_map(|l| l.split_whitespace().last());
    let mut made = Vec::new();
    for name in names.filter(|n| n.starts_with(&prefix)) {
        // SAFETY: zeroes are a valid address; it is valid for its length.
        unsafe {
            let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let fd = libc::socket(libc::AF_UNIX, kind, 0);
            let mut addr: libc::sockaddr_un = core::mem::zeroed();
            addr.sun_family = libc::AF_UNIX as u16;
            for (to, from) in addr.sun_path[1..].iter_mut().zip(&name.as_bytes()[1..]) {
                *to = *from as libc::c_char;
            }
            if libc::connect(fd, (&raw const addr).cast(), 2 + name.len() as u32) == 0 {
                made.push(fd);
            } else {
                libc::close(fd);
            }
        }
    }
    made
}

/// What the victim may keep of it: the links of others, and those that it has itself.
const KEPT: usize = 64 + 32;
const FLOOD: usize = 500;

fn flood(world: &World) {
    world.await_stage(2);
    let memory = headwater_host::sys::memfd_create(c"letter", 0).unwrap();
    let mut made = Vec::new();
    let until = soon();
    // Full, until the victim looks; then goes on until all is said.
    while world.stage.load(Ordering::Acquire) < 5 && Instant::now() < until {
        if made.len() < FLOOD {
            made.extend(connect_to_mailboxes());
        }
        for &fd in &made {
            let hello = handover::Hello::new(1, 2);
            let _ = handover::send(fd, &hello, [memory; 3]);
        }
        match made.len() {
            ..128 => {}
            128..FLOOD => world.reached(3),
            _ => world.reached(4),
        }
        std::thread::yield_now();
    }
}

fn be_flooded(world: &World) {
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(link::open_mailbox());
    let before = descriptors();
    world.await_stage(1);
    world.reached(2);
    world.await_stage(3);
    let until = soon();
    let mut most = 0;
    while world.stage.load(Ordering::Acquire) < 5 {
        let socket = calls::connect(false, world.port(0), 0);
        rounds(socket, true, 64);
        let carried = socket.view().is_some();
        most = most.max(descriptors());
        if carried && world.stage.load(Ordering::Acquire) == 4 {
            world.reached(5);
        }
        assert!(Instant::now() < until, "carried: {carried}");
        socket.close();
    }
    assert!(most <= before + KEPT, "{before} descriptors, then {most}");
}

fn flooded_by(uid: u32) {
    let Some(world) = world() else { return };
    let server = users::child(VICTIM, || serve_new_links(world));
    let client = users::child(VICTIM, || be_flooded(world));
    let stranger = users::child(uid, || flood(world));
    finish(vec![client, server, stranger]);
}

#[test]
#[ignore = "started by a test above"]
fn flooded_by_a_friend() {
    flooded_by(ENEMY);
}

#[test]
#[ignore = "started by a test above"]
fn flooded_by_anybody() {
    flooded_by(ANYBODY);
}
