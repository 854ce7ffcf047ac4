//! First come, first served.

use std::collections::VecDeque;

use super::{Ended, Scheduler};

/// A stream's number for each message, or part of one, in the order of their coming.
#[derive(Debug, Default)]
pub(super) struct Fcfs {
    order: VecDeque<u16>,
}

impl Scheduler for Fcfs {
    fn queued(&mut self, stream: u16, _first: bool) {
        self.order.push_back(stream);
    }

    fn next(&self) -> Option<u16> {
        self.order.front().copied()
    }

    fn sent(&mut self, stream: u16, _bytes: usize, ended: Ended) {
        if !ended.part {
            return;
        }
        if self.order.front() == Some(&stream) {
            self.order.pop_front();
        } else if let Some(at) = self.order.iter().position(|s| *s == stream) {
            self.order.remove(at);
        }
    }

    fn removed(&mut self, stream: u16, _last: bool) {
        if let Some(at) = self.order.iter().rposition(|s| *s == stream) {
            self.order.remove(at);
        }
    }
}
