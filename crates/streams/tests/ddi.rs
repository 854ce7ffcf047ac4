//! What a module asks of the executive and of the stream head.

#![cfg(not(loom))]

use std::sync::Once;

use headwater_streams::ddi::owned::Message;
use headwater_streams::ddi::{M_DATA, M_PROTO, M_SETOPTS, SO_WROFF, queue_t, stroptions};
use headwater_streams::exec::timer::{bufcall, unbufcall};
use headwater_streams::exec::{Info, Module, OpenFlag, Queue, registry};
use headwater_streams::{Choice, Priority, Stream};

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
            // SAFETY: as above.
            unsafe { unbufcall(call) };
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
