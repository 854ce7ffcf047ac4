//! The environment: the one place in the library that reads variables, HEADWATER_ ones and the few of the program's own that it follows. (Who starts a
//! program hands its environment on, or another one in its place, as a whole.)
//!
//! The shared object remembers them when it is loaded, with neither a system call nor an allocation, since programs lose their
//! environment before the library is first needed; what they set themselves until then holds instead. Rust programs that use
//! the crates alone are read from whenever something asks. A program that runs with more rights than its caller's (AT_SECURE, see getauxval(3))
//! has no such variables at all: its caller must not say where it writes, or whom it trusts.

use core::cell::UnsafeCell;
use core::ffi::CStr;

use crate::sync::{AtomicU32, Ordering};

const PREFIX: &[u8] = b"HEADWATER_";
/// Three paths of the longest kind, and the rest.
const ROOM: usize = 16 << 10;

/// What one image leaves to the next across an exec, and takes back at once: never remembered, and as long as it takes.
pub const HANDED_OVER: [&str; 4] = [
    "HEADWATER_INHERIT",
    "HEADWATER_CONNECTIONS",
    "HEADWATER_ENDPOINTS",
    "HEADWATER_SCTP_INHERIT",
];

/// Bits of [`STATE`]: the variables were remembered; some were handed over; some had no room; there were any to remember.
const REMEMBERED: u32 = 1;
const HANDED: u32 = 2;
const TOO_LONG: u32 = 4;
const ANY: u32 = 8;

#[unsafe(link_section = ".data")]
static STATE: AtomicU32 = AtomicU32::new(0);

struct Copied(UnsafeCell<[u8; ROOM]>);

// SAFETY: written once, before STATE says so and before there are threads that could ask.
unsafe impl Sync for Copied {}

crate::large! {
    /// NAME=value, each with its final zero byte; an empty one ends them.
    static COPIED: Copied = Copied(UnsafeCell::new([0; ROOM]));
}

unsafe extern "C" {
    static environ: *const *const libc::c_char;
}

/// Does this process have more rights than the one that started it?
pub fn is_secure() -> bool {
    // SAFETY: no pointers; the C library looks into its own memory.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Copies our variables as they are now, for when they are gone. Once, when the shared object is loaded.
pub fn remember() {
    let state = if is_secure() { 0 } else { copy() };
    STATE.store(state | REMEMBERED, Ordering::Release);
}

fn copy() -> u32 {
    let (mut state, mut len) = (0, 0);
    // SAFETY: before there is anybody else to change the environment or to read the copy.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            if is_ours(*at) {
                let bytes = CStr::from_ptr(*at).to_bytes_with_nul();
                if HANDED_OVER.iter().any(|name| value(bytes, name).is_some()) {
                    state |= HANDED;
                } else if len + bytes.len() < ROOM {
                    let to = COPIED.0.get().cast::<u8>().add(len);
                    core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                    len += bytes.len();
                    state |= ANY;
                } else {
                    state |= TOO_LONG;
                }
            }
            at = at.add(1);
        }
    }
    state
}

/// # Safety
/// `variable` is a C string.
unsafe fn is_ours(variable: *const libc::c_char) -> bool {
    let mut prefix = PREFIX.iter().enumerate();
    // SAFETY: byte by byte up to the first difference, which its final zero is at the latest.
    prefix.all(|(i, &c)| unsafe { *variable.add(i) } as u8 == c)
}

/// The value, with its final zero byte, if the variable has this name.
fn value<'a>(variable: &'a [u8], name: &str) -> Option<&'a [u8]> {
    variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

fn remembered(name: &str) -> Option<&'static [u8]> {
    // Most processes have none, and are not to touch the copy's page for it.
    if STATE.load(Ordering::Acquire) & ANY == 0 {
        return None;
    }
    // SAFETY: not changed any more once STATE says REMEMBERED, which the callers have seen.
    let all: &'static [u8; ROOM] = unsafe { &*COPIED.0.get() };
    all.split_inclusive(|&c| c == 0)
        .take_while(|variable| variable.len() > 1)
        .find_map(|variable| value(variable, name))
        .map(|value| &value[..value.len() - 1])
}

/// The value of a variable, if it is UTF-8 and may be trusted: what the program has set it to by now, else what it was.
pub fn var(name: &str) -> Option<String> {
    let now = || std::env::var(name).ok().filter(|_| !is_secure());
    if let Some(text) = now() {
        return Some(text);
    }
    if STATE.load(Ordering::Acquire) & REMEMBERED == 0 {
        return None;
    }
    let text = core::str::from_utf8(remembered(name)?).ok()?;
    Some(text.to_owned())
}

/// Is the variable set, to anything but an empty text or one of `not`? Of what was remembered only; no allocation.
pub fn is_set(name: &str, not: &[&str]) -> bool {
    STATE.load(Ordering::Acquire) & REMEMBERED != 0
        && remembered(name).is_some_and(|v| !v.is_empty() && !not.iter().any(|n| n.as_bytes() == v))
}

/// Is this the shared object, rather than a program in Rust that uses the crates alone?
pub fn is_remembered() -> bool {
    STATE.load(Ordering::Acquire) & REMEMBERED != 0
}

/// Did the variables that were remembered not all have room?
pub fn was_too_long() -> bool {
    STATE.load(Ordering::Acquire) & TOO_LONG != 0
}

/// Did the image before this one leave something, when the shared object was loaded?
pub fn was_handed_over() -> bool {
    STATE.load(Ordering::Acquire) & HANDED != 0
}

/// A variable of the program's own that a call of the C library's looks at too, as that finds it: null, or a string.
///
/// # Safety
/// Nobody changes the environment meanwhile, nor as long as the string is used.
pub unsafe fn of_program(name: &CStr) -> *const libc::c_char {
    // SAFETY: a string; the rest the caller says.
    unsafe { libc::getenv(name.as_ptr()) }
}

/// Takes one of [`HANDED_OVER`] out of the environment. Before the program has threads, or its first stream.
pub fn take(name: &str) -> Option<String> {
    let text = std::env::var(name).ok().filter(|_| !is_secure())?;
    // SAFETY: as the caller says, nobody else reads or changes the environment.
    unsafe { std::env::remove_var(name) };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_sets_holds_and_what_it_loses_is_remembered() {
        // Names that nothing else asks for: the environment is the whole process's.
        let [a, b, long] = ["HEADWATER_T_A", "HEADWATER_T_B", "HEADWATER_T_LONG"];
        let set = |name: &str, value: &str| {
            // SAFETY: the other tests of this crate change no variables, and read none through libc.
            unsafe { std::env::set_var(name, value) };
        };
        set(a, "64K");
        assert_eq!(var(a).as_deref(), Some("64K"));
        assert!(!is_set(a, &[]), "nothing is remembered yet");
        set(b, "0");
        set(long, &"d".repeat(ROOM));
        set(HANDED_OVER[1], "3");
        remember();
        set(a, "128K");
        assert_eq!(var(a).as_deref(), Some("128K"));
        for lost in [a, long] {
            // SAFETY: no other test of this crate asks for these names, or changes any variable.
            unsafe { std::env::remove_var(lost) };
        }
        assert_eq!(var(a).as_deref(), Some("64K"));
        assert_eq!(var("HEADWATER_T_"), None);
        assert!(is_set(b, &[]) && !is_set(b, &["0"]));
        assert!(was_handed_over() && was_too_long());
        assert_eq!(take(HANDED_OVER[1]).as_deref(), Some("3"));
        assert_eq!(take(HANDED_OVER[1]), None);
        assert_eq!(var(long), None);
        STATE.store(0, Ordering::Release);
    }
}
