//! Queues as the manual pages describe them, with nothing clever: vectors, and counts that are summed anew each time.

use crate::{DRIVER, HEAD, MODULE, PASS, QUEUES};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Data,
    Proto,
    Ctl,
    PcProto,
    IocAck,
}

/// A message to be made.
#[derive(Clone, Debug)]
pub struct Letter {
    pub kind: Kind,
    pub band: u8,
    pub blocks: Vec<usize>,
}

/// A message, known by its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Msg {
    pub id: usize,
    pub band: u8,
    pub high: bool,
    pub data: bool,
    pub size: usize,
}

impl Msg {
    pub fn new(id: usize, letter: &Letter) -> Msg {
        let high = matches!(letter.kind, Kind::PcProto | Kind::IocAck);
        Msg {
            id,
            band: if high { 0 } else { letter.band },
            high,
            data: !matches!(letter.kind, Kind::Ctl | Kind::IocAck),
            size: letter.blocks.iter().sum(),
        }
    }

    fn rank(&self) -> u32 {
        if self.high { 256 } else { self.band as u32 }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BandState {
    pub count: usize,
    pub first: usize,
    pub last: usize,
    pub hiwat: usize,
    pub lowat: usize,
    pub full: bool,
    pub wantw: bool,
}

/// Everything about a queue that can be seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueState {
    pub messages: Vec<usize>,
    pub enabled: bool,
    pub wantr: bool,
    pub noenab: bool,
    /// Band 0 first.
    pub bands: Vec<BandState>,
}

#[derive(PartialEq, Eq, Debug)]
pub struct State {
    pub queues: Vec<QueueState>,
    /// Messages that left the stream at the driver, and how often the head was serviced.
    pub taken: Vec<usize>,
    pub wakes: usize,
}

#[derive(Clone, Copy)]
struct Marks {
    hiwat: usize,
    lowat: usize,
    full: bool,
    wantw: bool,
}

struct Queue {
    messages: Vec<Msg>,
    bands: Vec<Marks>,
    wantr: bool,
    noenab: bool,
    serviced: bool,
}

pub struct Model {
    queues: Vec<Queue>,
    enabled: Vec<usize>,
    taken: Vec<usize>,
    wakes: usize,
}

/// Marks that all queues begin with.
pub const HIWAT: usize = 100;
pub const LOWAT: usize = 40;

impl Model {
    pub fn new() -> Model {
        let queue = |i| Queue {
            messages: Vec::new(),
            bands: vec![Marks {
                hiwat: HIWAT,
                lowat: LOWAT,
                full: false,
                wantw: false,
            }],
            wantr: true,
            noenab: false,
            serviced: i != PASS,
        };
        Model {
            queues: (0..QUEUES).map(queue).collect(),
            enabled: Vec::new(),
            taken: Vec::new(),
            wakes: 0,
        }
    }

    /// The put procedure of a queue.
    pub fn put(&mut self, q: usize, m: Msg) {
        match q {
            HEAD | PASS => self.put(q + 1, m),
            _ => self.putq(q, m),
        }
    }

    pub fn putq(&mut self, q: usize, m: Msg) {
        let messages = &self.queues[q].messages;
        let at = messages.iter().filter(|o| o.rank() >= m.rank()).count();
        self.insert(q, at, m);
        let queue = &self.queues[q];
        if m.high || (!queue.noenab && (m.band > 0 || queue.wantr)) {
            self.qenable(q);
        }
    }

    pub fn putbq(&mut self, q: usize, m: Msg) {
        let messages = &self.queues[q].messages;
        let at = messages.iter().filter(|o| o.rank() > m.rank()).count();
        self.insert(q, at, m);
        self.enable_for(q, m);
    }

    pub fn insq(&mut self, q: usize, at: usize, m: Msg) -> bool {
        let mut ranks: Vec<_> = self.queues[q].messages.iter().map(Msg::rank).collect();
        ranks.insert(at, m.rank());
        if !ranks.is_sorted_by(|a, b| a >= b) {
            return false;
        }
        self.insert(q, at, m);
        self.enable_for(q, m);
        true
    }

    pub fn getq(&mut self, q: usize) -> Option<Msg> {
        let queue = &mut self.queues[q];
        queue.wantr = queue.messages.is_empty();
        (!queue.messages.is_empty()).then(|| self.rmvq(q, 0))
    }

    pub fn rmvq(&mut self, q: usize, at: usize) -> Msg {
        let m = self.queues[q].messages.remove(at);
        self.relieve(q, m.band);
        m
    }

    pub fn flush(&mut self, q: usize, band: Option<u8>, all: bool) {
        let gone = |m: &Msg| band.is_none_or(|b| b == m.band) && (all || m.data);
        self.queues[q].messages.retain(|m| !gone(m));
        for b in 0..self.queues[q].bands.len() {
            if band.is_none_or(|only| only as usize == b) {
                self.relieve(q, b as u8);
            }
        }
    }

    pub fn bcanput(&mut self, mut q: usize, band: u8) -> bool {
        while !self.queues[q].serviced && q < DRIVER {
            q += 1;
        }
        match self.queues[q].bands.get_mut(band as usize) {
            Some(marks) if marks.full => {
                marks.wantw = true;
                false
            }
            _ => true,
        }
    }

    pub fn set_mark(&mut self, q: usize, high: bool, band: u8, value: usize) {
        self.make_band(q, band);
        let count = self.count(q, band);
        let empty = !self.queues[q].messages.iter().any(|m| m.band == band);
        let marks = &mut self.queues[q].bands[band as usize];
        if high {
            marks.hiwat = value;
        } else {
            marks.lowat = value;
        }
        if count < marks.hiwat {
            marks.full = false;
        } else if !empty || (band == 0 && !self.queues[q].messages.is_empty()) {
            self.queues[q].bands[band as usize].full = true;
        }
        self.relieve(q, band);
    }

    pub fn noenable(&mut self, q: usize, on: bool) {
        self.queues[q].noenab = on;
    }

    pub fn qenable(&mut self, q: usize) {
        if self.queues[q].serviced && !self.enabled.contains(&q) {
            self.enabled.push(q);
        }
    }

    pub fn len(&self, q: usize) -> usize {
        self.queues[q].messages.len()
    }

    pub fn at(&self, q: usize, at: usize) -> usize {
        self.queues[q].messages[at].id
    }

    /// Services queues until none is enabled.
    pub fn run(&mut self, budget: usize) {
        while !self.enabled.is_empty() {
            match self.enabled.remove(0) {
                HEAD => self.wakes += 1,
                MODULE => self.forward(),
                _ => self.consume(budget),
            }
        }
    }

    fn forward(&mut self) {
        while let Some(m) = self.getq(MODULE) {
            if !m.high && !self.bcanput(PASS, m.band) {
                return self.putbq(MODULE, m);
            }
            self.put(PASS, m);
        }
    }

    fn consume(&mut self, budget: usize) {
        for _ in 0..budget {
            let Some(m) = self.getq(DRIVER) else { return };
            self.taken.push(m.id);
        }
    }

    fn insert(&mut self, q: usize, at: usize, m: Msg) {
        self.make_band(q, m.band);
        self.queues[q].messages.insert(at, m);
        let count = self.count(q, m.band);
        let marks = &mut self.queues[q].bands[m.band as usize];
        if count >= marks.hiwat {
            marks.full = true;
        }
    }

    fn enable_for(&mut self, q: usize, m: Msg) {
        let queue = &self.queues[q];
        if m.high || (queue.wantr && !queue.noenab) {
            self.qenable(q);
        }
    }

    fn relieve(&mut self, q: usize, band: u8) {
        let count = self.count(q, band);
        let Some(marks) = self.queues[q].bands.get_mut(band as usize) else {
            return;
        };
        if count > 0 && count >= marks.lowat {
            return;
        }
        marks.full = false;
        if std::mem::take(&mut marks.wantw)
            && let Some(behind) = (0..q).rev().find(|&b| self.queues[b].serviced)
        {
            self.qenable(behind);
        }
    }

    fn make_band(&mut self, q: usize, band: u8) {
        let first = self.queues[q].bands[0];
        let new = Marks {
            full: false,
            wantw: false,
            ..first
        };
        let bands = &mut self.queues[q].bands;
        bands.resize(bands.len().max(band as usize + 1), new);
    }

    fn in_band(&self, q: usize, band: u8) -> Vec<Msg> {
        let messages = self.queues[q].messages.iter();
        messages.filter(|m| m.band == band).copied().collect()
    }

    fn count(&self, q: usize, band: u8) -> usize {
        self.in_band(q, band).iter().map(|m| m.size).sum()
    }

    pub fn state(&self) -> State {
        let queue = |q: usize| QueueState {
            messages: self.queues[q].messages.iter().map(|m| m.id).collect(),
            enabled: self.enabled.contains(&q),
            wantr: self.queues[q].wantr,
            noenab: self.queues[q].noenab,
            bands: (0..self.queues[q].bands.len())
                .map(|b| self.band_state(q, b))
                .collect(),
        };
        State {
            queues: (0..QUEUES).map(queue).collect(),
            taken: self.taken.clone(),
            wakes: self.wakes,
        }
    }

    fn band_state(&self, q: usize, band: usize) -> BandState {
        let marks = self.queues[q].bands[band];
        let all;
        let messages = if band == 0 {
            // What strqget shows of band 0 is the whole queue's.
            &self.queues[q].messages
        } else {
            all = self.in_band(q, band as u8);
            &all
        };
        BandState {
            count: self.count(q, band as u8),
            first: messages.first().map_or(0, |m| m.id),
            last: messages.last().map_or(0, |m| m.id),
            hiwat: marks.hiwat,
            lowat: marks.lowat,
            full: marks.full,
            wantw: marks.wantw,
        }
    }
}
