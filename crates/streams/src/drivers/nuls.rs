//! nuls: swallows what is written. Nothing is ever there to be read.

use core::ffi::c_int;

use super::minors::{Minor, Minors};
use super::reply;
use crate::ddi::owned::Message;
use crate::ddi::{M_FLUSH, M_IOCTL};
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::modules::id;

static MINORS: Minors = Minors::new();

pub struct Nuls {
    _minor: Minor,
}

impl Module for Nuls {
    const INFO: Info = Info::new(id::NULS, c"nuls");

    fn open(_: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let _minor = MINORS.take(dev, flag)?;
        Ok(Nuls { _minor })
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL => reply::refuse(q, m, libc::EINVAL),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::{FLUSHR, FLUSHRW, M_IOCNAK};
    use crate::drivers::testing::Stream;

    #[test]
    fn nothing_comes_back_but_flushes_and_refusals() {
        let mut s = Stream::open::<Nuls>().unwrap();
        s.within(|q| q.putnext(Message::data(b"gone")));
        assert_eq!(s.get_bytes(), None);
        s.within(|q| q.putnext(Message::flush(FLUSHRW, None)));
        assert_eq!(s.get_bytes(), Some((M_FLUSH, vec![FLUSHR])));
        assert_eq!(s.ioctl(1, b"").0, (M_IOCNAK, libc::EINVAL));
    }
}
