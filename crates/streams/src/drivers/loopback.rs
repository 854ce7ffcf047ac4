//! loop: two of its streams can be joined; then what is written to one is read at the other. Unjoined it behaves as echo.
//!
//! All its streams share a perimeter, so each puts to the other's queues.

use core::ffi::c_int;
use std::sync::Arc;

use headwater_host::guarded::Guarded;

use super::echo;
use super::minors::{Minor, Minors};
use super::reply::{self, Argument};
use crate::ddi::owned::Message;
use crate::ddi::{M_DATA, M_FLUSH, M_HANGUP, M_IOCDATA, M_IOCTL, M_PCPROTO, M_PROTO};
use crate::exec::module::Flow;
use crate::exec::queue::Flush;
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::modules::id;

/// ioctl: joins this stream with the one of the minor device that its int argument names. EINVAL for itself, ENXIO if it
/// isn't open, EBUSY if one of them is joined already.
pub const LOOP_SET: c_int = (b'l' as c_int) << 8 | 1;
/// ioctl: puts this stream's minor device into its int argument.
pub const LOOP_GET: c_int = (b'l' as c_int) << 8 | 2;

static MINORS: Minors = Minors::new();
static ENDS: Guarded<Vec<Arc<End>>> = Guarded::new(Vec::new());

struct End {
    minor: u32,
    read: Queue,
    /// The other's read queue.
    peer: Guarded<Option<Queue>>,
}

pub struct Loop {
    end: Arc<End>,
    _minor: Minor,
}

impl Module for Loop {
    const INFO: Info = Info::new(id::LOOP, c"loop");
    const RSRV: bool = true;
    const WSRV: bool = true;
    const FLOW: Flow = Flow::Shared;

    fn open(q: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let minor = MINORS.take(dev, flag)?;
        let end = Arc::new(End {
            minor: minor.number(),
            read: q,
            peer: Guarded::new(None),
        });
        ENDS.enter().push(end.clone());
        Ok(Loop { end, _minor: minor })
    }

    /// The other end reads what it has, and then the end of it.
    fn close(&self, q: Queue, _: c_int) {
        ENDS.enter().retain(|e| e.minor != self.end.minor);
        let Some(peer) = self.peer() else { return };
        if let Some(other) = end(|e| e.read == peer) {
            *other.peer.enter() = None;
        }
        q.write().forward_by(peer);
        peer.write().flushq(Flush::All);
        peer.putnext(Message::new(M_HANGUP, 0));
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL | M_IOCDATA => self.request(q, m),
            M_DATA | M_PROTO | M_PCPROTO => echo::send(q, self.target(q), m),
            _ => {}
        }
    }

    fn wsrv(&self, q: Queue) {
        q.forward_by(self.target(q));
    }

    /// Room above again: for whoever's writing is read here.
    fn rsrv(&self, q: Queue) {
        self.target(q).write().qenable();
    }
}

impl Loop {
    fn peer(&self) -> Option<Queue> {
        *self.end.peer.enter()
    }

    /// The read queue from which what is written goes up.
    fn target(&self, q: Queue) -> Queue {
        self.peer().unwrap_or(q.read())
    }

    fn request(&self, q: Queue, m: Message) {
        match reply::command(&m) {
            Some(LOOP_GET) => reply::give(q, m, self.end.minor as i32),
            Some(LOOP_SET) => {
                if let Argument::Is(minor, m) = reply::argument::<i32>(q, m) {
                    reply::result(q, m, self.join(minor));
                }
            }
            _ if m.kind() == M_IOCTL => reply::refuse(q, m, libc::EINVAL),
            _ => {}
        }
    }

    fn join(&self, minor: c_int) -> Result<(), c_int> {
        let minor = u32::try_from(minor).map_err(|_| libc::EINVAL)?;
        if minor == self.end.minor {
            return Err(libc::EINVAL);
        }
        let other = end(|e| e.minor == minor).ok_or(libc::ENXIO)?;
        // Linked below a multiplexer it is in another perimeter, where nothing can be put to it.
        let apart = !core::ptr::eq(other.read.perimeter(), self.end.read.perimeter());
        if self.peer().is_some() || other.peer.enter().is_some() || apart {
            return Err(libc::EBUSY);
        }
        *self.end.peer.enter() = Some(other.read);
        *other.peer.enter() = Some(self.end.read);
        Ok(())
    }
}

fn end(wanted: impl Fn(&End) -> bool) -> Option<Arc<End>> {
    ENDS.enter().iter().find(|e| wanted(e)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::{M_IOCACK, M_IOCNAK};
    use crate::drivers::testing::Stream;

    fn minor(s: &mut Stream) -> i32 {
        let (answer, data) = s.ioctl(LOOP_GET, &0i32.to_ne_bytes());
        assert_eq!(answer, (M_IOCACK, 0));
        i32::from_ne_bytes(data.try_into().unwrap())
    }

    fn join(a: &mut Stream, minor: i32) -> (u8, c_int) {
        a.ioctl(LOOP_SET, &minor.to_ne_bytes()).0
    }

    fn joined() -> (Stream, Stream) {
        let mut a = Stream::open::<Loop>().unwrap();
        let mut b = a.another::<Loop>().unwrap();
        let to = minor(&mut b);
        assert_eq!(join(&mut a, to), (M_IOCACK, 0));
        (a, b)
    }

    #[test]
    fn joined_streams_read_each_other() {
        let (mut a, mut b) = joined();
        a.within(|q| q.putnext(Message::data(b"to b")));
        b.within(|q| q.putnext(Message::from_bytes(M_PROTO, b"to a")));
        assert_eq!(b.get_bytes(), Some((M_DATA, b"to b".to_vec())));
        assert_eq!(a.get_bytes(), Some((M_PROTO, b"to a".to_vec())));
        assert_eq!((a.get_bytes(), b.get_bytes()), (None, None));
    }

    #[test]
    fn a_reader_that_makes_room_lets_the_writer_of_the_other_end_go_on() {
        let (mut a, mut b) = joined();
        let sent = a.fill(100);
        assert_eq!(b.drain(), sent);
        assert!(a.fill(100) > 0);
    }

    #[test]
    fn a_close_gives_the_rest_and_then_a_hangup() {
        let (a, mut b) = joined();
        a.within(|q| q.putnext(Message::data(b"last")));
        drop(a);
        assert_eq!(b.get_bytes(), Some((M_HANGUP, Vec::new())));
        assert_eq!(b.get_bytes(), Some((M_DATA, b"last".to_vec())));
        // Echo again.
        b.within(|q| q.putnext(Message::data(b"alone")));
        assert_eq!(b.get_bytes(), Some((M_DATA, b"alone".to_vec())));
    }

    #[test]
    fn impossible_joins_are_refused() {
        let (mut a, mut b) = joined();
        let own = minor(&mut a);
        assert_eq!(join(&mut a, own), (M_IOCNAK, libc::EINVAL));
        assert_eq!(join(&mut a, 12345), (M_IOCNAK, libc::ENXIO));
        let mut c = a.another::<Loop>().unwrap();
        assert_eq!(join(&mut c, own), (M_IOCNAK, libc::EBUSY));
        let third = minor(&mut c);
        assert_eq!(join(&mut b, third), (M_IOCNAK, libc::EBUSY));
        assert_eq!(a.ioctl(LOOP_SET, b"ab").0, (M_IOCNAK, libc::EINVAL));
    }
}
