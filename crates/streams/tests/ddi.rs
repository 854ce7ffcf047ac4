//! What a module asks of the executive and of the stream head.

#![cfg(not(loom))]

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once};
use std::thread;
use std::time::{Duration, Instant};

use headwater_host::reclaim::enter;
use headwater_host::table;
use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{
    M_DATA, M_HANGUP, M_IOCTL, M_PCPROTO, M_PROTO, M_SETOPTS, M_SIG, SO_WROFF, queue_t, stroptions,
};
use headwater_streams::exec::timer::{bufcall, unbufcall};
use headwater_streams::exec::{Info, Module, OpenFlag, Queue, registry};
use headwater_streams::head;
use headwater_streams::head::control::ioctl;
use headwater_streams::open::open;
use headwater_streams::{Choice, Error, Priority, Stream, poll};

const ORDINARY: Priority = Priority::Band(0);
/// Room that `Roomy` asks for, an odd number.
const ROOM: u16 = 57;

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The first stream makes sure that there is an executive.
        drop(Stream::pipe().unwrap());
        registry::register_module::<Roomy>().unwrap();
        registry::register_module::<Patient>().unwrap();
        registry::register_module::<Ender>().unwrap();
        registry::register_module::<Mute>().unwrap();
        registry::register_module::<Marker>().unwrap();
    });
}

/// Asks for room in front of what is written, and answers with the room that each data block has.
struct Roomy;

impl Module for Roomy {
    const INFO: Info = Info::new(901, c"roomy");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        Ok(Roomy)
    }
    fn started(&self, q: Queue) {
        let options = stroptions {
            so_flags: SO_WROFF,
            so_wroff: ROOM,
            ..Default::default()
        };
        q.putnext(Message::from_struct(M_SETOPTS, options));
    }
    fn wput(&self, q: Queue, m: Message) {
        let mut rooms = Vec::new();
        let mut block = m.as_ptr();
        // SAFETY: a message's blocks and their data blocks live as long as it.
        unsafe {
            while !block.is_null() {
                let data = (*block).b_datap;
                if (*data).db_type == M_DATA {
                    rooms.push((*block).b_rptr.offset_from((*data).db_base) as u8);
                }
                block = (*block).b_cont;
            }
        }
        q.qreply(Message::data(&rooms));
    }
}

fn room_of(stream: &Stream) -> Vec<u8> {
    let answer = stream.get_message(Choice::Any).unwrap();
    answer.data.unwrap()
}

fn has_room(stream: &Stream) {
    use std::io::Write;
    stream.push("roomy").unwrap();
    assert_eq!((&*stream).write(b"text").unwrap(), 4);
    assert_eq!(room_of(stream), [ROOM as u8]);
    stream.put_message(None, Some(b"text"), ORDINARY).unwrap();
    assert_eq!(room_of(stream), [ROOM as u8]);
    // A primitive goes its way, the data that it is about has the room.
    stream
        .put_message(Some(b"primitive"), Some(b"text"), ORDINARY)
        .unwrap();
    assert_eq!(room_of(stream), [ROOM as u8]);
    stream
        .put_message(Some(b"primitive"), Some(b"text"), Priority::High)
        .unwrap();
    assert_eq!(room_of(stream), [ROOM as u8]);
    stream.put_message(Some(b"alone"), None, ORDINARY).unwrap();
    assert_eq!(room_of(stream), []);
}

#[test]
fn data_is_written_behind_the_room_that_was_asked_for() {
    register();
    let (here, _there) = Stream::pipe().unwrap();
    has_room(&here);
    has_room(&Stream::open("/dev/nuls").unwrap());
}

/// Answers a message from a buffer call that it makes; a primitive takes the call back.
struct Patient;

impl Module for Patient {
    const INFO: Info = Info::new(902, c"patient");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        Ok(Patient)
    }
    fn wput(&self, q: Queue, m: Message) {
        let queue: *mut queue_t = q.read().as_ptr();
        // SAFETY: inside the perimeter; the queue outlives the call, as the test waits for it, or takes it back.
        let call = unsafe { bufcall(m.len(), 1, answer, queue.cast()) };
        assert_ne!(call, 0);
        if m.kind() == M_PROTO {
            unbufcall(call);
        }
    }
}

unsafe extern "C-unwind" fn answer(queue: *mut core::ffi::c_void) {
    // SAFETY: what wput gave.
    let q = unsafe { Queue::from_raw(queue.cast()) };
    q.putnext(Message::data(b"there is memory"));
}

#[test]
fn a_buffer_call_comes_unless_it_is_taken_back() {
    register();
    let stream = Stream::open("/dev/nuls").unwrap();
    stream.push("patient").unwrap();
    stream.put_message(Some(b"no"), None, ORDINARY).unwrap();
    stream.put_message(None, Some(b"yes"), ORDINARY).unwrap();
    let got = stream.get_message(Choice::Any).unwrap();
    assert_eq!(got.data, Some(b"there is memory".to_vec()));
    stream.set_nonblocking(true).unwrap();
    assert!(
        stream.get_message(Choice::Any).is_err(),
        "one call, one answer"
    );
}

/// Ends the stream at the other end of the pipe: a message of data by M_ERROR, a primitive by M_HANGUP. One of high priority
/// is a signal there, behind a message of a band and one of none if it has data.
struct Ender;

impl Module for Ender {
    const INFO: Info = Info::new(903, c"ender");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        Ok(Ender)
    }
    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_DATA => q.putnext(Message::error(libc::EILSEQ as u8, libc::EXDEV as u8)),
            M_PROTO => q.putnext(Message::new(M_HANGUP, 0)),
            M_PCPROTO if !m.to_data().is_empty() => {
                let mut banded = Message::data(b"banded");
                banded.set_band(1);
                q.putnext(banded);
                q.putnext(Message::data(b"ordinary"));
                q.putnext(Message::from_bytes(M_SIG, &[libc::SIGPOLL as u8]));
            }
            M_PCPROTO => q.putnext(Message::from_bytes(M_SIG, &[libc::SIGPOLL as u8])),
            _ => q.putnext(m),
        }
    }
}

/// A pipe, with `Ender` at the first end.
fn endable() -> (Stream, Stream) {
    register();
    let (here, there) = Stream::pipe().unwrap();
    here.push("ender").unwrap();
    (here, there)
}

fn fail(stream: &Stream) {
    stream.put_message(None, Some(b"fail"), ORDINARY).unwrap();
}

fn hang_up(stream: &Stream) {
    stream.put_message(Some(b"end"), None, ORDINARY).unwrap();
}

/// What poll says of an end, in a moment or when it comes.
fn events(stream: &Stream, within: Option<Duration>) -> i16 {
    let mut set = [libc::pollfd {
        fd: stream.as_raw_fd(),
        events: libc::POLLIN | libc::POLLOUT,
        revents: 0,
    }];
    poll(&mut set, within).unwrap();
    set[0].revents
}

#[test]
fn an_error_from_the_other_end_is_there_with_the_next_call_of_any_kind() {
    let (here, there) = endable();
    fail(&here);
    let sent = there.put_message(None, Some(b"x"), ORDINARY);
    assert_eq!(sent, Err(Error::Failed(libc::EXDEV)));
    let (here, there) = endable();
    fail(&here);
    assert_ne!(events(&there, Some(Duration::ZERO)) & libc::POLLERR, 0);
    let (here, there) = endable();
    fail(&here);
    let got = there.get_message(Choice::Any);
    assert_eq!(got, Err(Error::Failed(libc::EILSEQ)));
}

#[test]
fn a_hangup_from_the_other_end_is_there_with_the_next_call_of_any_kind() {
    let (here, there) = endable();
    hang_up(&here);
    let sent = there.put_message(None, Some(b"x"), ORDINARY);
    assert_eq!(sent, Err(Error::HungUp));
    let (here, there) = endable();
    hang_up(&here);
    assert_eq!(events(&there, Some(Duration::ZERO)), libc::POLLHUP);
    let (here, there) = endable();
    hang_up(&here);
    assert_eq!(there.push("nullmod"), Err(Error::HungUp));
    let (here, there) = endable();
    hang_up(&here);
    assert_eq!(there.get_message(Choice::Any), Err(Error::HungUp));
}

#[test]
fn who_sleeps_is_woken_by_what_is_for_the_head() {
    let (here, there) = endable();
    let there = &there;
    thread::scope(|s| {
        let polls = s.spawn(move || {
            let mut set = [libc::pollfd {
                fd: there.as_raw_fd(),
                events: libc::POLLPRI,
                revents: 0,
            }];
            poll(&mut set, None).unwrap();
            set[0].revents
        });
        let reads = s.spawn(move || there.get_message(Choice::Any));
        let writes = s.spawn(move || {
            let much = [1; 4096];
            loop {
                if let Err(e) = there.put_message(None, Some(&much), ORDINARY) {
                    return e;
                }
            }
        });
        // Until they sleep, as likely as not; either way they end.
        thread::sleep(Duration::from_millis(50));
        hang_up(&here);
        assert_eq!(reads.join().unwrap(), Err(Error::HungUp));
        assert_eq!(writes.join().unwrap(), Error::HungUp);
        assert_eq!(polls.join().unwrap(), libc::POLLHUP);
    });
}

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_: i32) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
}

/// Who registers for it alone.
static REGISTERED: Mutex<()> = Mutex::new(());

/// A pipe whose second end is told of `events` by signals, which are counted.
fn signalled(events: usize) -> (Stream, Stream) {
    const I_SETSIG: u32 = (b'S' as u32) << 8 | 9;
    let (here, there) = endable();
    let h = table::stream(there.as_raw_fd()).unwrap();
    // SAFETY: the handler counts; the request takes a number.
    unsafe {
        let handler = note as extern "C" fn(i32) as usize;
        libc::signal(libc::SIGPOLL, handler);
        ioctl(head::get(h, &enter()).unwrap(), I_SETSIG, events).unwrap();
    }
    SIGNALS.store(0, Ordering::SeqCst);
    (here, there)
}

fn await_signal() {
    let until = Instant::now() + Duration::from_secs(30);
    while SIGNALS.load(Ordering::SeqCst) == 0 {
        assert!(Instant::now() < until, "nobody was told");
        thread::yield_now();
    }
}

#[test]
fn a_signal_from_the_other_end_comes_to_those_who_asked_for_it() {
    const S_MSG: usize = 8;
    let _alone = REGISTERED.lock();
    let (here, there) = signalled(S_MSG);
    here.put_message(Some(b"ring"), None, Priority::High)
        .unwrap();
    await_signal();
    assert_eq!(events(&there, Some(Duration::ZERO)), libc::POLLOUT);
}

#[test]
fn what_comes_with_a_message_for_the_head_is_told_of_too() {
    const S_RDNORM: usize = 0x40;
    let _alone = REGISTERED.lock();
    let (here, there) = signalled(S_RDNORM);
    here.put_message(Some(b"ring"), Some(b"all"), Priority::High)
        .unwrap();
    await_signal();
    let got = there.get_message(Choice::Any).unwrap();
    assert_eq!(got.data, Some(b"banded".to_vec()));
    let got = there.get_message(Choice::Any).unwrap();
    assert_eq!(got.data, Some(b"ordinary".to_vec()));
}

/// Swallows requests.
struct Mute;

impl Module for Mute {
    const INFO: Info = Info::new(904, c"mute");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        Ok(Mute)
    }
    fn wput(&self, q: Queue, m: Message) {
        if m.kind() != M_IOCTL {
            q.putnext(m);
        }
    }
}

#[test]
fn a_request_sleeps_though_a_fifo_has_no_writer_left() {
    const I_PUSH: u32 = (b'S' as u32) << 8 | 2;
    const I_STR: u32 = (b'S' as u32) << 8 | 8;
    register();
    let open = |flags| open(c"/dev/fifo.request", flags).unwrap().unwrap();
    let reader = open(libc::O_RDONLY | libc::O_NONBLOCK);
    let writer = open(libc::O_WRONLY);
    let h = table::stream(writer).unwrap();
    head::life::close(writer, h);
    let h = table::stream(reader).unwrap();
    let head = head::get(h, &enter()).unwrap();
    // struct strioctl: no data, an answer within a second.
    let request = [1u32, 1, 0, 0, 0, 0];
    let ask = |cmd, arg| {
        let _by = head::opening::By::begin(h, head);
        // SAFETY: what the requests want: a string, and a struct strioctl without data.
        unsafe { ioctl(head, cmd, arg) }
    };
    ask(I_PUSH, c"mute".as_ptr().addr()).unwrap();
    let before = head.words().wakeups.load(Ordering::Relaxed);
    assert_eq!(ask(I_STR, request.as_ptr().addr()), Err(libc::ETIME));
    let woken = head.words().wakeups.load(Ordering::Relaxed) - before;
    assert!(woken < 10, "woken {woken} times by nothing");
    head::life::close(reader, h);
}

/// Says of each message that it came by.
struct Marker;

impl Module for Marker {
    const INFO: Info = Info::new(905, c"marker");

    fn open(_: Queue, _: &mut libc::dev_t, _: i32, _: OpenFlag) -> Result<Self, i32> {
        Ok(Marker)
    }
    fn rput(&self, q: Queue, _: Message) {
        q.putnext(Message::data(b"by the module"));
    }
}

#[test]
fn a_module_does_not_get_what_is_at_the_head() {
    register();
    let (here, there) = Stream::pipe().unwrap();
    let put = |text: &[u8]| there.put_message(None, Some(text), ORDINARY).unwrap();
    put(b"one");
    put(b"two");
    here.push("marker").unwrap();
    put(b"three");
    for text in ["one", "two", "by the module"] {
        let got = here.get_message(Choice::Any).unwrap();
        assert_eq!(got.data.as_deref(), Some(text.as_bytes()));
    }
}
