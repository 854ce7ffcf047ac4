//! glibc's FILE on LP64 machines, as far as its calls by name (getc(3) was a macro once) and fileno(3) have made it ABI: unchanged since 2.1.

use core::marker::PhantomData;
use core::ptr::null_mut;

use libc::{c_char, c_int, c_void};

/// Its buffer is the program's.
pub const USER_BUF: c_int = 1;
pub const NO_READS: c_int = 4;
pub const NO_WRITES: c_int = 8;
pub const EOF_SEEN: c_int = 0x10;
pub const ERR_SEEN: c_int = 0x20;
/// Bytes that were pushed back are read.
pub const IN_BACKUP: c_int = 0x100;
pub const CURRENTLY_PUTTING: c_int = 0x800;

#[repr(C)]
pub struct File {
    pub flags: c_int,
    pub read_ptr: *mut c_char,
    pub read_end: *mut c_char,
    pub read_base: *mut c_char,
    pub write_base: *mut c_char,
    pub write_ptr: *mut c_char,
    pub write_end: *mut c_char,
    pub buf_base: *mut c_char,
    pub buf_end: *mut c_char,
    pub save_base: *mut c_char,
    pub backup_base: *mut c_char,
    pub save_end: *mut c_char,
    markers: *mut c_void,
    chain: *mut c_void,
    /// A FILE of fopencookie(3) does nothing with it but tell it.
    pub number: c_int,
    flags2: c_int,
    /// An old position, the column, and a buffer of one byte.
    old: [u64; 2],
    lock: *mut c_void,
    position: i64,
    codecvt: *mut c_void,
    /// What it needs for wide characters.
    pub wide: *mut c_void,
}

const _: () = assert!(core::mem::offset_of!(File, number) == 112);
const _: () = assert!(core::mem::offset_of!(File, wide) == 160);

/// A FILE of the C library's, or null.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FilePtr<'a> {
    at: *mut c_void,
    lasts: PhantomData<&'a c_void>,
}

impl<'a> FilePtr<'a> {
    pub const NULL: FilePtr<'static> = FilePtr {
        at: null_mut(),
        lasts: PhantomData,
    };

    /// # Safety
    /// `at` is null, or a FILE that nobody closes for `'a`, or as long as the library uses it.
    pub const unsafe fn new(at: *mut c_void) -> FilePtr<'a> {
        FilePtr {
            at,
            lasts: PhantomData,
        }
    }

    pub fn as_ptr(self) -> *mut c_void {
        self.at
    }

    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    /// Its number, if it has one.
    pub fn number(self) -> Option<c_int> {
        // SAFETY: a FILE; its number changes with who it is for alone.
        (!self.at.is_null()).then(|| unsafe { (*self.at.cast::<File>()).number })
    }
}

/// A FILE that nobody else uses meanwhile.
#[repr(transparent)]
pub struct Held<'a>(FilePtr<'a>);

impl<'a> Held<'a> {
    /// # Safety
    /// A FILE whose lock is held for `'a`, that nobody knows yet, or of which the program says that no other thread uses it.
    pub const unsafe fn new(file: FilePtr<'a>) -> Held<'a> {
        Held(file)
    }

    pub fn file(&self) -> FilePtr<'a> {
        self.0
    }

    /// For one of several calls.
    pub fn again(&mut self) -> Held<'_> {
        Held(self.0)
    }

    pub fn fields(&mut self) -> &mut File {
        // SAFETY: glibc's FILE begins like this, and nobody else uses it.
        unsafe { &mut *self.0.at.cast() }
    }
}

impl File {
    /// All that was pushed back is read: on with what came.
    pub fn leave_backup(&mut self) {
        self.flags &= !IN_BACKUP;
        core::mem::swap(&mut self.read_end, &mut self.save_end);
        core::mem::swap(&mut self.read_base, &mut self.save_base);
        self.read_ptr = self.read_base;
    }

    pub fn empty(&mut self) {
        let at = self.buf_base;
        (self.read_base, self.read_ptr, self.read_end) = (at, at, at);
        (self.write_base, self.write_ptr, self.write_end) = (at, at, at);
    }

    /// Has the program put bytes into its buffer that are not written?
    pub fn has_output(&self) -> bool {
        self.flags & CURRENTLY_PUTTING != 0
    }
}
