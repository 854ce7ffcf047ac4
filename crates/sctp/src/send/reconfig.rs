//! What re-configuration of streams needs (RFC 6525).

use super::Sender;
use crate::Tsn;

impl Sender {
    /// New messages for these streams (none named: all) wait, while what was handed over before is sent and acknowledged.
    pub fn hold_streams(&mut self, streams: &[u16]) {
        if streams.is_empty() {
            return self.queues.hold_all();
        }
        for stream in self.known(streams) {
            self.queues.hold(stream);
        }
    }

    /// They need not wait any longer.
    pub fn release_streams(&mut self, streams: &[u16]) {
        if streams.is_empty() {
            return self.queues.release_all(&mut self.store);
        }
        for stream in self.known(streams) {
            self.queues.release(&mut self.store, stream);
        }
    }

    /// Nothing of what was handed over before the stream was held is unsent or unacknowledged.
    pub fn stream_is_idle(&self, stream: u16) -> bool {
        usize::from(stream) >= self.queues.streams()
            || self.queues.outstanding(stream) == 0
                && self.queues.head(stream) == super::NONE
                && !self.queues.is_broken_in(stream)
    }

    /// The same of all streams.
    pub fn all_streams_are_idle(&self) -> bool {
        self.out.is_empty() && self.queues.is_idle()
    }

    /// SSNs and MIDs of these streams (none named: all) begin at 0 again; they are held no longer.
    pub fn reset_streams(&mut self, streams: &[u16]) {
        if streams.is_empty() {
            self.queues.renumber_all();
        }
        for stream in self.known(streams) {
            self.queues.renumber(stream);
        }
        self.release_streams(streams);
    }

    pub fn add_streams(&mut self, more: u16) {
        let number = self.streams().saturating_add(more);
        self.queues.set_streams(number);
    }

    /// The association's TSNs go on at `next`. Nothing may be outstanding.
    pub fn reset_tsn(&mut self, next: Tsn) {
        self.out.rename(next);
        self.renamed = true;
        self.forward = super::partial::Forwarding::new(self.out.first());
        self.recovery = None;
        self.probe = None;
    }

    /// Nothing of any stream is outstanding.
    pub fn all_acknowledged(&self) -> bool {
        self.out.is_empty()
    }

    /// A part of a message was sent, and its end was not: TSNs must not begin anew between the two.
    pub fn is_within_a_message(&self) -> bool {
        self.queues.begun > 0
    }

    fn known(&self, streams: &[u16]) -> Vec<u16> {
        let known = |stream: &u16| *stream < self.streams();
        streams.iter().copied().filter(known).collect()
    }
}
