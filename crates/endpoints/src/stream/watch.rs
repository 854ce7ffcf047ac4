//! What wakes a driver between calls. An epoll descriptor of the stream's own has the endpoint's descriptor and its bell,
//! each for one event; the background thread watches it, and has the driver look again inside the stream's perimeter.

use core::time::Duration;
use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use headwater_channel::bell;
use headwater_host::guarded::Guarded;
use headwater_host::lifecycle;
use headwater_host::reclaim::enter;
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use headwater_host::table::{Descriptor, Handle};
use headwater_host::{hidden, process, sys};
use headwater_streams::background::{self, Keep};
use headwater_streams::head::{self, Head, local};

use crate::endpoint::{Endpoint, Endpoints};

const IN: u32 = libc::POLLIN as u32;
/// How often the driver looks by the clock where the kernel has no memory for a watch, in nanoseconds.
const BLIND: u64 = Duration::from_millis(10).as_nanos() as u64;

/// How soon the driver looks again while threads are to leave the endpoint that sleep there since before it was a stream's, in
/// nanoseconds: twice as long each time, so many times.
const TURNED_OUT: u64 = Duration::from_millis(1).as_nanos() as u64;
const DOUBLED: u32 = 4;

/// What other threads reach.
pub struct Wake {
    /// The stream's.
    head: Handle,
    /// -1: none.
    epoll: AtomicI32,
    /// Whose `epoll` is; a child's would be its parent's.
    pid: AtomicI32,
    /// Something has happened since the driver looked.
    fired: AtomicBool,
    /// [`lifecycle::forks`] when the driver last looked.
    forks: AtomicU32,
}

impl Wake {
    fn new(head: &Head) -> Arc<Wake> {
        Arc::new(Wake {
            head: head.handle(),
            epoll: AtomicI32::new(-1),
            pid: AtomicI32::new(0),
            fired: AtomicBool::new(false),
            forks: AtomicU32::new(0),
        })
    }

    /// Has the driver look again, soon and on another thread.
    pub fn kick(self: &Arc<Wake>) {
        if let Some(epoll) = self.epoll() {
            set(epoll, ready_fd(), IN);
        }
    }

    /// On the background thread.
    fn served(&self) -> Keep {
        if self.pid.load(Ordering::Acquire) != process::pid() {
            return Keep::No;
        }
        let looks = enter();
        let Some(head) = head::get(self.head, &looks) else {
            return Keep::No;
        };
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 4];
        let _ = sys::epoll_poll(self.epoll.load(Ordering::Acquire), &mut events);
        self.fired.store(true, Ordering::Release);
        if self.is_wanted(head) {
            local::look_below(head, false);
        }
        Keep::Yes
    }

    /// A child of fork takes nothing from its parent before it has used the stream.
    fn is_wanted(&self, head: &Head) -> bool {
        let forked = self.forks.load(Ordering::Acquire) != lifecycle::forks();
        !forked || head.has_sleepers() || head.signals.load(Ordering::Relaxed) != 0
    }

    /// The epoll descriptor, this process's own.
    fn epoll(self: &Arc<Wake>) -> Option<i32> {
        static MAKING: Guarded<()> = Guarded::new(());
        let _making = MAKING.enter();
        let known = self.epoll.load(Ordering::Acquire);
        if known >= 0 && self.pid.load(Ordering::Acquire) == process::pid() {
            return Some(known);
        }
        self.close();
        let fresh = sys::epoll_create().and_then(hidden::hide_needed).ok()?;
        self.epoll.store(fresh, Ordering::Release);
        self.pid.store(process::pid(), Ordering::Release);
        let wake = self.clone();
        if background::watch(fresh, move || wake.served()).is_err() {
            // Nobody would look at it.
            self.close();
            return None;
        }
        Some(fresh)
    }

    fn close(&self) {
        let old = self.epoll.swap(-1, Ordering::AcqRel);
        if old >= 0 {
            background::unwatch(old);
            hidden::close(old);
        }
    }
}

/// Of a driver; used inside its perimeter.
pub struct Watch {
    pub wake: Option<Arc<Wake>>,
    armed: Cell<Armed>,
    /// How often it was not armed in a row, since there were such threads.
    left_rung: Cell<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Armed {
    want: u32,
    shadow: i32,
    kernel: u32,
    bell: i32,
}

impl Watch {
    pub fn new(head: Option<&Head>) -> Watch {
        Watch {
            wake: head.map(Wake::new),
            armed: Default::default(),
            left_rung: Default::default(),
        }
    }

    /// Did something happen since the last [`arm`](Watch::arm)? Then, or if `again`, nothing is armed any more.
    pub fn has_fired(&self, end: &Endpoint, again: bool) -> bool {
        let fired = self
            .wake
            .as_ref()
            .is_some_and(|w| w.fired.swap(false, Ordering::AcqRel))
            || again;
        if fired {
            self.disarm(end);
        }
        fired
    }

    /// Is the driver to look by itself, between calls?
    pub fn is_wanted(&self) -> bool {
        let Some(wake) = &self.wake else { return true };
        head::get(wake.head, &enter()).is_some_and(|head| wake.is_wanted(head))
    }

    /// What was armed; the bell stays as it is.
    fn disarm_only(&self, end: &Endpoint) -> Armed {
        let armed = self.armed.take();
        if armed.want != 0 {
            Endpoints.disarm(end.handle(), armed.want);
        }
        armed
    }

    fn disarm(&self, end: &Endpoint) {
        let armed = self.disarm_only(end);
        if armed.want == 0 {
            return;
        }
        if armed.bell >= 0 && bell::take(armed.bell) {
            Endpoints.settle(end.handle());
        }
    }

    /// The driver is to look again when one of the poll(2) events `want` may hold. Gives how long, in nanoseconds, that can be
    /// relied on, if not for ever.
    pub fn arm(&self, end: &Endpoint, want: u32) -> Option<u64> {
        let wake = self.wake.as_ref()?;
        let h = end.handle();
        let before = self.armed.get();
        let known = wake.pid.load(Ordering::Relaxed) == process::pid();
        wake.forks.store(lifecycle::forks(), Ordering::Release);
        if end.wake_turned_out() {
            // Their bells are the endpoint's, and not to be taken from them.
            self.disarm_only(end);
            let times = self
                .left_rung
                .replace((self.left_rung.get() + 1).min(DOUBLED));
            return Some(TURNED_OUT << times);
        }
        self.left_rung.set(0);
        if want == 0 && before.want == 0 {
            return None;
        }
        let now = Armed {
            want,
            shadow: end.descriptor(),
            kernel: Endpoints.kernel_events(h, want),
            bell: Endpoints.bell(h).unwrap_or(-1),
        };
        if known && now == before {
            return None;
        }
        self.disarm(end);
        let Some(epoll) = wake.epoll() else {
            return Some(BLIND).filter(|_| want != 0);
        };
        if want == 0 {
            let _ = sys::epoll_remove(epoll, now.shadow);
            return None;
        }
        Endpoints.arm(h, want);
        // Arming may have made the bell.
        let bell = Endpoints.bell(h).unwrap_or(-1);
        self.armed.set(Armed { bell, ..now });
        let mut sees = set(epoll, now.shadow, now.kernel);
        sees &= set(epoll, bell, IN);
        if Endpoints.ready(h, want) != 0 {
            sees &= set(epoll, ready_fd(), IN);
        }
        if !sees {
            self.disarm(end);
            return Some(BLIND);
        }
        Endpoints.slice(h, want)
    }

    pub fn close(&self, end: &Endpoint) {
        self.disarm(end);
        if let Some(wake) = &self.wake {
            wake.close();
        }
    }
}

/// Has `fd`, if there is one, in the set, for one event: of `events` (poll(2) and epoll(7) bits are the same), an error or a hangup.
/// False: the kernel does not take it.
fn set(epoll: i32, fd: i32, events: u32) -> bool {
    if fd < 0 {
        return true;
    }
    let event = sys::event(events | libc::EPOLLONESHOT as u32, fd as u64);
    match sys::epoll_set(epoll, libc::EPOLL_CTL_MOD, fd, event) {
        Err(libc::ENOENT) => sys::epoll_set(epoll, libc::EPOLL_CTL_ADD, fd, event).is_ok(),
        modified => modified.is_ok(),
    }
}

/// A descriptor that is always readable; children of fork share it.
fn ready_fd() -> i32 {
    static READY: OnceLock<i32> = OnceLock::new();
    *READY.get_or_init(|| {
        let fresh = sys::eventfd(1, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC);
        fresh.and_then(hidden::hide_needed).unwrap_or(-1)
    })
}
