//! XTI_SNDBUF and XTI_RCVBUF of endpoints whose data lies in rings. What a connection holds in one direction is what the
//! sender's and the receiver's buffer add up to, as far as the ring has room: it is made for the larger of the caller's. A
//! mailbox holds what its owner's receive buffer says.

use headwater_host::sync::Ordering;
use headwater_streams::head::Head;
use headwater_streams::pipe::{LARGEST_RING, LIMIT, RING};
use headwater_tpi::option::{XTI_GENERIC, XTI_RCVBUF, XTI_RCVLOWAT, XTI_SNDBUF, XTI_SNDLOWAT};

use crate::options::{Known, Remembered, Settings, Value};

/// What a buffer counts of which nothing was said.
const SHARE: usize = LIMIT / 2;
/// Of a ring, for expedited data and what the ends tell each other.
const KEPT: usize = 16 << 10;

/// What the user wants, in bytes; 0: nothing was said.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Wishes {
    pub send: u32,
    pub receive: u32,
    pub send_low: u32,
    pub receive_low: u32,
}

impl Wishes {
    pub fn of(options: &Remembered) -> Wishes {
        let wish = |name| options.number(XTI_GENERIC, name);
        Wishes {
            send: wish(XTI_SNDBUF),
            receive: wish(XTI_RCVBUF),
            send_low: wish(XTI_SNDLOWAT),
            receive_low: wish(XTI_RCVLOWAT),
        }
    }

    /// A ring that has room for each of them.
    pub fn ring(&self) -> usize {
        let most = self.send.max(self.receive) as usize;
        (most + KEPT).next_power_of_two().clamp(RING, LARGEST_RING)
    }

    /// Tells both ends of a connection.
    pub fn tell(&self, head: &Head) {
        let (own, Some(peer)) = (head.words(), head.peer_words()) else {
            return;
        };
        own.send_buffer.store(self.send, Ordering::SeqCst);
        own.receive_buffer.store(self.receive, Ordering::SeqCst);
        own.send_low.store(self.send_low, Ordering::SeqCst);
        own.receive_low.store(self.receive_low, Ordering::SeqCst);
        // Whoever speaks last knows the wishes of both.
        for (words, other, ring) in [(own, peer, head.outgoing()), (peer, own, head.incoming())] {
            let send = words.send_buffer.load(Ordering::SeqCst);
            let receive = other.receive_buffer.load(Ordering::SeqCst);
            let room = words.send_low.load(Ordering::SeqCst);
            let limit = match (send, receive) {
                (0, 0) if room == 0 => 0,
                (send, receive) => share(send) + share(receive),
            };
            let (limit, low) = marks(limit, room, ring.capacity());
            words.low.store(low as u32, Ordering::SeqCst);
            words.limit.store(limit as u32, Ordering::SeqCst);
            ring.set_low_water(low);
        }
    }

    /// Tells those who put into the mailbox of this head, the owner too.
    pub fn tell_senders(&self, head: &Head) {
        let Some(pipe) = head.pipe() else { return };
        let ring = head.incoming();
        head.words()
            .receive_low
            .store(self.receive_low, Ordering::SeqCst);
        let (limit, low) = marks(self.receive as usize, 0, ring.capacity());
        for side in [0, 1] {
            let words = pipe.words(side);
            words.low.store(low as u32, Ordering::SeqCst);
            words.limit.store(limit as u32, Ordering::SeqCst);
        }
        ring.set_low_water(low);
    }
}

fn share(wish: u32) -> usize {
    match wish {
        0 => SHARE,
        wish => wish as usize,
    }
}

/// High and low water mark for `limit` bytes, 0: the usual ones; a sender goes on when there is this much `room`.
fn marks(limit: usize, room: u32, ring: usize) -> (usize, usize) {
    let high = match limit {
        0 => LIMIT,
        limit => limit.min(most(ring)),
    };
    let low = (high / 3 * 2).min(high.saturating_sub(room as usize));
    (if limit == 0 { 0 } else { high }, low)
}

/// The largest buffer that a ring is enough for.
fn most(ring: usize) -> usize {
    ring - KEPT
}

/// The options of an endpoint, which may have a ring already.
pub struct Held<'a> {
    pub options: &'a mut Remembered,
    pub ring: Option<usize>,
}

impl Settings for Held<'_> {
    fn value(&self, option: &Known) -> Value {
        self.within(option, self.options.value(option))
    }

    fn set(&mut self, option: &Known, value: Value) -> Result<Value, i32> {
        let granted = self.within(option, value);
        self.options.set(option, granted)
    }
}

impl Held<'_> {
    fn within(&self, option: &Known, value: Value) -> Value {
        let is_size = option.level == XTI_GENERIC
            && matches!(
                option.name,
                XTI_SNDBUF | XTI_RCVBUF | XTI_SNDLOWAT | XTI_RCVLOWAT
            );
        match value {
            Value::Number(n) if is_size => {
                Value::Number(n.min(most(self.ring.unwrap_or(LARGEST_RING)) as i64))
            }
            value => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_room_for_the_larger_buffer() {
        let ring = |send, receive| {
            let wishes = Wishes {
                send,
                receive,
                send_low: 0,
                receive_low: 0,
            };
            wishes.ring()
        };
        assert_eq!(ring(0, 0), RING);
        assert_eq!(ring(65536, 1000), RING);
        assert_eq!(ring(131_071, 131_071), 2 * RING);
        assert_eq!(ring(1 << 20, 0), 16 * RING);
        assert_eq!(ring(u32::MAX, 0), LARGEST_RING);
    }

    #[test]
    fn room_lowers_the_low_water_mark_alone() {
        assert_eq!(marks(0, 0, RING), (0, LIMIT / 3 * 2));
        assert_eq!(marks(90_000, 1, RING), (90_000, 60_000));
        assert_eq!(marks(90_000, 80_000, RING), (90_000, 10_000));
        assert_eq!(marks(90_000, 1 << 20, RING), (90_000, 0));
        assert_eq!(marks(1 << 20, 0, RING).0, RING - KEPT);
    }
}
