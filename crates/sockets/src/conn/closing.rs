//! How far a connection is with its end in this process, and who must be waited for.

use core::time::Duration;

use headwater_host::sync::{Exchange, Ordering};
use headwater_host::{process, sys};

use crate::conn::Conn;
use crate::segment::View;

/// How far a connection is with its end in this process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Closed {
    Open = 0,
    /// The program closes its last descriptor just now.
    Closing = 1,
    /// It has, while calls were waiting: the last of them ends the connection.
    Left = 2,
    Ended = 3,
    /// Open, and a thread takes a step of its takeover; short, and no handler runs in it.
    Taking = 4,
}

/// The shadow's number, which stays the shadow's while this is held. For short kernel calls only; no signal handler runs
/// meanwhile.
pub struct Shadow<'a> {
    conn: &'a Conn,
    _quiet: process::Quiet,
}

impl Shadow<'_> {
    pub fn fd(&self) -> i32 {
        self.conn.fd()
    }
}

impl Drop for Shadow<'_> {
    fn drop(&mut self) {
        self.conn.using.fetch_sub(1, Ordering::Release);
    }
}

impl Conn {
    /// May a call on it still begin to wait?
    pub fn is_open(&self, v: &View<'_>) -> bool {
        let closed = self.closed.load(Ordering::SeqCst);
        let open = closed == Closed::Open as u32 || closed == Closed::Taking as u32;
        open && self.serves(v)
    }

    /// Takes a step of the takeover that is due, unless another thread does or the program closes the connection.
    pub fn take_step(&self, step: impl FnOnce()) {
        process::without_handlers(|| {
            if self.close_step(Closed::Open, Closed::Taking) {
                step();
                self.close_step(Closed::Taking, Closed::Open);
            }
        });
    }

    /// The same, after the step of another thread. False: it is closed.
    pub fn take_step_surely(&self, step: impl FnOnce()) -> bool {
        process::without_handlers(|| {
            let taking = self.move_on(Closed::Taking);
            if taking {
                step();
                self.close_step(Closed::Taking, Closed::Open);
            }
            taking
        })
    }

    /// The program closes its last number: no step of the takeover is under way, and none begins. False: somebody else did.
    #[unsafe(link_section = ".text.life")]
    pub fn begin_close(&self) -> bool {
        self.move_on(Closed::Closing)
    }

    #[unsafe(link_section = ".text.life")]
    fn move_on(&self, to: Closed) -> bool {
        let mut turns = sys::Turns::default();
        while !self.close_step(Closed::Open, to) {
            if self.closed.load(Ordering::SeqCst) != Closed::Taking as u32 {
                return false;
            }
            turns.give_way();
        }
        true
    }

    /// Has the program closed it while calls were waiting?
    pub fn is_left(&self) -> bool {
        self.closed.load(Ordering::SeqCst) == Closed::Left as u32
    }

    /// Moves on from `from`; one of several callers succeeds.
    pub fn close_step(&self, from: Closed, to: Closed) -> bool {
        self.closed
            .compare_exchange(from as u32, to as u32, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// The shadow's number for a short kernel call; `None` when the connection has ended here.
    #[inline]
    pub fn shadow(&self) -> Option<Shadow<'_>> {
        let mut begun = 0;
        loop {
            let _quiet = process::Quiet::new();
            self.using.fetch_add(1, Ordering::SeqCst);
            let shadow = Shadow { conn: self, _quiet };
            match self.closed.load(Ordering::SeqCst) {
                x if x == Closed::Closing as u32 => {}
                x if x == Closed::Ended as u32 => return None,
                _ => return Some(shadow),
            }
            drop(shadow);
            if !patient(&mut begun) {
                return None;
            }
        }
    }

    /// After the number was changed: until nobody uses the old one.
    pub fn await_users(&self) {
        let mut begun = 0;
        while self.using.load(Ordering::SeqCst) > 0 && patient(&mut begun) {}
    }

    /// After fork, in the child: the calls of other threads are the parent's.
    pub fn forget_calls(&self) {
        self.pins.change_to(0);
        self.using.change_to(0);
        if self.closed.load(Ordering::Relaxed) == Closed::Taking as u32 {
            self.close_step(Closed::Taking, Closed::Open);
        }
    }
}

/// How long somebody who moves a number is waited for, or one who uses it: both take microseconds.
const MOVE_TIMEOUT: u64 = Duration::from_millis(20).as_nanos() as u64;

/// Yields; false once that has gone on for long.
fn patient(begun: &mut u64) -> bool {
    let now = sys::now();
    if *begun == 0 {
        *begun = now;
    }
    std::thread::yield_now();
    now - *begun < MOVE_TIMEOUT
}
