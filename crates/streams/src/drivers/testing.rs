//! A stream head for tests of modules and drivers: a read queue that holds what comes up.
//!
//! # Contract
//! Queues are used inside their perimeter; all streams of one test share one, so that multiplexers work.

use core::ffi::c_int;
use core::ptr::null_mut;

use crate::ddi::owned::Message;
use crate::ddi::*;
use crate::exec::attach::{self, Above};
use crate::exec::module::{Module, mux_streamtab_of, streamtab_of};
use crate::exec::{Perimeter, Queue};

use super::mux::Mux;

pub struct Stream {
    perimeter: &'static Perimeter,
    read: Queue,
    pairs: usize,
}

static READ: qinit = qinit::of(Some(hold), None);

static WRITE: qinit = qinit::of(None, Some(nothing));

extern "C-unwind" fn hold(q: Queue, m: Message) -> c_int {
    q.putq(m);
    0
}

extern "C-unwind" fn nothing(_: Queue) -> c_int {
    0
}

impl Stream {
    pub fn open<M: Module>() -> Result<Stream, c_int> {
        Stream::with(Perimeter::fresh(), streamtab_of::<M>())
    }

    pub fn open_mux() -> Result<Stream, c_int> {
        Stream::with(Perimeter::fresh(), mux_streamtab_of::<Mux>())
    }

    /// In the same perimeter.
    pub fn another<M: Module>(&self) -> Result<Stream, c_int> {
        Stream::with(self.perimeter, streamtab_of::<M>())
    }

    pub fn another_mux(&self) -> Result<Stream, c_int> {
        Stream::with(self.perimeter, mux_streamtab_of::<Mux>())
    }

    fn with(perimeter: &'static Perimeter, tab: &'static streamtab) -> Result<Stream, c_int> {
        let _guard = perimeter.enter();
        let read = attach::alloc_pair(perimeter, null_mut());
        // SAFETY: the procedures take any queue.
        unsafe { attach::setq(read, Some(&READ), Some(&WRITE)) };
        read.q_hiwat.set(5120);
        read.q_lowat.set(1024);
        let mut stream = Stream {
            perimeter,
            read,
            pairs: 0,
        };
        stream.attach(tab, CLONEOPEN).map(|()| stream)
    }

    pub fn push<M: Module>(&mut self) -> Result<(), c_int> {
        let _guard = self.perimeter.enter();
        self.attach(streamtab_of::<M>(), MODOPEN)
    }

    fn attach(&mut self, tab: &'static streamtab, sflag: c_int) -> Result<(), c_int> {
        // SAFETY: inside, a live head.
        unsafe { attach::qattach(self.read, tab, &mut 0, 0, sflag)? };
        self.pairs += 1;
        Ok(())
    }

    /// Runs `f` inside the perimeter with the head's write queue, and then the services.
    pub fn within<T>(&self, f: impl FnOnce(Queue) -> T) -> T {
        let _guard = self.perimeter.enter();
        f(self.read.write())
    }

    pub fn get(&mut self) -> Option<Message> {
        self.within(|q| q.read().getq())
    }

    /// Type, and the bytes of all blocks.
    pub fn get_bytes(&mut self) -> Option<(u8, Vec<u8>)> {
        let m = self.get()?;
        let bytes: Vec<&[u8]> = m.blocks().map(|(_, bytes)| bytes).collect();
        Some((m.kind(), bytes.concat()))
    }

    /// Writes messages of `len` bytes until there is no room; returns how many.
    pub fn fill(&mut self, len: usize) -> usize {
        let bytes = vec![b'x'; len];
        let mut sent = 0;
        while self.within(|q| {
            let room = q.canputnext();
            if room {
                q.putnext(Message::data(&bytes));
            }
            room
        }) {
            sent += 1;
            assert!(sent < 1_000_000, "never full");
        }
        sent
    }

    /// Reads all there is; returns how many messages.
    pub fn drain(&mut self) -> usize {
        core::iter::from_fn(|| self.get()).count()
    }

    /// As I_STR: type and errno of the answer, and its data.
    pub fn ioctl(&mut self, cmd: c_int, data: &[u8]) -> ((u8, c_int), Vec<u8>) {
        self.within(|q| q.putnext(request(cmd, data.len() as u32, data)));
        let answer = self.get().expect("an answer");
        let ioc: iocblk = answer.read().unwrap();
        let n = ioc.ioc_count as usize;
        (
            (answer.kind(), ioc.ioc_error),
            answer.to_data()[..n].to_vec(),
        )
    }

    /// As ioctl(2) with a command that the head doesn't know: type, value and errno of the answer.
    pub fn transparent<T>(&mut self, cmd: c_int, argument: &mut T) -> (u8, c_int, c_int) {
        let address = (&raw mut *argument).expose_provenance();
        self.within(|q| q.putnext(request(cmd, TRANSPARENT, &address.to_ne_bytes())));
        loop {
            let answer = self.get().expect("an answer");
            if !matches!(answer.kind(), M_COPYIN | M_COPYOUT) {
                let ioc: iocblk = answer.read().unwrap();
                return (answer.kind(), ioc.ioc_rval, ioc.ioc_error);
            }
            // SAFETY: the argument's own address, or one that it holds.
            let next = unsafe { copy(&answer) };
            self.within(|q| q.putnext(next));
        }
    }
}

fn request(cmd: c_int, count: u32, data: &[u8]) -> Message {
    let mut m = Message::new(M_IOCTL, IOCTYPES);
    m.write(iocblk {
        ioc_cmd: cmd,
        ioc_id: 7,
        ioc_count: count,
        ..iocblk::zeroed()
    });
    if !data.is_empty() {
        m.append(Message::data(data));
    }
    m
}

/// # Safety
/// The bytes that it asks for are there, and may be read or written.
unsafe fn copy(answer: &Message) -> Message {
    let request: copyreq = answer.read().unwrap();
    assert_eq!(request.cq_id, 7);
    let at = core::ptr::with_exposed_provenance_mut::<u8>(request.cq_addr.addr());
    let n = request.cq_size as usize;
    let mut m = Message::new(M_IOCDATA, IOCTYPES);
    m.write(copyresp {
        cp_cmd: request.cq_cmd,
        cp_id: request.cq_id,
        cp_private: request.cq_private,
        ..copyresp::zeroed()
    });
    // SAFETY: the bytes are there, as the caller says.
    unsafe {
        if answer.kind() == M_COPYIN {
            m.append(Message::data(core::slice::from_raw_parts(at, n)));
        } else {
            let data = answer.to_data();
            core::slice::from_raw_parts_mut(at, n).copy_from_slice(&data[..n]);
        }
    }
    m
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _guard = self.perimeter.enter();
        for _ in 0..self.pairs {
            let topmost = self.read.write().next().expect("a pair").read();
            // SAFETY: inside; it was attached.
            unsafe { attach::qdetach(topmost, 0) };
        }
        // SAFETY: linked to nothing any more.
        unsafe { attach::free_pair(self.read) };
    }
}

/// A stream below a multiplexer, unlinked when dropped.
pub struct Linked {
    upper: Queue,
    lower: Stream,
    above: Option<Above>,
    index: c_int,
}

impl Linked {
    pub fn below(upper: &Stream, index: c_int, lower: Stream) -> Linked {
        let linked = {
            let _guard = lower.perimeter.enter();
            // SAFETY: inside; one perimeter for both.
            let above = unsafe { attach::link_lower(lower.read, mux_streamtab_of::<Mux>()) };
            Linked {
                upper: upper.read,
                above: Some(above.unwrap_or_else(|e| panic!("errno {e}"))),
                index,
                lower,
            }
        };
        assert_eq!(linked.ask(I_LINK), M_IOCACK);
        linked
    }

    fn ask(&self, cmd: c_int) -> u8 {
        let block = Message::from_struct(
            M_DATA,
            linkblk {
                l_qtop: null_mut(),
                l_qbot: self.lower.read.write().as_ptr(),
                l_index: self.index,
                l_pad: [0; 5],
            },
        );
        self.lower.within(|_| {
            // In the same perimeter; it outlives its lower ones in every test.
            let upper = self.upper.write();
            upper.putnext(request(cmd, block.len() as u32, block.bytes()));
            upper.read().getq().expect("an answer").kind()
        })
    }
}

impl Drop for Linked {
    fn drop(&mut self) {
        assert_eq!(self.ask(I_UNLINK), M_IOCACK);
        let _guard = self.lower.perimeter.enter();
        if let Some(above) = self.above.take() {
            // SAFETY: inside, the pair that was linked.
            unsafe { attach::unlink_lower(self.lower.read, above) };
        }
    }
}
