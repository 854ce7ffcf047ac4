//! Receiving messages.

use std::time::Instant;

use super::section::{Section, Work};
use super::waiting::{HandOff, Want};
use super::{Channel, Patience, ReceiveError};
use crate::ring::Frame;

/// What [`recv_message`](Channel::recv_message) put into the buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Bytes of the control part; 0 also when there is none.
    pub control: usize,
    /// Bytes of the data part.
    pub data: usize,
    pub kind: u8,
    pub band: u8,
}

impl Channel {
    /// Receives the next message into `buf` and returns its length; waits while there is none.
    pub fn recv(&self, buf: &mut [u8]) -> Result<usize, ReceiveError> {
        self.receive(Patience::Forever, &mut [], buf)
            .map(|m| m.data)
    }

    /// Receives, or fails with [`ReceiveError::Empty`] at once. That the peer was killed, which leaves no trace in memory,
    /// is noticed by one of at most 64 such calls in vain; that it has closed, by the next.
    pub fn try_recv(&self, buf: &mut [u8]) -> Result<usize, ReceiveError> {
        self.receive(Patience::Now, &mut [], buf).map(|m| m.data)
    }

    /// Receives, or fails with [`ReceiveError::Empty`] at the deadline, which a busy wait may overrun by its 50 µs.
    pub fn recv_deadline(&self, buf: &mut [u8], deadline: Instant) -> Result<usize, ReceiveError> {
        self.receive(Patience::Until(deadline), &mut [], buf)
            .map(|m| m.data)
    }

    /// Receives the next message with its control part, kind and band.
    ///
    /// ```
    /// # use headwater_channel::{Channel, Message};
    /// let (a, b) = Channel::pair(4096)?;
    /// a.send_message(b"address", b"payload", 7, 1)?;
    ///
    /// let (mut control, mut data) = ([0; 64], [0; 64]);
    /// let m = b.recv_message(&mut control, &mut data)?;
    /// assert_eq!(&control[..m.control], b"address");
    /// assert_eq!(&data[..m.data], b"payload");
    /// assert_eq!((m.kind, m.band), (7, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recv_message(
        &self,
        control: &mut [u8],
        data: &mut [u8],
    ) -> Result<Message, ReceiveError> {
        self.receive(Patience::Forever, control, data)
    }

    /// [`recv_message`](Channel::recv_message) that fails with [`ReceiveError::Empty`] at once.
    pub fn try_recv_message(
        &self,
        control: &mut [u8],
        data: &mut [u8],
    ) -> Result<Message, ReceiveError> {
        self.receive(Patience::Now, control, data)
    }

    /// [`recv_message`](Channel::recv_message) that fails with [`ReceiveError::Empty`] at the deadline.
    pub fn recv_message_deadline(
        &self,
        control: &mut [u8],
        data: &mut [u8],
        deadline: Instant,
    ) -> Result<Message, ReceiveError> {
        self.receive(Patience::Until(deadline), control, data)
    }

    /// Waits until something can be received, or until the deadline ([`ReceiveError::Empty`]). Where others receive on this
    /// end too, it may be gone again.
    pub fn wait_readable(&self, deadline: Option<Instant>) -> Result<(), ReceiveError> {
        let patience = deadline.map_or(Patience::Forever, Patience::Until);
        self.next_frame(patience).map(drop)
    }

    fn receive(
        &self,
        patience: Patience,
        control: &mut [u8],
        data: &mut [u8],
    ) -> Result<Message, ReceiveError> {
        let (section, frame) = self.next_frame(patience)?;
        let controls = frame.control_left();
        let datas = frame.len - controls;
        if controls > control.len() || datas > data.len() {
            return Err(ReceiveError::TooLong {
                control: controls,
                data: datas,
            });
        }
        let ring = section.ring();
        ring.copy_frame(&frame, 0, &mut control[..controls]);
        ring.copy_frame(&frame, controls, &mut data[..datas]);
        ring.consume(&frame, frame.len);
        Ok(Message {
            control: controls,
            data: datas,
            kind: frame.meta.kind,
            band: frame.meta.band,
        })
    }

    /// The oldest frame, and the section in which it stays the oldest.
    #[inline(always)]
    pub(super) fn next_frame(
        &self,
        patience: Patience,
    ) -> Result<(Section<'_>, Frame), ReceiveError> {
        let mut hand_off = HandOff::new(self);
        loop {
            let over = self.peer_finished();
            if !self.incoming().is_empty() {
                let mut section = self.section(Work::Receiving, patience)?;
                if let Some(frame) = section.ring().peek()? {
                    section.carry(hand_off);
                    return Ok((section, frame));
                }
            }
            if over {
                return Err(ReceiveError::Closed);
            }
            if matches!(patience, Patience::Now) && self.look_sometimes() {
                continue;
            }
            self.wait(Want::Data, patience, &mut hand_off)?;
        }
    }
}
