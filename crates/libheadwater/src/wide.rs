//! Wide characters of the FILEs that we serve. Those of fopencookie(3) are for bytes only: here they are converted, and the C library
//! reads and writes the bytes.

mod scan;

use headwater_host::next;
use headwater_host::sync::Ordering;
use libc::{c_char, c_int, c_void, size_t, wchar_t};

use crate::file::{ERR_SEEN, File, FilePtr, Held};
use crate::given::WideText;
use crate::real;
use crate::real::seldom::{self, LONGEST};
use crate::refuse;
use crate::stdio::{self, Served, WideState};

const WEOF: c_int = -1;

/// A FILE of ours.
struct Wide<'a> {
    file: Held<'a>,
    served: &'static Served,
}

/// By the C library, or under the FILE's lock for one of ours.
fn on<R>(file: FilePtr, real: impl FnOnce(FilePtr) -> R, serve: impl FnOnce(&mut Wide) -> R) -> R {
    match stdio::served(file) {
        None => real(file),
        Some(served) => stdio::locked(file, |file| serve(&mut Wide { file, served })),
    }
}

/// The same of a FILE that is held.
fn on_held<R>(file: Held, real: impl FnOnce(Held) -> R, serve: impl FnOnce(&mut Wide) -> R) -> R {
    match stdio::served(file.file()) {
        None => real(file),
        Some(served) => serve(&mut Wide { file, served }),
    }
}

/// Calls that have the FILE last, with and without its lock, and what they say of a FILE that is for bytes.
macro_rules! calls {
    ($($name:ident $unlocked:ident($($argument:ident: $kind:ty),*): $serve:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($argument: $kind,)* file: FilePtr) -> c_int {
            on(file, |file| real::$name($($argument,)* file), |on| {
                if on.is_wide() { on.$serve($($argument),*) } else { WEOF }
            })
        }

        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $unlocked($($argument: $kind,)* file: Held) -> c_int {
            on_held(file, |file| real::$unlocked($($argument,)* file), |on| {
                if on.is_wide() { on.$serve($($argument),*) } else { WEOF }
            })
        }
    )*};
}

calls! {
    fgetwc fgetwc_unlocked(): get;
    fputwc fputwc_unlocked(c: wchar_t): put;
    fputws fputws_unlocked(text: WideText): put_text;
}

/// The same of those that read a line.
macro_rules! lines {
    ($($name:ident $unlocked:ident($($size:ident)?): $most:expr;)*) => {$(
        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3) asks of its caller: room for as much text as it says.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(to: *mut wchar_t, $($size: size_t,)? n: c_int, file: FilePtr) -> *mut wchar_t {
            // SAFETY: the program's FILE, and its room.
            unsafe { on(file, |file| real::$name(to, $($size,)? n, file.as_ptr()), |on| on.line(to, $most(n $(, $size)?))) }
        }

        /// # Safety
        #[doc = concat!("As ", stringify!($name), "(3) asks of its caller: room for as much text as it says.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $unlocked(to: *mut wchar_t, $($size: size_t,)? n: c_int, file: Held) -> *mut wchar_t {
            // SAFETY: the program's FILE, and its room.
            unsafe { on_held(file, |file| real::$unlocked(to, $($size,)? n, file.file().as_ptr()), |on| on.line(to, $most(n $(, $size)?))) }
        }
    )*};
}

lines! {
    fgetws fgetws_unlocked(): core::convert::identity;
    __fgetws_chk __fgetws_unlocked_chk(size): |n: c_int, size| n.min(c_int::try_from(size).unwrap_or(c_int::MAX));
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn ungetwc(c: c_int, file: FilePtr) -> c_int {
    on(
        file,
        |file| real::ungetwc(c, file),
        |on| match on.is_wide() {
            true => on.unget(c),
            false => WEOF,
        },
    )
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn fwide(file: FilePtr, mode: c_int) -> c_int {
    on(file, |file| real::fwide(file, mode), |on| on.turn(mode))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn getwchar() -> c_int {
    fgetwc(stdio::standard_file(0))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn putwchar(c: wchar_t) -> c_int {
    fputwc(c, stdio::standard_file(1))
}

/// # Safety
/// No other thread uses the standard input.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getwchar_unlocked() -> c_int {
    // SAFETY: the program has it to itself.
    fgetwc_unlocked(unsafe { Held::new(stdio::standard_file(0)) })
}

/// # Safety
/// No other thread uses the standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn putwchar_unlocked(c: wchar_t) -> c_int {
    // SAFETY: the program has it to itself.
    fputwc_unlocked(c, unsafe { Held::new(stdio::standard_file(1)) })
}

/// To a FILE, and to the standard output.
macro_rules! printers {
    ($($name:ident $of_output:ident($($flag:ident)?);)*) => {$(
        /// # Safety
        /// As vfwprintf(3) asks of its caller: a FILE, and a format that goes with the arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(file: FilePtr, $($flag: c_int,)? format: WideText, args: *mut c_void) -> c_int {
            // SAFETY: the program's FILE, its format and its arguments.
            unsafe { print(file, |to| real::$name(to, $($flag,)? format.as_ptr(), args)) }
        }

        /// # Safety
        /// As vwprintf(3) asks of its caller: the format goes with the arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $of_output($($flag: c_int,)? format: WideText, args: *mut c_void) -> c_int {
            // SAFETY: the program's standard output, its format and its arguments.
            unsafe { $name(stdio::standard_file(1), $($flag,)? format, args) }
        }
    )*};
}

printers! {
    vfwprintf vwprintf();
    __vfwprintf_chk __vwprintf_chk(flag);
}

/// Prints into memory, and then all of it.
fn print(file: FilePtr, print: impl Fn(*mut c_void) -> c_int) -> c_int {
    let serve = |on: &mut Wide| {
        if !on.is_wide() {
            return -1;
        }
        // SAFETY: the text in memory has `n` characters, and is freed once.
        unsafe {
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
        }
    };
    on(file, |file| print(file.as_ptr()), serve)
}

impl Wide<'_> {
    fn state(&mut self) -> &mut WideState {
        // SAFETY: it was found by this FILE.
        unsafe { self.served.wide(&mut self.file) }
    }

    fn file(&mut self) -> &mut File {
        self.file.fields()
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
            let byte = seldom::getc_unlocked(self.file.again());
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
        refuse(libc::EILSEQ)
    }

    fn give_back(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().rev() {
            seldom::ungetc(byte.into(), self.file.again());
        }
    }

    fn unget(&mut self, c: c_int) -> c_int {
        let mut bytes = [0; LONGEST];
        if c == WEOF {
            return WEOF;
        }
        let n = seldom::wcrtomb(&mut bytes, c, &mut [0; 2]);
        if n > LONGEST {
            return WEOF;
        }
        self.give_back(&bytes[..n]);
        c
    }

    /// # Safety
    /// `to` has room for `n` characters.
    unsafe fn line(&mut self, to: *mut wchar_t, n: c_int) -> *mut wchar_t {
        if n <= 0 || !self.is_wide() {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller's room, of which all is some characters.
        let room = unsafe { core::slice::from_raw_parts_mut(to, n as usize) };
        let mut there = 0;
        while there + 1 < n as usize {
            let c = self.get();
            if c == WEOF {
                // What has come without waiting is there, too.
                let failed =
                    seldom::ferror(self.file.again()) != 0 && next::errno() != libc::EAGAIN;
                if there == 0 || failed {
                    return core::ptr::null_mut();
                }
                break;
            }
            room[there] = c;
            there += 1;
            if c == wchar_t::from(b'\n') {
                break;
            }
        }
        room[there] = 0;
        to
    }

    fn put(&mut self, c: wchar_t) -> c_int {
        if self.put_all(&[c]) { c } else { WEOF }
    }

    fn put_text(&mut self, text: WideText) -> c_int {
        if self.put_all(text.get()) { 1 } else { WEOF }
    }

    fn put_all(&mut self, text: &[wchar_t]) -> bool {
        // What was read and not taken would be in the way. It is lost, as on a FILE of the C library's.
        if !self.file().has_output() {
            seldom::__fpurge(self.file.again());
        }
        let mut bytes = [0; 1024];
        let mut there = 0;
        for (i, &c) in text.iter().enumerate() {
            // What is there goes out before there is less room than for the longest character.
            if let Some(to) = bytes[there..].first_chunk_mut() {
                there += self.convert(c, to);
            }
            if there + LONGEST <= bytes.len() && i + 1 < text.len() {
                continue;
            }
            let at = self.file.file().as_ptr();
            // SAFETY: so many of these bytes have been converted; a FILE of ours, which nobody else uses meanwhile.
            let put = unsafe { seldom::fwrite_unlocked(bytes.as_ptr().cast(), 1, there, at) };
            if put != there {
                return false;
            }
            there = 0;
        }
        true
    }

    /// The character's bytes; of one that the locale lacks what it says instead, as the C library writes it.
    fn convert(&mut self, c: wchar_t, to: &mut [u8; LONGEST]) -> usize {
        let n = seldom::wcrtomb(to, c, &mut self.state().output);
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
