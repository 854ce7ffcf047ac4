//! What the process's statistics say of SCTP sockets. A socket counts its messages by itself, under its lock, and adds them to the
//! process's counters now and then: behind the copy into a ring an atomic addition costs more than the copy.

use headwater_host::counters::{Counter, add};

use crate::Body;

/// Messages that a socket counts before it tells.
const OFTEN: u32 = 1024;

/// An association is up.
pub fn associated(body: &Body) {
    match body {
        Body::ByMemory(_) => add(Counter::SctpByMemory, 1),
        Body::ByPackets(_) => add(Counter::SctpByPackets, 1),
    }
}

/// Messages, or parts of them, of one socket.
#[derive(Default)]
pub struct Tally {
    sent: Way,
    received: Way,
    /// Not told yet.
    count: u32,
}

/// By body: by packets, by shared memory.
#[derive(Default)]
struct Way {
    bytes: [u64; 2],
    messages: [u32; 2],
}

impl Way {
    #[inline]
    fn count(&mut self, body: &Body, bytes: usize) {
        let by_memory = match body {
            Body::ByMemory(by_memory) => {
                if by_memory.is_first_message() {
                    add(Counter::Accelerated, 1);
                }
                1
            }
            Body::ByPackets(_) => 0,
        };
        self.bytes[by_memory] += bytes as u64;
        self.messages[by_memory] += 1;
    }

    fn tell(&mut self, [all, by_memory, messages]: [Counter; 3]) {
        let told = core::mem::take(self);
        add(all, told.bytes[0] + told.bytes[1]);
        add(by_memory, told.bytes[1]);
        add(messages, told.messages[1].into());
    }
}

impl Tally {
    #[inline]
    pub fn sent(&mut self, body: &Body, bytes: usize) {
        self.sent.count(body, bytes);
        self.step();
    }

    #[inline]
    pub fn received(&mut self, body: &Body, bytes: usize) {
        self.received.count(body, bytes);
        self.step();
    }

    #[inline]
    fn step(&mut self) {
        self.count += 1;
        if self.count >= OFTEN {
            self.tell();
        }
    }

    #[cold]
    pub fn tell(&mut self) {
        if core::mem::take(&mut self.count) > 0 {
            use Counter::{SctpBytesRx, SctpBytesTx};
            use Counter::{ShmBytesRx, ShmBytesTx, ShmMsgsRx, ShmMsgsTx};
            self.sent.tell([SctpBytesTx, ShmBytesTx, ShmMsgsTx]);
            self.received.tell([SctpBytesRx, ShmBytesRx, ShmMsgsRx]);
        }
    }
}
