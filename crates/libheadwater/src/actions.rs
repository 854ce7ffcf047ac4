//! What posix_spawn(3) will do with descriptors on its way to the image, as far as that must be known before it does it.
//!
//! glibc tells nobody what a `posix_spawn_file_actions_t` holds: what the library has to know is noted beside it, as it is added.

use core::ptr::null_mut;

use headwater_host::process;
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use headwater_host::table;
use headwater_sockets::{lend, life};
use libc::{c_int, c_void};

use crate::given::{Opaque, Text};
use crate::real;

/// One of these for each action that is noted.
struct Note {
    /// Of which actions; null: it is free.
    place: AtomicPtr<c_void>,
    /// What is copied; -1: all are closed `from` this number on.
    of: AtomicI32,
    to: AtomicI32,
}

const CLOSES: c_int = -1;

impl Note {
    fn is_of(&self, actions: Opaque) -> bool {
        core::ptr::eq(self.place.load(Ordering::Acquire), actions.as_ptr())
    }

    fn says(&self) -> (c_int, c_int) {
        (
            self.of.load(Ordering::Relaxed),
            self.to.load(Ordering::Relaxed),
        )
    }
}

static NOTES: [Note; 32] = [const {
    Note {
        place: AtomicPtr::new(null_mut()),
        of: AtomicI32::new(0),
        to: AtomicI32::new(0),
    }
}; 32];
/// There was no place for a number from which on all are closed.
static MORE_CLOSE: AtomicBool = AtomicBool::new(false);

/// While a note is made.
fn busy() -> *mut c_void {
    NOTES.as_ptr().cast_mut().cast()
}

fn of(actions: Opaque) -> impl Iterator<Item = (c_int, c_int)> {
    let known = NOTES.iter().filter(move |note| note.is_of(actions));
    known.map(Note::says)
}

/// glibc's `__used`, of <spawn.h>: what has been made anew since has none.
fn used(actions: Opaque) -> c_int {
    if actions.is_null() {
        return 0;
    }
    // SAFETY: the actions are glibc's, whose second word it is.
    unsafe { actions.as_ptr().cast::<c_int>().add(1).read() }
}

fn note(actions: Opaque, of: c_int, to: c_int) -> bool {
    let take = |note: &&Note| {
        note.place
            .compare_exchange(null_mut(), busy(), Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    };
    let free = NOTES.iter().find(take);
    if let Some(note) = free {
        note.of.store(of, Ordering::Relaxed);
        note.to.store(to, Ordering::Relaxed);
        note.place.store(actions.as_ptr(), Ordering::Release);
    }
    free.is_some()
}

/// Of these actions, those notes that say so.
fn forget(actions: Opaque, is: impl Fn((c_int, c_int)) -> bool) {
    let known = NOTES.iter().filter(|note| note.is_of(actions));
    for note in known.filter(|note| is(note.says())) {
        note.place.store(null_mut(), Ordering::Release);
    }
}

/// May the actions lead to another file than the path does here, or close what the image is to have?
pub fn may_move(path: Text, actions: Opaque) -> bool {
    let relative = || !path.bytes().starts_with(b"/") && path.bytes().contains(&b'/');
    !actions.is_null() && relative() || close_from(actions).is_some()
}

/// The number from which on they close all, the highest where that is not known. `None`: they don't.
fn close_from(actions: Opaque) -> Option<c_int> {
    if used(actions) <= 0 {
        return None;
    }
    let noted = of(actions).filter(|&(of, _)| of == CLOSES);
    let lowest = noted.map(|(_, from)| from).min();
    lowest.or_else(|| MORE_CLOSE.load(Ordering::Relaxed).then_some(c_int::MAX))
}

/// The number from which on an image gets no descriptor of those that this process has.
pub fn closes_from(actions: Opaque) -> c_int {
    close_from(actions).unwrap_or(c_int::MAX)
}

/// The copies that an image gets: of which descriptor, and its number there.
pub fn copies(actions: Opaque) -> Vec<(c_int, c_int)> {
    if used(actions) <= 0 {
        return Vec::new();
    }
    of(actions).filter(|&(of, _)| of != CLOSES).collect()
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn posix_spawn_file_actions_addclosefrom_np(
    actions: Opaque,
    from: c_int,
) -> c_int {
    // SAFETY: the program has made them, by a C library that knows what is to be added.
    let add = || unsafe { real::posix_spawn_file_actions_addclosefrom_np(actions, from) };
    let failed = adding(actions, add);
    if failed == 0 && !note(actions, CLOSES, from) {
        MORE_CLOSE.store(true, Ordering::Relaxed);
    }
    failed
}

fn adding(actions: Opaque, add: impl FnOnce() -> c_int) -> c_int {
    // Actions that were made anew at that place have none yet.
    let anew = used(actions) == 0;
    let failed = add();
    if failed == 0 && anew {
        forget(actions, |_| true);
    }
    failed
}

/// The new image gets a copy whatever the descriptor's own close-on-exec flag says.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn posix_spawn_file_actions_adddup2(
    actions: Opaque,
    fd: c_int,
    to: c_int,
) -> c_int {
    let add = || real::posix_spawn_file_actions_adddup2(actions, fd, to);
    let failed = adding(actions, add);
    if failed != 0 {
        return failed;
    }
    // What was copied there before is what is copied now.
    let copied = of(actions).find(|&(of, there)| of != CLOSES && there == fd);
    let fd = copied.map_or(fd, |(of, _)| of);
    forget(actions, |(of, there)| of != CLOSES && there == to);
    let Some(h) = table::lookup(fd) else { return 0 };
    let is_lent = lend::is_connection(&h) && !process::is_borrowed();
    if !(is_lent && note(actions, fd, to)) {
        life::starting_with(fd);
    }
    0
}

/// # Safety
/// As posix_spawn_file_actions_destroy(3) asks of its caller: `actions` are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn posix_spawn_file_actions_destroy(actions: Opaque) -> c_int {
    forget(actions, |_| true);
    // SAFETY: the program uses them no more.
    unsafe { real::posix_spawn_file_actions_destroy(actions) }
}
