//! CMD as a child: signals pass on to it, its status comes back.
//!
//! What a terminal sends reaches CMD by itself, as it is in our process group; only what other processes send to us is
//! passed on. Terminal stops (SIGTSTP) are left alone: they stop and continue both.

use std::ffi::OsString;
use std::io;
use std::mem::zeroed;

use headwater_host::sys;

const PASSED_ON: [libc::c_int; 7] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
];

/// Runs the command and returns its exit status, 128+N when signal N killed it.
pub fn run(command: &[OsString]) -> io::Result<u8> {
    let signals = Signals::hold();
    // SAFETY: this process has one thread, so the child may do what it likes.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            signals.release();
            let status = super::become_program(command);
            // Destructors are the parent's business.
            sys::exit_group(status.into())
        }
        pid => {
            let status = wait(pid, &signals);
            signals.release();
            status
        }
    }
}

/// The signals of interest, blocked so that they can be waited for; and how things were before.
struct Signals {
    held: libc::sigset_t,
    mask: libc::sigset_t,
    on_child: libc::sigaction,
}

impl Signals {
    fn hold() -> Signals {
        // SAFETY: all-zero sets and actions are valid, and every pointer is to a local.
        unsafe {
            let mut held: libc::sigset_t = zeroed();
            libc::sigemptyset(&mut held);
            for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&mut held, signal);
            }
            let mut mask = zeroed();
            libc::sigprocmask(libc::SIG_BLOCK, &held, &mut mask);
            // Where SIGCHLD is ignored no child leaves a status.
            let by_default: libc::sigaction = zeroed();
            let mut on_child = zeroed();
            libc::sigaction(libc::SIGCHLD, &by_default, &mut on_child);
            Signals {
                held,
                mask,
                on_child,
            }
        }
    }

    fn release(&self) {
        // SAFETY: puts back what was read before; nothing but SIG_DFL and SIG_IGN can have been there.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &self.on_child, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_SETMASK, &self.mask, std::ptr::null_mut());
        }
    }

    /// The next of the held signals, and whether a process sent it.
    fn next(&self) -> (libc::c_int, bool) {
        // SAFETY: an all-zero siginfo_t is valid, and both pointers are to live values.
        unsafe {
            let mut info: libc::siginfo_t = zeroed();
            let signal = libc::sigwaitinfo(&self.held, &mut info);
            (signal, info.si_code <= 0)
        }
    }
}

fn wait(pid: libc::pid_t, signals: &Signals) -> io::Result<u8> {
    loop {
        match signals.next() {
            (libc::SIGCHLD, _) => {
                if let Some(status) = reap(pid)? {
                    return Ok(status);
                }
            }
            (signal, true) if signal > 0 => {
                // Our own child, not yet waited for. It may be gone already.
                let _ = sys::kill(pid, signal);
            }
            _ => {}
        }
    }
}

/// The child's status once it has ended.
fn reap(pid: libc::pid_t) -> io::Result<Option<u8>> {
    let mut status = 0;
    // SAFETY: the status is a local.
    match unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ if libc::WIFSIGNALED(status) => Ok(Some(128 + libc::WTERMSIG(status) as u8)),
        _ => Ok(Some(libc::WEXITSTATUS(status) as u8)),
    }
}
