//! shutdown(2), and connect(2) that undoes a connection.

use headwater_host::counters::Reason;
use headwater_host::epoll;
use headwater_host::sync::Ordering;
use headwater_host::table::Handle;

use crate::conn::{self, Phase};
use crate::ending::end_sending;
use crate::keeper::{self, Then};
use crate::life::close::closing;
use crate::life::to_kernel::leave_to_others;
use crate::record::{SHUT_RD, SHUT_WR};
use crate::{freeze, pins, switch};

/// Before shutdown(2) on a carried socket: what is left of it for the kernel to do.
pub fn shutting(h: Handle, how: i32) -> Option<i32> {
    let Some(c) = conn::get(h).filter(|_| how != libc::SHUT_RD) else {
        return Some(how);
    };
    let before = c.record().has(SHUT_WR);
    c.record().set(SHUT_WR, true);
    let looks = pins::entered();
    let Some(v) = c.view(&looks) else {
        return Some(how);
    };
    let left = !end_sending(c, &v, c.fd());
    // Who was publishing then has done so; who comes later goes to the kernel, after the shutdown.
    drop(v.lock_out());
    if left && (before || keeper::leave(c, &v, c.fd(), Then::ShutWrite)) {
        return (how == libc::SHUT_RDWR).then_some(libc::SHUT_RD);
    }
    Some(how)
}

/// After shutdown(2), which may have failed.
pub fn shut(h: Handle, how: i32, is_done: bool) {
    let Some(c) = conn::get(h) else { return };
    if is_done && how != libc::SHUT_WR {
        // Before its readers are rung.
        c.record().set(SHUT_RD, true);
    }
    c.look_now.store(1, Ordering::Relaxed);
    // The kernel tells edge-triggered sets of it as of room.
    c.note_full();
    c.shuts.fetch_add(1, Ordering::Relaxed);
    epoll::woken(h, false);
    let looks = pins::entered();
    if let Some(v) = c.view(&looks) {
        switch::take_pin_back_if_shut(c, &v);
        v.own().look.fetch_add(1, Ordering::Release);
        headwater_channel::bell::ring(v.own_bell());
    }
}

/// After connect(2) to AF_UNSPEC: the kernel has ended what the descriptor stood for, and it may begin anew.
pub fn disconnected(fd: i32, h: Handle) {
    let Some(c) = conn::get(h) else { return };
    match c.phase() {
        Phase::Listener => {
            if let Some(after) = closing(fd) {
                after.finish();
            }
        }
        Phase::Tracked => leave_to_others(fd, h, Reason::Option),
        // Other numbers and processes may hold it: all of them go on by the kernel.
        Phase::Carried => {
            let looks = pins::entered();
            if let Some(v) = c.view(&looks) {
                freeze::disconnect(c, &v);
                c.record().set(SHUT_WR | SHUT_RD, false);
                c.falls_back(Reason::Option);
            }
        }
        Phase::Free | Phase::Rest => {}
    }
}
