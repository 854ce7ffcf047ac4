//! Counting by ptrace(2): every watched thread is stopped at every system call, and counted.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::mem;
use std::ptr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXIT;
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// A thread for each watched program: only the thread that attached may wait for a stop.
#[derive(Default)]
pub struct Tracer {
    threads: RefCell<Vec<JoinHandle<u64>>>,
}

impl Tracer {
    /// Counts from now on in this process and in what it forks. What it did before is missed.
    pub fn watch(&self, pid: i32) {
        let (attached, wait) = mpsc::channel();
        self.threads.borrow_mut().push(thread::spawn(move || {
            attach(pid);
            let _ = attached.send(());
            let mut stops = 0;
            while let Some((tid, status)) = next_stop() {
                stops += resume(tid, status);
            }
            stops / 2
        }));
        let _ = wait.recv();
    }

    pub fn finish(self) -> u64 {
        let threads = self.threads.into_inner();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(0))
            .sum()
    }
}

fn attach(pid: i32) {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return;
    };
    for task in tasks.flatten() {
        let Some(tid) = task.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        request(libc::PTRACE_SEIZE, tid, OPTIONS as usize);
        request(libc::PTRACE_INTERRUPT, tid, 0);
    }
}

/// The next stop of a traced thread; None when none is traced any more. Ends are left for the thread that reaps them.
fn next_stop() -> Option<(i32, i32)> {
    // SAFETY: siginfo is plain data, filled by the call, and its fields are those of SIGCHLD.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let flags = libc::WSTOPPED | libc::__WALL | libc::__WNOTHREAD;
        loop {
            if libc::waitid(libc::P_ALL, 0, &mut info, flags) == 0 {
                return Some((info.si_pid(), info.si_status()));
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return None;
            }
        }
    }
}

/// Lets a stopped thread go on; 1 when it stopped at one end of a system call.
fn resume(tid: i32, status: i32) -> u64 {
    let signal = status & 0xff;
    let (what, data, calls) = match status >> 8 {
        // Else its end would be ours to reap.
        libc::PTRACE_EVENT_EXIT => (libc::PTRACE_DETACH, 0, 0),
        0 if signal == SYSCALL_STOP => (libc::PTRACE_SYSCALL, 0, 1),
        0 => (libc::PTRACE_SYSCALL, signal as usize, 0),
        _ => (libc::PTRACE_SYSCALL, 0, 0),
    };
    request(what, tid, data);
    calls
}

fn request(what: libc::c_uint, tid: i32, data: usize) {
    // SAFETY: none of these requests reads or writes memory through its arguments. A thread that is gone is an error
    // that needs no answer.
    unsafe { libc::ptrace(what, tid, ptr::null_mut::<libc::c_void>(), data) };
}
