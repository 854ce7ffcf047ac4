//! One end of a case: two transfers, and what happens to it on the way.

use std::sync::atomic::{AtomicU64, Ordering};

use headwater_host::counters::{self, Counter};
use headwater_host::image::Image;
use headwater_host::lifecycle::{self, Moment};
use headwater_sockets::lend;

use crate::common::stream::Random;
use crate::common::world::{Child, End, soon};
use crate::plan::{Finish, Sibling, Style, Victim};
use crate::transfer::{Flow, Reader, Side, Writer};

/// Milliseconds without an event after which a wake-up counts as lost.
const LOST: i32 = 15_000;

/// Runs the end of `side` to its close.
pub fn run(side: Side) {
    if side.plan.greets {
        greet(&side);
    }
    let style = side.plan.style[side.end];
    side.socket.set_nonblocking(style == Style::Poll);
    match style {
        Style::Threads => with_threads(side),
        Style::Poll => {
            let (mut reader, mut writer) = (Reader::new(&side), Writer::new(&side));
            if !poll(side, Some(&mut reader), Some(&mut writer)) {
                return;
            }
        }
    }
    finish(side);
}

/// A few words back and forth, within which connections are taken over.
fn greet(side: &Side) {
    for _ in 0..6 {
        let mut byte = [0u8];
        let done = if side.end == 0 {
            side.socket
                .write_all(b"?")
                .and_then(|()| side.socket.read_exact(&mut byte))
        } else {
            side.socket
                .read_exact(&mut byte)
                .and_then(|()| side.socket.write_all(b"!"))
        };
        if let Err(e) = done {
            side.fail(format_args!("greeting: errno {e}"));
        }
    }
}

fn finish(side: Side) {
    let w = side.world;
    w.over[side.end].store(1, Ordering::Relaxed);
    w.carried
        .fetch_add(side.socket.view().is_some() as u32, Ordering::Relaxed);
    side.socket.close();
    w.switches
        .fetch_add(counters::read(Counter::Switches), Ordering::Relaxed);
    w.unswitches
        .fetch_add(counters::read(Counter::Unswitches), Ordering::Relaxed);
    w.ring_bytes
        .fetch_add(counters::read(Counter::ShmBytesTx), Ordering::Relaxed);
}

// ---- blocking, with threads ----

fn with_threads(side: Side) {
    std::thread::scope(|scope| {
        let shaker = side.plan.shaken[side.end].then(|| scope.spawn(move || shake(side)));
        let writer = scope.spawn(move || write_blocking(side, Writer::new(&side)));
        read_blocking(side, Reader::new(&side));
        writer.join().expect("the writer");
        side.world.over[side.end].store(1, Ordering::Relaxed);
        if let Some(shaker) = shaker {
            shaker.join().expect("the shaker");
        }
    });
}

/// Switches and un-switches while others read and write.
fn shake(side: Side) {
    let mut random = Random::new(side.plan.seed ^ 0x51a_0000);
    while side.world.over[side.end].load(Ordering::Relaxed) == 0 {
        for _ in 0..random.below(200) {
            std::thread::yield_now();
        }
        if random.one_in(2) {
            side.socket.unswitch();
        } else {
            side.socket.switch();
        }
    }
}

fn read_blocking(side: Side, mut reader: Reader) {
    loop {
        if due(&side, reader.pos, &[Sibling::Reads, Sibling::ReadsBare]) {
            return in_child(side, |side| read_blocking_to_end(side, reader));
        }
        if due(&side, reader.pos, &[Sibling::Disturbs]) {
            let mut child = disturber(side);
            read_blocking_to_end(side, reader);
            return join(&side, &mut child);
        }
        freeze_if_due(&side, reader.pos);
        start_image_if_due(&side, reader.pos);
        if read_is_over(&side, &reader) || reader.step(&side, true) == Flow::End {
            return;
        }
    }
}

fn read_blocking_to_end(side: Side, mut reader: Reader) {
    let mut flow = Flow::More;
    while !read_is_over(&side, &reader) && flow != Flow::End {
        flow = reader.step(&side, true);
    }
    side.world.over[side.end].store(1, Ordering::Relaxed);
}

fn write_blocking(side: Side, mut writer: Writer) {
    loop {
        if due(&side, writer.pos, &[Sibling::Writes]) {
            return in_child(side, |side| while writer.step(&side) != Flow::End {});
        }
        if writer.step(&side) == Flow::End {
            break;
        }
    }
    if side.plan.finish == Finish::Shutdown {
        side.socket.shut_down_writing();
    }
}

// ---- non-blocking, by poll ----

/// Moves what is given until it is done; false when a child has taken over everything.
fn poll(side: Side, reader: Option<&mut Reader>, writer: Option<&mut Writer>) -> bool {
    let (mut reader, mut writer) = (reader, writer);
    let mut child = None;
    while reader.is_some() || writer.is_some() {
        let (read, written) = (
            reader.as_ref().map_or(0, |r| r.pos),
            writer.as_ref().map_or(0, |w| w.pos),
        );
        let both = reader.is_some() && writer.is_some();
        freeze_if_due(&side, read);
        start_image_if_due(&side, read);
        if child.is_none() && both && due(&side, read, &[Sibling::DoesAll]) {
            let (r, w) = (reader.take(), writer.take());
            in_child_after(
                side,
                |side| side.socket.close(),
                |side| {
                    poll(side, r, w);
                },
            );
            return false;
        } else if child.is_none() && both && due(&side, read, &[Sibling::Reads, Sibling::ReadsBare])
        {
            let r = reader.take();
            child = Some(fork(side, |side| {
                poll(side, r, None);
            }));
            continue;
        } else if child.is_none() && both && due(&side, written, &[Sibling::Writes]) {
            let w = writer.take();
            child = Some(fork(side, |side| {
                poll(side, None, w);
            }));
            continue;
        } else if child.is_none() && both && due(&side, read, &[Sibling::Disturbs]) {
            child = Some(disturber(side));
        }
        let mut events = 0;
        if reader.is_some() {
            events |= libc::POLLIN;
        }
        if writer.is_some() {
            events |= libc::POLLOUT;
        }
        let got = side.socket.poll(events, LOST);
        if got == 0 {
            side.fail(format_args!("nothing to poll at {read} and {written}"));
        }
        if let Some(r) = reader.as_mut()
            && got & !libc::POLLOUT != 0
            && (r.step(&side, false) == Flow::End || read_is_over(&side, r))
        {
            reader = None;
        }
        if let Some(w) = writer.as_mut()
            && got & (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) != 0
            && w.step(&side) == Flow::End
        {
            writer = None;
            if side.plan.finish == Finish::Shutdown {
                side.socket.shut_down_writing();
            }
        }
    }
    side.world.over[side.end].store(1, Ordering::Relaxed);
    if let Some(mut child) = child {
        join(&side, &mut child);
    }
    true
}

// ---- events ----

/// Has the end come as far as its plan's fork, is that of one of these kinds, and can it be now?
fn due(side: &Side, pos: u64, kinds: &[Sibling]) -> bool {
    let Some(f) = side.plan.fork else {
        return false;
    };
    let now = f.end == side.end && !side.forked && pos >= f.after && kinds.contains(&f.what);
    now && (f.what != Sibling::ReadsBare || side.socket.freeze())
}

fn read_is_over(side: &Side, reader: &Reader) -> bool {
    side.plan.finish == Finish::Close && reader.has_all()
}

fn freeze_if_due(side: &Side, pos: u64) {
    if let Some(f) = side.plan.freeze
        && f.end == side.end
        && pos >= f.after
        && !side.socket.bare
    {
        side.socket.freeze();
    }
}

fn start_image_if_due(side: &Side, pos: u64) {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let every = side.plan.images[side.end];
    let started = STARTED.load(Ordering::Relaxed);
    if every == 0 || side.socket.bare || side.forked || pos / every <= started {
        return;
    }
    STARTED.store(pos / every, Ordering::Relaxed);
    let lasts = [c"0", c"0.003"][started as usize % 2];
    // SAFETY: the child makes what a program with the library makes before exec, and execs.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            let _lending = lend::before(false, || Image::Stranger);
            // Else as if it had been killed on the way, and counted as a holder ever after.
            if side.plan.seed.is_multiple_of(2) {
                lifecycle::tell(Moment::Exec);
            }
            libc::execl(
                c"/bin/sleep".as_ptr(),
                c"sleep".as_ptr(),
                lasts.as_ptr(),
                core::ptr::null::<libc::c_char>(),
            );
            libc::_exit(1);
        }
        if started.is_multiple_of(2) {
            libc::waitpid(pid, core::ptr::null_mut(), 0);
        }
    }
}

/// Forks; the child goes on with `work`, closes and leaves.
fn fork(side: Side, work: impl FnOnce(Side)) -> Child {
    let bare = side.plan.fork.is_some_and(|f| f.what == Sibling::ReadsBare);
    Child::run(|| {
        let mut side = side;
        side.socket.bare = bare;
        side.forked = true;
        work(side);
        side.socket.bare = false;
        finish(side);
    })
}

fn in_child(side: Side, work: impl FnOnce(Side)) {
    in_child_after(side, |_| {}, work);
}

/// As [`fork`]; the parent does `first` and then waits for the child.
fn in_child_after(side: Side, first: impl FnOnce(Side), work: impl FnOnce(Side)) {
    let mut child = fork(side, work);
    first(side);
    join(&side, &mut child);
}

fn join(side: &Side, child: &mut Child) {
    let killed = side.plan.kill.is_some_and(|k| k.what == Victim::Sibling);
    match child.wait(soon()) {
        Some(End::Exit(0)) => {}
        Some(End::Signal(libc::SIGKILL)) if killed => {}
        other => side.fail(format_args!("sibling: {other:?}")),
    }
}

/// A sibling that looks, switches and un-switches, but moves nothing.
fn disturber(side: Side) -> Child {
    let child = Child::run(|| {
        let mut random = Random::new(side.plan.seed ^ 0xd157);
        let buf = [0u8; 5000];
        while side.world.over[side.end].load(Ordering::Relaxed) == 0 {
            match random.below(5) {
                0 => side.socket.unswitch(),
                1 => side.socket.switch(),
                2 => {
                    side.socket.poll(libc::POLLIN | libc::POLLOUT, 1);
                }
                _ => {
                    let n = random.scale(1, buf.len());
                    let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
                    let _ = side
                        .socket
                        .recv(&[crate::common::calls::piece(&buf[..n])], flags);
                }
            }
        }
        finish(side);
    });
    side.world
        .sibling
        .store(child.pid as u32, Ordering::Relaxed);
    child
}
