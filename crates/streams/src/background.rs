//! Serves descriptors of ours and alarms while no call of the program is at hand to do so, in the [background](worker): in a thread of STREAMS'
//! own, since procedures of modules may take their time.

use headwater_host::guarded::Guarded;
use headwater_host::hook::Hook;
use headwater_host::sync::{AtomicI32, AtomicU64, Ordering};
use headwater_host::worker::{self, Client, Rest};
use headwater_host::{hidden, sys};

use crate::pipe::made_in;

/// Whether a watch goes on after its function ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    Yes,
    No,
}

type Serve = Box<dyn FnMut() -> Keep + Send>;

struct Watch {
    fd: i32,
    /// Taken out while it runs.
    serve: Option<Serve>,
}

struct Background {
    watches: Guarded<Vec<Watch>>,
    /// The epoll descriptor; -1: nothing was watched yet.
    epoll: AtomicI32,
    /// When the earliest alarm is due; `u64::MAX`: none.
    alarm: AtomicU64,
}

static BACKGROUND: Background = Background {
    watches: Guarded::new(Vec::new()),
    epoll: AtomicI32::new(-1),
    alarm: AtomicU64::new(u64::MAX),
};

fn with<T>(f: impl FnOnce(&mut Vec<Watch>) -> T) -> T {
    f(&mut BACKGROUND.watches.enter())
}

/// Runs `serve` on the background thread whenever `fd` (a descriptor of ours) is readable or hung up, until it says
/// otherwise or [`unwatch`]. Errors: those of starting a thread.
pub fn watch(fd: i32, serve: impl FnMut() -> Keep + Send + 'static) -> sys::Result<()> {
    start()?;
    let event = sys::event((libc::EPOLLIN | libc::EPOLLRDHUP) as u32, fd as u64);
    let ep = BACKGROUND.epoll.load(Ordering::Acquire);
    with(|watches| {
        watches.retain(|w| w.fd != fd);
        sys::epoll_set(ep, libc::EPOLL_CTL_ADD, fd, event)
            .or_else(|e| if e == libc::EEXIST { Ok(()) } else { Err(e) })?;
        watches.push(Watch {
            fd,
            serve: Some(Box::new(serve)),
        });
        Ok(())
    })
}

/// Ends a watch; its function may be running this moment. To be called before the descriptor is closed.
pub fn unwatch(fd: i32) {
    drop_watches(|w| w.fd == fd);
}

/// Ends these watches. The list and the kernel's set change together: a number may be another descriptor's a moment later.
fn drop_watches(which: impl Fn(&Watch) -> bool) {
    let ep = BACKGROUND.epoll.load(Ordering::Acquire);
    if ep < 0 {
        return;
    }
    with(|watches| {
        watches.retain(|w| {
            if which(w) {
                let _ = sys::epoll_remove(ep, w.fd);
            }
            !which(w)
        });
    });
}

/// What is done when an alarm is due; says when the next one is.
pub static TICK: Hook<fn() -> u64> = Hook::new();

/// The thread is to run [`TICK`] at `at` (CLOCK_MONOTONIC, nanoseconds), or earlier.
pub fn alarm(at: u64) {
    let before = BACKGROUND.alarm.fetch_min(at, Ordering::SeqCst);
    if at >= before && is_started() {
        return;
    }
    // Where the thread can't be started, whatever needs it next tries again, and who waits looks at the alarm.
    if start().is_ok() {
        worker::call(Client::Streams);
    }
}

/// Nobody changes the list while the process is copied.
pub fn before_fork() -> bool {
    BACKGROUND.watches.keep_out();
    true
}

/// The thread stayed in the parent; a child that has something to do starts its own.
pub fn after_fork(in_child: bool) {
    BACKGROUND.watches.let_in();
    if !in_child {
        return;
    }
    let ep = BACKGROUND.epoll.swap(-1, Ordering::AcqRel);
    if ep < 0 {
        return;
    }
    hidden::close(ep);
    let watches = with(core::mem::take);
    for Watch { fd, serve } in watches {
        if let Some(serve) = serve {
            let _ = watch(fd, serve);
        }
    }
    if BACKGROUND.alarm.load(Ordering::Acquire) != u64::MAX {
        let _ = start();
    }
}

fn is_started() -> bool {
    BACKGROUND.epoll.load(Ordering::Acquire) >= 0 && worker::is_there(Client::Streams)
}

/// For what works by the background thread alone: it runs, or why it can't.
pub fn start() -> sys::Result<()> {
    if is_started() {
        return Ok(());
    }
    let make_set = || sys::epoll_create().and_then(hidden::hide);
    made_in(&BACKGROUND.epoll, make_set)
        .inspect_err(|_| worker::refuse(Client::Streams, turn_of_a_call))?;
    worker::begin(Client::Streams, turn, Some(turn_of_a_call))
}

/// Serves what has come.
fn turn(rest: &mut Rest) {
    rest.clear();
    let ep = BACKGROUND.epoll.load(Ordering::Acquire);
    let mut events = [libc::epoll_event { events: 0, u64: 0 }; 16];
    let n = sys::epoll_poll(ep, &mut events).unwrap_or(0);
    for event in &events[..n] {
        serve(event.u64 as i32);
    }
    look_at_alarm();
    rest.at(ep, libc::POLLIN);
    rest.until(BACKGROUND.alarm.load(Ordering::SeqCst));
}

fn look_at_alarm() {
    if BACKGROUND.alarm.load(Ordering::SeqCst) <= sys::now() {
        BACKGROUND.alarm.store(u64::MAX, Ordering::SeqCst);
        let next = TICK.get().map_or(u64::MAX, |tick| tick());
        BACKGROUND.alarm.fetch_min(next, Ordering::SeqCst);
    }
}

/// Where there is no thread, a call that waits looks at the alarm.
fn turn_of_a_call() -> u64 {
    if start().is_err() {
        look_at_alarm();
    }
    let alarm = BACKGROUND.alarm.load(Ordering::SeqCst);
    alarm.saturating_sub(sys::now())
}

fn serve(fd: i32) {
    let serve = with(|watches| watches.iter_mut().find(|w| w.fd == fd)?.serve.take());
    let Some(mut serve) = serve else { return };
    let keep = serve() == Keep::Yes;
    if keep {
        let mut serve = Some(serve);
        with(|watches| {
            if let Some(watch) = watches.iter_mut().find(|w| w.fd == fd && w.serve.is_none()) {
                watch.serve = serve.take();
            }
        });
    } else {
        // What has a function is another watch: ours was ended meanwhile, and its number used again.
        drop_watches(|w| w.fd == fd && w.serve.is_none());
    }
}
