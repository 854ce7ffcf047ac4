//! Descriptors in control messages.

use headwater_sockets::life;
use headwater_sockets::relay::Relay;
use libc::msghdr;

use crate::process::{before_passing, each_place};

/// Relays that one message may need; the connections beyond them go themselves.
const MOST: usize = 8;
const ROOM: usize = 128;

/// A message whose descriptors are about to go to somebody else, whom we do not know. What stands for a connection that can't
/// go itself is in a copy of the control messages.
pub struct Passed {
    relays: [Option<Relay>; MOST],
    control: [u64; ROOM],
    msg: msghdr,
}

impl Passed {
    /// # Safety
    /// `msg` is a valid message header.
    pub unsafe fn new(msg: *const msghdr) -> Passed {
        Passed {
            relays: [const { None }; MOST],
            control: [0; ROOM],
            msg: *msg,
        }
    }

    /// Fails with the error of the call where there is nothing that could go in a connection's place. In its place, as is `sent`:
    /// the stack of a signal handler has no room for copies of all this.
    ///
    /// # Safety
    /// `msg` is a valid message header.
    pub unsafe fn prepare(&mut self, msg: *const msghdr) -> Result<(), i32> {
        let n = (*msg).msg_controllen;
        if n > size_of_val(&self.control) || (*msg).msg_control.is_null() {
            if !(*msg).msg_control.is_null() {
                before_passing(msg);
            }
            return Ok(());
        }
        let copy = self.control.as_mut_ptr().cast::<u8>();
        core::ptr::copy_nonoverlapping((*msg).msg_control.cast::<u8>(), copy, n);
        let mut copied = *msg;
        copied.msg_control = copy.cast();
        let relays = &mut self.relays;
        let mut count = 0;
        let mut error = None;
        each_place(&copied, |at| {
            let fd = at.read_unaligned();
            match relays.get_mut(count) {
                None => life::passing_on(fd),
                Some(place) => {
                    *place = life::passing(fd).unwrap_or_else(|e| {
                        error = Some(e);
                        None
                    });
                    if let Some(relay) = place {
                        at.write_unaligned(relay.end());
                        count += 1;
                    }
                }
            }
        });
        error.map_or(Ok(()), Err)
    }

    /// The message to send in the place of `original`.
    pub fn message(&mut self, original: *const msghdr) -> *const msghdr {
        if self.relays[0].is_none() {
            return original;
        }
        self.msg.msg_control = self.control.as_mut_ptr().cast();
        &self.msg
    }

    /// It has been sent.
    pub fn sent(&mut self) {
        for relay in self.relays.iter_mut().filter_map(Option::take) {
            relay.start();
        }
    }
}
