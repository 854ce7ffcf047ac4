//! XTI_SNDLOWAT and XTI_RCVLOWAT: how much room, and how much data, there has to be before there is any.

use headwater_tpi::Refusal;
use headwater_tpi::error::TFLOW;
use headwater_tpi::option::{XTI_GENERIC, XTI_RCVLOWAT, XTI_SNDLOWAT};
use libc::iovec;

use super::super::length;
use super::Tcp;
use crate::provider::{Outcome, Sending};

#[derive(Default)]
pub struct Marks {
    /// The least room; 0: any. It is waited for since some data had none.
    pub room: u32,
    pub waits_for_room: bool,
    /// There is a least number of bytes to be received, which the kernel knows.
    pub visible: bool,
}

impl Tcp {
    /// Options were set.
    pub fn note_marks(&mut self) {
        self.marks.room = match self.chosen.number(XTI_GENERIC, XTI_SNDLOWAT) {
            1 => 0,
            room => room,
        };
        let visible = self.chosen.asked(XTI_GENERIC, XTI_RCVLOWAT) > 1;
        if visible || self.marks.visible {
            self.socket.note_receive_mark();
        }
        self.marks.visible = visible;
    }

    /// Data below XTI_RCVLOWAT is not there yet.
    pub fn is_below_mark(&self) -> bool {
        self.marks.visible && !self.socket.is_ready(libc::POLLIN)
    }

    /// As [`put`](Self::put), where after a send without room, or with too little, there is none before as much as the user wants.
    #[cold]
    pub fn put_by_mark(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        if self.marks.waits_for_room {
            if !self.socket.is_ready(libc::POLLOUT) {
                return Err(Refusal::new(TFLOW));
            }
            self.wait_for_any_room();
        }
        let sent = self.put(data, how);
        let refused = match sent {
            Ok(n) => n < length(data),
            Err(refusal) => refusal.tli == TFLOW,
        };
        if refused {
            self.marks.waits_for_room = true;
            self.socket.set_send_mark(Some(self.marks.room));
        }
        sent
    }

    pub fn wait_for_any_room(&mut self) {
        if core::mem::take(&mut self.marks.waits_for_room) {
            self.socket.set_send_mark(None);
        }
    }
}
