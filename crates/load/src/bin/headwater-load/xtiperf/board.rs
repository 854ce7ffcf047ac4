//! What both processes see: how much has been received, and whether to go on.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use headwater_channel::sync::{AtomicU32, AtomicU64, Ordering};

use crate::sys::map_shared;
use crate::xtiperf::buffers::Buffers;

/// How long the other process may take for anything.
const TIMEOUT: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_micros(500);

/// In a file that both map; it begins as zeros.
#[repr(C)]
pub struct Board {
    driver: Driver,
    receivers: [Receiver; 2],
}

#[repr(C, align(128))]
struct Driver {
    /// Only some bytes of what is received are compared.
    hurry: AtomicU32,
    stop: AtomicU32,
    server: AtomicU32,
}

/// Written by one thread of the server.
#[repr(C, align(128))]
pub struct Receiver {
    /// Bytes of a flow, datagrams, lone messages.
    received: AtomicU64,
    /// When the last lone message came, in nanoseconds of the monotonic clock.
    stamp: AtomicU64,
    done: AtomicU32,
    send_buffer: AtomicU64,
    receive_buffer: AtomicU64,
}

impl Board {
    /// The server's: a new one, with its process named.
    pub fn create(path: &Path) -> io::Result<&'static Board> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.set_len(mem::size_of::<Board>() as u64)?;
        let board = map(&file)?;
        board
            .driver
            .server
            .store(std::process::id(), Ordering::Release);
        Ok(board)
    }

    pub fn open(path: &Path) -> io::Result<&'static Board> {
        map(&OpenOptions::new().read(true).write(true).open(path)?)
    }

    pub fn server(&self) -> i32 {
        self.driver.server.load(Ordering::Acquire) as i32
    }

    #[inline]
    pub fn receiver(&self, index: usize) -> &Receiver {
        &self.receivers[index]
    }

    /// Of all receivers.
    pub fn received(&self) -> u64 {
        self.receivers
            .iter()
            .map(|receiver| receiver.received.load(Ordering::Acquire))
            .sum()
    }

    pub fn hurry(&self) {
        self.driver.hurry.store(1, Ordering::Release);
    }

    #[inline]
    pub fn in_hurry(&self) -> bool {
        self.driver.hurry.load(Ordering::Relaxed) != 0
    }

    pub fn stop(&self) {
        self.driver.stop.store(1, Ordering::Release);
    }

    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.driver.stop.load(Ordering::Relaxed) != 0
    }

    pub fn is_done(&self, receivers: usize) -> bool {
        self.receivers[..receivers]
            .iter()
            .all(|receiver| receiver.done.load(Ordering::Acquire) != 0)
    }

    pub fn wait_done(&self) -> io::Result<()> {
        wait(|| self.is_done(1))
    }

    /// Waits until nothing more comes.
    pub fn wait_quiet(&self) {
        const QUIET: u32 = 20;
        let (mut last, mut same) = (self.received(), 0);
        let start = Instant::now();
        while same < QUIET && start.elapsed() < TIMEOUT {
            thread::sleep(STEP * 2);
            let now = self.received();
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
    }
}

impl Receiver {
    #[inline]
    pub fn set_received(&self, count: u64) {
        self.received.store(count, Ordering::Release);
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    pub fn set_stamp(&self, ns: u64) {
        self.stamp.store(ns, Ordering::Relaxed);
    }

    pub fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    pub fn set_buffers(&self, buffers: Buffers) {
        self.send_buffer.store(buffers.send, Ordering::Relaxed);
        self.receive_buffer
            .store(buffers.receive, Ordering::Relaxed);
    }

    pub fn buffers(&self) -> Buffers {
        Buffers {
            send: self.send_buffer.load(Ordering::Relaxed),
            receive: self.receive_buffer.load(Ordering::Relaxed),
        }
    }

    pub fn set_done(&self) {
        self.done.store(1, Ordering::Release);
    }
}

/// Waits until something is so.
pub fn wait(is_so: impl Fn() -> bool) -> io::Result<()> {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > TIMEOUT {
            return Err(io::Error::other("the other process does not get on"));
        }
        thread::sleep(STEP);
    }
    Ok(())
}

fn map(file: &File) -> io::Result<&'static Board> {
    let at = map_shared(mem::size_of::<Board>(), Some(file.as_raw_fd()))?;
    // SAFETY: a shared mapping of a file of this size, never unmapped; all of it is atomics, valid in every state.
    Ok(unsafe { &*at.cast::<Board>() })
}
