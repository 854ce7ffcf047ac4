//! A sleep at several rings and descriptors.

use headwater_channel::bell;
use headwater_channel::waiter::Place;
use headwater_host::sys;
use headwater_host::table::{self, Descriptor, Handle};
use headwater_providers::loopback::name;

/// A thread asleep at the bells of associations in shared memory, and at descriptors.
pub(super) struct AtRings<'a, C, K> {
    pub handles: &'a [Handle],
    /// Of poll(2), that it waits for.
    pub events: u32,
    /// Whose ring was taken.
    pub rung: Vec<Handle>,
    /// Is there another reason to look again?
    pub changed: C,
    /// Sleeps, unless what it is given says that there is something.
    pub in_kernel: K,
}

impl<C: Fn() -> bool, K> AtRings<'_, C, K> {
    fn each(&self) -> impl Iterator<Item = (Handle, &'static dyn Descriptor)> {
        let known = |&h: &Handle| Some((h, table::descriptor(h)?));
        self.handles.iter().filter_map(known)
    }

    fn holds(&self) -> bool {
        let mut each = self.each();
        (self.changed)() || each.any(|(h, d)| d.ready(h, self.events) != 0)
    }
}

impl<C, K> Place for AtRings<'_, C, K>
where
    C: Fn() -> bool,
    K: Fn(&dyn Fn() -> bool) -> sys::Result<()>,
{
    type Slept = sys::Result<()>;

    fn arm(&mut self) {
        self.each().for_each(|(h, d)| d.arm(h, self.events));
    }

    fn look(&mut self) -> Option<sys::Result<()>> {
        self.holds().then_some(Ok(()))
    }

    fn sleep(&mut self) -> sys::Result<()> {
        (self.in_kernel)(&|| self.holds())
    }

    fn take(&mut self) -> bool {
        let is_rung = |(h, d): (Handle, &dyn Descriptor)| {
            let bell = d.bell(h).filter(|&fd| name::poll(fd, libc::POLLIN, 0) != 0);
            bell.filter(|&fd| bell::take(fd)).map(|_| h)
        };
        self.rung = self.each().filter_map(is_rung).collect();
        !self.rung.is_empty()
    }

    fn disarm(&mut self) {
        self.each().for_each(|(h, d)| d.disarm(h, self.events));
    }

    fn settle(&mut self) -> bool {
        let rung = self.each().filter(|(h, _)| self.rung.contains(h));
        rung.for_each(|(h, d)| d.settle(h));
        true
    }
}
