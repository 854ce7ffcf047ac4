//! Sequences of operations, against a queue of frames that never wraps.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Push(usize),
    Message { control: usize, data: usize },
    Reserve { len: usize, commit: usize },
    Abandon(usize),
    Consume(usize),
    Pop(usize),
    Peek { skip: usize, len: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let len = || prop_oneof![3 => 0..40usize, 2 => 0..600usize, 1 => 0..CAPACITY + 100];
    prop_oneof![
        3 => len().prop_map(Op::Push),
        3 => (len(), len()).prop_map(|(control, data)| Op::Message { control, data }),
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
    frames: VecDeque<ModelFrame>,
}

struct ModelFrame {
    bytes: Vec<u8>,
    taken: usize,
    meta: Meta,
}

impl Model {
    fn room(&self) -> usize {
        let size = |f: &ModelFrame| {
            8 + if f.meta.control > 0 { 8 } else { 0 } + f.bytes.len().next_multiple_of(8)
        };
        let used: usize = self.frames.iter().map(size).sum();
        (CAPACITY - used).saturating_sub(16) & !7
    }

    fn push(&mut self, bytes: &[u8], meta: Meta) {
        self.frames.push_back(ModelFrame {
            bytes: bytes.to_vec(),
            taken: 0,
            meta,
        });
    }

    fn unread(&self) -> Vec<u8> {
        let rest = |f: &ModelFrame| f.bytes[f.taken..].to_vec();
        self.frames.iter().flat_map(rest).collect()
    }

    fn consume(&mut self, n: usize) {
        let Some(frame) = self.frames.front_mut() else {
            return;
        };
        frame.taken += n;
        if frame.taken == frame.bytes.len() {
            self.frames.pop_front();
        }
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
                    model.push(&bytes[..n], meta);
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
                    model.push(&bytes, Meta { control, ..meta });
                }
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
                        model.push(&bytes, meta);
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
                    let expected = model.frames.front().unwrap();
                    prop_assert_eq!(frame.meta, expected.meta);
                    prop_assert_eq!(frame.taken, expected.taken);
                    let mut bytes = vec![0; frame.len];
                    ring.copy_frame(&frame, 0, &mut bytes);
                    prop_assert_eq!(&bytes[..], &expected.bytes[expected.taken..]);
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
