//! What is held while the process is copied by fork(2), what is done behind it, and what is done where the process, or its image, ends: one
//! table, and one pair of handlers of the C library's.
//!
//! Each part adds its functions when it first has something to hold. That takes no lock, so it may happen inside one, and in a handler;
//! and a part whose locks may be taken as it is added is added while something is held that stands before it ([`Part::Beginning`]), so that no
//! fork has passed its place already.
//!
//! The handlers are the first that are registered where the library is loaded: those of the program run before them in front of a fork and
//! after them behind it, and may use what we hold.

use core::ptr::null_mut;

use libc::{c_int, c_void};

use crate::hook::Hook;
use crate::sync::{AtomicU32, Ordering};
use crate::{counters, process, reclaim, sys};

/// Who has something to hold over a fork. The order is that in which it is taken: whoever holds a part may come to want one that stands below
/// it, and never one above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Part {
    /// Getting sockets, streams and transports ready: whoever does takes anything else.
    Beginning,
    /// Sets of epoll(7): one that looks at its members holds itself, then each of them, whatever it is. Held behind endpoints or streams,
    /// a thread that waits at a set with one of those in it and a fork would wait for each other.
    Sets,
    /// SCTP sockets, each of which calls its association with its lock held: in the stack, or a stream.
    SctpSockets,
    /// Its table and registry; with a fork that takes the stack along everything in it.
    SctpStack,
    /// Of streams: procedures of drivers call what is below from inside them.
    Perimeters,
    /// Their providers watch descriptors, make and close streams.
    Endpoints,
    /// The list of what the background thread watches.
    Background,
    /// The list of stream heads. Nothing but memory is asked for with it held.
    Heads,
    /// The environment that stands in place of the program's while a process is started: a list, too, with which nothing else is asked for.
    Environment,
    /// Connections, and all that goes with them: reached from everything above by calls on a socket of theirs.
    Sockets,
    /// What is held back waits for a thread, which is the parent's. Nothing is held of either.
    Flusher,
    Worker,
}

const PARTS: usize = Part::Worker as usize + 1;

/// The order behind a fork: what is below first, but for those that, in the child, use what is said.
const BEHIND: [Part; PARTS] = [
    // Whoever has work for the thread of a child starts it.
    Part::Worker,
    Part::Flusher,
    // Connections that calls of the parent had left end in the child, and tell the sets.
    Part::Sets,
    Part::Sockets,
    Part::Environment,
    Part::Heads,
    // What is under way in a queue is given back, for which the thread may be asked to come by; then it is started anew.
    Part::Perimeters,
    Part::Background,
    // Providers close streams, and watch descriptors again.
    Part::Endpoints,
    Part::SctpStack,
    Part::SctpSockets,
    Part::Beginning,
];

/// [`BEHIND`] as a number of four bits for each: a list would stand on a page of constants, which each child would touch for it alone.
const BEHIND_AS_NUMBER: u64 = {
    let mut number = 0;
    let mut i = PARTS;
    while i > 0 {
        i -= 1;
        number = number << 4 | BEHIND[i] as u64;
    }
    number
};

struct Hooks {
    before: Hook<fn() -> bool>,
    after: Hook<fn(bool)>,
    told: Hook<fn(&mut Moment)>,
}

// Numbers that are written when a part is added, rather than a list of constants, which the loader would have to relocate in every process.
#[unsafe(link_section = ".data")]
static TABLE: [Hooks; PARTS] = [const {
    Hooks {
        before: Hook::new(),
        after: Hook::new(),
        told: Hook::new(),
    }
}; PARTS];

/// What the fork under way holds, a bit for each part: changed by the thread that forks, while the C library keeps others from forking.
#[unsafe(link_section = ".data")]
static HELD: AtomicU32 = AtomicU32::new(0);
#[unsafe(link_section = ".data")]
static FORKS: AtomicU32 = AtomicU32::new(0);

#[unsafe(link_section = ".data")]
static REGISTERED: AtomicU32 = AtomicU32::new(NOT_YET);
const NOT_YET: u32 = 0;
const UNDER_WAY: u32 = 1;
const DONE: u32 = 2;

unsafe extern "C" {
    // What pthread_atfork(3) calls (Linux Standard Base, baselib). That is linked into each library, and comes to this by a procedure linkage
    // table, which every process would touch. Of no library, since this one is never unloaded.
    fn __register_atfork(
        before: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
        of: *mut c_void,
    ) -> c_int;
}

/// Has every fork from here on run `before`, which says whether it holds anything, and if so `after`, with whether that is in the child.
/// Added again, a part has the later functions.
#[unsafe(link_section = ".text.life")]
pub fn add(part: Part, before: fn() -> bool, after: fn(bool)) {
    let hooks = &TABLE[part as usize];
    hooks.after.set(after);
    hooks.before.set(before);
    if REGISTERED.load(Ordering::Acquire) != DONE {
        register();
    }
}

/// How a process ends, or its image. A number, so that to compare it reads no page of constants, which each child of a server would touch for
/// that alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Exit,
    AtOnce,
    Exec,
}

/// What each part is told besides forks, in the order of the parts: what stands on something else comes first.
pub enum Moment<'a> {
    /// An image is about to be started, in this process or, not `here`, in another one: by these variables it is told of what it inherits.
    Saving {
        here: bool,
        variables: &'a mut Vec<(&'static str, String)>,
    },
    /// exit(3): there is time for a graceful end, even where nothing else is done any more, since the process has confined itself.
    Exit,
    /// The process ends, or its image. What is held back goes out, before anything is let go.
    Ending(End),
    /// The process forbids itself system calls: what is held back goes out.
    Confining,
    /// What is open is counted, for the line of statistics.
    Counting,
    /// The process ends: peers are told.
    Leaving,
    /// The image is replaced now.
    Exec,
    /// It was not: the process goes on.
    Stays,
    /// A process was started, or could not be.
    Spawned,
}

/// Has the part told of what happens to the process besides forks.
pub fn add_told(part: Part, told: fn(&mut Moment)) {
    TABLE[part as usize].told.set(told);
}

/// Is there anybody to be told?
#[unsafe(link_section = ".text.life")]
pub fn tells_any() -> bool {
    TABLE.iter().any(|hooks| hooks.told.is_set())
}

#[unsafe(link_section = ".text.life")]
pub fn tell(mut moment: Moment) {
    for told in TABLE.iter().filter_map(|hooks| hooks.told.get()) {
        told(&mut moment);
    }
}

/// The same, unless somebody has added the part; what is done behind the fork is the same whoever does.
pub fn add_first(part: Part, before: fn() -> bool, after: fn(bool)) {
    if !TABLE[part as usize].before.is_set() {
        add(part, before, after);
    }
}

/// By whoever adds the first part: when the library is loaded. In a program without it others may come meanwhile; they wait, with what they hold,
/// for the C library alone, whose handlers are none of ours yet.
#[unsafe(link_section = ".text.life")]
fn register() {
    let first =
        REGISTERED.compare_exchange(NOT_YET, UNDER_WAY, Ordering::AcqRel, Ordering::Acquire);
    if first.is_ok() {
        // SAFETY: plain functions of a library that is never unloaded, or of the program itself.
        unsafe { __register_atfork(before_fork, in_parent, in_child, null_mut()) };
        REGISTERED.store(DONE, Ordering::Release);
    } else {
        await_registered();
    }
}

#[cold]
fn await_registered() {
    sys::Turns::while_it_holds(|| REGISTERED.load(Ordering::Acquire) != DONE);
}

/// How often this process, and those that it is a copy of, have forked since they had something to hold.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Before a fork: that of the C library comes here by itself.
#[unsafe(link_section = ".text.life")]
pub extern "C" fn before_fork() {
    if process::is_confined() {
        return;
    }
    let mut held = 0;
    for (part, hooks) in TABLE.iter().enumerate() {
        if hooks.before.get().is_some_and(|before| before()) {
            held |= 1 << part;
        }
    }
    // What is written costs a page after each fork.
    if held != 0 {
        HELD.store(held, Ordering::Relaxed);
        FORKS.store(
            FORKS.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }
}

/// Behind it, where it was made.
#[unsafe(link_section = ".text.life")]
pub extern "C" fn in_parent() {
    after(false);
}

#[unsafe(link_section = ".text.life")]
extern "C" fn in_child() {
    reclaim::in_child();
    process::forked();
    after(true);
}

/// In the child of a fork that the C library has not made, and whose number of the thread is the parent's therefore.
pub fn in_child_of_another() {
    process::identify();
    reclaim::in_child_as(sys::gettid() as u32);
    after(true);
}

#[unsafe(link_section = ".text.life")]
fn after(in_child: bool) {
    if in_child {
        counters::reset();
    }
    let held = HELD.load(Ordering::Relaxed);
    if held == 0 {
        return;
    }
    HELD.store(0, Ordering::Relaxed);
    for turn in 0..PARTS {
        let part = (BEHIND_AS_NUMBER >> (4 * turn) & 15) as usize;
        let Some(hooks) = TABLE.get(part).filter(|_| held & 1 << part != 0) else {
            continue;
        };
        // Set before the function that said that it holds something.
        if let Some(after) = hooks.after.get() {
            after(in_child);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_fork_each_part_has_its_turn_once() {
        let mut seen: Vec<usize> = (0..PARTS)
            .map(|turn| (BEHIND_AS_NUMBER >> (4 * turn) & 15) as usize)
            .collect();
        assert_eq!(seen[0], Part::Worker as usize);
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..PARTS));
    }
}
