//! bufmod: queues everything but high priority in both directions and hands it on from its service procedures, with marks
//! of its own.

use core::ffi::{c_int, c_long};

use super::id;
use crate::ddi::owned::Message;
use crate::ddi::{M_FLUSH, M_IOCDATA, M_IOCTL, Plain, QHIWAT, QLOWAT};
use crate::drivers::reply::{self, Argument};
use crate::exec::queue::Flush;
use crate::exec::{Info, Module, OpenFlag, Queue};

/// ioctl: sets both queues' marks; its argument is a [`Marks`]. EINVAL unless 0 <= lowat <= hiwat and hiwat > 0.
pub const BUFMOD_SETMARKS: c_int = (b'b' as c_int) << 8 | 1;

/// struct { int hiwat, lowat; }, in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Marks {
    pub hiwat: c_int,
    pub lowat: c_int,
}

// SAFETY: integers.
unsafe impl Plain for Marks {}

pub struct Bufmod;

impl Module for Bufmod {
    const INFO: Info = Info {
        hiwat: 4096,
        lowat: 1024,
        ..Info::new(id::BUFMOD, c"bufmod")
    };
    const RSRV: bool = true;
    const WSRV: bool = true;

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Bufmod)
    }

    fn rput(&self, q: Queue, m: Message) {
        pass(q, m);
    }

    fn wput(&self, q: Queue, m: Message) {
        if matches!(m.kind(), M_IOCTL | M_IOCDATA) && reply::command(&m) == Some(BUFMOD_SETMARKS) {
            if let Argument::Is(marks, m) = reply::argument::<Marks>(q, m) {
                set_marks(q, marks, m);
            }
            return;
        }
        pass(q, m);
    }
}

/// High priority waits for nothing; a flush takes what is queued along.
fn pass(q: Queue, m: Message) {
    if !m.is_priority() {
        return q.putq(m);
    }
    if m.kind() == M_FLUSH {
        q.flush_as(&m, Flush::Data);
    }
    q.putnext(m);
}

fn set_marks(q: Queue, marks: Marks, m: Message) {
    if marks.hiwat <= 0 || !(0..=marks.hiwat).contains(&marks.lowat) {
        return reply::refuse(q, m, libc::EINVAL);
    }
    for q in [q.read(), q.write()] {
        let set = q
            .strqset(QHIWAT, 0, marks.hiwat as c_long)
            .and_then(|()| q.strqset(QLOWAT, 0, marks.lowat as c_long));
        debug_assert!(set.is_ok());
    }
    reply::done(q, m, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::{M_DATA, M_IOCACK, M_IOCNAK, M_PCPROTO};
    use crate::drivers::echo::Echo;
    use crate::drivers::testing::Stream;

    #[test]
    fn messages_come_through_in_order_and_high_priority_first() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.push::<Bufmod>().unwrap();
        s.within(|q| {
            q.putnext(Message::data(b"one"));
            q.putnext(Message::data(b"two"));
            q.putnext(Message::from_bytes(M_PCPROTO, b"now"));
        });
        assert_eq!(s.get_bytes(), Some((M_PCPROTO, b"now".to_vec())));
        assert_eq!(s.get_bytes(), Some((M_DATA, b"one".to_vec())));
        assert_eq!(s.get_bytes(), Some((M_DATA, b"two".to_vec())));
        assert_eq!(s.get_bytes(), None);
    }

    #[test]
    fn its_marks_can_be_set_but_not_to_nonsense() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.push::<Bufmod>().unwrap();
        let set = |s: &mut Stream, hiwat: i32, lowat: i32| {
            let bytes = [hiwat.to_ne_bytes(), lowat.to_ne_bytes()].concat();
            s.ioctl(BUFMOD_SETMARKS, &bytes).0
        };
        assert_eq!(set(&mut s, 100, 200), (M_IOCNAK, libc::EINVAL));
        assert_eq!(set(&mut s, 64, 16), (M_IOCACK, 0));
        s.fill(16);
        let small = s.drain();
        assert_eq!(set(&mut s, 65536, 16), (M_IOCACK, 0));
        s.fill(16);
        assert!(s.drain() > small + 60_000 / 16);
    }
}
