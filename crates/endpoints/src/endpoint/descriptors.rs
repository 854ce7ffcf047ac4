//! The program's descriptors of an endpoint, what epoll sets learn of a change behind them, and who holds the endpoint.

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, hidden, sys};
use headwater_providers::provider::{Outcome, Provider};
use headwater_streams::pipe;
use headwater_tpi::Refusal;

use super::{Endpoint, get};

impl Endpoint {
    /// Another of the program's descriptors.
    pub fn duplicated(&self, fd: i32) {
        if table::set(fd, self.handle()) {
            self.holds.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The program closes a descriptor: to be called before the kernel does, [`let_go`](Endpoint::let_go) after it.
    pub fn forget(&self, fd: i32) {
        let own = self.handle();
        table::clear_if(fd, own);
        if self.fd.load(Ordering::Relaxed) == fd {
            let may_have_other = self.holds.load(Ordering::Acquire) > 1;
            let other = may_have_other
                .then(|| table::entries().find(|&(_, h)| h == own))
                .flatten();
            self.fd
                .store(other.map_or(-1, |(fd, _)| fd), Ordering::Relaxed);
        }
        if self.holds.load(Ordering::Acquire) > 1 {
            epoll::orphaned(fd);
        } else {
            epoll::closing(fd);
        }
    }

    /// One hold fewer; the last closes the endpoint.
    pub fn let_go(&self) {
        let fewer = |n: u32| (n > 1).then(|| n - 1);
        let others = self
            .holds
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer);
        if others.is_ok() {
            return;
        }
        let mut entered = self.enter();
        let Some(mut core) = entered.take() else {
            return;
        };
        // Before the provider wakes those who wait: by this they know.
        self.generation.fetch_add(1, Ordering::AcqRel);
        drop(entered);
        if self.is_last_holder() {
            core.provider.lose_unread();
        }
        core.provider.close();
        self.count_holder(-1);
        self.ring();
        if !self.asleep.has_any() {
            hidden::close(self.bell.swap(-1, Ordering::AcqRel));
        }
        self.holds.store(0, Ordering::Release);
    }

    /// Is this the last process, as far as known, that has the endpoint?
    pub fn is_last_holder(&self) -> bool {
        self.count_holder(0) <= 1
    }

    pub(super) fn count_holder(&self, change: i32) -> u32 {
        // SAFETY: null, or in a mapping that is never undone.
        let shared = unsafe { self.shared.load(Ordering::Acquire).as_ref() };
        shared.map_or(1, |shared| shared.count(change))
    }

    /// Gives the program a descriptor.
    pub(super) fn show(&self, oflag: i32) -> Outcome<i32> {
        let shadow = self.descriptor();
        let fd = match shadow {
            -1 => pipe::placeholder(oflag & libc::O_CLOEXEC | libc::O_NONBLOCK),
            _ => pipe::duplicate(shadow, oflag & libc::O_CLOEXEC != 0),
        };
        let fd = fd.map_err(Refusal::system)?;
        if !table::set(fd, self.handle()) {
            let _ = sys::close(fd);
            return Err(Refusal::system(libc::EMFILE));
        }
        self.nonblocking
            .store((oflag & libc::O_NONBLOCK != 0) as u32, Ordering::Relaxed);
        self.fd.store(fd, Ordering::Relaxed);
        Ok(fd)
    }

    /// The program's.
    pub(super) fn numbers(&self) -> impl Iterator<Item = i32> + use<> {
        let (own, shown) = (self.handle(), self.fd.load(Ordering::Relaxed));
        let only = (self.holds.load(Ordering::Acquire) == 1 && shown >= 0).then_some(shown);
        let all = only.is_none().then(table::entries).into_iter().flatten();
        let all = all.filter(move |&(_, h)| h == own).map(|(fd, _)| fd);
        only.into_iter().chain(all)
    }

    pub(super) fn note_inner(&self, provider: &dyn Provider) {
        let bits = provider.inner().map_or(0, Handle::bits);
        self.inner.store(bits, Ordering::Release);
    }

    /// Fast Sockets take a connection over while it is used: then the kernel alone does not know any more what can be read.
    #[inline]
    pub(super) fn note_carried(&self) {
        let inner = self.inner.load(Ordering::Relaxed);
        if self.carried.load(Ordering::Relaxed) == 0
            && let Some(h) = Handle::from_bits(inner).filter(|h| h.kind() == Kind::Socket)
            && table::descriptor(h).is_some_and(|d| d.bell(h).is_some())
        {
            self.tell_sets();
        }
    }

    #[cold]
    pub(super) fn tell_sets(&self) {
        self.carried.store(1, Ordering::Relaxed);
        let own = self.handle();
        for (fd, _) in table::entries().filter(|&(_, h)| h == own) {
            epoll::carried(fd);
        }
    }

    /// Sets are held while they look at endpoints, so that none is held here.
    #[cold]
    pub(super) fn renew_in_sets(&self) {
        for fd in self.numbers() {
            epoll::replace(fd, || {
                if let Some(core) = &*self.enter()
                    && table::lookup(fd) == Some(self.handle())
                {
                    renew(fd, core.shadow);
                }
            });
        }
    }
}

/// Takes an endpoint out of direct mode: its numbers become nobody's, to be given to a stream by the caller, who gets its
/// hold. Who waits there is told, and who has its handle has none.
pub fn detach(h: Handle) -> Option<(&'static Endpoint, Vec<i32>)> {
    let e = get(h)?;
    let numbers: Vec<i32> = e.numbers().collect();
    for &fd in &numbers {
        table::clear_if(fd, h);
    }
    e.fd.store(-1, Ordering::Relaxed);
    e.holds
        .fetch_sub(numbers.len().saturating_sub(1) as u32, Ordering::AcqRel);
    e.turn_out();
    Some((e, numbers))
}

/// A number of the program's becomes a copy of another descriptor.
pub(super) fn renew(fd: i32, shadow: i32) {
    if shadow < 0 {
        // Of one that says nothing.
        if let Ok(silent) = pipe::placeholder(libc::O_CLOEXEC | libc::O_NONBLOCK) {
            renew(fd, silent);
            let _ = sys::close(silent);
        }
        return;
    }
    let _ = sys::dup_over(shadow, fd);
}
