//! Calls that wait. A call pins its connection before its first wait, and the last pin ends a connection that the program
//! closed meanwhile, as the kernel keeps a socket for a blocked call.
//!
//! A wait may be left without a way back: by siglongjmp(3) out of a signal handler, or by the end of a cancelled thread.
//! Each thread therefore remembers the pins it has, with the place of the call on its stack, and gives up those it has left.

use std::cell::Cell;
use std::sync::OnceLock;

use headwater_host::sync::Ordering;
use headwater_host::{process, signal};

use crate::conn::Conn;
use crate::life;
use crate::segment::View;

/// Waits inside handlers inside waits ...: beyond this many, a pin is not remembered.
const DEPTH: usize = 8;

#[derive(Clone, Copy)]
struct Pin {
    conn: Option<&'static Conn>,
    /// An address in the stack frame of the call.
    frame: usize,
}

struct Pins {
    count: Cell<usize>,
    pins: [Cell<Pin>; DEPTH],
}

thread_local! {
    static PINS: Pins = const {
        Pins { count: Cell::new(0), pins: [const { Cell::new(Pin { conn: None, frame: 0 }) }; DEPTH] }
    };
    static ENDS_WITH_US: Cell<bool> = const { Cell::new(false) };
}

/// Before the first wait of a call. False when the program has closed the connection.
pub fn pin(c: &'static Conn, v: &View<'_>, frame: usize) -> bool {
    signal::begin_wait();
    see_thread_end();
    process::without_handlers(|| {
        c.pins.fetch_add(1, Ordering::SeqCst);
        // A close that did not see this pin is seen here.
        if c.is_closed() || !c.carries(v) {
            take_back(c);
            return false;
        }
        PINS.with(|p| {
            let n = p.count.get();
            if let Some(place) = p.pins.get(n) {
                place.set(Pin {
                    conn: Some(c),
                    frame,
                });
                p.count.set(n + 1);
            }
        });
        true
    })
}

/// The call is over.
pub fn unpin(c: &'static Conn) {
    process::without_handlers(|| {
        PINS.with(|p| {
            let n = p.count.get();
            let last = n.checked_sub(1).map(|i| p.pins[i].get().conn);
            if last.flatten().is_some_and(|x| core::ptr::eq(x, c)) {
                p.count.set(n - 1);
            }
        });
        take_back(c);
    });
}

/// Has this thread pins that it has not given up?
#[inline]
pub fn any() -> bool {
    PINS.with(|p| p.count.get() > 0)
}

/// Control goes to a frame at `target` for good: calls below it will not return.
pub fn unwound_to(target: usize) {
    let left = |p: &Pins| match p.count.get() {
        0 => None,
        n => Some(p.pins[n - 1].get()).filter(|pin| pin.frame < target),
    };
    while let Some(pin) = PINS.with(left) {
        match pin.conn {
            Some(c) => unpin(c),
            None => return,
        }
    }
}

fn take_back(c: &'static Conn) {
    // After fork the child's count begins anew.
    let before = c
        .pins
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if before == Ok(1) {
        life::last_pin_gone(c);
    }
}

/// Has the pins of this thread given up when it ends, however it ends.
fn see_thread_end() {
    if ENDS_WITH_US.with(|e| e.replace(true)) {
        return;
    }
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    unsafe extern "C" fn ended(_: *mut libc::c_void) {
        unwound_to(usize::MAX);
    }
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: key is writable; the destructor is a function of this library, which is never unloaded.
        (unsafe { libc::pthread_key_create(&mut key, Some(ended)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: a key of ours; any value but null has the destructor run.
        unsafe { libc::pthread_setspecific(*key, core::ptr::dangling()) };
    }
}
