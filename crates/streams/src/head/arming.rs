//! Who relies on a head's bell: what each waits for, counted at the head and at its rings, so that whoever changes something
//! rings.

use headwater_host::roster::Entry;
use headwater_host::sync::{Ordering, fence};
use headwater_host::table::Handle;

use super::Head;

/// What a call waits for: bits, since a queued stream wants both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Want(pub u32);

/// In a [`Want`]: the room is that of a band.
const BANDED: u32 = 4;

impl Want {
    pub const DATA: Want = Want(1);
    pub const ROOM: Want = Want(2);
    pub const EITHER: Want = Want(3);

    /// Room for a message of a band.
    pub fn room_in(band: u8) -> Want {
        if band > 0 {
            Want(Want::ROOM.0 | BANDED)
        } else {
            Want::ROOM
        }
    }

    /// Who waits for nothing waits for the hangup, which may come by the ring.
    fn or_hangup(self) -> Want {
        if self.0 == 0 { Want::DATA } else { self }
    }

    pub(super) fn data(self) -> bool {
        self.0 & 1 != 0
    }

    fn room(self) -> bool {
        self.0 & 2 != 0
    }

    pub(super) fn banded(self) -> bool {
        self.0 & BANDED != 0
    }
}

impl Head {
    /// Counts somebody who relies on the bell, here and at the ring, and fences. Look once more, then sleep.
    pub fn arm(&self, want: Want) {
        self.asleep.count();
        self.arm_ring(want);
    }

    /// As [`arm`](Head::arm), for a thread that sleeps.
    pub(super) fn enter_asleep(&self, want: Want) -> Entry {
        let entry = self.asleep.enter();
        self.arm_ring(want);
        entry
    }

    fn arm_ring(&self, want: Want) {
        let want = want.or_hangup();
        if self.has_pipe() {
            if want.data() {
                self.incoming().reader_sleeps();
            }
            if want.room() {
                self.outgoing().writer_sleeps();
            }
        }
        fence(Ordering::SeqCst);
    }

    /// As [`arm`](Head::arm) for who has entered, and goes on without: the head, and its pipe, stay as they are until it is disarmed. False:
    /// it was closed before that, and is not armed.
    pub fn arm_for(&self, h: Handle, want: Want) -> bool {
        self.arm(want);
        let same = self.handle() == h.with_tag(0);
        if !same {
            self.disarm(want);
        }
        same
    }

    /// Takes back one [`arm`](Head::arm).
    pub fn disarm(&self, want: Want) {
        self.disarm_ring(want);
        // Last: a closed pipe stays mapped for its sleepers.
        self.asleep.discount();
    }

    /// Forgets one [`arm`](Head::arm) of the process that this one is a copy of.
    pub fn armed_by_parent(&self) {
        self.asleep.discount();
    }

    /// Takes back one [`enter_asleep`](Head::enter_asleep). True: something has happened since then that all who slept are to see.
    pub(super) fn leave_asleep(&self, want: Want, entry: Entry) -> bool {
        self.disarm_ring(want);
        self.asleep.leave(entry)
    }

    fn disarm_ring(&self, want: Want) {
        let want = want.or_hangup();
        if !self.has_pipe() {
            return;
        }
        let reader = want.data() && self.incoming().reader_wakes();
        let writer = want.room() && self.outgoing().writer_wakes();
        if reader || writer {
            self.ring_own();
        }
    }

    /// A ring of our bell was taken: rings again for those who still sleep and need not. True if there are such.
    pub fn settle(&self) -> bool {
        self.settle_for(false)
    }

    /// As [`settle`](Head::settle); by a sleeper, of whom [`leave_asleep`](Head::leave_asleep) said whether it `was_called`.
    pub(super) fn settle_for(&self, was_called: bool) -> bool {
        let mut again = self.has_pipe()
            && (self.incoming().settle_readers() | self.outgoing().settle_writers());
        again |= self.asleep.is_due(was_called);
        if again {
            self.ring_own();
        }
        again
    }
}
