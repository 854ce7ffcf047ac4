//! One direction of a carried connection that comes back to the ring when an image without the library is gone (sockets/comeback.rs),
//! against its own switching and un-switching (sockets/switch.rs). The moves are modelled here by their names there: the words are those
//! of the direction, the kernel's stream is a queue that counts what goes in and out, and whose counts the images did not share.
//!
//! What is sent arrives once and in order, and there is a run in which the ring is used again.

use std::collections::VecDeque;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::thread;

use super::explore;
use crate::sync::AtomicU64;

const ONE_INFLIGHT: u64 = 1 << 16;
const INFLIGHT: u64 = 0xffff << 16;
const KREAD: u64 = 1 << 48;
const PIN: u64 = 1 << 49;
const TCPONLY: u64 = 1 << 51;
const WITHDRAWS: u64 = 1 << 52;

fn by_ring(w: u64) -> bool {
    w & 1 == 1
}

fn epoch(w: u64) -> u64 {
    w & 0xffff
}

/// What is left out.
#[derive(Clone, Copy, PartialEq)]
enum But {
    Nothing,
    /// The end that sends takes its count for right.
    Recount,
    /// It does not look whether others send while it counts.
    Others,
    /// The end that receives takes a count for that of a stretch which may be over.
    Epoch,
    /// It leaves in the ring what was withdrawn.
    Skip,
    /// It takes the end of the kernel's stream for that of the direction.
    End,
    /// The end that sends pins the other one in the middle of its read.
    Lock,
}

#[derive(Default)]
struct Tcp {
    queue: VecDeque<u64>,
    written: u64,
    read: u64,
}

struct Direction {
    tx: AtomicU64,
    ksent: AtomicU64,
    nat: AtomicU64,
    mat: AtomicU64,
    re: AtomicU64,
    krecv: AtomicU64,
    slots: [AtomicU64; 5],
    tail: AtomicU64,
    head: AtomicU64,
    tcp: Mutex<Tcp>,
    but: But,
}

/// How the direction stands when the image has gone: words, then what the kernel has.
struct Begin {
    tx: u64,
    ksent: u64,
    in_ring: &'static [u64],
    queue: &'static [u64],
    read: u64,
}

impl Direction {
    fn new(begin: &Begin, but: But) -> Arc<Direction> {
        let slot = |i: usize| AtomicU64::new(begin.in_ring.get(i).copied().unwrap_or(0));
        Arc::new(Direction {
            tx: AtomicU64::new(begin.tx),
            ksent: AtomicU64::new(begin.ksent),
            nat: AtomicU64::new(0),
            mat: AtomicU64::new(0),
            re: AtomicU64::new(epoch(begin.tx)),
            krecv: AtomicU64::new(0),
            slots: [0, 1, 2, 3, 4].map(slot),
            tail: AtomicU64::new(begin.in_ring.len() as u64),
            head: AtomicU64::new(0),
            tcp: Mutex::new(Tcp {
                queue: begin.queue.iter().copied().collect(),
                written: begin.read + begin.queue.len() as u64,
                read: begin.read,
            }),
            but,
        })
    }

    fn write(&self, value: u64) {
        let mut tcp = self.tcp.lock().unwrap();
        tcp.queue.push_back(value);
        tcp.written += 1;
    }

    fn read(&self) -> Option<u64> {
        let mut tcp = self.tcp.lock().unwrap();
        let value = tcp.queue.pop_front()?;
        tcp.read += 1;
        drop(tcp);
        self.krecv.store(self.krecv.load(Relaxed) + 1, Release);
        Some(value)
    }

    // ---- the end that sends ----

    fn send(&self, value: u64) {
        loop {
            let w = self.tx.load(Acquire);
            if by_ring(w) && w & PIN != 0 {
                self.withdraw();
            } else if by_ring(w) {
                let tail = self.tail.load(Relaxed);
                self.slots[tail as usize].store(value, Relaxed);
                return self.tail.store(tail + 1, Release);
            } else if self
                .tx
                .compare_exchange(w, w + ONE_INFLIGHT, AcqRel, Relaxed)
                .is_ok()
            {
                self.write(value);
                self.ksent.fetch_add(1, AcqRel);
                self.tx.fetch_sub(ONE_INFLIGHT, AcqRel);
                return;
            }
        }
    }

    fn switch(&self) -> bool {
        let w = self.tx.load(Acquire);
        !by_ring(w)
            && w & (INFLIGHT | KREAD | PIN | TCPONLY) == 0
            && self.re.load(Acquire) == epoch(w)
            && self.tx.compare_exchange(w, w + 1, AcqRel, Relaxed).is_ok()
    }

    fn unswitch(&self) {
        loop {
            let w = self.tx.load(Acquire);
            if !by_ring(w) || w & PIN != 0 {
                return;
            }
            self.nat.store(self.ksent.load(Relaxed), Relaxed);
            self.mat.store(self.tail.load(Relaxed), Release);
            if self.tx.compare_exchange(w, w + 1, AcqRel, Relaxed).is_ok() {
                return;
            }
        }
    }

    fn withdraw(&self) {
        let w = self.tx.fetch_or(WITHDRAWS, AcqRel);
        assert!(by_ring(w) && w & PIN != 0);
        let (head, tail) = (self.head.load(Acquire), self.tail.load(Relaxed));
        (head..tail).for_each(|at| self.write(self.slots[at as usize].load(Relaxed)));
        self.ksent.fetch_add(tail - head, Release);
        self.tx.fetch_add(1, AcqRel);
    }

    /// comeback::sending
    fn sender_returns(&self) {
        let idle = || self.tx.load(SeqCst) & INFLIGHT == 0 || self.but == But::Others;
        let w = self.tx.load(Acquire);
        if by_ring(w) || w & TCPONLY == 0 {
            return;
        }
        if self.but != But::Recount {
            let before = self.ksent.load(SeqCst);
            if !idle() {
                return;
            }
            let sent = self.tcp.lock().unwrap().written;
            let counted = self.ksent.compare_exchange(before, sent, SeqCst, Relaxed);
            if counted.is_err() || !idle() || self.ksent.load(SeqCst) != sent {
                return;
            }
        }
        if self.krecv.load(Acquire) == self.ksent.load(Relaxed) {
            self.tx.fetch_and(!TCPONLY, AcqRel);
        }
    }

    // ---- the end that receives ----

    fn receive(&self) -> u64 {
        loop {
            if let Some(value) = self.step() {
                return value;
            }
            thread::yield_now();
        }
    }

    fn step(&self) -> Option<u64> {
        let w = self.tx.load(Acquire);
        let re = self.re.load(Relaxed);
        if w & PIN != 0 {
            let value = self.read();
            self.receiver_returns();
            return value;
        }
        if epoch(w) == re && by_ring(re) {
            return self.pop(self.tail.load(Acquire));
        }
        if epoch(w) == re {
            let begun = self.tx.compare_exchange(w, w | KREAD, AcqRel, Relaxed);
            begun.ok()?;
            let value = self.read();
            self.tx.fetch_and(!KREAD, AcqRel);
            return value;
        }
        // Behind: to the end of the stretch, then on.
        let value = if by_ring(re) {
            self.pop(self.mat.load(Acquire))
        } else {
            let end = match epoch(w) - re {
                1 => self.ksent.load(Acquire),
                _ => self.nat.load(Acquire),
            };
            if self.but != But::Epoch && epoch(self.tx.load(Acquire)) != epoch(w) {
                return None;
            }
            match self.krecv.load(Relaxed) < end {
                true => return self.read(),
                false => None,
            }
        };
        if value.is_none() {
            self.re.store(re + 1, Release);
        }
        value
    }

    fn pop(&self, end: u64) -> Option<u64> {
        let head = self.head.load(Relaxed);
        (head < end).then(|| {
            self.head.store(head + 1, Release);
            self.slots[head as usize].load(Relaxed)
        })
    }

    /// comeback::receiving
    fn receiver_returns(&self) {
        let w = self.tx.load(Acquire);
        if by_ring(w) {
            return;
        }
        // switch::follow_withdrawn
        if self.re.load(Relaxed) != epoch(w) {
            if self.but != But::Skip {
                self.head.store(self.tail.load(Acquire), Release);
            }
            self.re.store(epoch(w), Release);
        }
        let read = self.tcp.lock().unwrap().read;
        self.krecv.store(read, Release);
        if self.ksent.load(Acquire) == read {
            self.tx.fetch_and(!(PIN | WITHDRAWS), AcqRel);
        }
    }
}

/// The image has sent 1, which nobody counted.
const SENT: Begin = Begin {
    tx: TCPONLY,
    ksent: 0,
    in_ring: &[],
    queue: &[1],
    read: 0,
};
/// The image has read a value that nobody counted, and 1 is in the ring still.
const READ: Begin = Begin {
    tx: 1 | PIN,
    ksent: 1,
    in_ring: &[1],
    queue: &[],
    read: 1,
};
/// 1 is in the ring.
const RING: Begin = Begin {
    tx: 1,
    ksent: 0,
    in_ring: &[1],
    queue: &[],
    read: 0,
};
/// Images at both ends: one has sent 1, the other has read what was sent before.
const BOTH: Begin = Begin {
    tx: TCPONLY | PIN,
    ksent: 1,
    in_ring: &[],
    queue: &[1],
    read: 1,
};

/// The values up to 4 arrive in order; was the ring used in some run?
fn comes_back(begin: &'static Begin, but: But, unswitches: bool) -> bool {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    // No part of the model.
    static BACK: std::sync::Mutex<bool> = std::sync::Mutex::new(false);
    let _one = LOCK.lock().unwrap_or_else(|e| e.into_inner());
    *BACK.lock().unwrap() = false;
    explore(2, move || {
        let direction = Direction::new(begin, but);
        let sender = {
            let d = direction.clone();
            thread::spawn(move || {
                for value in 2..=4 {
                    d.sender_returns();
                    if d.switch() {
                        *BACK.lock().unwrap() = true;
                    }
                    d.send(value);
                    if unswitches && value == 3 {
                        d.unswitch();
                    }
                }
            })
        };
        for expected in 1..=4 {
            assert_eq!(direction.receive(), expected);
        }
        sender.join().unwrap();
    });
    *BACK.lock().unwrap()
}

#[test]
fn a_sender_comes_back() {
    assert!(comes_back(&SENT, But::Nothing, false));
}

#[test]
fn a_receiver_comes_back() {
    assert!(comes_back(&READ, But::Nothing, false));
}

#[test]
fn both_ends_come_back_at_once() {
    assert!(comes_back(&BOTH, But::Nothing, false));
}

#[test]
fn they_come_back_beside_switches_and_unswitches() {
    assert!(comes_back(&SENT, But::Nothing, true));
    assert!(comes_back(&READ, But::Nothing, true));
    assert!(comes_back(&BOTH, But::Nothing, true));
}

#[test]
#[should_panic = "assertion"]
fn a_sender_that_trusts_its_count_loses_the_order() {
    comes_back(&SENT, But::Recount, false);
}

#[test]
#[should_panic = "assertion"]
fn a_receiver_that_leaves_what_was_withdrawn_reads_it_twice() {
    comes_back(&READ, But::Skip, false);
}

/// The end that receives pins itself while the other sends, and is gone after that, whatever it has seen of the pin.
fn sender_goes(but: But) {
    explore(3, move || {
        let direction = Direction::new(&RING, but);
        let gone = Arc::new(AtomicU64::new(0));
        let sender = {
            let (d, gone) = (direction.clone(), gone.clone());
            thread::spawn(move || {
                d.send(2);
                gone.store(1, Release);
            })
        };
        let d = &direction;
        d.tx.fetch_or(PIN, AcqRel);
        let mut expected = 1;
        loop {
            let ended = gone.load(Acquire) == 1;
            match d.read() {
                Some(value) => {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                None if ended => break,
                None => thread::yield_now(),
            }
        }
        // switch::take_pin_back_at_end
        let w = d.tx.load(Acquire);
        if but != But::End && by_ring(w) && w & WITHDRAWS == 0 {
            let back = d.tx.compare_exchange(w, w & !PIN, AcqRel, Relaxed);
            assert!(back.is_ok());
            while let Some(value) = d.pop(d.tail.load(Acquire)) {
                assert_eq!(value, expected);
                expected += 1;
            }
        }
        assert_eq!(expected, 3);
        sender.join().unwrap();
    });
}

#[test]
fn what_a_sender_that_has_gone_left_behind_a_pin_is_read() {
    sender_goes(But::Nothing);
}

#[test]
#[should_panic = "assertion"]
fn a_receiver_that_believes_the_kernels_end_loses_what_was_left() {
    sender_goes(But::End);
}

/// Before an urgent byte the end that sends pins the other one, under that one's lock, and withdraws (switch::pin_other_end).
fn sender_pins(but: But) {
    explore(3, move || {
        let direction = Direction::new(&RING, but);
        let lock = Arc::new(Mutex::new(()));
        let sender = {
            let (d, lock) = (direction.clone(), lock.clone());
            thread::spawn(move || {
                d.send(2);
                {
                    let _section = (but != But::Lock).then(|| lock.lock().unwrap());
                    d.tx.fetch_or(PIN, AcqRel);
                }
                d.send(3);
            })
        };
        let d = &direction;
        let step = || {
            let _section = lock.lock().unwrap();
            match d.tx.load(Acquire) {
                w if w & PIN == 0 && by_ring(w) => d.pop(d.tail.load(Acquire)),
                _ => d.read(),
            }
        };
        let mut expected = 1;
        while expected <= 3 {
            match step() {
                Some(value) => {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                None => thread::yield_now(),
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn what_a_sender_withdraws_of_its_own_accord_is_read_once() {
    sender_pins(But::Nothing);
}

#[test]
#[should_panic = "assertion"]
fn a_sender_that_pins_in_the_middle_of_a_read_sends_it_twice() {
    sender_pins(But::Lock);
}

/// Another process sends by the kernel while one end comes back: nothing is counted twice.
fn counts_once(but: But) {
    explore(3, move || {
        let direction = Direction::new(&SENT, but);
        let other = {
            let d = direction.clone();
            thread::spawn(move || d.send(2))
        };
        while direction.read() != Some(2) {
            thread::yield_now();
        }
        direction.sender_returns();
        other.join().unwrap();
        let came_back = direction.tx.load(Acquire) & TCPONLY == 0;
        let right = direction.ksent.load(Acquire) == direction.tcp.lock().unwrap().written;
        assert!(!came_back || right);
    });
}

#[test]
fn a_sender_that_comes_back_counts_others_once() {
    counts_once(But::Nothing);
}

#[test]
#[should_panic = "assertion"]
fn a_sender_that_does_not_look_at_others_counts_them_twice() {
    counts_once(But::Others);
}

#[test]
#[should_panic = "assertion"]
fn a_receiver_that_does_not_look_at_the_epoch_again_reads_too_far() {
    comes_back(&SENT, But::Epoch, true);
}
