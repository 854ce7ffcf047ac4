//! struct netbuf of `<xti.h>`, `<tiuser.h>` and `<netdir.h>`.
//!
//! # Contract
//! `buf` is null, or leads to `maxlen` bytes, of which `len` are there, as those headers have it: of what the program gives by its word, of
//! what is handed out since it is made here. Nobody else can set them.

use headwater_streams::head::is_bad;
use libc::{c_uint, c_void, iovec};

#[repr(C)]
pub struct NetBuf {
    maxlen: c_uint,
    len: c_uint,
    buf: *mut c_void,
}

/// The address is none.
pub struct Fault;

/// There is no memory.
pub struct NoMemory;

impl NetBuf {
    pub fn bytes(&self) -> Result<&[u8], Fault> {
        match self.len {
            0 => Ok(&[]),
            _ if is_bad(self.buf) => Err(Fault),
            // SAFETY: so many are there, see the contract.
            n => Ok(unsafe { core::slice::from_raw_parts(self.buf.cast(), n as usize) }),
        }
    }

    pub fn room(&mut self) -> Result<&mut [u8], Fault> {
        match self.maxlen {
            0 => Ok(&mut []),
            _ if is_bad(self.buf) => Err(Fault),
            // SAFETY: there is so much room, see the contract.
            n => Ok(unsafe { core::slice::from_raw_parts_mut(self.buf.cast(), n as usize) }),
        }
    }

    /// Fills it; false if it is too small. A buffer without room is not wanted.
    pub fn fill(&mut self, bytes: &[u8]) -> bool {
        self.len = 0;
        if self.maxlen == 0 {
            return true;
        }
        let Some(to) = self.room().ok().and_then(|r| r.get_mut(..bytes.len())) else {
            return bytes.is_empty();
        };
        to.copy_from_slice(bytes);
        self.len = bytes.len() as c_uint;
        true
    }

    /// Puts other bytes over those that are there, as many as they are.
    pub fn overwrite(&mut self, bytes: &[u8]) {
        let n = bytes.len().min(self.len as usize);
        if !is_bad(self.buf) {
            // SAFETY: so many are there, see the contract.
            unsafe { self.buf.cast::<u8>().copy_from(bytes.as_ptr(), n) };
        }
    }

    /// The first `n` bytes of it have been filled; all, where it has no more.
    pub fn filled(&mut self, n: usize) {
        self.len = n.min(self.maxlen as usize) as c_uint;
    }

    /// Where readv(2) would put what comes.
    pub fn part(&self) -> iovec {
        headwater_host::sys::buffer(self.buf, self.maxlen as usize)
    }

    /// What writev(2) would send.
    pub fn sent(&self) -> iovec {
        headwater_host::sys::buffer(self.buf, self.len as usize)
    }

    pub fn maxlen(&self) -> usize {
        self.maxlen as usize
    }

    pub fn has_buffer(&self) -> bool {
        !self.buf.is_null()
    }

    /// Gives it a buffer of malloc(3)'s, zeroed, and a byte more.
    pub fn allocate(&mut self, n: c_uint) -> Result<(), NoMemory> {
        // SAFETY: calloc(3) takes any numbers.
        let buf = unsafe { libc::calloc(1, n as usize + 1) };
        if buf.is_null() {
            return Err(NoMemory);
        }
        (self.maxlen, self.len, self.buf) = (n, 0, buf);
        Ok(())
    }

    /// Frees its buffer.
    ///
    /// # Safety
    /// It has none, or one of malloc(3)'s that nobody uses any more.
    pub unsafe fn release(&mut self) {
        // SAFETY: the caller's word.
        unsafe { libc::free(self.buf) };
        (self.maxlen, self.len, self.buf) = (0, 0, core::ptr::null_mut());
    }
}
