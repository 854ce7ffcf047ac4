//! The same stream, made of real queues.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_long};
use std::ptr::{null, null_mut};

use headwater_streams::ddi::*;
use headwater_streams::exec::{Guard, Perimeter, alloc_pair, free_pair, link_below, setq};

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
    pairs: [*mut queue_t; QUEUES],
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

const fn init(put: Option<Put>, service: Option<Service>) -> qinit {
    qinit {
        qi_putp: put,
        qi_srvp: service,
        qi_qopen: None,
        qi_qclose: None,
        qi_qadmin: None,
        qi_minfo: &raw const INFO,
        qi_mstat: null(),
    }
}

static WRITE: [qinit; QUEUES] = [
    init(Some(putnext), Some(count_wake)),
    init(Some(putq), Some(forward)),
    init(Some(putnext), None),
    init(Some(putq), Some(consume)),
];
static READ: qinit = init(Some(putnext), None);

unsafe extern "C-unwind" fn count_wake(_q: *mut queue_t) -> c_int {
    WAKES.set(WAKES.get() + 1);
    0
}

unsafe extern "C-unwind" fn forward(q: *mut queue_t) -> c_int {
    // SAFETY: a service procedure gets its live queue, inside the perimeter; what comes off it is handed on or put back.
    unsafe {
        loop {
            let mp = getq(q);
            if mp.is_null() {
                return 0;
            }
            if mtype(mp) < QPCTL && bcanputnext(q, (*mp).b_band) == 0 {
                return putbq(q, mp);
            }
            putnext(q, mp);
        }
    }
}

unsafe extern "C-unwind" fn consume(q: *mut queue_t) -> c_int {
    for _ in 0..BUDGET.get() {
        // SAFETY: a service procedure gets its live queue, inside the perimeter.
        let mp = unsafe { getq(q) };
        if mp.is_null() {
            return 0;
        }
        TAKEN.with_borrow_mut(|t| t.push(mp.addr()));
        keep(mp);
    }
    0
}

fn keep(mp: *mut mblk_t) {
    // SAFETY: a message just taken off.
    let m = unsafe { Message::from_raw(mp) };
    KEPT.with_borrow_mut(|kept| kept.extend(m));
}

impl Real {
    pub fn new() -> Real {
        TAKEN.with_borrow_mut(Vec::clear);
        WAKES.set(0);
        let perimeter = Perimeter::fresh();
        let guard = perimeter.enter();
        let pairs = [(); QUEUES].map(|()| alloc_pair(perimeter, null_mut()));
        for i in 0..QUEUES {
            // SAFETY: fresh pairs, inside their perimeter.
            unsafe {
                setq(pairs[i], &raw const READ, &raw const WRITE[i]);
                if i > 0 {
                    link_below(pairs[i - 1], pairs[i]);
                }
            }
        }
        Real {
            perimeter,
            guard: Some(guard),
            pairs,
        }
    }

    fn q(&self, i: usize) -> *mut queue_t {
        // SAFETY: a live pair.
        unsafe { WR(self.pairs[i]) }
    }

    /// Does it to both; returns what each said.
    pub fn apply(&mut self, op: &Op, model: &mut Model) -> (Outcome, Outcome) {
        // SAFETY: live queues, inside their perimeter.
        unsafe {
            match *op {
                Op::Put(q, ref l) => {
                    let (mp, m) = make(l);
                    put(self.q(q), mp);
                    model.put(q, m);
                }
                Op::Putq(q, ref l) => {
                    let (mp, m) = make(l);
                    putq(self.q(q), mp);
                    model.putq(q, m);
                }
                Op::Putbq(q, ref l) => {
                    let (mp, m) = make(l);
                    putbq(self.q(q), mp);
                    model.putbq(q, m);
                }
                Op::Insq(q, at, ref l) => return self.insq(q, at, l, model),
                Op::Getq(q) => {
                    let mp = getq(self.q(q));
                    let got = model.getq(q).map(|m| m.id);
                    keep(mp);
                    return (Got((!mp.is_null()).then_some(mp.addr())), Got(got));
                }
                Op::GetAndPutBack(q) => {
                    let mp = getq(self.q(q));
                    if !mp.is_null() {
                        putbq(self.q(q), mp);
                    }
                    if let Some(m) = model.getq(q) {
                        model.putbq(q, m);
                    }
                }
                Op::Rmvq(q, at) => {
                    if model.len(q) > 0 {
                        let m = model.rmvq(q, at % model.len(q));
                        let mp = self.find(q, m.id);
                        rmvq(self.q(q), mp);
                        keep(mp);
                    }
                }
                Op::Flushq(q, all) => {
                    flushq(self.q(q), all as c_int);
                    model.flush(q, None, all);
                }
                Op::Flushband(q, band, all) => {
                    flushband(self.q(q), band, all as c_int);
                    model.flush(q, Some(band), all);
                }
                Op::Canput(q, band) => {
                    let did = bcanput(self.q(q), band) != 0;
                    return (Yes(did), Yes(model.bcanput(q, band)));
                }
                Op::SetMark(q, high, band, value) => {
                    let what = if high { QHIWAT } else { QLOWAT };
                    let done = strqset(self.q(q), what, band, value as c_long) == 0;
                    model.set_mark(q, high, band, value);
                    return (Yes(done), Yes(true));
                }
                Op::Noenable(q) => {
                    noenable(self.q(q));
                    model.noenable(q, true);
                }
                Op::Enableok(q) => {
                    enableok(self.q(q));
                    model.noenable(q, false);
                }
                Op::Qenable(q) => {
                    qenable(self.q(q));
                    model.qenable(q);
                }
                Op::Run(budget) => {
                    BUDGET.set(budget);
                    self.guard.iter().for_each(Guard::run);
                    model.run(budget);
                }
            }
        }
        (Nothing, Nothing)
    }

    /// # Safety
    /// Inside the perimeter.
    unsafe fn insq(
        &self,
        q: usize,
        at: usize,
        l: &Letter,
        model: &mut Model,
    ) -> (Outcome, Outcome) {
        let (mp, m) = make(l);
        let at = at % (model.len(q) + 1);
        // SAFETY: inside the perimeter; a message of ours, to go before one that is on the queue.
        let did = unsafe {
            let before = if at == model.len(q) {
                null_mut()
            } else {
                self.find(q, model.at(q, at))
            };
            insq(self.q(q), before, mp) != 0
        };
        if !did {
            keep(mp);
        }
        (Yes(did), Yes(model.insq(q, at, m)))
    }

    /// # Safety
    /// Inside the perimeter.
    unsafe fn find(&self, q: usize, id: usize) -> *mut mblk_t {
        // SAFETY: messages on a live queue, linked up to null, and inside the perimeter.
        let mp = unsafe {
            let mut mp = (*self.q(q)).q_first;
            while !mp.is_null() && mp.addr() != id {
                mp = (*mp).b_next;
            }
            mp
        };
        assert!(!mp.is_null(), "the message is on the model's queue only");
        mp
    }

    pub fn state(&self) -> State {
        State {
            // SAFETY: live queues, inside their perimeter.
            queues: (0..QUEUES)
                .map(|q| unsafe { self.queue_state(q) })
                .collect(),
            taken: TAKEN.with_borrow(Vec::clone),
            wakes: WAKES.get(),
        }
    }

    /// # Safety
    /// Inside the perimeter.
    unsafe fn queue_state(&self, i: usize) -> QueueState {
        // SAFETY: a live queue, inside its perimeter, as the caller says: what it leads to are messages on it and its bands.
        unsafe {
            let q = self.q(i);
            let forward = chain((*q).q_first, |mp| (*mp).b_next);
            let mut backward = chain((*q).q_last, |mp| (*mp).b_prev);
            backward.reverse();
            assert_eq!(forward, backward, "both ways round");
            assert_eq!(qsize(q) as usize, forward.len());
            let flag = (*q).q_flag;
            assert_ne!(flag & QUSE, 0);
            let mut bands = vec![band_zero(&*q)];
            let mut band = (*q).q_bandp;
            while let Some(b) = band.as_ref() {
                bands.push(band_state(b));
                band = b.qb_next;
            }
            assert_eq!(bands.len() - 1, (*q).q_nband as usize);
            QueueState {
                messages: forward,
                enabled: flag & QENAB != 0,
                wantr: flag & QWANTR != 0,
                noenab: flag & QNOENB != 0,
                bands,
            }
        }
    }
}

fn chain(mut mp: *mut mblk_t, next: impl Fn(*mut mblk_t) -> *mut mblk_t) -> Vec<usize> {
    let mut ids = Vec::new();
    while !mp.is_null() {
        ids.push(mp.addr());
        mp = next(mp);
    }
    ids
}

fn band_zero(q: &queue_t) -> BandState {
    BandState {
        count: q.q_count,
        first: q.q_first.addr(),
        last: q.q_last.addr(),
        hiwat: q.q_hiwat,
        lowat: q.q_lowat,
        full: q.q_flag & QFULL != 0,
        wantw: q.q_flag & QWANTW != 0,
    }
}

fn band_state(band: &qband) -> BandState {
    BandState {
        count: band.qb_count,
        first: band.qb_first.addr(),
        last: band.qb_last.addr(),
        hiwat: band.qb_hiwat,
        lowat: band.qb_lowat,
        full: band.qb_flag & QB_FULL != 0,
        wantw: band.qb_flag & QB_WANTW != 0,
    }
}

fn make(letter: &Letter) -> (*mut mblk_t, Msg) {
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
    let mp = m.into_raw();
    (mp, Msg::new(mp.addr(), letter))
}

impl Drop for Real {
    fn drop(&mut self) {
        BUDGET.set(0);
        for i in (0..=DRIVER).rev() {
            // SAFETY: nobody uses the stream any more; the lowest pair goes first.
            unsafe {
                let above = if i > 0 { self.q(i - 1) } else { null_mut() };
                free_pair(self.pairs[i]);
                if !above.is_null() {
                    (*above).q_next = null_mut();
                }
            }
        }
        self.guard = None;
        self.perimeter.retire();
        KEPT.with_borrow_mut(Vec::clear);
    }
}
