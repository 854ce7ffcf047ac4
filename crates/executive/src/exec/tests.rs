//! Modules, drivers and multiplexers on streams without a head: a queue pair that keeps what comes up.

use core::cell::{Cell, RefCell};
use core::ffi::c_int;
use core::ptr::null_mut;
use std::sync::Mutex;

use super::module::{mux_streamtab_of, set_lower, with_lower};
use super::registry::*;
use super::timer;
use super::*;
use crate::ddi::queue::*;
use crate::ddi::*;

type Dev = libc::dev_t;
type Errno = c_int;

/// The stand-in for a stream head.
struct Top;
impl Module for Top {
    const INFO: Info = Info::new(0, c"top");
    fn open(_: Queue, _: &mut Dev, _: c_int, _: OpenFlag) -> Result<Self, Errno> {
        Ok(Top)
    }
    fn rput(&self, q: Queue, m: Message) {
        q.putq(m);
    }
}

struct Stream {
    read: Queue,
    guard: Option<Guard<'static>>,
}

impl Stream {
    fn new(perimeter: &'static Perimeter) -> Stream {
        let guard = perimeter.enter();
        let mut stream = Stream::inside(perimeter);
        stream.guard = Some(guard);
        stream
    }

    /// A further stream of a perimeter that somebody is in.
    fn inside(perimeter: &'static Perimeter) -> Stream {
        let tab = streamtab_of::<Top>();
        let read = alloc_pair(perimeter, null_mut());
        // SAFETY: a fresh pair, inside.
        unsafe {
            setq(read, tab.st_rdinit, tab.st_wrinit);
            let open = read.procedures().qi_qopen.unwrap();
            assert_eq!(open(read, &mut 0, 0, 0, null_mut()), 0);
        }
        Stream { read, guard: None }
    }

    fn fresh() -> Stream {
        Stream::new(Perimeter::fresh())
    }

    fn push<M: Module>(&self) -> Result<(), Errno> {
        // SAFETY: inside.
        unsafe { qattach(self.read, streamtab_of::<M>(), &mut 0, 0, MODOPEN) }
    }

    fn pop(&self) {
        // SAFETY: inside; only called with something below.
        unsafe { qdetach(self.top().write().next().unwrap().read(), 0) }
    }

    fn top(&self) -> Queue {
        self.read
    }

    fn send(&self, m: Message) {
        self.top().write().putnext(m);
    }

    fn run(&self) {
        self.guard.as_ref().unwrap().run();
    }

    /// What has come up since.
    fn got(&self) -> Vec<(u8, Vec<u8>)> {
        let q = self.top();
        std::iter::from_fn(|| q.getq())
            .map(|m| (m.kind(), m.bytes().to_vec()))
            .collect()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: inside, and nobody else uses the stream.
        unsafe {
            while self.top().write().next().is_some() {
                self.pop();
            }
            let close = self.read.procedures().qi_qclose;
            if let Some(close) = close {
                close(self.read, 0, null_mut());
            }
            free_pair(self.read);
        }
    }
}

/// Sends everything back; holds data until its service procedure, one message each time.
#[derive(Default)]
struct Echo {
    closing: Cell<bool>,
}
impl Module for Echo {
    const INFO: Info = Info {
        hiwat: 10,
        lowat: 5,
        ..Info::new(1, c"echo")
    };
    const WSRV: bool = true;
    fn open(_: Queue, _: &mut Dev, _: c_int, _: OpenFlag) -> Result<Self, Errno> {
        Ok(Echo::default())
    }
    fn wput(&self, q: Queue, m: Message) {
        q.putq(m);
    }
    fn wsrv(&self, q: Queue) {
        while let Some(m) = q.getq() {
            q.qreply(m);
        }
    }
    fn close(&self, q: Queue, _: c_int) {
        self.closing.set(true);
        q.putnext(Message::data(b"bye"));
    }
}

/// Says so upwards when it is started; refuses to be opened for writing; panics when told to.
struct Moody;
static PANICS_IN_DROP: Mutex<bool> = Mutex::new(false);
impl Module for Moody {
    const INFO: Info = Info::new(2, c"moody");
    fn open(_: Queue, _: &mut Dev, oflag: c_int, flag: OpenFlag) -> Result<Self, Errno> {
        assert_eq!(flag, OpenFlag::Module);
        match oflag {
            libc::O_WRONLY => Err(libc::EACCES),
            libc::O_RDWR => panic!("in open"),
            _ => Ok(Moody),
        }
    }
    fn started(&self, q: Queue) {
        q.putnext(Message::data(b"hello"));
        q.write().putnext(Message::data(b"asks"));
    }
    fn wput(&self, q: Queue, m: Message) {
        assert_ne!(m.bytes(), b"panic", "told to");
        q.putnext(m);
    }
    fn timer(&self, q: Queue, token: usize) {
        q.putnext(Message::data(&[token as u8]));
    }
}
impl Drop for Moody {
    fn drop(&mut self) {
        assert!(!*PANICS_IN_DROP.lock().unwrap(), "in drop");
    }
}

#[test]
fn a_message_passes_modules_and_is_serviced_on_leaving() {
    let stream = Stream::fresh();
    stream.push::<Echo>().unwrap();
    stream.push::<Moody>().unwrap();
    stream.run();
    assert_eq!(
        stream.got(),
        [(M_DATA, b"hello".to_vec()), (M_DATA, b"asks".to_vec())]
    );
    stream.send(Message::data(b"later"));
    assert_eq!(stream.got(), []);
    stream.run();
    assert_eq!(stream.got(), [(M_DATA, b"later".to_vec())]);
}

#[test]
fn a_full_queue_is_seen_past_modules_that_hold_nothing() {
    let stream = Stream::fresh();
    stream.push::<Echo>().unwrap();
    stream.push::<Moody>().unwrap();
    stream.run();
    let down = stream.top().write();
    assert!(down.canputnext());
    stream.send(Message::data(&[1; 10]));
    assert!(!down.canputnext() && down.bcanputnext(1));
    stream.run();
    assert!(down.canputnext());
}

#[test]
fn what_open_refuses_leaves_no_trace() {
    let stream = Stream::fresh();
    let tab = streamtab_of::<Moody>();
    for (oflag, errno) in [(libc::O_WRONLY, libc::EACCES), (libc::O_RDWR, libc::EPROTO)] {
        // SAFETY: inside.
        let result = unsafe { qattach(stream.read, tab, &mut 0, oflag, MODOPEN) };
        assert_eq!(result, Err(errno));
        assert!(stream.top().write().next().is_none());
    }
    assert_eq!(stream.got(), []);
}

#[test]
fn close_may_still_send_and_frees_what_is_queued() {
    let stream = Stream::fresh();
    stream.push::<Echo>().unwrap();
    stream.send(Message::data(b"never serviced"));
    stream.pop();
    stream.run();
    assert_eq!(stream.got(), [(M_DATA, b"bye".to_vec())]);
}

#[test]
fn a_module_that_panics_ends_its_stream_only() {
    let stream = Stream::fresh();
    stream.push::<Echo>().unwrap();
    stream.push::<Moody>().unwrap();
    stream.run();
    stream.got();
    stream.send(Message::data(b"panic"));
    let proto = libc::EPROTO as u8;
    assert_eq!(stream.got(), [(M_ERROR, vec![proto, proto])]);
    stream.send(Message::data(b"more"));
    stream.send(Message::data(b"panic"));
    stream.run();
    assert_eq!(stream.got(), []);
    *PANICS_IN_DROP.lock().unwrap() = true;
    stream.pop();
    *PANICS_IN_DROP.lock().unwrap() = false;
    stream.send(Message::data(b"again"));
    stream.run();
    assert_eq!(stream.got(), [(M_DATA, b"again".to_vec())]);
}

#[test]
fn queues_are_serviced_in_the_order_they_were_enabled() {
    static ORDER: Mutex<Vec<bool>> = Mutex::new(Vec::new());
    struct Both;
    impl Module for Both {
        const INFO: Info = Info::new(3, c"both");
        const RSRV: bool = true;
        const WSRV: bool = true;
        fn open(_: Queue, _: &mut Dev, _: c_int, _: OpenFlag) -> Result<Self, Errno> {
            Ok(Both)
        }
        fn rsrv(&self, q: Queue) {
            ORDER.lock().unwrap().push(true);
            if ORDER.lock().unwrap().len() == 2 {
                q.qenable();
            }
        }
        fn wsrv(&self, _: Queue) {
            ORDER.lock().unwrap().push(false);
        }
    }
    let stream = Stream::fresh();
    stream.push::<Both>().unwrap();
    let write = stream.top().write().next().unwrap();
    write.qenable();
    write.read().qenable();
    write.qenable();
    stream.run();
    assert_eq!(*ORDER.lock().unwrap(), [false, true, true]);
    // One that is taken off the list is not run, and the rest is.
    write.qenable();
    write.read().qenable();
    write.unschedule();
    stream.run();
    assert_eq!(ORDER.lock().unwrap().len(), 4);
}

/// Fans out: what comes from above goes to all lower streams, what comes from below to the last upper one.
struct Fan;
static UPPER: Mutex<Option<Queue>> = Mutex::new(None);
static LOWER: Mutex<Vec<Queue>> = Mutex::new(Vec::new());
impl Module for Fan {
    const INFO: Info = Info::new(4, c"fan");
    fn open(q: Queue, dev: &mut Dev, _: c_int, flag: OpenFlag) -> Result<Self, Errno> {
        assert_eq!(flag, OpenFlag::Clone);
        *dev = 7;
        *UPPER.lock().unwrap() = Some(q);
        Ok(Fan)
    }
    fn wput(&self, q: Queue, m: Message) {
        if m.kind() != M_IOCTL {
            let lower = LOWER.lock().unwrap().clone();
            return lower.iter().for_each(|l| l.putnext(m.dup().unwrap()));
        }
        let link = m.read::<linkblk>().unwrap();
        // SAFETY: from I_LINK.
        let lower = unsafe { Queue::from_raw(link.l_qbot) };
        assert!(set_lower::<Fan>(lower, link.l_index as u8));
        assert!(!set_lower::<Fan>(q, 0), "an upper queue");
        LOWER.lock().unwrap().push(lower);
    }
}
impl Mux for Fan {
    type Lower = u8;
    fn lrput(lower: &u8, _: Queue, m: Message) {
        let mut tagged = Message::from_bytes(M_PROTO, &[*lower]);
        tagged.append(m);
        UPPER.lock().unwrap().unwrap().putnext(tagged);
    }
}

#[test]
fn a_multiplexer_has_streams_below() {
    let device = register_mux::<Fan>("test-fan").unwrap();
    assert!(register_mux::<Fan>("test-fan").is_err());
    let shared = device.shared_perimeter().unwrap();
    let below = Stream::fresh();
    below.push::<Echo>().unwrap();
    let upper = Stream::new(shared);
    let mut dev = device.number(0);
    // SAFETY: inside both perimeters throughout.
    unsafe {
        qattach(upper.read, device.table(), &mut dev, 0, CLONEOPEN).unwrap();
        assert_eq!(dev, 7);
        move_stream(
            below.read,
            below.guard.as_ref().unwrap(),
            upper.guard.as_ref().unwrap(),
        );
        let saved = link_lower(below.read, mux_streamtab_of::<Fan>()).unwrap();
        assert!(link_lower(below.read, streamtab_of::<Echo>()).is_err());
        upper.send(Message::from_struct(
            M_IOCTL,
            linkblk {
                l_qtop: null_mut(),
                l_qbot: below.read.write().as_ptr(),
                l_index: 5,
                l_pad: [0; 5],
            },
        ));
        assert_eq!(with_lower::<Fan, _>(below.top(), |l| *l), Some(5));
        assert_eq!(with_lower::<Fan, _>(upper.top(), |l| *l), None);
        upper.send(Message::data(b"fan"));
        upper.run();
        assert_eq!(upper.got(), [(M_PROTO, vec![5])]);
        unlink_lower(below.read, saved);
        move_stream(
            below.read,
            upper.guard.as_ref().unwrap(),
            below.guard.as_ref().unwrap(),
        );
        below.send(Message::data(b"own"));
        below.run();
    }
    assert_eq!(below.got(), [(M_DATA, b"own".to_vec())]);
}

thread_local! {
    static CALLS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C-unwind" fn note(arg: *mut core::ffi::c_void) {
    CALLS.with_borrow_mut(|c| c.push(arg.addr()));
}

#[test]
fn timers_run_in_their_perimeter_in_order_until_taken_back() {
    timer::install(timer::Hooks {
        now: || 1_000_000_000,
        set_alarm: |_| (),
    });
    let tick = timer::TICK;
    // SAFETY: inside where it must be.
    unsafe {
        assert_eq!(
            timer::timeout(note, null_mut(), 1),
            0,
            "outside of a perimeter"
        );
        let mut stream = Stream::fresh();
        stream.push::<Moody>().unwrap();
        stream.got();
        let arg = core::ptr::without_provenance_mut;
        timer::timeout(note, arg(2), 20);
        timer::timeout(note, arg(1), 10);
        let back = timer::timeout(note, arg(3), 15);
        assert_eq!(timer::untimeout(back), 15);
        assert_eq!(timer::untimeout(back), -1);
        let module = stream.top().write().next().unwrap();
        module.timeout::<Moody>(12 * tick, 42);
        module.timeout::<Echo>(12 * tick, 43);
        module.timeout::<Moody>(30 * tick, 44);
        stream.guard = None;
        let now = 1_000_000_000;
        assert_eq!(timer::run_due(now), now + 10 * tick);
        assert_eq!(timer::run_due(now + 20 * tick), now + 30 * tick);
        CALLS.with_borrow(|c| assert_eq!(*c, [1, 2]));
        stream.guard = Some(stream.read.perimeter().enter());
        assert_eq!(stream.got(), [(M_DATA, vec![42])]);
        stream.pop();
        stream.guard = None;
        assert_eq!(timer::run_due(now + 40 * tick), u64::MAX);
    }
}

#[test]
fn modules_are_found_by_name() {
    struct Long;
    impl Module for Long {
        const INFO: Info = Info::new(5, c"toolongname");
        fn open(_: Queue, _: &mut Dev, _: c_int, _: OpenFlag) -> Result<Self, Errno> {
            Ok(Long)
        }
    }
    assert_eq!(register_module::<Long>(), Err(libc::EINVAL));
    assert_eq!(
        register_module_tab("t-echo", streamtab_of::<Echo>()),
        Ok(())
    );
    assert_eq!(
        register_module_tab("t-echo", streamtab_of::<Echo>()),
        Err(libc::EEXIST)
    );
    assert_eq!(find_module(b"t-echo").map(Entry::name), Some("t-echo"));
    assert!(find_module("nothing").is_none() && find_device("nothing").is_none());
    let device = register_device::<Echo>("t-dev").unwrap();
    assert!(device.shared_perimeter().is_none());
    assert_eq!(
        device_by_major(device.major()).map(Entry::name),
        Some("t-dev")
    );
}

#[test]
fn a_held_executive_lets_nobody_in() {
    let perimeter = Perimeter::fresh();
    let held = hold_all();
    assert!(perimeter.try_enter().is_none());
    drop(held);
    assert!(perimeter.try_enter().is_some());
    perimeter.retire();
}
