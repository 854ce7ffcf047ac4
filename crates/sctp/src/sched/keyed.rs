//! Schedulers that serve the stream with the lowest key: priority, fair capacity and weighted fair queueing.

use std::collections::{BTreeSet, HashMap};

use super::{Ended, Scheduler};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// The key is the value; streams of one value take turns.
    Priority,
    /// The key is what the stream has sent.
    Fair,
    /// The key is what the stream has sent, divided by its value.
    Weighted,
}

/// (key, turn or 0, stream).
type Place = (u64, u64, u16);

#[derive(Debug)]
pub(super) struct Keyed {
    rule: Rule,
    /// Streams with data.
    waiting: BTreeSet<Place>,
    streams: HashMap<u16, Stream>,
    turns: u64,
    /// The key that was served last: a stream that comes back does not catch up on what it let pass.
    served: u64,
}

#[derive(Debug, Default)]
struct Stream {
    value: u16,
    place: Option<Place>,
    key: u64,
}

/// A byte counts so much at weight 1, so that division by a weight loses little.
const SCALE: u64 = 1 << 16;

impl Keyed {
    pub(super) fn new(rule: Rule) -> Keyed {
        Keyed {
            rule,
            waiting: BTreeSet::new(),
            streams: HashMap::new(),
            turns: 0,
            served: 0,
        }
    }

    fn put(&mut self, number: u16) {
        self.turns += 1;
        let (rule, turn, served) = (self.rule, self.turns, self.served);
        let stream = self.streams.entry(number).or_default();
        let place = match rule {
            Rule::Priority => (u64::from(stream.value), turn, number),
            _ => {
                stream.key = stream.key.max(served);
                (stream.key, 0, number)
            }
        };
        stream.place = Some(place);
        self.waiting.insert(place);
    }

    fn take(&mut self, number: u16) {
        if let Some(stream) = self.streams.get_mut(&number)
            && let Some(place) = stream.place.take()
        {
            self.waiting.remove(&place);
        }
    }

    fn charge(&mut self, number: u16, bytes: usize) {
        let rule = self.rule;
        let stream = self.streams.entry(number).or_default();
        self.served = self.served.max(stream.key);
        let weight = match rule {
            Rule::Weighted => u64::from(stream.value.max(1)),
            _ => 1,
        };
        stream.key += bytes as u64 * SCALE / weight;
    }
}

impl Scheduler for Keyed {
    fn queued(&mut self, stream: u16, first: bool) -> u64 {
        if first {
            self.put(stream);
        }
        0
    }

    fn next(&self) -> Option<u16> {
        self.waiting.first().map(|(.., stream)| *stream)
    }

    fn sent(&mut self, stream: u16, _ticket: u64, bytes: usize, ended: Ended) {
        if self.rule == Rule::Priority && !ended.turn && !ended.queue {
            return;
        }
        self.take(stream);
        if self.rule != Rule::Priority {
            self.charge(stream, bytes);
        }
        if !ended.queue {
            self.put(stream);
        }
    }

    fn removed(&mut self, stream: u16, _ticket: u64, last: bool) {
        if last {
            self.take(stream);
        }
    }

    fn set_value(&mut self, number: u16, value: u16) {
        let stream = self.streams.entry(number).or_default();
        stream.value = value;
        if stream.place.is_some() {
            self.take(number);
            self.put(number);
        }
    }
}
