//! fwscanf(3) of a FILE that we serve. What is in it and between the conversions is read here, as wide characters; numbers, which are
//! the same in bytes, by the C library's fscanf(3).

use headwater_host::next::Next;
use libc::{c_char, c_int, c_void, wchar_t};

use super::{WEOF, Wide, on};
use crate::file::FilePtr;
use crate::given::WideText;
use crate::real;
use crate::real::seldom::{self, LONGEST, Progress};
use crate::{refuse, stdio, variadic};

/// Of the same call by bytes, which knows as much of the format.
type Scan = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, ...) -> c_int;

macro_rules! scanners {
    ($($name:ident $of_input:ident by $bytes:literal;)*) => {$(
        /// # Safety
        /// As vfwscanf(3) asks of its caller: a format that goes with the arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(file: FilePtr, format: WideText, args: *mut c_void) -> c_int {
            static BYTES: Next = Next::new($bytes);
            let real = |file: FilePtr| match real::nexts::$name.address() {
                // A C library that is older than the function: who looks for it by dlsym(3) finds ours.
                0 => refuse(libc::ENOSYS),
                // SAFETY: it is there; the program's FILE, its format and its arguments.
                _ => unsafe { real::$name(file.as_ptr(), format.as_ptr(), args) },
            };
            on(file, real, |on| {
                if BYTES.address() == 0 {
                    return refuse(libc::ENOSYS);
                }
                // SAFETY: the C library's function of that name; a format that goes with the arguments.
                unsafe {
                    let bytes = core::mem::transmute::<usize, Scan>(BYTES.address());
                    if on.is_wide() { scan(on, bytes, format.get(), args) } else { WEOF }
                }
            })
        }

        /// # Safety
        /// As vwscanf(3) asks of its caller: the format goes with the arguments.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $of_input(format: WideText, args: *mut c_void) -> c_int {
            // SAFETY: the program's format and its arguments.
            unsafe { $name(stdio::standard_file(0), format, args) }
        }
    )*};
}

scanners! {
    vfwscanf vwscanf by c"fscanf";
    __isoc99_vfwscanf __isoc99_vwscanf by c"__isoc99_fscanf";
    __isoc23_vfwscanf __isoc23_vwscanf by c"__isoc23_fscanf";
}

/// Why no more is read.
enum End {
    /// There is no more, or it is no text.
    Input,
    Match,
}

type Done<T> = Result<T, End>;

enum Part<'a> {
    Space,
    Literal(wchar_t),
    Conversion(Conversion<'a>),
}

/// What stands behind a `%`.
struct Conversion<'a> {
    /// From 1; 0: the next.
    position: usize,
    discards: bool,
    allocates: bool,
    flags: &'a [wchar_t],
    /// 0: as much as there is.
    width: usize,
    size: &'a [wchar_t],
    kind: u8,
    /// What stands between the brackets.
    set: &'a [wchar_t],
}

fn is_space(c: wchar_t) -> bool {
    seldom::iswspace(c) != 0
}

fn is(c: wchar_t, among: &[u8]) -> bool {
    u8::try_from(c).is_ok_and(|c| among.contains(&c))
}

/// What the format begins with that is among these.
fn span<'a>(format: &mut &'a [wchar_t], among: &[u8]) -> &'a [wchar_t] {
    let n = format.iter().take_while(|&&c| is(c, among)).count();
    let (found, rest) = format.split_at(n);
    *format = rest;
    found
}

fn number(digits: &[wchar_t]) -> usize {
    let values = digits.iter().map(|&d| (d - wchar_t::from(b'0')) as usize);
    values.fold(0, |n, d| n.saturating_mul(10).saturating_add(d))
}

const DIGITS: &[u8] = b"0123456789";

/// The format's next part. `None`: it ends, or is none.
fn part<'a>(format: &mut &'a [wchar_t]) -> Option<Part<'a>> {
    let (&first, rest) = format.split_first()?;
    *format = rest;
    if is_space(first) {
        return Some(Part::Space);
    }
    if first != wchar_t::from(b'%') {
        return Some(Part::Literal(first));
    }
    let mut position = 0;
    let mut after = *format;
    let digits = span(&mut after, DIGITS);
    if !digits.is_empty() && after.first() == Some(&wchar_t::from(b'$')) {
        position = number(digits);
        *format = &after[1..];
    }
    let discards = span(format, b"*");
    let flags = span(format, b"'I");
    let width = number(span(format, DIGITS));
    let allocates = !span(format, b"m").is_empty();
    let size = span(format, b"hlLqjzt");
    let (&kind, rest) = format.split_first()?;
    *format = rest;
    let mut conversion = Conversion {
        position,
        discards: !discards.is_empty(),
        allocates,
        flags,
        width,
        size,
        kind: u8::try_from(kind).ok()?,
        set: &[],
    };
    if conversion.kind == b'[' {
        let inverts = usize::from(format.first() == Some(&wchar_t::from(b'^')));
        // A bracket that comes first is one of the set.
        let end = format.iter().skip(inverts + 1);
        let end = end.take_while(|&&c| c != wchar_t::from(b']')).count() + inverts + 1;
        conversion.set = format.get(..end)?;
        *format = format.get(end + 1..)?;
    }
    Some(Part::Conversion(conversion))
}

impl Conversion<'_> {
    fn takes_argument(&self) -> bool {
        !self.discards && self.kind != b'%'
    }

    fn is_for_wide(&self) -> bool {
        matches!(self.kind, b'C' | b'S') || self.size.first() == Some(&wchar_t::from(b'l'))
    }

    fn has(&self, c: wchar_t) -> bool {
        let inverts = self.set.first() == Some(&wchar_t::from(b'^'));
        let mut set = &self.set[usize::from(inverts)..];
        let mut found = false;
        while let Some((&from, rest)) = set.split_first() {
            match rest {
                [dash, to, rest @ ..] if *dash == wchar_t::from(b'-') && from <= *to => {
                    found |= (from..=*to).contains(&c);
                    set = rest;
                }
                _ => {
                    found |= c == from;
                    set = rest;
                }
            }
        }
        found != inverts
    }

    /// As fscanf(3) wants it, with how many bytes were read.
    fn in_bytes(&self) -> Option<[u8; 64]> {
        use std::io::Write;
        let mut format = [0; 64];
        let mut to = &mut format[..63];
        to.write_all(b"%").ok()?;
        to.write_all(if self.discards { b"*" } else { b"" }).ok()?;
        for &flag in self.flags {
            to.write_all(&[flag as u8]).ok()?;
        }
        if self.width > 0 {
            write!(to, "{}", self.width).ok()?;
        }
        for &c in self.size {
            to.write_all(&[c as u8]).ok()?;
        }
        to.write_all(&[self.kind, b'%', b'n']).ok()?;
        Some(format)
    }
}

/// How many arguments the format names.
fn arguments(mut format: &[wchar_t]) -> usize {
    let (mut last, mut n) = (0, 0);
    while let Some(part) = part(&mut format) {
        if let Part::Conversion(c) = part
            && c.takes_argument()
        {
            n += 1;
            last = last.max(c.position);
        }
    }
    last.max(n)
}

/// NL_ARGMAX of `<limits.h>`.
const MOST_ARGUMENTS: usize = 4096;

unsafe fn scan(on: &mut Wide, bytes: Scan, mut format: &[wchar_t], args: *mut c_void) -> c_int {
    let n = arguments(format);
    // SAFETY: calloc(3) takes any numbers.
    let to = unsafe { libc::calloc(n.max(1), size_of::<*mut c_void>()) };
    let to = to.cast::<*mut c_void>();
    if to.is_null() || n > MOST_ARGUMENTS {
        // SAFETY: null or what calloc gave.
        unsafe { libc::free(to.cast()) };
        return refuse(libc::ENOMEM);
    }
    // SAFETY: room for `n` pointers, and so many arguments are there, since the format names them.
    let to_all = unsafe {
        let to_all = core::slice::from_raw_parts_mut(to, n);
        variadic::pointers(to_all, args);
        to_all
    };
    let mut scan = Scanner { on, bytes, read: 0 };
    let (mut stored, mut at) = (0, 0);
    let mut ends_by_input = false;
    while let Some(part) = part(&mut format) {
        let mut target = None;
        if let Part::Conversion(c) = &part
            && c.takes_argument()
        {
            let i = if c.position > 0 { c.position - 1 } else { at };
            at += 1;
            target = to_all.get(i).copied().map(Target);
        }
        match scan.part(&part, target) {
            Ok(counts) => stored += c_int::from(counts),
            Err(end) => {
                ends_by_input = matches!(end, End::Input);
                break;
            }
        }
    }
    // SAFETY: what calloc gave, used no more.
    unsafe { libc::free(to.cast()) };
    if stored == 0 && ends_by_input {
        WEOF
    } else {
        stored
    }
}

/// An argument of the program's, by its word with room for what the conversion stores that it was taken for.
#[derive(Clone, Copy)]
struct Target(*mut c_void);

struct Scanner<'a, 'f> {
    on: &'a mut Wide<'f>,
    bytes: Scan,
    /// How many characters, as `%n` says it.
    read: usize,
}

impl Scanner<'_, '_> {
    fn get(&mut self) -> Done<wchar_t> {
        match self.on.get() {
            WEOF => Err(End::Input),
            c => {
                self.read += 1;
                Ok(c)
            }
        }
    }

    fn unget(&mut self, c: wchar_t) {
        self.read -= 1;
        self.on.unget(c);
    }

    fn skip_space(&mut self) -> Done<()> {
        loop {
            let c = self.get()?;
            if !is_space(c) {
                self.unget(c);
                return Ok(());
            }
        }
    }

    fn literal(&mut self, wanted: wchar_t) -> Done<()> {
        let c = self.get()?;
        if c == wanted {
            return Ok(());
        }
        self.unget(c);
        Err(End::Match)
    }

    /// Does it count as stored?
    fn part(&mut self, part: &Part, to: Option<Target>) -> Done<bool> {
        match part {
            Part::Space => {
                // The end may come after it.
                let _ = self.skip_space();
                Ok(false)
            }
            Part::Literal(c) => self.literal(*c).map(|()| false),
            Part::Conversion(c) => {
                let counts = to.is_some() && c.kind != b'n';
                self.convert(c, to).map(|()| counts)
            }
        }
    }

    fn convert(&mut self, c: &Conversion, to: Option<Target>) -> Done<()> {
        match c.kind {
            b'n' => {
                store(c.size, to, self.read);
                Ok(())
            }
            b'%' => {
                self.skip_space()?;
                self.literal(wchar_t::from(b'%'))
            }
            b'c' | b'C' | b's' | b'S' | b'[' => self.text(c, to),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'p' | b'b' | b'a' | b'A' | b'e' | b'E'
            | b'f' | b'F' | b'g' | b'G' => self.number(c, to),
            _ => Err(End::Match),
        }
    }

    fn number(&mut self, c: &Conversion, to: Option<Target>) -> Done<()> {
        self.skip_space()?;
        let format = c.in_bytes().ok_or(End::Match)?;
        let format = format.as_ptr().cast();
        let mut n: c_int = -1;
        // SAFETY: a FILE of ours; the format takes where the argument says that there is room, if anything, and room for a number.
        let said = unsafe {
            match to {
                Some(to) => (self.bytes)(self.on.file.file().as_ptr(), format, to.0, &raw mut n),
                None => (self.bytes)(self.on.file.file().as_ptr(), format, &raw mut n),
            }
        };
        if n >= 0 {
            self.read += n as usize;
            return Ok(());
        }
        Err(if said < 0 { End::Input } else { End::Match })
    }

    fn text(&mut self, c: &Conversion, to: Option<Target>) -> Done<()> {
        let one = matches!(c.kind, b'c' | b'C');
        if matches!(c.kind, b's' | b'S') {
            self.skip_space()?;
        }
        let most = match c.width {
            0 if one => 1,
            0 => usize::MAX,
            width => width,
        };
        let mut text = Text::new(c, to);
        let mut n = 0;
        while n < most {
            let next = match self.get() {
                Ok(next) => next,
                Err(End::Input) if n > 0 => break,
                Err(end) => return text.fail(end),
            };
            let ends = match c.kind {
                b's' | b'S' => is_space(next),
                b'[' => !c.has(next),
                _ => false,
            };
            if ends {
                self.unget(next);
                break;
            }
            if !text.put(next) {
                return text.fail(End::Input);
            }
            n += 1;
        }
        if n == 0 {
            return text.fail(End::Match);
        }
        if !one && !text.end() {
            return text.fail(End::Input);
        }
        Ok(())
    }
}

/// What `%n` stores.
fn store(size: &[wchar_t], to: Option<Target>, n: usize) {
    let Some(Target(to)) = to else { return };
    // SAFETY: room for a number of that size.
    unsafe {
        match size.iter().map(|&c| c as u8).next() {
            None => to.cast::<c_int>().write(n as c_int),
            Some(b'h') if size.len() > 1 => to.cast::<i8>().write(n as i8),
            Some(b'h') => to.cast::<i16>().write(n as i16),
            Some(_) => to.cast::<usize>().write(n),
        }
    }
}

/// Where the characters of a conversion go.
struct Text {
    at: *mut u8,
    /// Where the program wants to have it, if it is ours to allocate.
    owner: *mut *mut u8,
    used: usize,
    room: usize,
    is_wide: bool,
    progress: Progress,
}

impl Text {
    fn new(c: &Conversion, to: Option<Target>) -> Text {
        let mut text = Text {
            at: core::ptr::null_mut(),
            owner: core::ptr::null_mut(),
            used: 0,
            room: usize::MAX,
            is_wide: c.is_for_wide(),
            progress: [0; 2],
        };
        match to {
            Some(Target(to)) if c.allocates => {
                text.owner = to.cast();
                // SAFETY: the program's room for a pointer.
                unsafe { text.owner.write(core::ptr::null_mut()) };
                text.room = 0;
            }
            Some(Target(to)) => text.at = to.cast(),
            None => {}
        }
        text
    }

    fn put(&mut self, c: wchar_t) -> bool {
        let mut bytes = [0; LONGEST];
        let mut n = size_of::<wchar_t>();
        if self.is_wide {
            bytes[..n].copy_from_slice(&c.to_ne_bytes());
        } else {
            n = seldom::wcrtomb(&mut bytes, c, &mut self.progress);
        }
        if n > LONGEST || !self.has_room(n) {
            return false;
        }
        if !self.at.is_null() {
            // SAFETY: room for these, too: by `has_room`, or by the program's word for as many as its format asks for.
            unsafe {
                let to = self.at.add(self.used);
                to.copy_from_nonoverlapping(bytes.as_ptr(), n);
            }
        }
        self.used += n;
        true
    }

    fn has_room(&mut self, n: usize) -> bool {
        if self.room - self.used >= n {
            return true;
        }
        let room = (self.room * 2).max(64);
        // SAFETY: null, or what realloc gave before.
        let grown = unsafe { libc::realloc(self.at.cast(), room) };
        if grown.is_null() {
            return false;
        }
        (self.at, self.room) = (grown.cast(), room);
        // The program has it whatever becomes of this thread.
        // SAFETY: the program's room for a pointer, since it is ours to allocate.
        unsafe { self.owner.write(self.at) };
        true
    }

    fn end(&mut self) -> bool {
        self.put(0)
    }

    fn fail(&mut self, end: End) -> Done<()> {
        if !self.owner.is_null() {
            // SAFETY: null or what realloc gave; the program's room for a pointer.
            unsafe {
                libc::free(self.at.cast());
                self.owner.write(core::ptr::null_mut());
            }
        }
        Err(end)
    }
}
