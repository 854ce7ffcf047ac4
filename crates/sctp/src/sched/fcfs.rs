//! First come, first served.

use std::collections::VecDeque;

use super::{Ended, Scheduler};

/// Entries that nothing stands for any more are kept until there are more of them than of others, and than these.
const GONE: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Fcfs {
    /// A ticket and its stream for each message, or part of one, in the order of their coming; no stream: gone. The first is not.
    order: VecDeque<(u64, Option<u16>)>,
    tickets: u64,
    gone: usize,
}

impl Fcfs {
    #[inline]
    fn remove(&mut self, ticket: u64) {
        if self.order.front().is_some_and(|front| front.0 == ticket) {
            self.order.pop_front();
            while let Some((_, None)) = self.order.front() {
                self.order.pop_front();
                self.gone -= 1;
            }
            return;
        }
        let Ok(at) = self.order.binary_search_by_key(&ticket, |entry| entry.0) else {
            return;
        };
        self.order[at].1 = None;
        self.gone += 1;
        if self.gone > GONE && self.gone > self.order.len() / 2 {
            self.order.retain(|entry| entry.1.is_some());
            self.gone = 0;
        }
    }
}

impl Scheduler for Fcfs {
    fn queued(&mut self, stream: u16, _first: bool) -> u64 {
        self.tickets += 1;
        self.order.push_back((self.tickets, Some(stream)));
        self.tickets
    }

    fn next(&self) -> Option<u16> {
        self.order.front()?.1
    }

    fn sent(&mut self, _stream: u16, ticket: u64, _bytes: usize, ended: Ended) {
        if ended.part {
            self.remove(ticket);
        }
    }

    fn removed(&mut self, _stream: u16, ticket: u64, _last: bool) {
        self.remove(ticket);
    }
}
