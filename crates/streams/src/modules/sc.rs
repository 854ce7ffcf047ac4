//! sc: hands everything on, and counts messages and bytes by type.

use core::cell::Cell;
use core::ffi::c_int;

use super::id;
use crate::ddi::owned::Message;
use crate::ddi::*;
use crate::drivers::reply;
use crate::exec::{Info, Module, OpenFlag, Queue};

/// ioctl: its argument is a [`Stats`] that is filled in.
pub const SC_GETSTATS: c_int = (b's' as c_int) << 8 | 1;

/// struct { uint64_t messages, bytes; }: bytes of all blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Count {
    pub messages: u64,
    pub bytes: u64,
}

/// One direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    pub data: Count,
    pub proto: Count,
    pub pcproto: Count,
    /// M_IOCTL, its answers, M_COPYIN, M_COPYOUT, M_IOCDATA.
    pub ioctl: Count,
    pub flush: Count,
    pub other: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    pub up: Counts,
    pub down: Counts,
}

// SAFETY: integers without padding.
unsafe impl Plain for Stats {}

impl Counts {
    fn add(&mut self, m: &Message) {
        let count = match m.kind() {
            M_DATA => &mut self.data,
            M_PROTO => &mut self.proto,
            M_PCPROTO => &mut self.pcproto,
            M_IOCTL | M_IOCACK | M_IOCNAK | M_COPYIN | M_COPYOUT | M_IOCDATA => &mut self.ioctl,
            M_FLUSH => &mut self.flush,
            _ => &mut self.other,
        };
        count.messages += 1;
        count.bytes += m.len() as u64;
    }
}

#[derive(Default)]
pub struct Sc {
    stats: Cell<Stats>,
}

impl Module for Sc {
    const INFO: Info = Info::new(id::SC, c"sc");

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Sc::default())
    }

    fn rput(&self, q: Queue, m: Message) {
        let mut stats = self.stats.get();
        stats.up.add(&m);
        self.stats.set(stats);
        q.putnext(m);
    }

    fn wput(&self, q: Queue, m: Message) {
        if matches!(m.kind(), M_IOCTL | M_IOCDATA) && reply::command(&m) == Some(SC_GETSTATS) {
            return reply::give(q, m, self.stats.get());
        }
        let mut stats = self.stats.get();
        stats.down.add(&m);
        self.stats.set(stats);
        q.putnext(m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::echo::Echo;
    use crate::drivers::testing::Stream;

    #[test]
    fn both_directions_are_counted_by_type() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.push::<Sc>().unwrap();
        s.within(|q| {
            q.putnext(Message::data(b"12345"));
            q.putnext(Message::from_bytes(M_PROTO, b"123"));
            q.putnext(Message::data(b"1"));
        });
        let ((kind, error), data) = s.ioctl(SC_GETSTATS, &[0; size_of::<Stats>()]);
        assert_eq!((kind, error), (M_IOCACK, 0));
        let stats: Stats = Message::data(&data).read().unwrap();
        let data = Count {
            messages: 2,
            bytes: 6,
        };
        assert_eq!((stats.down.data, stats.up.data), (data, data));
        assert_eq!(stats.up.proto.bytes, 3);
        assert_eq!(stats.down.other, Count::default());
    }

    #[test]
    fn a_transparent_request_is_copied_out() {
        let mut s = Stream::open::<Echo>().unwrap();
        s.push::<Sc>().unwrap();
        let mut stats = Stats::default();
        assert_eq!(s.transparent(SC_GETSTATS, &mut stats), (M_IOCACK, 0, 0));
        s.within(|q| q.putnext(Message::data(b"abc")));
        assert_eq!(s.transparent(SC_GETSTATS, &mut stats), (M_IOCACK, 0, 0));
        assert_eq!(stats.down.data.bytes, 3);
    }
}
