//! The bytes of a ring.
//!
//! The mapping holds the bytes twice in a row, so that `capacity` bytes from any offset are contiguous. Under loom every
//! eight bytes are one modelled atomic, and nothing is mapped.

#[cfg(not(loom))]
use core::marker::PhantomData;

use super::Pos;
use crate::sync::AtomicU64;

#[cfg(not(loom))]
#[derive(Clone, Copy)]
pub struct Data<'a> {
    base: *mut u8,
    mask: u64,
    life: PhantomData<&'a [AtomicU64]>,
}

#[cfg(not(loom))]
impl<'a> Data<'a> {
    /// # Safety
    /// `base` is eight-byte aligned and readable and writable for `2 * capacity` bytes during `'a`, the second half being
    /// the same memory as the first. `capacity` is a power of two, at least 64.
    pub unsafe fn new(base: *mut u8, capacity: usize) -> Data<'a> {
        debug_assert!(capacity.is_power_of_two() && capacity >= 64);
        Data {
            base,
            mask: capacity as u64 - 1,
            life: PhantomData,
        }
    }

    #[inline(always)]
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// The word at a position, which is a multiple of eight unless a peer wrote it; then it is rounded down.
    #[inline(always)]
    pub fn word(&self, pos: Pos) -> &'a AtomicU64 {
        // SAFETY: inside the mapping and aligned, by the mask; shared words are only used as atomics.
        unsafe { &*(self.base.add((pos & self.mask & !7) as usize) as *const AtomicU64) }
    }

    /// Begins to fetch the cache line at a position.
    #[inline(always)]
    pub fn prefetch(&self, pos: Pos) {
        // SAFETY: a hint, which neither faults nor changes anything.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(
                self.at(pos) as *const i8
            )
        };
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = pos;
    }

    #[inline(always)]
    pub fn at(&self, pos: Pos) -> *mut u8 {
        // SAFETY: the offset is below capacity.
        unsafe { self.base.add((pos & self.mask) as usize) }
    }

    #[inline(always)]
    pub fn copy_in(&self, pos: Pos, buf: &[u8]) {
        if buf.is_empty() {
            return;
        }
        // SAFETY: the caller found room for buf.len() <= capacity bytes; the double mapping makes them contiguous.
        unsafe { crate::copy::copy(buf.as_ptr(), self.at(pos), buf.len()) }
    }

    /// As [`copy_in`](Data::copy_in), with whole lines stored around the caches: where a consumer on a distant CPU holds
    /// them, that costs less than taking them from it. What follows is ordered behind it.
    #[inline(never)]
    pub fn copy_in_streaming(&self, pos: Pos, buf: &[u8]) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
            let first = self.at(pos).align_offset(64).min(buf.len());
            let (start, rest) = buf.split_at(first);
            let lines = rest.len() / 64 * 64;
            self.copy_in(pos, start);
            // SAFETY: the caller found room for all of `buf`, of which these are `lines` bytes; where they go is a multiple of 64.
            unsafe {
                let to = self.at(pos).add(first);
                for i in (0..lines).step_by(16) {
                    let value = _mm_loadu_si128(rest.as_ptr().add(i).cast::<__m128i>());
                    _mm_stream_si128(to.add(i).cast::<__m128i>(), value);
                }
                _mm_sfence();
            }
            let done = first + lines;
            self.copy_in(pos.wrapping_add(done as u64), &buf[done..]);
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        self.copy_in(pos, buf);
    }

    #[inline(always)]
    pub fn copy_out(&self, pos: Pos, buf: &mut [u8]) {
        debug_assert!(buf.len() as u64 <= self.capacity());
        if buf.is_empty() {
            return;
        }
        // SAFETY: callers checked that the frame fits the ring, which is mapped twice in a row.
        unsafe { crate::copy::copy(self.at(pos), buf.as_mut_ptr(), buf.len()) }
    }
}

#[cfg(loom)]
#[derive(Clone, Copy)]
pub struct Data<'a> {
    words: &'a [AtomicU64],
}

#[cfg(loom)]
impl<'a> Data<'a> {
    /// `words.len()` is a power of two, at least eight.
    pub fn new(words: &'a [AtomicU64]) -> Data<'a> {
        Data { words }
    }

    pub fn capacity(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    pub fn word(&self, pos: Pos) -> &'a AtomicU64 {
        &self.words[(pos & (self.capacity() - 1)) as usize / 8]
    }

    pub fn prefetch(&self, _: Pos) {}

    /// A made-up address: the byte offset.
    pub fn at(&self, pos: Pos) -> *mut u8 {
        (pos & (self.capacity() - 1)) as *mut u8
    }

    /// Each byte of the payload is modelled in the word it lies in; models use payloads of whole words.
    pub fn copy_in(&self, pos: Pos, buf: &[u8]) {
        for (i, chunk) in buf.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(pos + i as u64 * 8)
                .store(u64::from_le_bytes(bytes), crate::sync::Ordering::Relaxed);
        }
    }

    pub fn copy_in_streaming(&self, pos: Pos, buf: &[u8]) {
        self.copy_in(pos, buf);
    }

    pub fn copy_out(&self, pos: Pos, buf: &mut [u8]) {
        for (i, chunk) in buf.chunks_mut(8).enumerate() {
            let word = self
                .word(pos + i as u64 * 8)
                .load(crate::sync::Ordering::Relaxed);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}
