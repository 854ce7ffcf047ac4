mod flow;
mod garbage;
mod picking;
mod sequences;

use super::*;
use crate::sys;

const CAPACITY: usize = 4096;

/// A ring on doubly mapped memory with nothing mapped around it, so that a read or write outside is fatal.
struct Bench {
    state: Box<RingState>,
    guarded: *mut u8,
}

impl Bench {
    fn new() -> Bench {
        let fd = sys::memfd_create(c"ring-test", 0).unwrap();
        sys::ftruncate(fd, CAPACITY as u64).unwrap();
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let fixed = libc::MAP_SHARED | libc::MAP_FIXED;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh reservation, and two mappings inside it.
        let guarded = unsafe {
            let guarded = sys::mmap(0, 4 * CAPACITY, libc::PROT_NONE, private, -1, 0).unwrap();
            for copy in [1, 2] {
                let at = guarded as usize + copy * CAPACITY;
                sys::mmap(at, CAPACITY, rw, fixed, fd, 0).unwrap();
            }
            guarded
        };
        sys::close(fd).unwrap();
        Bench {
            // SAFETY: shared-memory types are valid for any bits.
            state: unsafe { Box::new(std::mem::zeroed()) },
            guarded,
        }
    }

    fn base(&self) -> *mut u8 {
        self.guarded.wrapping_add(CAPACITY)
    }

    fn ring(&self) -> Ring<'_> {
        // SAFETY: mapped twice in a row by new().
        Ring::new(&self.state, unsafe { Data::new(self.base(), CAPACITY) })
    }

    /// Moves both positions of the empty ring.
    fn begin_at(&self, pos: Pos) {
        self.state.writer.tail.store(pos, Ordering::Relaxed);
        self.state.writer.cached_head.store(pos, Ordering::Relaxed);
        self.state.reader.head.store(pos, Ordering::Relaxed);
        self.ring().data.word(pos).store(0, Ordering::Relaxed);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the mapping any more.
        unsafe { sys::munmap(self.guarded, 4 * CAPACITY).unwrap() };
    }
}

fn plain() -> Meta {
    Meta::default()
}

/// The most data that one frame can hold when the ring is empty.
const LARGEST: usize = CAPACITY - 3 * HEADER as usize;

/// Can a special frame be taken?
fn has_special(ring: Ring<'_>) -> bool {
    !matches!(ring.find(|frame| frame.special), Ok(None))
}

fn pop_all(ring: Ring<'_>) -> Vec<u8> {
    let mut buf = vec![0; CAPACITY];
    let n = ring.pop(&mut buf).unwrap();
    buf.truncate(n);
    buf
}

#[test]
fn a_full_ring_takes_nothing_and_an_emptied_one_everything() {
    let bench = Bench::new();
    let ring = bench.ring();
    let largest = vec![7; LARGEST];
    for _ in 0..10 {
        assert!(ring.push_message(&[], &largest, plain()).unwrap());
        assert!(!ring.push_message(&[], &[], plain()).unwrap());
        assert_eq!(ring.push(b"x", plain()), Ok(0));
        assert!(ring.reserve(0, false).unwrap().is_none());
        assert_eq!(pop_all(ring), largest);
        assert!(ring.is_empty() && ring.fill() == 0);
    }
}

#[test]
fn an_empty_message_does_not_overwrite_the_oldest_one() {
    let bench = Bench::new();
    let ring = bench.ring();
    // Leaves just the place of the header behind the last frame.
    while ring.push_message(&[], b"12345678", plain()).unwrap() {}
    while ring.reserve(0, false).unwrap().is_some() {
        ring.commit(0, plain());
    }
    assert!(ring.push_message(&[], &[], plain()).is_ok_and(|sent| !sent));
    assert_eq!(ring.peek().unwrap().unwrap().len, 8);
}

#[test]
fn a_reader_in_front_of_the_tail_sees_an_empty_ring_not_a_full_one() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"12345678", plain()).unwrap();
    // The producer has published the header, but not yet the tail and the count.
    let w = &ring.state.writer;
    w.tail.store(0, Ordering::Relaxed);
    w.bytes.store(0, Ordering::Relaxed);
    assert_eq!(ring.unread(), 8);
    assert_eq!(pop_all(ring), b"12345678");
    assert_eq!(ring.fill(), 0);
    assert!(ring.below_low_water());
    assert_eq!(ring.unread(), 0);
}

#[test]
fn a_frame_is_published_by_its_header_even_if_the_producer_died_then() {
    for counted in [false, true] {
        let bench = Bench::new();
        let ring = bench.ring();
        ring.push(b"first", plain()).unwrap();
        let (tail, bytes) = (ring.tail(), ring.produced().0);
        ring.push(b"second", plain()).unwrap();
        let w = &ring.state.writer;
        w.tail.store(tail, Ordering::Relaxed);
        if !counted {
            w.bytes.store(bytes, Ordering::Relaxed);
        }

        ring.recover_producer().unwrap();
        ring.push(b"third", plain()).unwrap();
        assert_eq!(ring.unread(), 16);
        assert_eq!(pop_all(ring), b"firstsecondthird");
        assert_eq!(ring.produced().0, 16);
    }
}

#[test]
fn a_frame_without_header_never_was() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"first", plain()).unwrap();
    let room = ring.reserve(100, false).unwrap().unwrap();
    // SAFETY: inside the reservation.
    unsafe { room.ptr.write_bytes(0xff, 100) };
    ring.recover_producer().unwrap();
    ring.push(b"second", plain()).unwrap();
    assert_eq!(pop_all(ring), b"firstsecond");
}

#[test]
fn a_consumer_that_died_midway_neither_skips_nor_repeats() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"abcdefgh", plain()).unwrap();
    ring.push(b"ijklmnop", plain()).unwrap();
    let mut buf = [0; 3];
    ring.pop(&mut buf).unwrap();
    let stale = ring.state.reader.partial.load(Ordering::Relaxed);
    ring.pop(&mut [0; 5]).unwrap();
    // Died after moving the head, before clearing the partial count, and with its bytes counted twice.
    ring.state.reader.partial.store(stale, Ordering::Relaxed);
    ring.state.reader.bytes.store(13, Ordering::Relaxed);

    ring.recover_consumer().unwrap();
    assert_eq!(ring.unread(), 8);
    assert_eq!(pop_all(ring), b"ijklmnop");
}

#[test]
fn positions_may_wrap() {
    let bench = Bench::new();
    bench.begin_at(0u64.wrapping_sub(3000));
    let ring = bench.ring();
    for i in 0..20u8 {
        let message = [i; 500];
        assert!(ring.push_message(&[i], &message, plain()).unwrap());
        assert_eq!(ring.unread(), 501);
        let mut peeked = [0; 501];
        assert_eq!(ring.copy_peek(&mut peeked, 0, None), Ok(501));
        assert_eq!(pop_all(ring), [i; 501]);
    }
}

#[test]
fn a_blocked_writer_is_rung_once_and_only_at_the_low_water_mark() {
    let bench = Bench::new();
    let ring = bench.ring();
    while ring.push_message(&[], &[0; 120], plain()).unwrap() {}
    ring.writer_sleeps();
    let mut rings = 0;
    while !ring.is_empty() {
        ring.pop(&mut [0; 120]).unwrap();
        let rung = ring.wakes_writer();
        assert!(!rung || ring.fill() as usize <= CAPACITY / 2);
        rings += rung as u32;
        assert_eq!(rings, (ring.fill() as usize <= CAPACITY / 2) as u32);
    }
}

#[test]
fn a_reader_is_rung_only_when_it_sleeps() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"1", plain()).unwrap();
    assert!(!ring.wakes_reader());
    ring.reader_sleeps();
    assert!(ring.wakes_reader());
    assert!(!ring.wakes_reader());
}

#[test]
fn who_took_a_ring_rings_for_those_still_asleep_if_there_is_something() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.reader_sleeps();
    ring.reader_sleeps();
    ring.push(b"1", plain()).unwrap();
    assert!(ring.wakes_reader());
    assert!(!ring.reader_wakes());
    assert!(ring.settle_readers());
    pop_all(ring);
    assert!(!ring.settle_readers());
    ring.push(b"2", plain()).unwrap();
    assert!(ring.wakes_reader(), "armed again by the settling");
    assert!(!ring.reader_wakes());
    assert!(!ring.settle_readers(), "nobody is left");
}

#[test]
fn nobody_is_rung_for_whom_nothing_came_when_the_last_has_left() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.reader_sleeps();
    ring.reader_sleeps();
    assert!(!ring.reader_wakes());
    assert!(ring.readers().are_armed(), "one sleeps yet");
    assert!(!ring.reader_wakes());
    ring.push(b"1", plain()).unwrap();
    assert!(!ring.wakes_reader());
}

#[test]
fn endless_empty_frames_end_in_corrupt() {
    let bench = Bench::new();
    let ring = bench.ring();
    for pos in (0..CAPACITY as u64).step_by(8) {
        ring.data.word(pos).store(COMMITTED, Ordering::Relaxed);
    }
    assert_eq!(ring.pop(&mut [0; 10]), Err(Corrupt));
    assert_eq!(ring.skip_until(10, None), Err(Corrupt));
    assert_eq!(ring.copy_peek(&mut [0; 10], 0, None), Err(Corrupt));
    assert_eq!(ring.find(|_| false).err(), Some(Corrupt));
}
