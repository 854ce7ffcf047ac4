//! The same stream, made of real queues.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_long};
use std::ptr::null_mut;

use headwater_streams::ddi::*;
use headwater_streams::exec::{Guard, Perimeter, alloc_pair, free_pair, link_below, setq, unlink};

use crate::model::{BandState, HIWAT, Kind, LOWAT, Letter, Model, Msg, QueueState, State};
use crate::{DRIVER, Op, QUEUES};

thread_local! {
    static TAKEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// Kept, so that no two messages of a case have the same address.
    static KEPT: RefCell<Vec<Message>> = const { RefCell::new(Vec::new()) };
    static WAKES: Cell<usize> = const { Cell::new(0) };
    static BUDGET: Cell<usize> = const { Cell::new(0) };
}

pub struct Real {
    perimeter: &'static Perimeter,
    guard: Option<Guard<'static>>,
    /// Read queues.
    pairs: [Queue; QUEUES],
}

#[derive(PartialEq, Eq, Debug)]
pub enum Outcome {
    Nothing,
    Yes(bool),
    Got(Option<usize>),
}
use Outcome::{Got, Nothing, Yes};

static INFO: module_info = module_info {
    mi_idnum: 1,
    mi_idname: c"model".as_ptr(),
    mi_minpsz: 0,
    mi_maxpsz: INFPSZ,
    mi_hiwat: HIWAT,
    mi_lowat: LOWAT,
};

const fn init(put: Put, service: Option<Service>) -> qinit {
    let mut init = qinit::of(Some(put), service);
    init.qi_minfo = Some(&INFO);
    init
}

static WRITE: [qinit; QUEUES] = [
    init(pass, Some(count_wake)),
    init(queue, Some(forward)),
    init(pass, None),
    init(queue, Some(consume)),
];
static READ: qinit = init(pass, None);

extern "C-unwind" fn pass(q: Queue, m: Message) -> c_int {
    q.putnext(m);
    0
}

extern "C-unwind" fn queue(q: Queue, m: Message) -> c_int {
    q.putq(m);
    1
}

extern "C-unwind" fn count_wake(_q: Queue) -> c_int {
    WAKES.set(WAKES.get() + 1);
    0
}

extern "C-unwind" fn forward(q: Queue) -> c_int {
    while let Some(m) = q.getq() {
        if !m.is_priority() && !q.bcanputnext(m.band()) {
            q.putbq(m);
            return 1;
        }
        q.putnext(m);
    }
    0
}

extern "C-unwind" fn consume(q: Queue) -> c_int {
    for _ in 0..BUDGET.get() {
        let Some(m) = q.getq() else {
            return 0;
        };
        TAKEN.with_borrow_mut(|t| t.push(id(&m)));
        keep(m);
    }
    0
}

fn id(m: &Message) -> usize {
    m.as_ptr().addr()
}

fn keep(m: Message) {
    KEPT.with_borrow_mut(|kept| kept.push(m));
}

impl Real {
    pub fn new() -> Real {
        TAKEN.with_borrow_mut(Vec::clear);
        WAKES.set(0);
        let perimeter = Perimeter::fresh();
        let guard = perimeter.enter();
        let pairs = [(); QUEUES].map(|()| alloc_pair(perimeter, null_mut()));
        for i in 0..QUEUES {
            // SAFETY: the procedures take any queue.
            unsafe {
                setq(pairs[i], Some(&READ), Some(&WRITE[i]));
            }
            if i > 0 {
                link_below(pairs[i - 1], pairs[i]);
            }
        }
        Real {
            perimeter,
            guard: Some(guard),
            pairs,
        }
    }

    fn q(&self, i: usize) -> Queue {
        self.pairs[i].write()
    }

    /// Does it to both; returns what each said.
    pub fn apply(&mut self, op: &Op, model: &mut Model) -> (Outcome, Outcome) {
        match *op {
            Op::Put(q, ref l) => {
                let (mp, m) = make(l);
                self.q(q).put(mp);
                model.put(q, m);
            }
            Op::Putq(q, ref l) => {
                let (mp, m) = make(l);
                self.q(q).putq(mp);
                model.putq(q, m);
            }
            Op::Putbq(q, ref l) => {
                let (mp, m) = make(l);
                self.q(q).putbq(mp);
                model.putbq(q, m);
            }
            Op::Insq(q, at, ref l) => return self.insq(q, at, l, model),
            Op::Getq(q) => {
                let m = self.q(q).getq();
                let told = m.as_ref().map(id);
                let got = model.getq(q).map(|m| m.id);
                m.into_iter().for_each(keep);
                return (Got(told), Got(got));
            }
            Op::GetAndPutBack(q) => {
                if let Some(m) = self.q(q).getq() {
                    self.q(q).putbq(m);
                }
                if let Some(m) = model.getq(q) {
                    model.putbq(q, m);
                }
            }
            Op::Rmvq(q, at) => {
                if model.len(q) > 0 {
                    let m = model.rmvq(q, at % model.len(q));
                    let found = self.find(q, m.id);
                    // SAFETY: it was found there.
                    keep(unsafe { self.q(q).rmvq(found) });
                }
            }
            Op::Flushq(q, all) => {
                self.q(q).flushq(what(all));
                model.flush(q, None, all);
            }
            Op::Flushband(q, band, all) => {
                self.q(q).flushband(band, what(all));
                model.flush(q, Some(band), all);
            }
            Op::Canput(q, band) => {
                let did = self.q(q).bcanput(band);
                return (Yes(did), Yes(model.bcanput(q, band)));
            }
            Op::SetMark(q, high, band, value) => {
                let what = if high { QHIWAT } else { QLOWAT };
                let done = self.q(q).strqset(what, band, value as c_long).is_ok();
                model.set_mark(q, high, band, value);
                return (Yes(done), Yes(true));
            }
            Op::Noenable(q) => {
                self.q(q).noenable();
                model.noenable(q, true);
            }
            Op::Enableok(q) => {
                self.q(q).enableok();
                model.noenable(q, false);
            }
            Op::Qenable(q) => {
                self.q(q).qenable();
                model.qenable(q);
            }
            Op::Run(budget) => {
                BUDGET.set(budget);
                self.guard.iter().for_each(Guard::run);
                model.run(budget);
            }
        }
        (Nothing, Nothing)
    }

    fn insq(&self, q: usize, at: usize, l: &Letter, model: &mut Model) -> (Outcome, Outcome) {
        let (mp, m) = make(l);
        let at = at % (model.len(q) + 1);
        let before = (at < model.len(q)).then(|| self.find(q, model.at(q, at)));
        let did = self.q(q).insq(before, mp).map_err(keep).is_ok();
        (Yes(did), Yes(model.insq(q, at, m)))
    }

    fn find(&self, q: usize, wanted: usize) -> OnQueue {
        let found = self.q(q).messages().find(|m| id(m) == wanted);
        found.expect("the message is on the model's queue only")
    }

    pub fn state(&self) -> State {
        State {
            queues: (0..QUEUES).map(|q| self.queue_state(q)).collect(),
            taken: TAKEN.with_borrow(Vec::clone),
            wakes: WAKES.get(),
        }
    }

    fn queue_state(&self, i: usize) -> QueueState {
        let q = self.q(i);
        let forward: Vec<_> = q.messages().map(|m| id(&m)).collect();
        let mut backward: Vec<_> = q.messages_back().map(|m| id(&m)).collect();
        backward.reverse();
        assert_eq!(forward, backward, "both ways round");
        assert_eq!(q.qsize(), forward.len());
        let flag = q.flags();
        assert_ne!(flag & QUSE, 0);
        let fields = |band| {
            [QCOUNT, QFIRST, QLAST, QHIWAT, QLOWAT]
                .map(|what| q.strqget(what, band).unwrap() as usize)
        };
        let state = |band, full, wantw| {
            let [count, first, last, hiwat, lowat] = fields(band);
            BandState {
                count,
                first,
                last,
                hiwat,
                lowat,
                full,
                wantw,
            }
        };
        let mut bands = vec![state(0, flag & QFULL != 0, flag & QWANTW != 0)];
        for n in 1..=q.q_nband.get() {
            let flag = q.find_band(n).unwrap().qb_flag.get();
            bands.push(state(n, flag & QB_FULL != 0, flag & QB_WANTW != 0));
        }
        assert!(q.find_band(q.q_nband.get().wrapping_add(1)).is_none());
        QueueState {
            messages: forward,
            enabled: flag & QENAB != 0,
            wantr: flag & QWANTR != 0,
            noenab: flag & QNOENB != 0,
            bands,
        }
    }
}

fn what(all: bool) -> Flush {
    if all { Flush::All } else { Flush::Data }
}

fn make(letter: &Letter) -> (Message, Msg) {
    let kind = match letter.kind {
        Kind::Data => M_DATA,
        Kind::Proto => M_PROTO,
        Kind::Ctl => M_CTL,
        Kind::PcProto => M_PCPROTO,
        Kind::IocAck => M_IOCACK,
    };
    let mut blocks = letter.blocks.iter();
    let block = |n: &usize| Message::from_bytes(kind, &vec![7; *n]);
    let mut m = block(blocks.next().unwrap_or(&0));
    blocks.for_each(|n| m.append(block(n)));
    m.set_band(letter.band);
    let known = Msg::new(id(&m), letter);
    (m, known)
}

impl Drop for Real {
    fn drop(&mut self) {
        BUDGET.set(0);
        for i in (0..=DRIVER).rev() {
            if i > 0 {
                unlink(self.pairs[i]);
            }
            // SAFETY: nobody uses the stream any more; the lowest pair goes first.
            unsafe { free_pair(self.pairs[i]) };
        }
        self.guard = None;
        self.perimeter.retire();
        KEPT.with_borrow_mut(Vec::clear);
    }
}
