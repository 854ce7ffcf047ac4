//! Sending and receiving without a copy: the program writes into the ring, and reads out of it.
//!
//! Safety: the bytes of a reservation or of a frame at the head belong to whoever holds the ring's lock, which both types do
//! while they live. A peer that breaks the protocol can still change them at any time. Any byte is a valid `u8`, so all it
//! can do is to change what the program sees there from one look to the next.

use std::ops::{Deref, DerefMut};
use std::slice;

use super::section::{Section, Work};
use super::waiting::{HandOff, Want};
use super::{Channel, Patience, ReceiveError, SendError};
use crate::ring::{self, Frame, Meta};

/// Room in the ring for one message, to be written in place and then [committed](Reservation::commit). Dropping it gives the
/// room back.
///
/// While it lives, whoever else sends on this end waits, so keep it short. A child of fork gets no part in it.
pub struct Reservation<'a> {
    section: Section<'a>,
    room: ring::Reservation,
}

/// The oldest message, to be read in place and then [consumed](FrameRef::consume). Dropping it leaves the message.
///
/// While it lives, whoever else receives on this end waits, so keep it short. What an untrusted peer sent has to be copied
/// out before it is checked: a peer that breaks the protocol can change it at any time.
pub struct FrameRef<'a> {
    section: Section<'a>,
    frame: Frame,
}

impl Channel {
    /// Reserves room for a message of `len` bytes (at most [`max_message`](Channel::max_message)); waits while there is none.
    ///
    /// ```
    /// # use headwater_channel::Channel;
    /// let (a, b) = Channel::pair(4096)?;
    /// let mut room = a.reserve(100)?;
    /// room[..5].copy_from_slice(b"hello");
    /// room.commit(5);
    ///
    /// let frame = b.peek()?.expect("a message");
    /// assert_eq!(&*frame, b"hello");
    /// frame.consume(5);
    /// assert!(b.peek()?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserve(&self, len: usize) -> Result<Reservation<'_>, SendError> {
        self.reserve_patiently(len, Patience::Forever)
    }

    /// Reserves, or fails with [`SendError::Full`] at once.
    pub fn try_reserve(&self, len: usize) -> Result<Reservation<'_>, SendError> {
        self.reserve_patiently(len, Patience::Now)
    }

    /// The unread part of the oldest message, control part first; `None` when there is none. Never waits for one: see
    /// [`wait_readable`](Channel::wait_readable).
    pub fn peek(&self) -> Result<Option<FrameRef<'_>>, ReceiveError> {
        match self.next_frame(Patience::Now) {
            Ok((mut section, frame)) => {
                section.lend();
                Ok(Some(FrameRef { section, frame }))
            }
            Err(ReceiveError::Empty) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn reserve_patiently(
        &self,
        len: usize,
        patience: Patience,
    ) -> Result<Reservation<'_>, SendError> {
        self.check_length(len)?;
        let mut hand_off = HandOff::new(self);
        loop {
            let mut section = self.section(Work::Sending, patience)?;
            self.check_open()?;
            if let Some(room) = section.ring().reserve(len, false)?
                && room.len == len
            {
                section.lend();
                return Ok(Reservation { section, room });
            }
            drop(section);
            self.wait(Want::Room(len), patience, &mut hand_off)?;
        }
    }
}

impl Reservation<'_> {
    /// Sends the first `len` bytes as a message. Panics if `len` is beyond the reservation.
    pub fn commit(self, len: usize) {
        self.commit_as(len, 0, 0);
    }

    /// As [`commit`](Reservation::commit), with a kind and a band.
    pub fn commit_as(self, len: usize, kind: u8, band: u8) {
        assert!(len <= self.room.len, "more than was reserved");
        if self.section.is_ours() {
            let meta = Meta {
                kind,
                band,
                ..Meta::default()
            };
            self.section.ring().commit(len, meta);
        }
    }
}

impl Deref for Reservation<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: readable for len bytes, ours while the section's lock is held; see the module's comment.
        unsafe { slice::from_raw_parts(self.room.ptr, self.room.len) }
    }
}

impl DerefMut for Reservation<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: writable for len bytes, ours while the section's lock is held; see the module's comment.
        unsafe { slice::from_raw_parts_mut(self.room.ptr, self.room.len) }
    }
}

impl FrameRef<'_> {
    /// Takes the first `n` bytes of what is shown; the message goes with its last byte. Panics if `n` is beyond it.
    pub fn consume(self, n: usize) {
        assert!(n <= self.frame.len, "more than the frame holds");
        if self.section.is_ours() {
            self.section.ring().consume(&self.frame, n);
        }
    }

    /// How many of the bytes shown are control part; the data part follows.
    pub fn control_len(&self) -> usize {
        self.frame.control_left()
    }

    pub fn kind(&self) -> u8 {
        self.frame.meta.kind
    }

    pub fn band(&self) -> u8 {
        self.frame.meta.band
    }
}

impl Deref for FrameRef<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        // SAFETY: readable for len bytes, ours while the section's lock is held; see the module's comment.
        unsafe { slice::from_raw_parts(self.frame.ptr, self.frame.len) }
    }
}
