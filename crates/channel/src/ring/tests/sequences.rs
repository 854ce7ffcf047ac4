//! Sequences of operations, against a queue of frames that never wraps.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Push(usize),
    Message {
        control: usize,
        data: usize,
    },
    Special {
        control: usize,
        data: usize,
    },
    Reserve {
        len: usize,
        commit: usize,
    },
    Abandon(usize),
    Consume(usize),
    /// Of the nth frame, all or so many bytes.
    Take {
        nth: usize,
        n: Option<usize>,
    },
    Recover,
    Pop(usize),
    Peek {
        skip: usize,
        len: usize,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let len = || prop_oneof![3 => 0..40usize, 2 => 0..600usize, 1 => 0..CAPACITY + 100];
    prop_oneof![
        3 => len().prop_map(Op::Push),
        3 => (len(), len()).prop_map(|(control, data)| Op::Message { control, data }),
        3 => (0..200usize, len()).prop_map(|(control, data)| Op::Special { control, data }),
        2 => Just(Op::Special { control: 0, data: 0 }),
        6 => (0..12usize, prop::option::of(len())).prop_map(|(nth, n)| Op::Take { nth, n }),
        1 => Just(Op::Recover),
        3 => (len(), len()).prop_map(|(len, commit)| Op::Reserve { len, commit }),
        1 => len().prop_map(Op::Abandon),
        4 => len().prop_map(Op::Consume),
        4 => len().prop_map(Op::Pop),
        1 => (len(), len()).prop_map(|(skip, len)| Op::Peek { skip, len }),
    ]
}

/// What a ring should be, with the same accounts of room.
#[derive(Default)]
struct Model {
    /// With the tombstones between them.
    frames: VecDeque<ModelFrame>,
    bytes_taken: u64,
    messages_taken: u64,
}

struct ModelFrame {
    bytes: Vec<u8>,
    taken: usize,
    meta: Meta,
    special: bool,
    control_taken: bool,
    gone: bool,
}

impl Model {
    fn room(&self) -> usize {
        let size = |f: &ModelFrame| {
            8 + if f.special || f.meta.control > 0 {
                8
            } else {
                0
            } + f.bytes.len().next_multiple_of(8)
        };
        let used: usize = self.frames.iter().map(size).sum();
        (CAPACITY - used).saturating_sub(16) & !7
    }

    fn push(&mut self, bytes: &[u8], meta: Meta, special: bool) {
        self.frames.push_back(ModelFrame {
            bytes: bytes.to_vec(),
            taken: 0,
            meta,
            special,
            control_taken: false,
            gone: false,
        });
    }

    fn unread(&self) -> Vec<u8> {
        self.live().flat_map(|f| f.rest().to_vec()).collect()
    }

    fn live(&self) -> impl Iterator<Item = &ModelFrame> {
        self.frames.iter().filter(|f| !f.gone)
    }

    fn consume(&mut self, n: usize) {
        self.take(0, n);
    }

    fn take(&mut self, nth: usize, n: usize) {
        let mut live = self.frames.iter_mut().filter(|f| !f.gone);
        let Some(frame) = live.nth(nth) else { return };
        frame.taken += n;
        frame.control_taken =
            frame.taken >= frame.meta.control as usize && (frame.special || frame.meta.control > 0);
        frame.gone = frame.taken == frame.bytes.len();
        self.bytes_taken += n as u64;
        self.messages_taken += frame.gone as u64;
        while self.frames.front().is_some_and(|f| f.gone) {
            self.frames.pop_front();
        }
    }
}

impl ModelFrame {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

/// What a ring shows of a frame must be what the model has.
fn compare(ring: Ring<'_>, frame: &Frame, expected: &ModelFrame) -> Result<(), TestCaseError> {
    prop_assert_eq!(frame.meta, expected.meta);
    prop_assert_eq!(frame.special, expected.special);
    prop_assert_eq!(frame.taken, expected.taken);
    prop_assert_eq!(frame.control_taken, expected.control_taken);
    let mut bytes = vec![0; frame.len];
    ring.copy_frame(frame, 0, &mut bytes);
    prop_assert_eq!(&bytes[..], expected.rest());
    Ok(())
}

/// What processes leave that died inside both sections, at the worst moment.
fn die(ring: Ring<'_>) {
    let (w, r) = (&ring.state.writer, &ring.state.reader);
    let published = w.specials.load(Ordering::Relaxed);
    let ahead = published.wrapping_add(1);
    ring.state.sleep.specials.store(ahead, Ordering::Relaxed);
    r.bytes.fetch_add(77, Ordering::Relaxed);
    r.tombstones.fetch_add(1, Ordering::Relaxed);
    if let Ok(Some(special)) = ring.find(|frame| frame.special) {
        ring.announce_special(&special);
    }
}

/// Bytes that differ from those before and after them.
struct Source(u8);

impl Source {
    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let bytes = (0..len).map(|_| {
            self.0 = self.0.wrapping_mul(5).wrapping_add(113);
            self.0
        });
        bytes.collect()
    }
}

fn run(ring: Ring<'_>, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let mut source = Source(1);
    for (i, op) in ops.iter().enumerate() {
        let meta = Meta {
            kind: i as u8,
            band: !i as u8,
            flags: i as u8 & USER_FLAGS,
            control: 0,
        };
        match *op {
            Op::Push(len) => {
                let bytes = source.bytes(len);
                let n = ring.push(&bytes, meta).unwrap();
                prop_assert_eq!(n, len.min(model.room()));
                if n > 0 {
                    model.push(&bytes[..n], meta, false);
                }
            }
            Op::Message { control, data } => {
                let bytes = source.bytes(control + data);
                let needed = bytes.len() + if control > 0 { 8 } else { 0 };
                let fits = model.room() >= needed.max(1);
                prop_assert_eq!(ring.has_room(needed.max(1)), fits);
                let (front, back) = bytes.split_at(control);
                prop_assert_eq!(ring.push_message(front, back, meta).unwrap(), fits);
                if fits {
                    let control = control as u32;
                    model.push(&bytes, Meta { control, ..meta }, false);
                }
            }
            Op::Special { control, data } => {
                let bytes = source.bytes(control + data);
                let fits = model.room() >= bytes.len() + 8;
                let (front, back) = bytes.split_at(control);
                prop_assert_eq!(ring.push_special(front, back, meta).unwrap(), fits);
                if fits {
                    let control = control as u32;
                    model.push(&bytes, Meta { control, ..meta }, true);
                }
            }
            Op::Take { nth, n } => {
                let mut shown = 0;
                let chosen = ring.find(|_| {
                    shown += 1;
                    nth < shown
                });
                let chosen = chosen.unwrap();
                prop_assert_eq!(chosen.is_some(), model.live().nth(nth).is_some());
                if let Some(frame) = chosen {
                    compare(ring, &frame, model.live().nth(nth).unwrap())?;
                    // Of the plain frames only the oldest may be half taken.
                    let first = frame.special || model.live().take(nth).all(|f| f.special);
                    match n {
                        Some(n) if first => {
                            ring.take_part(&frame, n);
                            model.take(nth, n.min(frame.len));
                        }
                        _ => {
                            ring.take(&frame);
                            model.take(nth, frame.len);
                        }
                    }
                }
            }
            Op::Recover => {
                die(ring);
                ring.recover_producer().unwrap();
                ring.recover_consumer().unwrap();
            }
            Op::Reserve { len, commit } => {
                let room = model.room();
                match ring.reserve(len, false).unwrap() {
                    None => prop_assert_eq!(room, 0),
                    Some(r) => {
                        prop_assert_eq!(r.len, len.min(room));
                        let bytes = source.bytes(r.len.min(commit));
                        // SAFETY: no longer than the reservation.
                        unsafe { r.ptr.copy_from(bytes.as_ptr(), bytes.len()) };
                        ring.commit(bytes.len(), meta);
                        model.push(&bytes, meta, false);
                    }
                }
            }
            Op::Abandon(len) => {
                if let Some(r) = ring.reserve(len, false).unwrap() {
                    // SAFETY: no longer than the reservation.
                    unsafe { r.ptr.write_bytes(0xee, r.len) };
                }
            }
            Op::Consume(n) => {
                let frame = ring.peek().unwrap();
                prop_assert_eq!(frame.is_some(), !model.frames.is_empty());
                if let Some(frame) = frame {
                    compare(ring, &frame, model.frames.front().unwrap())?;
                    let n = n.min(frame.len);
                    ring.consume(&frame, n);
                    model.consume(n);
                }
            }
            Op::Pop(len) => {
                let mut buf = vec![0; len];
                let n = ring.pop(&mut buf).unwrap();
                let expected = model.unread();
                prop_assert_eq!(&buf[..n], &expected[..expected.len().min(len)]);
                let mut left = n;
                while let Some(frame) = model.frames.front() {
                    let take = (frame.bytes.len() - frame.taken).min(left);
                    if left == 0 {
                        break;
                    }
                    left -= take;
                    model.consume(take);
                }
                // Empty frames go with a pop that has room left.
                while n < len && model.frames.front().is_some() {
                    model.consume(0);
                }
            }
            Op::Peek { skip, len } => {
                let mut buf = vec![0; len];
                let n = ring.copy_peek(&mut buf, skip, None).unwrap();
                let unread = model.unread();
                let expected = &unread[skip.min(unread.len())..];
                prop_assert_eq!(&buf[..n], &expected[..expected.len().min(len)]);
            }
        }
        prop_assert_eq!(ring.unread(), model.unread().len());
        prop_assert_eq!(ring.is_empty(), model.frames.is_empty());
        let specials = model.live().filter(|f| f.special).count();
        prop_assert_eq!(ring.specials() as usize, specials);
        prop_assert_eq!(has_special(ring), specials > 0);
        let taken = (model.bytes_taken, model.messages_taken);
        prop_assert_eq!(ring.consumed(), taken);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_ring_is_a_queue_of_frames(ops in prop::collection::vec(op(), 0..200), turns in 0..2000u64) {
        let bench = Bench::new();
        bench.begin_at(turns * 8);
        run(bench.ring(), &ops)?;
    }
}
