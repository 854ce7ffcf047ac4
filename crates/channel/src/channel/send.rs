//! Sending messages.

use std::time::Instant;

use super::section::Work;
use super::waiting::{HandOff, Want};
use super::{Channel, Patience, SendError};
use crate::ring::Meta;
use crate::sys;

impl Channel {
    /// Sends a message of `data.len()` bytes (0 is a message too); waits while there is no room.
    pub fn send(&self, data: &[u8]) -> Result<(), SendError> {
        self.transmit(Patience::Forever, &[], data, Meta::default())
    }

    /// Sends, or fails with [`SendError::Full`] at once.
    pub fn try_send(&self, data: &[u8]) -> Result<(), SendError> {
        self.transmit(Patience::Now, &[], data, Meta::default())
    }

    /// Sends, or fails with [`SendError::Full`] at the deadline, which a busy wait may overrun by its 50 µs.
    pub fn send_deadline(&self, data: &[u8], deadline: Instant) -> Result<(), SendError> {
        self.transmit(Patience::Until(deadline), &[], data, Meta::default())
    }

    /// Sends a message with a control part, of a kind and in a band of the program's choice. The channel gives no meaning to
    /// either; all bands are delivered in the order sent. An empty control part is the same as none.
    pub fn send_message(
        &self,
        control: &[u8],
        data: &[u8],
        kind: u8,
        band: u8,
    ) -> Result<(), SendError> {
        self.transmit(Patience::Forever, control, data, labels(kind, band))
    }

    /// [`send_message`](Channel::send_message) that fails with [`SendError::Full`] at once.
    pub fn try_send_message(
        &self,
        control: &[u8],
        data: &[u8],
        kind: u8,
        band: u8,
    ) -> Result<(), SendError> {
        self.transmit(Patience::Now, control, data, labels(kind, band))
    }

    /// [`send_message`](Channel::send_message) that fails with [`SendError::Full`] at the deadline.
    pub fn send_message_deadline(
        &self,
        control: &[u8],
        data: &[u8],
        kind: u8,
        band: u8,
        deadline: Instant,
    ) -> Result<(), SendError> {
        let patience = Patience::Until(deadline);
        self.transmit(patience, control, data, labels(kind, band))
    }

    /// Says that this end sends nothing more: the peer receives what is there and then gets
    /// [`ReceiveError::Closed`](super::ReceiveError::Closed). Receiving goes on. It counts for all holders of the end.
    pub fn finish_sending(&self) -> Result<(), SendError> {
        // Under the lock, so that nobody is half way through a message.
        let section = self.section(Work::Sending, Patience::Forever)?;
        self.own_end().finish();
        drop(section);
        // Wakes a reader asleep on its shadow. ENOTCONN: the peer is gone, and needs no waking.
        let _ = sys::shutdown(self.shadow(), libc::SHUT_WR);
        Ok(())
    }

    fn transmit(
        &self,
        patience: Patience,
        control: &[u8],
        data: &[u8],
        meta: Meta,
    ) -> Result<(), SendError> {
        let len = control.len().saturating_add(data.len());
        self.check_length(len)?;
        let mut hand_off = HandOff::new(self);
        loop {
            let section = self.section(Work::Sending, patience)?;
            self.check_open()?;
            if section.ring().push_message(control, data, meta)? {
                return Ok(());
            }
            drop(section);
            self.wait(Want::Room(len), patience, &mut hand_off)?;
        }
    }

    pub(super) fn check_length(&self, len: usize) -> Result<(), SendError> {
        match self.max_message() {
            max if len > max => Err(SendError::TooLong { max }),
            _ => Ok(()),
        }
    }

    /// May this end send? Asked inside the section, against which finish_sending is ordered.
    #[inline]
    pub(super) fn check_open(&self) -> Result<(), SendError> {
        if self.peer_gone() || self.own_end().is_finished() {
            return Err(SendError::Closed);
        }
        Ok(())
    }
}

fn labels(kind: u8, band: u8) -> Meta {
    Meta {
        kind,
        band,
        ..Meta::default()
    }
}
