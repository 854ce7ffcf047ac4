//! mux: a multiplexer that fans out. What is written to one of its streams goes, as copies, to every stream that was linked
//! below by way of it; what comes up from one of those goes to it alone.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;

use headwater_host::guarded::Guarded;

use super::minors::{Minor, Minors};
use super::{echo, reply};
use crate::ddi::owned::Message;
use crate::ddi::*;
use crate::exec::module::{Flow, Mux as Multiplexer, set_lower, with_lower};
use crate::exec::queue::Flush;
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::modules::id;

static MINORS: Minors = Minors::new();
/// Every linked stream. A persistent link may be taken off by way of another stream than it was made by.
static LINKS: Guarded<Vec<Link>> = Guarded::new(Vec::new());

#[derive(Clone, Copy)]
struct Link {
    index: c_int,
    /// The write queue of the lower stream's uppermost pair.
    below: Queue,
    /// The read queue of the stream that linked it; none after its close.
    above: Option<Queue>,
}

pub struct Mux {
    /// The write queues below that what is written here goes to. Changes only with a request on this stream or, a
    /// persistent link's, on another: the same ones as in [`LINKS`] with this stream above.
    lowers: RefCell<Vec<Queue>>,
    changes: Cell<u64>,
    _minor: Minor,
}

/// What is known of a stream linked below.
pub struct Lower {
    above: Cell<Option<Queue>>,
    hung_up: Cell<bool>,
}

static CHANGES: Guarded<u64> = Guarded::new(0);

impl Module for Mux {
    const INFO: Info = Info::new(id::MUX, c"mux");
    const RSRV: bool = true;
    const WSRV: bool = true;
    const FLOW: Flow = Flow::Shared;

    fn open(_: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let minor = MINORS.take(dev, flag)?;
        Ok(Mux {
            lowers: RefCell::new(Vec::new()),
            changes: Cell::new(0),
            _minor: minor,
        })
    }

    /// Persistent links stay; what comes up from them is freed.
    fn close(&self, q: Queue, _: c_int) {
        for link in LINKS.enter().iter_mut().filter(|l| l.above == Some(q)) {
            link.above = None;
            with_lower::<Mux, _>(link.below, |lower| lower.above.set(None));
        }
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL => self.request(q, m),
            M_DATA | M_PROTO | M_PCPROTO => {
                if !reply::must_queue(q, &m) && self.all_take(q, &m) {
                    self.fan_out(m);
                } else {
                    q.putq(m);
                }
            }
            _ => {}
        }
    }

    fn wsrv(&self, q: Queue) {
        while let Some(m) = q.getq() {
            if !self.all_take(q, &m) {
                return q.putbq(m);
            }
            self.fan_out(m);
        }
    }

    /// Room above again.
    fn rsrv(&self, q: Queue) {
        self.refresh(q);
        for below in self.lowers.borrow().iter() {
            below.read().qenable();
        }
    }
}

impl Mux {
    fn request(&self, q: Queue, mut m: Message) {
        let block = m.take_rest().and_then(|d| d.read::<linkblk>());
        let done = match (reply::command(&m), block) {
            (Some(I_LINK | I_PLINK), Some(block)) => link(q, &block),
            (Some(I_UNLINK | I_PUNLINK), Some(block)) => unlink(block.l_index),
            _ => Err(libc::EINVAL),
        };
        reply::result(q, m, done);
        // What waited for a stream that is gone.
        q.qenable();
    }

    /// Takes the list of lower queues anew if any link was made or undone since.
    fn refresh(&self, q: Queue) {
        let changes = *CHANGES.enter();
        if self.changes.replace(changes) != changes {
            let links = LINKS.enter();
            let ours = links.iter().filter(|l| l.above == Some(q.read()));
            *self.lowers.borrow_mut() = ours.map(|l| l.below).collect();
        }
    }

    /// Have all lower streams room? Those that hung up count as gone.
    fn all_take(&self, q: Queue, m: &Message) -> bool {
        self.refresh(q);
        // Each is asked, so that each back-enables.
        let lowers = self.lowers.borrow();
        let is_full = |q: &&Queue| is_live(**q) && !q.takes_next(m);
        lowers.iter().filter(is_full).count() == 0
    }

    fn fan_out(&self, m: Message) {
        // By number, not by a borrow: what a lower stream answers at once may come down again.
        let next = |from: usize| {
            let lowers = self.lowers.borrow();
            (from..lowers.len())
                .find(|&i| is_live(lowers[i]))
                .map(|i| (i, lowers[i]))
        };
        let mut at = next(0);
        while let Some((i, below)) = at {
            at = next(i + 1);
            if at.is_none() {
                return below.putnext(m);
            }
            if let Some(copy) = m.dup().or_else(|| m.copy()) {
                below.putnext(copy);
            }
        }
    }
}

fn is_live(below: Queue) -> bool {
    with_lower::<Mux, _>(below, |lower| !lower.hung_up.get()) == Some(true)
}

fn link(q: Queue, block: &linkblk) -> Result<(), c_int> {
    if block.l_qbot.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the head that asks to link gives its own pair, which lives until it is unlinked.
    let below = unsafe { Queue::from_raw(block.l_qbot) }.write();
    let lower = Lower {
        above: Cell::new(Some(q.read())),
        hung_up: Cell::new(false),
    };
    set_lower::<Mux>(below, lower);
    LINKS.enter().push(Link {
        index: block.l_index,
        below,
        above: Some(q.read()),
    });
    *CHANGES.enter() += 1;
    Ok(())
}

fn unlink(index: c_int) -> Result<(), c_int> {
    let link = LINKS.enter().extract_if(.., |l| l.index == index).next();
    let link = link.ok_or(libc::EINVAL)?;
    *CHANGES.enter() += 1;
    if let Some(above) = link.above {
        above.write().qenable();
    }
    Ok(())
}

impl Multiplexer for Mux {
    type Lower = Lower;
    const LRSRV: bool = true;
    const LWSRV: bool = true;

    fn lrput(lower: &Lower, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => flush_below(q, m),
            M_HANGUP | M_ERROR => gave_up(lower, q),
            M_DATA | M_PROTO | M_PCPROTO | M_SIG | M_PCSIG => {
                if let Some(above) = lower.above.get() {
                    echo::send(q, above, m);
                }
            }
            _ => {}
        }
    }

    fn lrsrv(lower: &Lower, q: Queue) {
        match lower.above.get() {
            Some(above) => q.forward_by(above),
            None => q.flushq(Flush::All),
        }
    }

    /// Room below again.
    fn lwsrv(lower: &Lower, _: Queue) {
        if let Some(above) = lower.above.get() {
            above.write().qenable();
        }
    }
}

/// A lower stream is over: it gets no more. After the last one the stream above has hung up too.
fn gave_up(lower: &Lower, q: Queue) {
    lower.hung_up.set(true);
    let Some(above) = lower.above.get() else {
        return;
    };
    let links: Vec<Link> = LINKS.enter().clone();
    let mut siblings = links.iter().filter(|l| l.above == Some(above));
    if siblings.any(|l| is_live(l.below)) {
        above.write().qenable();
    } else {
        Mux::lrsrv(lower, q);
        above.putnext(Message::new(M_HANGUP, 0));
    }
}

/// To the streams below we are what a stream head is: what concerns the write side goes back down.
fn flush_below(q: Queue, mut m: Message) {
    q.read().flush_as(&m, Flush::Data);
    let sides = m.bytes().first().copied().unwrap_or(0);
    if sides & FLUSHW == 0 || m.flags() & MSGNOLOOP != 0 {
        return;
    }
    q.write().flush_as(&m, Flush::Data);
    if let Some([sides, ..]) = m.bytes_mut() {
        *sides &= !FLUSHR;
        m.set_flags(m.flags() | MSGNOLOOP);
        q.read().qreply(m);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::echo::Echo;
    use crate::drivers::testing::{Linked, Stream};

    #[test]
    fn every_lower_stream_gets_a_copy_and_answers_go_to_who_linked_it() {
        let mut upper = Stream::open_mux().unwrap();
        let mut other = upper.another_mux().unwrap();
        let _a = Linked::below(&upper, 1, upper.another::<Echo>().unwrap());
        let _b = Linked::below(&upper, 2, upper.another::<Echo>().unwrap());
        let _c = Linked::below(&other, 3, upper.another::<Echo>().unwrap());
        upper.within(|q| q.putnext(Message::data(b"all")));
        assert_eq!(upper.get_bytes(), Some((M_DATA, b"all".to_vec())));
        assert_eq!(upper.get_bytes(), Some((M_DATA, b"all".to_vec())));
        assert_eq!((upper.get_bytes(), other.get_bytes()), (None, None));
    }

    #[test]
    fn without_lower_streams_data_is_gone() {
        let mut upper = Stream::open_mux().unwrap();
        upper.within(|q| q.putnext(Message::data(b"gone")));
        assert_eq!(upper.get_bytes(), None);
        assert_eq!(
            upper.ioctl(I_UNLINK, &[0; size_of::<linkblk>()]).0,
            (M_IOCNAK, libc::EINVAL)
        );
    }

    #[test]
    fn one_full_lower_stream_holds_the_writer_back_and_nothing_is_lost() {
        let mut upper = Stream::open_mux().unwrap();
        let _a = Linked::below(&upper, 11, upper.another::<Echo>().unwrap());
        let _b = Linked::below(&upper, 12, upper.another::<Echo>().unwrap());
        let sent = upper.fill(100);
        assert_eq!(upper.drain(), 2 * sent);
        assert!(upper.fill(100) > 0);
    }

    #[test]
    fn what_was_unlinked_gets_nothing_more() {
        let mut upper = Stream::open_mux().unwrap();
        let a = Linked::below(&upper, 21, upper.another::<Echo>().unwrap());
        let _b = Linked::below(&upper, 22, upper.another::<Echo>().unwrap());
        drop(a);
        upper.within(|q| q.putnext(Message::data(b"one")));
        assert_eq!(upper.get_bytes(), Some((M_DATA, b"one".to_vec())));
        assert_eq!(upper.get_bytes(), None);
    }
}
