//! fread(3) of the FILEs that we serve. Those of fopencookie(3) fill their buffer as often as it takes; the C library's own read straight
//! to where it goes what is larger than that.

use libc::{c_char, c_void, size_t};

use crate::file::{EOF_SEEN, ERR_SEEN, FilePtr, Held, IN_BACKUP};
use crate::real;
use crate::stdio::{self, Served};

/// Of a smaller buffer no whole ones are read.
const BLOCK: size_t = 128;

macro_rules! freads {
    ($($name:ident($($room:ident)?) $locks:literal;)*) => {$(
        /// # Safety
        /// As fread(3) asks of its caller: `file` is one, and `to` has room for `n` of that size.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            to: *mut c_void,
            $($room: size_t,)?
            size: size_t,
            n: size_t,
            file: FilePtr,
        ) -> size_t {
            // SAFETY: the program's FILE, which it has to itself where it needs no lock, and its room for `n` of that size.
            unsafe {
                match stdio::served(file)$(.filter(|_| fits(size, n, $room)))? {
                    None => real::$name(to, $($room,)? size, n, file.as_ptr()),
                    Some(served) => serve(served, to, size, n, file, $locks),
                }
            }
        }
    )*};
}

freads! {
    fread() true;
    fread_unlocked() false;
    __fread_chk(room) true;
    __fread_unlocked_chk(room) false;
}

/// Where it does not, the C library ends the program.
fn fits(size: size_t, n: size_t, room: size_t) -> bool {
    size.checked_mul(n).is_some_and(|all| all <= room)
}

/// `locks`: under the FILE's lock, where the program does not say that it has it to itself. On its own, so that the FILEs of others, of
/// which a program may read thousands of words, go straight on.
#[cold]
#[inline(never)]
unsafe fn serve(
    served: &Served,
    to: *mut c_void,
    size: size_t,
    n: size_t,
    file: FilePtr,
    locks: bool,
) -> size_t {
    // SAFETY: the program's FILE, which it has to itself where it needs no lock, and its room.
    unsafe {
        match locks {
            true => stdio::locked(file, |file| take(served, to, size, n, file)),
            false => take(served, to, size, n, Held::new(file)),
        }
    }
}

unsafe fn take(served: &Served, to: *mut c_void, size: size_t, n: size_t, file: Held) -> size_t {
    let all = size.wrapping_mul(n);
    if all == 0 {
        return 0;
    }
    // SAFETY: the program's room is for all of them.
    match unsafe { read_bytes(served, to.cast(), all, file) } {
        got if got == all => n,
        got => got / size,
    }
}

unsafe fn read_bytes(served: &Served, to: *mut c_char, all: size_t, mut file: Held) -> size_t {
    let at = file.file().as_ptr();
    let f = file.fields();
    // SAFETY: `done` is never more than `all`, for which there is room; the FILE's own pointers are in order, and nobody else changes them.
    unsafe {
        let mut done = 0;
        while done < all {
            let there = (f.read_end as size_t).saturating_sub(f.read_ptr as size_t);
            let taken = there.min(all - done);
            if taken > 0 {
                core::ptr::copy_nonoverlapping(f.read_ptr, to.add(done), taken);
                f.read_ptr = f.read_ptr.add(taken);
                done += taken;
                continue;
            }
            if f.flags & IN_BACKUP != 0 {
                f.leave_backup();
                continue;
            }
            let (want, buffer) = (all - done, f.buf_end as size_t - f.buf_base as size_t);
            if buffer == 0 || want < buffer {
                return done + real::fread_unlocked(to.add(done).cast(), 1, want, at);
            }
            f.empty();
            let whole = if buffer >= BLOCK {
                want - want % buffer
            } else {
                want
            };
            let got = served.read(to.add(done), whole);
            if got <= 0 {
                f.flags |= if got == 0 { EOF_SEEN } else { ERR_SEEN };
                break;
            }
            done += got as size_t;
        }
        done
    }
}
