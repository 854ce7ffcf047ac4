//! echo: what is written comes back, types, bands and parts as they were.

use core::ffi::c_int;

use super::minors::{Minor, Minors};
use super::reply;
use crate::ddi::owned::Message;
use crate::ddi::{M_DATA, M_FLUSH, M_IOCTL, M_PCPROTO, M_PROTO};
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::modules::id;

static MINORS: Minors = Minors::new();

pub struct Echo {
    _minor: Minor,
}

impl Module for Echo {
    const INFO: Info = Info::new(id::ECHO, c"echo");
    const RSRV: bool = true;
    const WSRV: bool = true;

    fn open(_: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let _minor = MINORS.take(dev, flag)?;
        Ok(Echo { _minor })
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL => reply::refuse(q, m, libc::EINVAL),
            M_DATA | M_PROTO | M_PCPROTO => send(q, q.read(), m),
            _ => {}
        }
    }

    fn wsrv(&self, q: Queue) {
        q.forward_by(q.read());
    }

    /// Room above again.
    fn rsrv(&self, q: Queue) {
        q.write().qenable();
    }
}

/// Sends a message written to `q` up from `to`; it waits on `q` while there is no room.
pub(super) fn send(q: Queue, to: Queue, m: Message) {
    if !reply::must_queue(q, &m) && to.takes_next(&m) {
        to.putnext(m);
    } else {
        q.putq(m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::testing::Stream;

    #[test]
    fn a_full_reader_holds_messages_back_and_loses_none() {
        let mut s = Stream::open::<Echo>().unwrap();
        let sent = s.fill(100);
        assert!(sent * 100 >= 5120, "at least one queue is full");
        assert_eq!(s.drain(), sent);
        assert!(s.fill(100) > 0, "room again");
    }

    #[test]
    fn high_priority_overtakes_what_waits() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.fill(100);
        s.within(|q| q.putnext(Message::from_bytes(M_PCPROTO, b"!")));
        assert_eq!(s.get_bytes(), Some((M_PCPROTO, b"!".to_vec())));
    }

    #[test]
    fn a_band_is_not_held_up_by_a_lower_one() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.fill(100);
        let mut urgent = Message::data(b"urgent");
        urgent.set_band(1);
        s.within(|q| q.putnext(urgent));
        assert_eq!(s.get_bytes(), Some((M_DATA, b"urgent".to_vec())));
    }
}
