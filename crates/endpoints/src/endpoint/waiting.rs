//! Threads that sleep at an endpoint: by the provider's ring, by its descriptor, and by the bell, which the endpoint's own calls
//! ring for what neither of these tells.

use headwater_channel::bell;
use headwater_channel::waiter::{self, Place};
use headwater_host::roster::Entry;
use headwater_host::sync::Ordering;
use headwater_host::sys::Errno;
use headwater_host::table::{self, Handle};
use headwater_host::{epoll, poll, process, reclaim, signal, sys};
use headwater_providers::provider::{Look, Waiter};
use headwater_streams::head::Head;
use headwater_streams::head::arming::Want;
use headwater_streams::pipe::bell_in;

use super::{Core, Endpoint};

const READABLE: u32 = libc::POLLIN as u32;

impl Endpoint {
    /// Sleeps until one of the poll(2) events `want` may hold, or a handler has run. Errors: EINTR when one ran that ends the
    /// call since it called [`signal::begin_wait`], ETIME at the deadline (nanoseconds), EBADF when it is closed, or has become
    /// a stream, since it was this `handle`'s.
    pub fn wait(
        &'static self,
        handle: Handle,
        want: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        match self.wait_for_any(handle, want, deadline) {
            Err(libc::EINTR) if !signal::interrupted() => Ok(()),
            waited => waited,
        }
    }

    /// As [`wait`](Endpoint::wait), but any handler may end it.
    fn wait_for_any(
        &'static self,
        handle: Handle,
        want: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        // At rings that it finds under the lock, and waits at without it.
        let looks = reclaim::enter();
        let (waiter, seen, kernel) = {
            let mut entered = self.enter();
            let core = entered.as_mut().ok_or(libc::EBADF)?;
            if self.handle() != handle {
                return Err(libc::EBADF);
            }
            core.provider.flush();
            if core.provider.ready(want) != 0 {
                return Ok(());
            }
            if let Some(sleep) = core.provider.sleep(want) {
                drop(entered);
                drop(looks);
                return self.doze(handle, || false, |_| sleep(deadline));
            }
            let waiter = core.provider.waiter();
            let seen = match waiter {
                Waiter::Head(head) | Waiter::Both { ring: head, .. } => head.version(),
                Waiter::Poll(_) => 0,
            };
            (waiter, seen, core.provider.kernel_wants(want))
        };
        if self.look_again(want) {
            return Ok(());
        }
        let for_room = want & libc::POLLOUT as u32 != 0;
        match waiter {
            Waiter::Head(head) => self.sleep_at(handle, head, seen, want, deadline, &mut []),
            Waiter::Both {
                full: Some(head), ..
            } if for_room => self.sleep_at(handle, head, head.version(), want, deadline, &mut []),
            Waiter::Both { ring, fd, .. } if !for_room => {
                let mut beside = [watched(fd, kernel), watched(self.own_bell(), READABLE)];
                self.sleep_at(handle, ring, seen, want, deadline, &mut beside)
            }
            Waiter::Poll(fd) | Waiter::Both { fd, .. } => {
                drop(looks);
                self.sleep(handle, fd, want, kernel, deadline)
            }
        }
    }

    /// Sleeps at a ring, and at other descriptors `beside` it, the last of which is the bell, unless the ring's head has told something since
    /// it was `seen`.
    fn sleep_at(
        &self,
        handle: Handle,
        head: &Head,
        seen: u32,
        want: u32,
        deadline: Option<u64>,
        beside: &mut [libc::pollfd],
    ) -> Result<(), Errno> {
        let side = if want & libc::POLLOUT as u32 != 0 {
            Want::ROOM
        } else {
            Want::DATA
        };
        let has_bell = !beside.is_empty();
        let is_ready = || has_bell && self.has_ready(want);
        self.doze(handle, is_ready, |rung| {
            let waited = head.wait(side, deadline, beside, || {
                self.handle() != handle || head.events(want) != 0 || head.version() != seen
            });
            *rung = beside.last().is_some_and(|bell| bell.revents != 0);
            waited
        })
    }

    /// Sleeps by `in_kernel`, which says whether it has heard the bell, unless it `is_ready`. EBADF: it is not this `handle`'s any more.
    fn doze(
        &self,
        handle: Handle,
        is_ready: impl Fn() -> bool,
        in_kernel: impl FnOnce(&mut bool) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let slept = waiter::sleep(&mut AtBell {
            endpoint: self,
            handle,
            is_ready,
            in_kernel: Some(in_kernel),
            rung: false,
            entry: None,
            was_called: false,
        });
        if self.handle() == handle {
            slept
        } else {
            Err(libc::EBADF)
        }
    }

    /// Looks for what probably comes at once; others get at the endpoint between the looks.
    fn look_again(&self, want: u32) -> bool {
        loop {
            let look = self
                .enter()
                .as_mut()
                .map_or(Look::Sleep, |c| c.provider.look_again(want));
            if look != Look::Again {
                return look == Look::Ready;
            }
            core::hint::spin_loop();
        }
    }

    /// Sleeps at the provider's descriptor, and at the bell: for what other threads do to the endpoint.
    fn sleep(
        &self,
        handle: Handle,
        fd: i32,
        want: u32,
        kernel: u32,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        let fd = if kernel & table::NOT_KERNELS == 0 {
            fd
        } else {
            -1
        };
        let mut fds = [watched(fd, kernel), watched(self.own_bell(), READABLE)];
        let is_ready = || self.has_ready(want);
        let slept = self.doze(handle, is_ready, |rung| {
            let timeout = deadline.map(|d| d.saturating_sub(sys::now()));
            // A cancelled thread stays counted, and rings of the bell are one more look.
            let polled = poll::wait(&mut fds, timeout);
            let errno = headwater_host::next::errno();
            *rung = fds[1].revents != 0;
            match polled {
                0 => Err(libc::ETIME),
                n if n < 0 => Err(errno),
                _ => Ok(()),
            }
        });
        if self.handle() != handle {
            // Closed by another thread; others that sleep here are to know it too.
            self.ring();
        }
        slept
    }

    /// Its handle is no more, since it becomes a stream: who waits by it is to wake up.
    pub(super) fn turn_out(&self) {
        {
            let _entered = self.enter();
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.wake_turned_out();
    }

    /// Of a stream's endpoint: wakes who sleeps here since before it was one. True if there are such threads. They wake up when they get the
    /// CPU, and only if nobody has taken the bells by then: so the stream does not look at them as long.
    pub fn wake_turned_out(&self) -> bool {
        if !self.asleep.has_sleepers() {
            return false;
        }
        // At rings that it finds under the lock, and tells without it.
        let _looks = reclaim::enter();
        let waiter = self.look(|core| core.provider.waiter());
        match waiter {
            Some(Waiter::Head(head)) => head.notify(),
            Some(Waiter::Both { ring, full, .. }) => {
                ring.notify();
                full.iter().for_each(|head| head.notify());
            }
            Some(Waiter::Poll(_)) | None => {}
        }
        self.ring();
        true
    }

    /// A ring of the bell was taken, by a sleeper that `was_called` or somebody else: others that sleep here get theirs. True: there are such.
    pub(super) fn pass_on(&self, was_called: bool) -> bool {
        let is_due = self.asleep.is_due(was_called);
        if is_due {
            bell::ring(self.bell.load(Ordering::SeqCst));
        }
        is_due
    }

    fn has_ready(&self, want: u32) -> bool {
        self.look(|c| c.provider.ready(want) != 0).unwrap_or(false)
    }

    fn is_awaited(&self) -> bool {
        self.asleep.has_sleepers() || self.armed.load(Ordering::Relaxed) > 0
    }

    /// What was read or accepted ahead is not in the kernel any more, where other threads wait for it.
    #[inline]
    pub(super) fn tell_sleepers(&self, c: &mut Core) {
        if self.is_awaited() && c.provider.ready(READABLE) != 0 {
            self.ring();
        }
    }

    /// There may be another request, which who sleeps here did not wait for, nor the sets.
    pub(super) fn look_for_next(&self, c: &mut Core) {
        if self.is_awaited() || epoll::any() {
            c.peek();
            self.armed.store(1, Ordering::SeqCst);
            self.ring();
        }
    }

    /// Wakes those who sleep at the provider's descriptor: something happened that the kernel does not tell.
    pub(super) fn ring(&self) {
        let bell = self.bell.load(Ordering::SeqCst);
        let armed =
            self.armed.load(Ordering::Relaxed) > 0 && self.armed.swap(0, Ordering::SeqCst) > 0;
        // A sleeper may take the ring of a set.
        if bell >= 0 && self.asleep.call(armed as u32) {
            bell::ring(bell);
        }
    }

    /// The bell, made now if need be; -1 when no descriptor is left.
    pub(super) fn own_bell(&self) -> i32 {
        bell_in(&self.bell).unwrap_or(-1)
    }
}

/// A thread asleep at the bell, and whatever else tells it something.
struct AtBell<'a, I, K> {
    endpoint: &'a Endpoint,
    handle: Handle,
    is_ready: I,
    in_kernel: Option<K>,
    rung: bool,
    entry: Option<Entry>,
    was_called: bool,
}

impl<I, K> Place for AtBell<'_, I, K>
where
    I: Fn() -> bool,
    K: FnOnce(&mut bool) -> Result<(), Errno>,
{
    type Slept = Result<(), Errno>;

    // Counted: who sleeps here must not wake up in another endpoint.
    fn arm(&mut self) {
        self.entry = Some(self.endpoint.asleep.enter());
    }

    fn look(&mut self) -> Option<Result<(), Errno>> {
        let is_over = self.endpoint.handle() != self.handle || (self.is_ready)();
        is_over.then_some(Ok(()))
    }

    fn sleep(&mut self) -> Result<(), Errno> {
        let in_kernel = self.in_kernel.take();
        in_kernel.map_or(Ok(()), |sleep| sleep(&mut self.rung))
    }

    fn take(&mut self) -> bool {
        if self.rung {
            bell::take(self.endpoint.bell.load(Ordering::SeqCst));
        }
        self.rung
    }

    fn disarm(&mut self) {
        if let Some(entry) = self.entry {
            self.was_called = self.endpoint.asleep.leave(entry);
        }
    }

    fn settle(&mut self) -> bool {
        self.endpoint.pass_on(self.was_called)
    }

    fn undisturbed<R>(&mut self, part: impl FnOnce(&mut Self) -> R) -> R {
        process::without_handlers(|| part(self))
    }
}

pub(super) fn watched(fd: i32, events: u32) -> libc::pollfd {
    sys::entry(fd, events as i16)
}
