//! Wide characters of the FILEs that we serve. Those of fopencookie(3) are for bytes only: here they are converted, and the C library
//! reads and writes the bytes.

mod scan;

use headwater_host::next;
use headwater_host::next::seldom;
use headwater_host::sync::Ordering;
use libc::{c_char, c_int, c_void, size_t, wchar_t};

use crate::file::{ERR_SEEN, File};
use crate::real;
use crate::stdio::{self, Served};

const WEOF: c_int = -1;
/// More than a character of any locale has.
const LONGEST: usize = 16;

/// How far a character has been converted: mbstate_t.
type Progress = [u64; 2];

pub struct State {
    /// As fwide(3) says it.
    orientation: c_int,
    input: Progress,
    output: Progress,
}

impl State {
    pub const NEW: State = State {
        orientation: 0,
        input: [0; 2],
        output: [0; 2],
    };
}

/// A FILE of ours, to be used with its lock held, or where the program says that it needs none.
struct Wide {
    file: *mut c_void,
    served: &'static Served,
}

/// Calls that have the FILE last, with and without its lock, and what they say of a FILE that is for bytes.
macro_rules! calls {
    ($($name:ident $unlocked:ident($($argument:ident: $kind:ty),*) -> $result:ty: $serve:ident, $none:expr;)*) => {$(
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3) asks of its caller: a FILE, and text or room for it.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($argument: $kind,)* file: *mut c_void) -> $result {
            // SAFETY: the program's FILE, its text and its room.
            unsafe {
                match stdio::served(file) {
                    None => real::$name($($argument,)* file),
                    Some(served) => locked(&mut Wide { file, served }, |on| {
                        if on.is_wide() { on.$serve($($argument),*) } else { $none }
                    }),
                }
            }
        }

        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3) asks of its caller; and no other thread uses the FILE.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $unlocked($($argument: $kind,)* file: *mut c_void) -> $result {
            // SAFETY: the program's FILE, which it has to itself, its text and its room.
            unsafe {
                match stdio::served(file) {
                    None => real::$unlocked($($argument,)* file),
                    Some(served) => {
                        let mut on = Wide { file, served };
                        if on.is_wide() { on.$serve($($argument),*) } else { $none }
                    }
                }
            }
        }
    )*};
}

calls! {
    fgetwc fgetwc_unlocked() -> c_int: get, WEOF;
    fputwc fputwc_unlocked(c: wchar_t) -> c_int: put, WEOF;
    fgetws fgetws_unlocked(to: *mut wchar_t, n: c_int) -> *mut wchar_t: line, core::ptr::null_mut();
    __fgetws_chk __fgetws_unlocked_chk(to: *mut wchar_t, size: size_t, n: c_int) -> *mut wchar_t: checked_line, core::ptr::null_mut();
    fputws fputws_unlocked(text: *const wchar_t) -> c_int: put_text, WEOF;
}

/// # Safety
/// As ungetwc(3) asks of its caller: `file` is a FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ungetwc(c: c_int, file: *mut c_void) -> c_int {
    // SAFETY: the program's FILE.
    unsafe {
        match stdio::served(file) {
            None => real::ungetwc(c, file),
            Some(served) => locked(&mut Wide { file, served }, |on| match on.is_wide() {
                true => on.unget(c),
                false => WEOF,
            }),
        }
    }
}

/// # Safety
/// As fwide(3) asks of its caller: `file` is a FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fwide(file: *mut c_void, mode: c_int) -> c_int {
    // SAFETY: the program's FILE.
    unsafe {
        match stdio::served(file) {
            None => real::fwide(file, mode),
            Some(served) => locked(&mut Wide { file, served }, |on| on.turn(mode)),
        }
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn getwchar() -> c_int {
    // SAFETY: the FILE that the program has there, whose lock is taken.
    unsafe { fgetwc(stdio::standard_file(0)) }
}

/// # Safety
/// No other thread uses the standard input.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getwchar_unlocked() -> c_int {
    // SAFETY: the FILE that the program has there, to itself.
    unsafe { fgetwc_unlocked(stdio::standard_file(0)) }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn putwchar(c: wchar_t) -> c_int {
    // SAFETY: the FILE that the program has there, whose lock is taken.
    unsafe { fputwc(c, stdio::standard_file(1)) }
}

/// # Safety
/// No other thread uses the standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn putwchar_unlocked(c: wchar_t) -> c_int {
    // SAFETY: the FILE that the program has there, to itself.
    unsafe { fputwc_unlocked(c, stdio::standard_file(1)) }
}

/// # Safety
/// As vfwprintf(3) asks of its caller: a FILE, and a format that goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vfwprintf(
    file: *mut c_void,
    format: *const wchar_t,
    args: *mut c_void,
) -> c_int {
    // SAFETY: the program's FILE, its format and its arguments.
    unsafe { print(file, |to| real::vfwprintf(to, format, args)) }
}

/// # Safety
/// As vfwprintf(3) asks of its caller: a FILE, and a format that goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __vfwprintf_chk(
    file: *mut c_void,
    flag: c_int,
    format: *const wchar_t,
    args: *mut c_void,
) -> c_int {
    // SAFETY: the program's FILE, its format and its arguments.
    unsafe { print(file, |to| real::__vfwprintf_chk(to, flag, format, args)) }
}

/// # Safety
/// As vwprintf(3) asks of its caller: the format goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vwprintf(format: *const wchar_t, args: *mut c_void) -> c_int {
    // SAFETY: the program's standard output, its format and its arguments.
    unsafe { vfwprintf(stdio::standard_file(1), format, args) }
}

/// # Safety
/// As vwprintf(3) asks of its caller: the format goes with the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __vwprintf_chk(
    flag: c_int,
    format: *const wchar_t,
    args: *mut c_void,
) -> c_int {
    // SAFETY: the program's standard output, its format and its arguments.
    unsafe { __vfwprintf_chk(stdio::standard_file(1), flag, format, args) }
}

/// Prints into memory, and then all of it.
unsafe fn print(file: *mut c_void, print: impl FnOnce(*mut c_void) -> c_int) -> c_int {
    // SAFETY: the program's FILE; the text in memory has `n` characters, and is freed once.
    unsafe {
        let Some(served) = stdio::served(file) else {
            return print(file);
        };
        locked(&mut Wide { file, served }, |on| {
            if !on.is_wide() {
                return -1;
            }
            let (mut text, mut n) = (core::ptr::null_mut(), 0);
            let memory = seldom::open_wmemstream(&mut text, &mut n);
            if memory.is_null() {
                return -1;
            }
            let printed = print(memory);
            seldom::fclose(memory);
            if text.is_null() {
                return -1;
            }
            let put = on.put_all(core::slice::from_raw_parts(text, n));
            libc::free(text.cast());
            if put { printed } else { -1 }
        })
    }
}

fn locked<R>(on: &mut Wide, does: impl FnOnce(&mut Wide) -> R) -> R {
    // SAFETY: a FILE of ours.
    unsafe { stdio::locked(on.file, || does(on)) }
}

impl Wide {
    fn state(&mut self) -> &mut State {
        // SAFETY: the FILE's lock protects it.
        unsafe { &mut *self.served.wide.get() }
    }

    fn file(&mut self) -> &mut File {
        // SAFETY: a FILE of ours, which nobody else uses meanwhile.
        unsafe { File::of(self.file) }
    }

    /// The orientation after `mode` was asked for (fwide(3)).
    fn turn(&mut self, mode: c_int) -> c_int {
        let bytes = self.served.used.load(Ordering::Relaxed) || self.file().has_output();
        let state = self.state();
        if state.orientation == 0 {
            state.orientation = if bytes { -1 } else { mode.signum() };
        }
        state.orientation
    }

    fn is_wide(&mut self) -> bool {
        self.turn(1) > 0
    }

    fn get(&mut self) -> c_int {
        let mut taken = [0; LONGEST];
        for n in 0..LONGEST {
            // SAFETY: a FILE of ours, which nobody else uses meanwhile.
            let byte = unsafe { seldom::getc_unlocked(self.file) };
            // The rest of a character may come later.
            if byte < 0 {
                return WEOF;
            }
            taken[n] = byte as u8;
            let mut c = 0;
            let byte = (&raw const taken[n]).cast();
            let progress = (&raw mut self.state().input).cast();
            // SAFETY: one byte, and what came of those before it.
            match unsafe { seldom::mbrtowc(&mut c, byte, 1, progress) } as isize {
                -2 => continue,
                -1 => {
                    self.give_back(&taken[..=n]);
                    break;
                }
                _ => return c,
            }
        }
        self.state().input = [0; 2];
        self.file().flags |= ERR_SEEN;
        next::set_errno(libc::EILSEQ);
        WEOF
    }

    fn give_back(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().rev() {
            // SAFETY: a FILE of ours, which nobody else uses meanwhile.
            unsafe { seldom::ungetc(byte.into(), self.file) };
        }
    }

    fn unget(&mut self, c: c_int) -> c_int {
        let mut bytes = [0; LONGEST];
        let mut progress: Progress = [0; 2];
        if c == WEOF {
            return WEOF;
        }
        let at = bytes.as_mut_ptr().cast();
        // SAFETY: room for the longest character.
        let n = unsafe { seldom::wcrtomb(at, c, (&raw mut progress).cast()) };
        if n > LONGEST {
            return WEOF;
        }
        self.give_back(&bytes[..n]);
        c
    }

    unsafe fn line(&mut self, to: *mut wchar_t, n: c_int) -> *mut wchar_t {
        // SAFETY: the caller's room for `n` characters, of which the last is the end; the FILE is ours.
        unsafe {
            let mut there = 0;
            if n <= 0 {
                return core::ptr::null_mut();
            }
            while there + 1 < n as usize {
                let c = self.get();
                if c == WEOF {
                    // What has come without waiting is there, too.
                    let failed = seldom::ferror(self.file) != 0 && next::errno() != libc::EAGAIN;
                    if there == 0 || failed {
                        return core::ptr::null_mut();
                    }
                    break;
                }
                to.add(there).write(c);
                there += 1;
                if c == wchar_t::from(b'\n') {
                    break;
                }
            }
            to.add(there).write(0);
            to
        }
    }

    unsafe fn checked_line(&mut self, to: *mut wchar_t, size: size_t, n: c_int) -> *mut wchar_t {
        // SAFETY: the caller's room for `n` characters.
        unsafe { self.line(to, n.min(c_int::try_from(size).unwrap_or(c_int::MAX))) }
    }

    fn put(&mut self, c: wchar_t) -> c_int {
        if self.put_all(&[c]) { c } else { WEOF }
    }

    unsafe fn put_text(&mut self, text: *const wchar_t) -> c_int {
        // SAFETY: a text that ends, by the caller's word.
        let text = unsafe { text_of(text) };
        if self.put_all(text) { 1 } else { WEOF }
    }

    fn put_all(&mut self, text: &[wchar_t]) -> bool {
        // What was read and not taken would be in the way. It is lost, as on a FILE of the C library's.
        if !self.file().has_output() {
            // SAFETY: a FILE of ours, which nobody else uses meanwhile.
            unsafe { seldom::__fpurge(self.file) };
        }
        let mut bytes = [0; 1024];
        let mut there = 0;
        for (i, &c) in text.iter().enumerate() {
            // SAFETY: what is there goes out before there is less room than for the longest character.
            there += unsafe { self.convert(c, &mut bytes[there..]) };
            if there + LONGEST <= bytes.len() && i + 1 < text.len() {
                continue;
            }
            // SAFETY: so many of these bytes have been converted; a FILE of ours, which nobody else uses meanwhile.
            let put =
                unsafe { seldom::fwrite_unlocked(bytes.as_ptr().cast(), 1, there, self.file) };
            if put != there {
                return false;
            }
            there = 0;
        }
        true
    }

    /// The character's bytes; of one that the locale lacks what it says instead, as the C library writes it.
    ///
    /// # Safety
    /// `to` has room for the longest character.
    unsafe fn convert(&mut self, c: wchar_t, to: &mut [u8]) -> usize {
        let progress = (&raw mut self.state().output).cast();
        // SAFETY: room for the longest character, by the caller's word.
        let n = unsafe { seldom::wcrtomb(to.as_mut_ptr().cast(), c, progress) };
        if n <= LONGEST {
            return n;
        }
        instead(c, to).unwrap_or_else(|| {
            to[0] = b'?';
            1
        })
    }
}

fn instead(c: wchar_t, to: &mut [u8]) -> Option<usize> {
    // SAFETY: strings, and the lengths of one character and of the room for what it becomes.
    unsafe {
        const TAIL: &[u8] = b"//TRANSLIT\0";
        let mut name = [0; 64];
        let charset = core::ffi::CStr::from_ptr(seldom::nl_langinfo(libc::CODESET)).to_bytes();
        let tail = name.get_mut(charset.len()..charset.len() + TAIL.len())?;
        tail.copy_from_slice(TAIL);
        name[..charset.len()].copy_from_slice(charset);
        let with = seldom::iconv_open(name.as_ptr().cast(), c"WCHAR_T".as_ptr());
        if with == -1 {
            return None;
        }
        let mut from: *const c_char = (&raw const c).cast();
        let (mut n, mut room) = (size_of::<wchar_t>(), LONGEST.min(to.len()));
        let whole = room;
        let mut at = to.as_mut_ptr().cast();
        let failed = seldom::iconv(with, &mut from, &mut n, &mut at, &mut room) == usize::MAX;
        seldom::iconv_close(with);
        (!failed).then_some(whole - room)
    }
}

unsafe fn text_of<'a>(text: *const wchar_t) -> &'a [wchar_t] {
    // SAFETY: a text that ends, by the caller's word.
    unsafe {
        let mut n = 0;
        while text.add(n).read() != 0 {
            n += 1;
        }
        core::slice::from_raw_parts(text, n)
    }
}
