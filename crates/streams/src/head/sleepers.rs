//! Sleeps of each thread at stream heads. One may be left without a way back, by siglongjmp(3) out of a signal handler or by
//! the end of a cancelled thread; so each thread remembers them, with the place of the call on its stack, and takes back
//! those it has left.

use core::cell::Cell;

use headwater_channel::waiter;
use headwater_host::roster::Entry;
use headwater_host::thread_end::ThreadEnd;
use headwater_host::{process, reclaim};

use super::Head;
use super::arming::Want;

/// Sleeps inside handlers inside sleeps ...: beyond this many, one is not remembered.
const DEPTH: usize = 8;

#[derive(Clone, Copy)]
struct Asleep {
    head: Option<&'static Head>,
    want: Want,
    entry: Option<Entry>,
    /// An address in the stack frame of the call.
    frame: usize,
}

const NOTHING: Asleep = Asleep {
    head: None,
    want: Want(0),
    entry: None,
    frame: 0,
};

struct Sleepers {
    count: Cell<usize>,
    asleep: [Cell<Asleep>; DEPTH],
}

thread_local! {
    static SLEEPERS: Sleepers = const { Sleepers { count: Cell::new(0), asleep: [const { Cell::new(NOTHING) }; DEPTH] } };
    static ENDS_WITH_US: Cell<bool> = const { Cell::new(false) };
}

/// Counts and arms a sleeper, and remembers it. Look once more, then sleep.
pub fn arm(head: &'static Head, want: Want, frame: usize) -> Entry {
    process::without_handlers(|| {
        see_thread_end();
        let entry = head.enter_asleep(want);
        SLEEPERS.with(|s| {
            let place = s.count.get();
            if let Some(slot) = s.asleep.get(place) {
                slot.set(Asleep {
                    head: Some(head),
                    want,
                    entry: Some(entry),
                    frame,
                });
            }
            s.count.set(place + 1);
        });
        entry
    })
}

/// Takes back the latest [`arm`] of this thread.
/// True: something has happened since then that all who slept are to see.
pub fn disarm(head: &Head, want: Want, entry: Entry) -> bool {
    process::without_handlers(|| {
        SLEEPERS.with(|s| s.count.set(s.count.get().saturating_sub(1)));
        head.leave_asleep(want, entry)
    })
}

/// Does a sleep of this thread stand?
#[inline]
pub fn any() -> bool {
    SLEEPERS.with(|s| s.count.get() > 0)
}

/// Control goes to a frame at `target` for good: calls below it will not return.
pub fn unwound_to(target: usize) {
    let _looks = reclaim::enter();
    process::without_handlers(|| {
        let last = |s: &Sleepers| {
            let place = s.count.get().checked_sub(1)?;
            let asleep = s.asleep.get(place).map_or(NOTHING, Cell::get);
            (asleep.frame < target).then(|| s.count.set(place))?;
            Some(asleep)
        };
        while let Some(asleep) = SLEEPERS.with(last) {
            if let (Some(head), Some(entry)) = (asleep.head, asleep.entry) {
                let disarm = || {
                    head.leave_asleep(asleep.want, entry);
                };
                let settle = || {
                    head.settle_for(true);
                };
                waiter::abandon(disarm, settle);
            }
        }
    });
}

unsafe extern "C" fn ended(_: *mut libc::c_void) {
    unwound_to(usize::MAX);
}

static END: ThreadEnd = ThreadEnd::new(ended);

/// At start.
pub fn prepare() {
    END.prepare();
    reclaim::prepare();
}

/// Has the sleeps of this thread taken back when it ends, however it ends.
fn see_thread_end() {
    if !ENDS_WITH_US.with(|e| e.replace(true)) {
        END.ask();
    }
}
