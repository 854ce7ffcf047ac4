//! A reset drops kernel bytes that were on their way. What the ring holds behind that gap is never read.

mod common;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use common::calls::{self, Socket, piece};
use common::stream::Stream;
use common::world::{Child, End, Stage, leave, load, run_workers, shared, soon};
use headwater_sockets::segment::Tx;

const STREAM: Stream = Stream { seed: 7 };
const BEHIND: usize = 100;

struct World {
    port: AtomicU32,
    stage: Stage,
    /// Bytes that the kernel took from the server.
    by_kernel: AtomicU64,
}

#[test]
fn a_stream_that_was_reset_before_a_ring_stretch_ends_at_the_gap() {
    assert!(run_workers("worker", 1, &[]));
}

#[test]
#[ignore = "started by the test above"]
fn worker() {
    if common::world::share().is_none() {
        return;
    }
    load();
    for told in [true, false] {
        let world: &'static World = shared();
        let mut server = Child::run(|| serve(world));
        let mut client = Child::run(|| call(world, told));
        assert_eq!(client.wait(soon()), Some(End::Exit(0)), "told: {told}");
        assert_eq!(server.wait(soon()), Some(End::Signal(libc::SIGKILL)));
    }
}

/// Sends by the kernel until it is full, then a little by the ring, and dies with a byte unread: so the kernel resets.
fn serve(world: &World) {
    let (listener, port) = calls::listen(false, 8_000);
    world.port.store(port as u32, Ordering::Relaxed);
    world.stage.reached(1);
    let socket = calls::accept(listener);
    calls::talk(socket, false);
    socket.unswitch();
    world.stage.reached(2);
    world.stage.wait(3);
    let mut pos = 0;
    while let Ok(n) = send(socket, pos, 10_000, libc::MSG_ZEROCOPY) {
        pos += n as u64;
    }
    world.by_kernel.store(pos, Ordering::Relaxed);
    socket.switch();
    let v = socket.view().expect("carried");
    assert!(Tx(v.out().send.tx.load(Ordering::Relaxed)).by_ring());
    assert_eq!(send(socket, pos, BEHIND, 0), Ok(BEHIND));
    world.stage.reached(4);
    // SAFETY: ends this process at once, with the descriptors as they are.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// Sends up to `n` bytes of the stream. MSG_ZEROCOPY, which the socket has not asked for, keeps them in the kernel.
fn send(socket: Socket, pos: u64, n: usize, flags: i32) -> Result<usize, calls::Errno> {
    let mut buf = vec![0; n];
    STREAM.fill(pos, &mut buf);
    socket.send(&[piece(&buf)], flags | libc::MSG_DONTWAIT)
}

/// Reads what has come. `told`: the program asks for the error first, so that its reads show an end of file.
fn call(world: &World, told: bool) {
    world.stage.wait(1);
    let port = world.port.load(Ordering::Relaxed) as u16;
    let socket = calls::connect(false, port, 8_000);
    calls::talk(socket, true);
    world.stage.wait(2);
    // Follows the server to the kernel.
    let early = socket.recv(&[piece(&[0; 10])], libc::MSG_DONTWAIT);
    assert_eq!(early, Err(libc::EAGAIN));
    let bare = Socket {
        bare: true,
        ..socket
    };
    assert_eq!(bare.write(b"x"), Ok(1));
    world.stage.reached(3);
    world.stage.wait(4);
    assert!(bare.poll(libc::POLLRDHUP, 10_000) & libc::POLLHUP != 0);
    if told {
        assert_eq!(error_of(socket), libc::ECONNRESET);
    }
    let (read, end) = read_all(socket);
    assert!(read < world.by_kernel.load(Ordering::Relaxed), "a gap");
    let v = socket.view().expect("carried");
    assert_eq!(v.in_ring().unread(), BEHIND);
    let expected = if told { Ok(0) } else { Err(libc::ECONNRESET) };
    assert_eq!(end, expected);
    for _ in 0..3 {
        assert_eq!(socket.read(&mut [0; 10]), Ok(0));
    }
    leave(0);
}

/// Bytes read, each in its place, and how the stream ended.
fn read_all(socket: Socket) -> (u64, Result<usize, calls::Errno>) {
    let mut pos = 0;
    let mut buf = [0; 3000];
    loop {
        match socket.read(&mut buf) {
            Ok(n) if n > 0 => {
                assert_eq!(STREAM.difference(pos, &buf[..n]), None);
                pos += n as u64;
            }
            end => return (pos, end),
        }
    }
}

fn error_of(socket: Socket) -> i32 {
    let (mut error, mut len) = (0i32, size_of::<i32>() as u32);
    let at = (&raw mut error).cast();
    // SAFETY: room for an int.
    let r = unsafe { libc::getsockopt(socket.fd, libc::SOL_SOCKET, libc::SO_ERROR, at, &mut len) };
    assert_eq!(r, 0);
    error
}
