//! Frames taken out of turn, and deaths in the middle of that.

use super::*;

fn first_special(ring: Ring<'_>) -> Frame {
    ring.find(|frame| frame.special).unwrap().unwrap()
}

fn bytes_of(ring: Ring<'_>, frame: &Frame) -> Vec<u8> {
    let mut bytes = vec![0; frame.len];
    ring.copy_frame(frame, 0, &mut bytes);
    bytes
}

#[test]
fn a_special_frame_overtakes_and_the_others_keep_their_order() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"one", plain()).unwrap();
    ring.push_special(b"ctl", b"data", plain()).unwrap();
    ring.push(b"two", plain()).unwrap();
    ring.push_special(b"", b"", plain()).unwrap();
    assert_eq!(ring.specials(), 2);

    let special = first_special(ring);
    assert_eq!(bytes_of(ring, &special), b"ctldata");
    assert_eq!((special.control_left(), special.meta.control), (3, 3));
    ring.take(&special);
    assert_eq!((ring.specials(), ring.unread()), (1, 6));
    ring.take(&first_special(ring));
    assert!(!has_special(ring));
    assert_eq!(pop_all(ring), b"onetwo");
    assert!(ring.is_empty() && ring.fill() == 0, "no tombstone is left");
}

#[test]
fn tombstones_give_their_room_back_when_the_frames_before_them_go() {
    let bench = Bench::new();
    let ring = bench.ring();
    ring.push(b"old", plain()).unwrap();
    for _ in 0..20 {
        assert!(ring.push_special(&[1; 100], &[2; 60], plain()).unwrap());
        ring.take(&first_special(ring));
    }
    assert!(ring.fill() > 3000);
    assert_eq!(pop_all(ring), b"old");
    assert_eq!(ring.fill(), 0);
    assert!(ring.push_message(&[], &[3; LARGEST], plain()).unwrap());
}

#[test]
fn a_control_part_can_go_first_even_an_empty_one() {
    let bench = Bench::new();
    let ring = bench.ring();
    for control in [&b"ctl"[..], b""] {
        ring.push(b"before", plain()).unwrap();
        ring.push_special(control, b"data", plain()).unwrap();
        let frame = first_special(ring);
        assert!(!frame.control_taken);
        ring.take_part(&frame, control.len());
        let frame = first_special(ring);
        assert!(frame.control_taken && frame.control_left() == 0);
        assert_eq!(bytes_of(ring, &frame), b"data");
        ring.take_part(&frame, 1);
        assert_eq!(bytes_of(ring, &first_special(ring)), b"ata");
        ring.take_part(&first_special(ring), 3);
        assert_eq!(ring.specials(), 0);
        assert_eq!(pop_all(ring), b"before");
    }
}

#[test]
fn half_taken_frames_each_keep_their_own_account() {
    let bench = Bench::new();
    let ring = bench.ring();
    for _ in 0..2 {
        ring.push_special(b"12", b"3456", plain()).unwrap();
    }
    ring.push(b"plain", plain()).unwrap();
    let second = |ring: Ring<'_>| {
        let mut seen = 0;
        let found = ring.find(|_| {
            seen += 1;
            seen == 2
        });
        found.unwrap().unwrap()
    };
    ring.take_part(&second(ring), 1);
    ring.take_part(&ring.find(|frame| !frame.special).unwrap().unwrap(), 2);
    ring.take_part(&first_special(ring), 3);
    assert_eq!(ring.unread(), 3 + 5 + 3);
    assert_eq!(second(ring).control_left(), 1);
    assert_eq!(pop_all(ring), b"45623456ain");
}

#[test]
fn an_empty_plain_frame_is_a_message() {
    let bench = Bench::new();
    let ring = bench.ring();
    assert!(ring.push_empty(plain()).unwrap());
    ring.push_special(b"x", b"", plain()).unwrap();
    let frame = ring.peek().unwrap().unwrap();
    assert!(frame.len == 0 && !frame.special);
    ring.take_part(&frame, 0);
    assert!(ring.peek().unwrap().unwrap().special);
    assert_eq!(ring.consumed(), (0, 1));
}

#[test]
fn a_producer_that_died_with_a_special_frame_has_pushed_it_or_not() {
    for published in [false, true] {
        let bench = Bench::new();
        let ring = bench.ring();
        ring.push_special(b"", b"first", plain()).unwrap();
        let (tail, bytes) = (ring.tail(), ring.produced().0);
        ring.push_special(b"", b"second", plain()).unwrap();
        let w = &ring.state.writer;
        w.tail.store(tail, Ordering::Relaxed);
        w.specials.store(1, Ordering::Relaxed);
        w.bytes.store(bytes, Ordering::Relaxed);
        if !published {
            ring.data.word(tail).store(0, Ordering::Relaxed);
        }
        ring.take(&first_special(ring));
        assert_eq!(has_special(ring), published, "whatever the count says");

        ring.recover_producer().unwrap();
        assert_eq!(ring.specials(), published as u32);
        ring.push_special(b"", b"third", plain()).unwrap();
        assert_eq!(ring.specials(), published as u32 + 1);
        assert_eq!(ring.unread(), if published { 11 } else { 5 });
    }
}

/// Every store that a taker makes last before it dies, of a frame at the head and of one behind it.
#[test]
fn a_taker_that_died_has_taken_the_frame_or_not() {
    for at_head in [false, true] {
        for stores in 0..5 {
            let bench = Bench::new();
            let ring = bench.ring();
            if !at_head {
                ring.push(b"plain", plain()).unwrap();
            }
            ring.push_special(b"ctl", b"", plain()).unwrap();
            ring.push(b"last", plain()).unwrap();
            let frame = first_special(ring);
            let (r, s) = (&ring.state.reader, &ring.state.sleep);
            if stores > 0 {
                ring.announce_special(&frame);
            }
            if stores > 1 {
                r.bytes.store(3, Ordering::Relaxed);
                r.tombstones.store(!at_head as u64, Ordering::Relaxed);
            }
            if stores > 2 {
                match at_head {
                    true => r.head.store(frame.next, Ordering::Relaxed),
                    false => {
                        let header = ring.data.word(frame.pos);
                        header.fetch_or(TAKEN, Ordering::Relaxed);
                    }
                }
            }
            if stores > 3 {
                s.specials_taken.store(1, Ordering::Relaxed);
            }

            ring.recover_consumer().unwrap();
            let gone = stores > 2;
            assert_eq!(ring.specials(), !gone as u32);
            assert_eq!(has_special(ring), !gone);
            let rest = if at_head { 4 } else { 9 };
            assert_eq!(ring.unread(), rest + if gone { 0 } else { 3 });
            pop_all(ring);
            assert!(ring.is_empty() && ring.fill() == 0);
            assert_eq!((ring.specials(), ring.unread()), (0, 0));
            assert_eq!(r.tombstones.load(Ordering::Relaxed), 0);
        }
    }
}

#[test]
fn a_head_left_on_a_tombstone_moves_on() {
    for recovered in [false, true] {
        let bench = Bench::new();
        let ring = bench.ring();
        ring.push(b"first", plain()).unwrap();
        ring.push_special(b"", b"gone", plain()).unwrap();
        ring.push(b"next", plain()).unwrap();
        ring.take(&first_special(ring));
        let head = ring.peek().unwrap().unwrap().next;
        ring.state.reader.head.store(head, Ordering::Relaxed);
        if recovered {
            ring.recover_consumer().unwrap();
        }
        assert_eq!(pop_all(ring), b"next");
        assert_eq!(ring.fill(), 0);
    }
}

#[test]
fn endless_tombstones_end_in_corrupt() {
    let bench = Bench::new();
    let ring = bench.ring();
    for pos in (0..CAPACITY as u64).step_by(8) {
        let word = ring.data.word(pos);
        word.store(COMMITTED | TAKEN, Ordering::Relaxed);
    }
    assert_eq!(ring.peek().err(), Some(Corrupt));
    assert_eq!(ring.find(|_| true).err(), Some(Corrupt));
    assert_eq!(ring.pop(&mut [0; 10]), Err(Corrupt));
}
