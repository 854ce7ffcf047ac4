//! Endpoints when the process is copied, makes way for another image, or ends; and what the flusher sends meanwhile.

use headwater_host::handed::{self, identity};
use headwater_host::lifecycle::{self, End, Moment, Part};
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{process, sys};
use headwater_providers::flusher::{self, Went};
use headwater_tpi::state::State;

use super::{Endpoint, SLAB_LOCK, all, at, ever, get, settle};
use crate::device::Device;

/// What an exec hands to the next image: see [`save`].
pub const VARIABLE: &str = "HEADWATER_ENDPOINTS";

/// Sends what endpoints hold back. For the flusher.
pub(super) fn flush_due(_now: u64) {
    for e in all().filter(|e| e.fed.load(Ordering::Relaxed) != 0) {
        if let Some(_section) = process::try_lock(&e.lock) {
            // SAFETY: under the lock.
            if let Some(core) = unsafe { &mut *e.core.get() } {
                core.provider.flush();
                e.fed
                    .store(core.provider.keeps_back() as u32, Ordering::Relaxed);
            }
        } else {
            flusher::note(Went::Busy);
        }
    }
}

/// Before exec, and the end of the process.
fn finish_all(last: bool) {
    for e in all() {
        e.look(|c| c.provider.finish(last));
    }
    headwater_sctp_stack::stack::flush_all();
}

/// Before fork.
pub fn flush_all() {
    all().for_each(Endpoint::flush);
    headwater_sctp_stack::stack::flush_all();
}

/// Has forks hold the endpoints.
pub fn look_after_forks() {
    lifecycle::add(Part::Endpoints, before_fork, after_fork);
    lifecycle::add_told(Part::Endpoints, told);
}

fn told(moment: &mut Moment) {
    match moment {
        Moment::Saving { variables, .. } => variables.push((VARIABLE, save())),
        Moment::Ending(End::Exec) | Moment::Confining => finish_all(false),
        Moment::Ending(End::Exit | End::AtOnce) => finish_all(true),
        Moment::Leaving => exiting(),
        _ => {}
    }
}

/// Nobody is inside an endpoint while the process is copied.
fn before_fork() -> bool {
    flush_all();
    core::mem::forget(process::lock(&SLAB_LOCK));
    for e in ever() {
        core::mem::forget(process::lock(&e.lock));
        // SAFETY: locked by us.
        if let Some(core) = unsafe { &mut *e.core.get() } {
            e.count_holder(1);
            core.doubled.clone_from(&core.outstanding);
            core.provider.forking();
        }
    }
    true
}

fn after_fork(in_child: bool) {
    for e in ever() {
        if in_child {
            // The parent's threads.
            e.asleep.clear();
            // SAFETY: locked by us before the fork, and we are the only thread.
            if let Some(core) = unsafe { &mut *e.core.get() } {
                core.provider.forked();
            }
        }
        e.lock.unlock();
        process::end_section();
    }
    SLAB_LOCK.unlock();
    process::end_section();
}

/// The process ends: endpoints are closed as by t_close.
fn exiting() {
    for e in all() {
        e.count_holder(-1);
        let core = e.enter().take();
        if let Some(mut core) = core {
            core.provider.close();
        }
    }
    headwater_sctp_stack::stack::exiting();
}

/// What the next image needs to know of the endpoints that it inherits: for HEADWATER_ENDPOINTS. Of numbers that are the same
/// endpoint's the second says which is the first.
fn save() -> String {
    let mut text = String::new();
    let mut known: Vec<(i32, Handle)> = Vec::new();
    for (fd, h) in table::entries().filter(|(_, h)| h.kind() == Kind::Endpoint) {
        let Some(e) = get(h).filter(|_| sys::survives_exec(fd)) else {
            continue;
        };
        let is = identity(fd);
        if let Some((first, _)) = known.iter().find(|(_, other)| *other == h) {
            text.push_str(&format!("{fd}:{is}:={first};"));
            continue;
        }
        let Some(core) = &mut *e.enter() else {
            continue;
        };
        if let Some(saved) = core.provider.save() {
            let (state, nonblocking) = (core.state.number(), e.is_nonblocking() as u32);
            let (name, qlen) = (core.device.name(), core.qlen);
            text += &format!("{fd}:{is}:{name}:{state}:{nonblocking}:{qlen}:{saved};");
            known.push((fd, h));
        }
    }
    text
}

/// At start: takes over what [`save`] said. What makes no sense is left alone.
pub fn inherit(text: &str) {
    for entry in text.split(';') {
        let _ = inherit_entry(entry);
    }
}

fn inherit_entry(entry: &str) -> Option<()> {
    let mut parts = entry.splitn(7, ':');
    let mut next = || parts.next();
    let fd = next()?.parse().ok()?;
    if !handed::is_here(fd, next()?.parse().ok()?) {
        return None;
    }
    let device = next()?;
    if let Some(first) = device.strip_prefix('=') {
        at(first.parse().ok()?)?.duplicated(fd);
        return Some(());
    }
    let device = Device::find(format!("/dev/{device}").as_bytes())?;
    let state = State::from_number(next()?.parse().ok()?)?;
    let (nonblocking, qlen) = (next()? == "1", next()?.parse().ok()?);
    restore(device, fd, state, qlen, next()?)?.set_nonblocking(nonblocking);
    Some(())
}

/// The endpoint that an earlier image left at `fd`.
fn restore(
    device: Device,
    fd: i32,
    state: State,
    qlen: u32,
    saved: &str,
) -> Option<&'static Endpoint> {
    handed::never_blocks(fd);
    let provider = device.restore(fd, saved)?;
    let e = settle(device, provider, state).ok()?;
    e.enter().as_mut()?.set_qlen(qlen);
    e.fd.store(fd, Ordering::Relaxed);
    table::set(fd, e.handle()).then_some(e)
}
