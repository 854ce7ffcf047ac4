//! Which of the library's system calls may fail, and with what.

#![allow(
    non_upper_case_globals,
    reason = "the C library's names of calls, as patterns"
)]

use std::collections::HashMap;

use libc::*;

use super::stop::{self, Call};

/// Descriptors of the library's own, and the calls that have made them.
pub type Made = HashMap<i32, i64>;

/// The errors that a call of the library's may give where the program would have got none. Empty: it is not made to fail, since
/// the kernel's can't (a write to a doorbell, getpid), or since it may be the program's own that is passed on by number.
pub fn of(pid: i32, call: &Call, made: &Made) -> &'static [i32] {
    let fd = call.args[0] as i32;
    let ours = made.contains_key(&fd);
    let is_pair = made.get(&fd) == Some(&SYS_socketpair);
    match call.nr {
        SYS_memfd_create => &[EMFILE, ENOMEM, ENFILE, ENOSYS],
        SYS_eventfd2 | SYS_timerfd_create | SYS_epoll_create1 | SYS_inotify_init1 => {
            &[EMFILE, ENOMEM, ENFILE]
        }
        SYS_pipe2 | SYS_socketpair | SYS_signalfd4 | SYS_pidfd_open => &[EMFILE, ENFILE, ENOMEM],
        SYS_socket => &[EMFILE, ENOBUFS, EACCES, EAFNOSUPPORT],
        SYS_accept4 if ours => &[EMFILE, ENOMEM, ECONNABORTED],
        SYS_bind if ours => &[EADDRINUSE, ENOMEM, EACCES],
        SYS_listen if ours => &[EADDRINUSE, ENOBUFS],
        SYS_connect if ours => &[ECONNREFUSED, EAGAIN, ENOMEM, EPERM],
        SYS_mmap => &[ENOMEM, EAGAIN],
        SYS_mremap => &[ENOMEM],
        SYS_madvise => &[EINVAL, ENOMEM],
        SYS_shmget => &[ENOSPC, ENOMEM, ENOSYS],
        SYS_shmat => &[ENOMEM, EACCES, EINVAL],
        SYS_shmctl => &[EPERM, EINVAL],
        SYS_ftruncate | SYS_fallocate if ours => &[ENOSPC, EINTR, EIO],
        SYS_fcntl => match call.args[1] as i32 {
            F_DUPFD | F_DUPFD_CLOEXEC => &[EMFILE, EINVAL],
            F_ADD_SEALS | F_GET_SEALS => &[EPERM, EINVAL],
            // A filter or a security module may forbid them. Of a connection F_GETFL always tells: nothing else says whether it blocks.
            F_SETFL | F_SETFD => &[EPERM, EACCES],
            F_GETFL if is_pipe(pid, fd) => &[EPERM, EACCES],
            F_SETLK | F_GETLK | F_OFD_SETLK | F_OFD_GETLK => &[ENOLCK, EAGAIN, EINTR],
            _ => &[],
        },
        SYS_dup3 => &[EBUSY, EINTR, EMFILE],
        SYS_splice if ours => &[ENOMEM, EAGAIN],
        // One that only looks, at few descriptors, needs nothing; and what is ready goes before any signal.
        SYS_ppoll if waits(pid, call) => &[ENOMEM, EINTR],
        SYS_shmdt => &[EINVAL],
        SYS_flock => &[ENOLCK, EINTR],
        SYS_open | SYS_openat => &[EMFILE, ENOENT, EACCES, ENFILE],
        SYS_mkdirat | SYS_mkdir => &[EACCES, ENOSPC, EROFS],
        SYS_linkat => &[EACCES, EPERM, ENOSPC],
        // Of a path of the program's: what is wrong with that one the program's own call is told too.
        SYS_newfstatat => &[ENOMEM],
        SYS_statx => &[ENOENT, EACCES],
        SYS_getrandom => &[EINTR, ENOSYS],
        SYS_pread64 | SYS_pwrite64 if ours => &[EIO, ENOSPC, EINTR],
        SYS_read if ours && !is_bell(call) => &[EIO, EINTR],
        // EPIPE and ECONNRESET say that the other end of a connection has gone (send(2), unix(7)), which that of a pair has not.
        // ETOOMANYREFS concerns descriptors.
        SYS_sendmsg if is_pair => &[EAGAIN, ENOBUFS, ETOOMANYREFS],
        SYS_sendmsg if ours => &[EAGAIN, ENOBUFS, EPIPE, ETOOMANYREFS],
        SYS_sendto if is_pair => &[EAGAIN, ENOBUFS, ENOMEM],
        SYS_sendto if ours => &[EAGAIN, ENOBUFS, EPIPE],
        // What a ring held goes by the program's connection.
        SYS_sendto if call.args[3] as i32 == MSG_DONTWAIT | MSG_NOSIGNAL => {
            &[EAGAIN, ENOBUFS, ENOMEM]
        }
        SYS_recvmsg | SYS_recvfrom if is_pair => &[EAGAIN, ENOMEM],
        SYS_recvmsg | SYS_recvfrom if ours => &[EAGAIN, ENOMEM, ECONNRESET],
        SYS_getsockopt => match (call.args[1] as i32, call.args[2] as i32) {
            (SOL_SOCKET, SO_ERROR) => &[],
            _ => &[ENOPROTOOPT, ENOBUFS],
        },
        // To note how a socket is to be closed needs nothing, and each has it (socket(7)): only a value that is none is refused.
        SYS_setsockopt if (call.args[1] as i32, call.args[2] as i32) == (SOL_SOCKET, SO_LINGER) => {
            &[]
        }
        SYS_setsockopt => &[ENOPROTOOPT, ENOMEM],
        // shutdown(2) fails where the connection has gone, of which the peer was told.
        SYS_getsockname | SYS_getpeername => &[ENOBUFS],
        SYS_ioctl => &[EINVAL],
        // To take something out of a set needs nothing, nor to ask for other events of it.
        SYS_epoll_ctl if call.args[1] as i32 != EPOLL_CTL_ADD => &[],
        SYS_epoll_ctl if made.contains_key(&(call.args[2] as i32)) => &[ENOMEM, ENOSPC],
        SYS_timerfd_settime | SYS_timer_create => &[EAGAIN, ENOMEM],
        SYS_clone | SYS_clone3 | SYS_fork => &[EAGAIN, ENOMEM],
        SYS_prlimit64 | SYS_sched_getaffinity | SYS_readlinkat | SYS_readlink | SYS_getdents64 => {
            &[EPERM]
        }
        SYS_membarrier => &[EPERM, ENOSYS],
        _ => &[],
    }
}

/// A doorbell's word: eight bytes; or one from a file of the kernel's, which may fail.
fn is_bell(call: &Call) -> bool {
    call.args[2] == 8
}

fn is_pipe(pid: i32, fd: i32) -> bool {
    let link = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    link.is_ok_and(|to| to.to_string_lossy().starts_with("pipe:"))
}

/// Is it a wait, with no limit or with one?
fn waits(pid: i32, call: &Call) -> bool {
    let word = |at: u64| stop::peek(pid, at).unwrap_or(0);
    call.args[2] == 0 || word(call.args[2]) != 0 || word(call.args[2] + 8) != 0
}

/// Does what makes one fail for lack of something make the other fail too?
pub fn same_kind(one: &Call, other: &Call) -> bool {
    let makes = |c: &Call| {
        matches!(
            c.nr,
            SYS_memfd_create
                | SYS_eventfd2
                | SYS_timerfd_create
                | SYS_pipe2
                | SYS_socketpair
                | SYS_socket
        )
    };
    let request = |c: &Call| match c.nr {
        SYS_fcntl => c.args[1],
        SYS_ioctl => c.args[1],
        SYS_getsockopt => c.args[1] << 32 | c.args[2],
        _ => 0,
    };
    makes(one) && makes(other) || one.nr == other.nr && request(one) == request(other)
}

/// How often a lasting error comes. What sends and receives wait for comes some time: else they wait for ever, as in the kernel. And
/// no kernel interrupts for ever, nor are all of thirty thousand ports taken: who makes the call again, as the standard library
/// does, or tries the next one, gets through.
/// Without the page that the kernel empties at fork each lock asks /proc, which is slow under a tracer.
pub fn times(call: &Call, errno: i32) -> u64 {
    if call.nr == SYS_madvise {
        return 1000;
    }
    let moves = matches!(
        call.nr,
        SYS_sendmsg | SYS_sendto | SYS_recvmsg | SYS_recvfrom | SYS_ppoll | SYS_splice
    );
    let passes = matches!(errno, EAGAIN | EINTR | ENOBUFS | ENOMEM | ETOOMANYREFS);
    match moves && passes || matches!(errno, EINTR | EADDRINUSE) {
        true => 100,
        false => u64::MAX,
    }
}

/// The descriptors that a call has made.
pub fn made(pid: i32, call: &Call, result: i64) -> Vec<i32> {
    match call.nr {
        SYS_memfd_create | SYS_eventfd2 | SYS_timerfd_create | SYS_socket | SYS_accept4
        | SYS_openat | SYS_pidfd_open | SYS_epoll_create1 | SYS_inotify_init1 => {
            vec![result as i32]
        }
        SYS_fcntl if matches!(call.args[1] as i32, F_DUPFD | F_DUPFD_CLOEXEC) => {
            vec![result as i32]
        }
        SYS_pipe2 | SYS_socketpair => {
            let at = call.args[if call.nr == SYS_pipe2 { 0 } else { 3 }];
            let two = stop::peek(pid, at).unwrap_or(u64::MAX);
            vec![two as i32, (two >> 32) as i32]
        }
        _ => Vec::new(),
    }
}
