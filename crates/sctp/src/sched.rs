//! Stream schedulers (RFC 8260 section 3): which stream's data goes into the packet next.
//!
//! The sender keeps the messages; a scheduler only knows which streams have some. Without interleaving the sender asks only between
//! messages.

mod fcfs;
mod keyed;
mod round_robin;

use core::fmt::Debug;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SchedulerKind {
    /// First come, first served.
    #[default]
    Fcfs,
    /// A message of each stream in turn.
    RoundRobin,
    /// As that, but a packet has messages of one stream only.
    RoundRobinPacket,
    /// The stream with the lowest value first.
    Priority,
    /// The same number of bytes for each stream.
    FairCapacity,
    /// Bytes in proportion to the streams' values.
    WeightedFair,
}

impl SchedulerKind {
    pub fn make(self) -> Box<dyn Scheduler> {
        match self {
            SchedulerKind::Fcfs => Box::new(fcfs::Fcfs::default()),
            SchedulerKind::RoundRobin => Box::new(round_robin::RoundRobin::new(false)),
            SchedulerKind::RoundRobinPacket => Box::new(round_robin::RoundRobin::new(true)),
            SchedulerKind::Priority => Box::new(keyed::Keyed::new(keyed::Rule::Priority)),
            SchedulerKind::FairCapacity => Box::new(keyed::Keyed::new(keyed::Rule::Fair)),
            SchedulerKind::WeightedFair => Box::new(keyed::Keyed::new(keyed::Rule::Weighted)),
        }
    }
}

/// What the sending of a chunk has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ended {
    /// The message, or the part of it that was queued.
    pub part: bool,
    /// The stream's turn: another stream may go on.
    pub turn: bool,
    /// The stream's queue.
    pub queue: bool,
}

pub trait Scheduler: Debug + Send {
    /// A message, or a part of one, was queued; `first`: the stream had nothing queued before. Hands back a ticket that it will be
    /// known by.
    fn queued(&mut self, stream: u16, first: bool) -> u64;

    /// The stream whose turn it is.
    fn next(&self) -> Option<u16>;

    /// A chunk of `bytes` user data has left: the stream's that `next` gave, or of one whose message had to go on.
    fn sent(&mut self, stream: u16, ticket: u64, bytes: usize, ended: Ended);

    /// A message, or a part of one, was taken back unsent; `last`: nothing of the stream is queued any more.
    fn removed(&mut self, stream: u16, ticket: u64, last: bool);

    /// A packet is full.
    fn packet_done(&mut self) {}

    /// The stream's value: its priority (lowest goes first), or its weight.
    fn set_value(&mut self, _stream: u16, _value: u16) {}
}

#[cfg(test)]
mod tests;
