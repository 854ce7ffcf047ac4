//! The board of this process, and those that it had before.
//!
//! A runtime folder may be deleted under running programs: logind does so at logout (RemoveIPC=). They keep the board that they
//! have, and programs that come later make another. So now and then, when something is to be posted or looked up, a process
//! looks where the name leads, and moves there. What it has on the old board stays valid: those who are on it still meet there.

use core::ptr::null_mut;
use core::time::Duration;

use headwater_channel::lock::{Lock, Owner};
use headwater_host::board::{self, Board, Offer};
use headwater_host::counters::{self, Reason};
use headwater_host::log::{self, Level};
use headwater_host::process::{self, Quiet};
use headwater_host::sync::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use headwater_host::sys;

use crate::look::is_due;

/// After so many a process stays where it is.
const MOST: usize = 16;
/// So often, in nanoseconds, it looks whether there is another.
const INTERVAL: u64 = Duration::from_secs(1).as_nanos() as u64;

static BOARDS: [AtomicPtr<Board>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static COUNT: AtomicU32 = AtomicU32::new(0);
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
static SAID: AtomicU32 = AtomicU32::new(0);
/// Private memory: whoever holds it and is not this process was left behind by fork.
static OPENING: Lock = Lock::new();

/// The user's board; `None` (said once) while it can't be had.
#[inline]
pub fn board() -> Option<&'static Board> {
    match COUNT.load(Ordering::Acquire) {
        0 => open(),
        n => at(n - 1),
    }
}

/// The boards of this process, the present one first.
pub fn all() -> impl Iterator<Item = &'static Board> {
    (0..COUNT.load(Ordering::Acquire)).rev().filter_map(at)
}

/// The board that an offer is on.
#[inline]
pub fn of(offer: Offer) -> Option<&'static Board> {
    at(offer.board)
}

#[inline]
fn at(number: u32) -> Option<&'static Board> {
    // SAFETY: null, or a Board that lives as long as the process.
    unsafe {
        BOARDS[number as usize % MOST]
            .load(Ordering::Acquire)
            .as_ref()
    }
}

/// Moves to another board if the name leads to another by now. True about once a second: then what was posted is to be posted
/// again, in case it is not there any more.
pub fn look_again() -> bool {
    let n = COUNT.load(Ordering::Acquire);
    if n == 0 || process::is_confined() || !is_due(&NEXT_LOOK, INTERVAL) {
        return false;
    }
    if (n as usize) < MOST && at(n - 1).is_some_and(Board::is_replaced) {
        add(n);
        all().for_each(Board::hold_seat);
    }
    true
}

#[cold]
fn open() -> Option<&'static Board> {
    // After a failure not with every call.
    if SAID.load(Ordering::Relaxed) == 0 || is_due(&NEXT_LOOK, INTERVAL) {
        add(0);
    } else {
        counters::note(Reason::NoBoard);
    }
    at(0)
}

/// Opens the board of this number, unless another thread has.
fn add(number: u32) {
    let _quiet = Quiet::new();
    // Others need not see who it is, so it need not be learnt.
    let me = Owner::new(sys::getpid() as u32, 0, 0);
    OPENING.lock(me, |other| other != me);
    if COUNT.load(Ordering::Acquire) == number {
        let folder = board::folder();
        match Board::open(&folder, true) {
            Ok(mut board) => {
                board.number = number;
                let board = Box::leak(Box::new(board));
                BOARDS[number as usize].store(board, Ordering::Release);
                COUNT.store(number + 1, Ordering::Release);
            }
            Err(e) => {
                counters::note(Reason::NoBoard);
                if SAID.swap(1, Ordering::Relaxed) == 0 {
                    log::write(
                        Level::Warn,
                        format_args!("{folder}: {e:?}; sockets stay with the kernel"),
                    );
                }
            }
        }
        NEXT_LOOK.store(sys::now_roughly() + INTERVAL, Ordering::Relaxed);
    }
    OPENING.unlock();
}
