//! Endpoints as members of poll, select and epoll sets: what the provider has taken already, what its socket or stream
//! knows, and what the kernel says of the descriptor, in the words of a transport's user.

use headwater_host::sync::Ordering;
use headwater_host::table::{self, Descriptor, Handle, Kind};

use super::{Endpoint, get};

pub struct Endpoints;

impl Endpoint {
    /// What the provider's own descriptor stands for.
    pub fn inner(&self) -> Option<Handle> {
        Handle::from_bits(self.inner.load(Ordering::Acquire))
    }

    fn inside(&self) -> Option<(Handle, &'static dyn Descriptor)> {
        let h = self.inner()?;
        Some((h, table::descriptor(h)?))
    }

    /// poll(2) events that hold by what this process and the rings know.
    pub fn ready(&self, want: u32) -> u32 {
        let mut entered = self.enter();
        let Some(core) = &mut *entered else {
            return libc::POLLNVAL as u32;
        };
        let own = core.provider.ready(want);
        let inner = self.inside().map_or(0, |(h, d)| {
            let said = d.ready(h, core.provider.kernel_wants(want));
            core.provider.kernel_means(said)
        });
        own | inner
    }

    /// The bell that this process's own calls ring, made if need be. With one, sets look here too: what holds is not what the kernel says
    /// of the descriptor, of which something was taken, or told, or is not made yet.
    fn own_bell_if_open(&self) -> Option<i32> {
        let is_open = self.enter().is_some();
        let bell = is_open.then(|| self.own_bell());
        bell.filter(|&bell| bell >= 0)
    }

    /// What alone says what holds of the descriptor, if that is not the kernel.
    fn alone(&self) -> Option<(Handle, &'static dyn Descriptor)> {
        if self.has_both() { None } else { self.inside() }
    }

    fn has_both(&self) -> bool {
        self.look(|c| c.provider.has_both()).unwrap_or(false)
    }

    /// Is there room by the kernel's word alone?
    fn has_kernel_room(&self) -> bool {
        let out = libc::POLLOUT as u32;
        let mut entered = self.enter();
        let Some(core) = entered.as_mut().filter(|c| !c.provider.has_both()) else {
            return false;
        };
        let wanted = core.provider.kernel_wants(out);
        if wanted & table::NOT_KERNELS != 0 || self.inner().is_some() {
            return false;
        }
        let said = headwater_providers::inet::poll(core.provider.descriptor(), wanted as i16);
        core.provider.kernel_means(said as u32) & out != 0
    }

    fn kernel_wants(&self, want: u32) -> u32 {
        self.look(|c| c.provider.kernel_wants(want)).unwrap_or(0)
    }

    fn kernel_means(&self, events: u32) -> u32 {
        self.look(|c| c.provider.kernel_means(events)).unwrap_or(0)
    }
}

fn inside(h: Handle) -> Option<(Handle, &'static dyn Descriptor)> {
    get(h)?.inside()
}

impl Descriptor for Endpoints {
    fn ready(&self, h: Handle, want: u32) -> u32 {
        get(h).map_or(libc::POLLNVAL as u32, |e| e.ready(want) & (want | ALWAYS))
    }

    fn arm(&self, h: Handle, want: u32) {
        let Some(e) = get(h) else { return };
        e.flush();
        if e.bell.load(Ordering::Relaxed) >= 0 {
            e.armed.store(1, Ordering::SeqCst);
        }
        if let Some((inner, d)) = e.inside() {
            d.arm(inner, want);
        }
    }

    fn disarm(&self, h: Handle, want: u32) {
        if let Some((inner, d)) = inside(h) {
            d.disarm(inner, want);
        }
    }

    fn armed_by_parent(&self, h: Handle, want: u32) -> bool {
        inside(h).is_none_or(|(inner, d)| d.armed_by_parent(inner, want))
    }

    fn bell(&self, h: Handle) -> Option<i32> {
        let e = get(h)?;
        let inner = e.inside().and_then(|(inner, d)| d.bell(inner));
        inner.or_else(|| e.own_bell_if_open())
    }

    fn settle(&self, h: Handle) {
        let Some(e) = get(h) else { return };
        match e.inside() {
            Some((inner, d)) if d.bell(inner).is_some() => d.settle(inner),
            _ => {
                e.pass_on(false);
            }
        }
    }

    fn kernel_events(&self, h: Handle, want: u32) -> u32 {
        let Some(e) = get(h) else { return 0 };
        let wanted = e.kernel_wants(want);
        if wanted & table::NOT_KERNELS != 0 {
            return table::NOT_KERNELS;
        }
        match e.alone() {
            Some((inner, d)) => d.kernel_events(inner, wanted),
            None => wanted,
        }
    }

    fn edges(&self, h: Handle) -> (u64, u64) {
        inside(h).map_or((0, 0), |(inner, d)| d.edges(inner))
    }

    fn has_kernel_room(&self, h: Handle) -> bool {
        get(h).is_some_and(Endpoint::has_kernel_room)
    }

    fn kernel_holds(&self, h: Handle, reported: u32, asked: u32) -> u32 {
        let Some(e) = get(h) else { return reported };
        // Of a connection that is not carried its socket can't say more than was reported.
        let can_say = |&(inner, d): &(Handle, &dyn Descriptor)| {
            inner.kind() != Kind::Socket || d.bell(inner).is_some()
        };
        match e.alone().filter(can_say) {
            Some((inner, d)) => d.kernel_holds(inner, reported, asked),
            None => headwater_providers::inet::poll(e.descriptor(), asked as i16) as u32 & asked,
        }
    }

    fn kernel_reported(&self, h: Handle, events: u32) -> u32 {
        let Some(e) = get(h) else { return events };
        let said = match e.alone() {
            Some((inner, d)) => d.kernel_reported(inner, events),
            None => events,
        };
        e.kernel_means(said)
    }

    fn peer_cpu(&self, h: Handle) -> u32 {
        inside(h).map_or(u32::MAX, |(inner, d)| d.peer_cpu(inner))
    }

    fn busy(&self, h: Handle, change: i32) -> bool {
        inside(h).is_none_or(|(inner, d)| d.busy(inner, change))
    }

    fn slice(&self, h: Handle, want: u32) -> Option<u64> {
        let e = get(h)?;
        let own = e.look(|c| c.provider.slice(want)).flatten();
        let inner = e.inside().and_then(|(inner, d)| d.slice(inner, want));
        own.into_iter().chain(inner).min()
    }

    fn slice_over(&self, h: Handle, want: u32) {
        if let Some((inner, d)) = inside(h) {
            d.slice_over(inner, want);
        }
    }
}

const ALWAYS: u32 = (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) as u32;
