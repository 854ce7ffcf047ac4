//! A process that ends while others still have its sockets leaves a keeper: a child that goes on with the stack and serves those others
//! until the last of them has let go. So daemon(3) after bind(2) and listen(2) works, as does a parent that is killed by nothing worse
//! than its own exit(3).

use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicBool, Ordering};
use headwater_host::table::{self, Kind};
use headwater_host::{aside, process, sys, worker};
use headwater_sctp_stack::stack;
use syscalls::{Sysno, syscall};

use super::owner::{OWNER, SHARED};
use super::{exec, forking, serving};
use crate::face;

/// A keeper has taken over what this process had.
static LEFT: AtomicBool = AtomicBool::new(false);

pub fn has_left() -> bool {
    LEFT.load(Ordering::SeqCst)
}

/// The process ends, or its image. Once.
pub fn leave() {
    if SHARED.load(Ordering::Acquire) == 0 || process::is_borrowed() || has_left() {
        return;
    }
    let known = stack::existing();
    // From here on the thread that serves is idle.
    LEFT.store(true, Ordering::SeqCst);
    forking::of_keeper(true);
    stack::go_on_in_child(true);
    worker::start_none_in_child(true);
    let quiet = NoChild::new();
    // SAFETY: the child does nothing but what follows here, and never returns.
    let pid = unsafe { libc::fork() };
    stack::go_on_in_child(false);
    forking::of_keeper(false);
    if pid == 0 {
        become_orphan();
    }
    worker::start_none_in_child(false);
    match pid {
        0 => {
            LEFT.store(false, Ordering::SeqCst);
            if let Some(stack) = known {
                stack.take_over();
            }
            let _ = std::panic::catch_unwind(keep);
            sys::exit_group(0)
        }
        pid if pid > 0 && quiet.reap(pid) => {
            if let Some(stack) = known {
                stack.give_up();
            }
            for open in face::all() {
                forking::let_go_of_shared(&open.socket);
            }
        }
        _ => {
            LEFT.store(false, Ordering::SeqCst);
            if let Some(stack) = known {
                stack.take_over();
            }
            serving::start();
            log::write(
                Level::Warn,
                format_args!("SCTP sockets end with this process: it cannot fork"),
            );
        }
    }
}

/// An exec has failed: the program goes on, without the sockets that others have too.
pub fn stay() {
    if has_left() {
        if let Some(owner) = OWNER.enter().take() {
            owner.forget();
        }
        LEFT.store(false, Ordering::SeqCst);
    }
    exec::failed();
}

/// The program's own children are none of this: SIGCHLD is kept from it meanwhile.
struct NoChild {
    before: u64,
    pending: bool,
}

const CHILD: u64 = sys::signal_bit(libc::SIGCHLD);

impl NoChild {
    fn new() -> NoChild {
        let before = sys::mask_signals(libc::SIG_BLOCK, CHILD);
        let mut pending = 0u64;
        // SAFETY: a set of the kernel's size.
        let _ = unsafe { syscall!(Sysno::rt_sigpending, &raw mut pending, size_of::<u64>()) };
        let pending = pending & CHILD != 0;
        NoChild { before, pending }
    }

    /// The child ends at once: has it left a child of its own?
    fn reap(&self, pid: i32) -> bool {
        let status = sys::await_child(pid, 0).unwrap_or(0);
        if !self.pending {
            let (child, now) = (CHILD, sys::timespec(0));
            // SAFETY: as in `new`; who it was is not asked.
            let _ = unsafe {
                syscall!(
                    Sysno::rt_sigtimedwait,
                    &raw const child,
                    0,
                    &raw const now,
                    size_of::<u64>()
                )
            };
        }
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

impl Drop for NoChild {
    fn drop(&mut self) {
        sys::mask_signals(libc::SIG_SETMASK, self.before);
    }
}

fn keep() {
    exec::forget();
    let programs = table::entries().filter(|(_, h)| h.kind() != Kind::Hidden);
    programs.for_each(|(fd, _)| _ = table::clear(fd));
    aside::become_nobody(table::entries().map(|(fd, _)| fd));
    for open in face::all() {
        open.socket.close();
    }
    serving::serve(|| SHARED.load(Ordering::Acquire) == 0);
    stack::exiting();
}

/// The keeper is the child of a child that has ended: nobody waits for it, not even the image that follows after an exec.
fn become_orphan() {
    // SAFETY: as fork(2). There is one thread: a child of `leave` starts none before this.
    let pid = unsafe { syscall!(Sysno::clone, libc::SIGCHLD, 0, 0, 0, 0) };
    match pid {
        Ok(0) => process::identify(),
        Ok(_) => sys::exit_group(0),
        Err(_) => sys::exit_group(1),
    }
}
