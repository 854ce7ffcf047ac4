//! What the process's statistics say of SCTP sockets.

use headwater_host::counters::{Counter, add};

use crate::sctp::socket::Body;

/// An association is up.
pub fn associated(body: &Body) {
    match body {
        Body::Near(_) => {
            add(Counter::SctpNear, 1);
            add(Counter::Accelerated, 1);
        }
        Body::Far(_) => add(Counter::SctpFar, 1),
    }
}

/// A message, or a part of one, of so many bytes.
#[inline]
pub fn sent(body: &Body, bytes: usize) {
    add(Counter::SctpBytesTx, bytes as u64);
    if matches!(body, Body::Near(_)) {
        add(Counter::ShmBytesTx, bytes as u64);
        add(Counter::ShmMsgsTx, 1);
    }
}

#[inline]
pub fn received(body: &Body, bytes: usize) {
    add(Counter::SctpBytesRx, bytes as u64);
    if matches!(body, Body::Near(_)) {
        add(Counter::ShmBytesRx, bytes as u64);
        add(Counter::ShmMsgsRx, 1);
    }
}
