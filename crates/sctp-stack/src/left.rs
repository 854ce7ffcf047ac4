//! What a thread holds while it waits, and has to give back: the lead of those who sleep at the links, its place among those who wait at
//! a socket. It may leave a wait without a return, by siglongjmp(3) out of a signal handler; so each thread notes what it holds,
//! with a place on its stack.

use core::cell::Cell;

use headwater_host::process;

use super::{Signal, Sink};

/// Waits inside handlers inside waits ...: beyond this many, one is not noted.
const DEPTH: usize = 16;

/// What is held. The pointers are to what the call keeps alive, and keeps for good where it never returns.
#[derive(Clone, Copy)]
pub enum Held {
    /// The lead, for who waits for this signal.
    Lead(*const Signal),
    /// A call's place at something, which goes by this function.
    Place(*const (), unsafe fn(*const ())),
    /// A sleep at a sink's descriptor, with the kicks before.
    Sleep(*const Sink, u64),
}

struct Notes {
    count: Cell<usize>,
    notes: [Cell<Option<(Held, usize)>>; DEPTH],
}

thread_local! {
    static NOTES: Notes = const { Notes { count: Cell::new(0), notes: [const { Cell::new(None) }; DEPTH] } };
}

/// Takes something and notes it, if `take` says that there is something.
pub fn take(take: impl FnOnce() -> Option<Held>) -> bool {
    let here = 0u8;
    let frame = (&raw const here).addr();
    process::without_handlers(|| {
        let Some(held) = take() else { return false };
        NOTES.with(|n| {
            let place = n.count.get();
            if let Some(slot) = n.notes.get(place) {
                slot.set(Some((held, frame)));
            }
            n.count.set(place + 1);
        });
        true
    })
}

/// Gives back what was noted last.
pub fn give_back(give: impl FnOnce()) {
    process::without_handlers(|| {
        NOTES.with(|n| n.count.set(n.count.get().saturating_sub(1)));
        give();
    });
}

/// A thread that sleeps at a sink's descriptor.
pub struct Asleep<'a> {
    sink: &'a Sink,
    /// Kicks before.
    kicks: u64,
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        give_back(|| self.sink.sleeper_left(self.kicks));
    }
}

/// Before a thread looks whether it has to sleep at the descriptor; for as long as it does.
pub fn sleeps(sink: &Sink) -> Asleep<'_> {
    let mut kicks = 0;
    take(|| {
        kicks = sink.sleeper_came();
        Some(Held::Sleep(sink, kicks))
    });
    Asleep { sink, kicks }
}

/// Does this thread hold anything?
#[inline]
pub fn any() -> bool {
    NOTES.with(|n| n.count.get() > 0)
}

/// Control goes to a frame at `target` for good: calls below it will not return. A lead is given back by `lead_left`.
pub fn unwound_to(target: usize, lead_left: impl Fn(&Signal)) {
    process::without_handlers(|| {
        let last = |n: &Notes| {
            let place = n.count.get().checked_sub(1)?;
            let note = n.notes.get(place).map_or(Some(None), |slot| {
                let note = slot.get();
                note.is_none_or(|(_, frame)| frame < target).then_some(note)
            })?;
            n.count.set(place);
            Some(note)
        };
        while let Some(note) = NOTES.with(last) {
            let Some((held, _)) = note else { continue };
            // SAFETY: of all three: alive, since the call that kept it so has not returned.
            unsafe {
                match held {
                    Held::Lead(signal) => lead_left(&*signal),
                    Held::Place(at, leave) => leave(at),
                    Held::Sleep(sink, kicks) => (*sink).sleeper_left(kicks),
                }
            }
        }
    });
}
