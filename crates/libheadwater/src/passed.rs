//! Descriptors in control messages.

use headwater_channel::pass::each_place;
use headwater_sockets::life;
use headwater_sockets::relay::Relay;
use libc::{c_int, msghdr};

/// A message whose descriptors are about to go to somebody else, whom we do not know. What stands for a connection that can't
/// go itself is in a copy of the control messages. Not on the stack, of which a signal handler may have little.
pub struct Passed {
    relays: Vec<Relay>,
    control: Vec<u64>,
    msg: msghdr,
}

impl Passed {
    /// # Safety
    /// `msg` is a valid message header.
    pub unsafe fn new(msg: *const msghdr) -> Passed {
        Passed {
            relays: Vec::new(),
            control: Vec::new(),
            // SAFETY: a message header, by the caller's word.
            msg: unsafe { *msg },
        }
    }

    /// Fails with the error of the call where there is nothing that could go in a connection's place.
    ///
    /// # Safety
    /// `msg` is a valid message header.
    pub unsafe fn prepare(&mut self, msg: *const msghdr) -> Result<(), i32> {
        // SAFETY: a message header, by the caller's word; the copy has as many bytes of control messages, and is looked at in their place.
        unsafe {
            let n = (*msg).msg_controllen;
            if (*msg).msg_control.is_null() {
                return Ok(());
            }
            self.control.resize(n.div_ceil(8), 0);
            let copy = self.control.as_mut_ptr().cast::<u8>();
            core::ptr::copy_nonoverlapping((*msg).msg_control.cast::<u8>(), copy, n);
            let mut copied = *msg;
            copied.msg_control = copy.cast();
            let relays = &mut self.relays;
            let mut error = None;
            each_place(&copied, |at| match life::passing(at.read_unaligned()) {
                Err(e) => error = Some(e),
                Ok(None) => {}
                Ok(Some(relay)) => {
                    at.write_unaligned(relay.end());
                    relays.push(relay);
                }
            });
            error.map_or(Ok(()), Err)
        }
    }

    /// The message to send in the place of `original`.
    pub fn message(&mut self, original: *const msghdr) -> *const msghdr {
        if self.relays.is_empty() {
            return original;
        }
        self.msg.msg_control = self.control.as_mut_ptr().cast();
        &self.msg
    }

    /// It has been sent.
    pub fn sent(&mut self) {
        for relay in core::mem::take(&mut self.relays) {
            relay.start();
        }
    }
}

/// The descriptors in a control message.
///
/// # Safety
/// `msg` is a valid message header.
pub unsafe fn each_passed(msg: *const msghdr, mut f: impl FnMut(c_int)) {
    // SAFETY: a message header, by the caller's word. Where a descriptor stands, one can be read.
    unsafe {
        each_place(msg, |at| f(at.read_unaligned()));
    }
}
