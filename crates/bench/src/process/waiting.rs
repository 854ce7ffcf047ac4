//! Waiting for the ends of programs, and bringing them about.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Running;
use super::accounts::family;
use crate::interrupt;

/// Waits until one of them has ended, the run is interrupted or out of time, and tells which have ended.
pub fn wait_any<const N: usize>(all: [&Running; N], limit: Duration) -> io::Result<[bool; N]> {
    wait(all, interrupt::notice(), super::bounds::left(limit))
}

/// Waits until it has ended, whatever else happens.
pub(super) fn wait_only(one: &Running, limit: Duration) -> io::Result<bool> {
    Ok(wait([one], -1, limit)? == [true])
}

fn wait<const N: usize>(all: [&Running; N], or: RawFd, limit: Duration) -> io::Result<[bool; N]> {
    let mut descriptors = Vec::with_capacity(N);
    for one in all {
        descriptors.push(descriptor(one.pid)?);
    }
    let mut raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    raw.push(or);
    let readable = wait_for(&raw, limit);
    Ok(std::array::from_fn(|index| readable[index]))
}

/// Waits until one of these descriptors is readable, and tells which are. Negative ones never are.
pub fn wait_for(descriptors: &[RawFd], limit: Duration) -> Vec<bool> {
    let entry = |&fd: &RawFd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<libc::pollfd> = descriptors.iter().map(entry).collect();
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        // Not less than is left, or the last part of a millisecond would be spent going round.
        let left = left.as_micros().div_ceil(1000) as i32;
        // SAFETY: the entries outlive the call.
        let count =
            unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, left) };
        let signalled =
            count < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if !signalled {
            return entries.iter().map(|entry| entry.revents != 0).collect();
        }
    }
}

fn descriptor(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Ends all programs that this process has started, and theirs: asks them to, and kills those that have not within `grace`.
pub fn end_all(grace: Duration) {
    let own = process::id() as i32;
    let mut all = Vec::new();
    // Who is killed may just have started another one; whose parent has ended is no longer found, but was.
    for signal in [Signal::TERM, Signal::KILL, Signal::KILL] {
        let others: Vec<i32> = family(own).into_iter().filter(|pid| *pid != own).collect();
        all.extend(hold(&others));
        send(&all, signal);
        await_all(&all, grace);
    }
}

/// Processes that were listed just now, by descriptors, which stay theirs when their numbers are given away.
pub(super) fn hold(processes: &[i32]) -> Vec<OwnedFd> {
    processes.iter().flat_map(|&pid| descriptor(pid)).collect()
}

pub(super) fn send(processes: &[OwnedFd], signal: Signal) {
    for process in processes {
        let _ = pidfd_send_signal(process, signal);
    }
}

fn await_all(descriptors: &[OwnedFd], limit: Duration) {
    let end = Instant::now() + limit;
    for descriptor in descriptors {
        let left = end.saturating_duration_since(Instant::now());
        wait_for(&[descriptor.as_raw_fd()], left);
    }
}
