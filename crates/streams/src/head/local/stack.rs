//! The modules of a queued head, and what is below them.
//!
//! # Contract
//! As for [`super::Local`]: queues are only reached inside the perimeter.

use core::ffi::c_int;

use headwater_host::sync::Ordering::Relaxed;
use headwater_host::sys::Errno;

use super::super::{Head, bottom};
use super::{begin, finish, inside, relax};
use crate::ddi::*;
use crate::exec::attach;
use crate::exec::registry;
use crate::{board, tunables};

/// I_PUSH. Errors: EINVAL (unknown, or too many), what the module's open says.
pub fn push(head: &Head, name: &[u8]) -> Result<c_int, Errno> {
    let Some(entry) = registry::module(name) else {
        headwater_host::log::write(
            headwater_host::log::Level::Warn,
            format_args!("I_PUSH: no module named {}", String::from_utf8_lossy(name)),
        );
        return Err(libc::EINVAL);
    };
    begin(head)?;
    head.inherited.store(0, Relaxed);
    let pushed = inside(head, |local| {
        if local.modules.borrow().len() >= tunables::get().nstrpush {
            return Err(libc::EINVAL);
        }
        if let Some(bottom) = local.bottom
            && local.modules.borrow().is_empty()
        {
            bottom::bring_up(head, bottom);
        }
        // SAFETY: what is registered as a module has procedures for its own queues.
        unsafe { attach::qattach(local.rq, entry.table(), &mut 0, 0, MODOPEN)? };
        local.modules.borrow_mut().push(entry);
        Ok(0)
    });
    let pushed = pushed.unwrap_or(Err(libc::ENXIO));
    if pushed.is_err() {
        settle(head);
    }
    show(head);
    head.notify();
    finish(head);
    pushed
}

/// I_POP. Errors: EINVAL without a module, or below an anchor.
pub fn pop(head: &Head) -> Result<c_int, Errno> {
    let popped = inside(head, |local| {
        if local.modules.borrow().len() <= local.anchored.get() {
            return Err(libc::EINVAL);
        }
        local.modules.borrow_mut().pop();
        // SAFETY: inside the perimeter; the pair below the head is the topmost module's.
        unsafe { local.detach() };
        Ok(0)
    });
    settle(head);
    show(head);
    head.notify();
    finish(head);
    popped.unwrap_or(Err(libc::EINVAL))
}

/// I_ANCHOR: what is pushed now stays. EINVAL on a pipe.
pub fn anchor(head: &Head) -> Result<c_int, Errno> {
    if head.has_pipe() {
        return Err(libc::EINVAL);
    }
    inside(head, |local| {
        local.anchored.set(local.modules.borrow().len());
        0
    })
    .ok_or(libc::EINVAL)
}

/// Names of the pushed modules, the topmost first.
pub fn modules(head: &Head) -> Vec<String> {
    inside(head, |local| {
        let modules = local.modules.borrow();
        modules.iter().rev().map(|m| m.name().to_string()).collect()
    })
    .unwrap_or_default()
}

/// As I_LIST shows them: modules and what is below.
pub fn names(head: &Head) -> Vec<String> {
    let mut names = modules(head);
    names.push(device(head));
    names
}

/// What is at the bottom.
pub fn device(head: &Head) -> String {
    match head.pipe() {
        Some(pipe) if pipe.fifo => "fifo".to_string(),
        Some(_) => "pipe".to_string(),
        None => inside(head, |local| {
            local.driver.get().map(|d| d.name().to_string())
        })
        .flatten()
        .unwrap_or_default(),
    }
}

/// The topmost module's name.
pub fn top(head: &Head) -> Option<String> {
    if !head.is_queued() {
        return None;
    }
    inside(head, |local| {
        local.modules.borrow().last().map(|m| m.name().to_string())
    })
    .flatten()
}

/// What I_FDINSERT puts into a message for this stream: what its driver accepts in a T_CONN_RES.
pub fn acceptor(head: &Head) -> u32 {
    head.index | 1 << 24
}

fn settle(head: &Head) {
    inside(head, |local| relax(head, local));
}

/// For `headwater streams list`.
fn show(head: &Head) {
    let names = modules(head);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    board::modules(head.index, &names);
}
