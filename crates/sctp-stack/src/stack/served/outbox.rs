//! Packets on their way from the engine to the links.

use std::collections::VecDeque;

use headwater_sctp::Transmit;

use crate::link::Run;
use crate::stack::Stack;

/// Packets that wait for room in the kernel.
#[derive(Default)]
pub struct Outbox {
    pub bytes: Vec<u8>,
    pub runs: VecDeque<(usize, Transmit)>,
}

impl Outbox {
    /// False: some are left.
    pub fn send(&mut self, stack: &Stack) -> bool {
        while let Some(&(_, first)) = self.runs.front() {
            let encapsulated = first.encap.is_some();
            let same = self
                .runs
                .iter()
                .take_while(|(_, t)| t.encap.is_some() == encapsulated);
            let runs: Vec<Run<'_>> = same.map(|(at, t)| Run::of(&self.bytes, *at, t)).collect();
            let sent = match stack.link(encapsulated) {
                Some(link) => link.send(&runs),
                // There is no such link: lost.
                None => runs.len(),
            };
            let all = sent >= runs.len();
            self.runs.drain(..sent);
            if !all {
                return false;
            }
        }
        true
    }
}
