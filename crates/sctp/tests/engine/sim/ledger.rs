//! Every message accounted for: what was sent in one direction, and what came out at the other end.

use std::collections::HashMap;

use headwater_sctp::recv::Received;

use super::chance::Chance;

/// One direction of an association. A message is known by its payload protocol identifier, and its bytes follow from that.
#[derive(Default)]
pub struct Ledger {
    seed: u64,
    messages: Vec<Message>,
    /// By stream: the last ordered message that came.
    latest: HashMap<u16, usize>,
    partial: HashMap<(u16, bool), (u32, Vec<u8>)>,
    pub delivered: usize,
    pub partial_reads: usize,
    /// Something of before may still arrive.
    uncertain: bool,
    forgiving: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub stream: u16,
    pub unordered: bool,
    pub len: usize,
    /// Must come, whatever happens.
    pub reliable: bool,
    pub delivered: bool,
    pub given_up: bool,
}

impl Ledger {
    pub fn new(seed: u64) -> Ledger {
        Ledger {
            seed,
            ..Ledger::default()
        }
    }

    /// Messages of before may still be given up.
    pub fn after_restart(seed: u64) -> Ledger {
        Ledger {
            forgiving: true,
            ..Ledger::new(seed)
        }
    }

    /// The identifier and the bytes of a message that is to be sent next.
    pub fn draft(&self, len: usize) -> (u32, Vec<u8>) {
        let id = self.messages.len() as u32;
        (id, content(self.seed, id, len))
    }

    /// The drafted message was accepted for sending.
    pub fn sent(&mut self, stream: u16, unordered: bool, len: usize, reliable: bool) {
        self.messages.push(Message {
            stream,
            unordered,
            len,
            reliable,
            delivered: false,
            given_up: false,
        });
    }

    /// Both sides may have lost what was on its way.
    pub fn forget(&mut self) {
        *self = Ledger::new(self.seed.wrapping_add(1 << 40));
        self.uncertain = true;
    }

    pub fn came(&self, id: usize) -> bool {
        self.messages[id].delivered
    }

    pub fn given_up(&mut self, id: u32) {
        if self.uncertain || self.forgiving {
            return;
        }
        self.messages[id as usize].given_up = true;
    }

    /// Takes a piece as `receive` gave it.
    pub fn take(&mut self, piece: &Received, bytes: &[u8]) {
        assert_eq!(piece.len, bytes.len());
        if self.uncertain {
            return;
        }
        let key = (piece.stream, piece.unordered);
        if piece.aborted {
            let (id, _) = self
                .partial
                .remove(&key)
                .expect("the beginning of what is given up");
            return self.assert_may_end_early(id);
        }
        let (id, mut whole) = self
            .partial
            .remove(&key)
            .unwrap_or((piece.ppid, Vec::new()));
        if id != piece.ppid {
            self.assert_may_end_early(id);
            whole.clear();
        }
        self.partial_reads += usize::from(!whole.is_empty());
        whole.extend_from_slice(bytes);
        if piece.end {
            self.complete(piece, &whole);
        } else {
            self.partial.insert(key, (piece.ppid, whole));
        }
    }

    /// A message of which only the beginning came.
    fn assert_may_end_early(&self, id: u32) {
        let message = &self.messages[id as usize];
        assert!(
            !message.reliable,
            "of reliable message {id} only the beginning came"
        );
    }

    fn complete(&mut self, piece: &Received, bytes: &[u8]) {
        let id = piece.ppid as usize;
        let message = self
            .messages
            .get_mut(id)
            .unwrap_or_else(|| panic!("message {id} was never sent"));
        assert!(!message.delivered, "message {id} came twice");
        assert_eq!(
            (piece.stream, piece.unordered),
            (message.stream, message.unordered),
            "message {id}"
        );
        assert_eq!(bytes.len(), message.len, "length of message {id}");
        assert!(
            bytes == content(self.seed, id as u32, bytes.len()),
            "message {id} came damaged"
        );
        message.delivered = true;
        self.delivered += 1;
        if !message.unordered {
            let before = self.latest.insert(piece.stream, id);
            assert!(
                before.is_none_or(|before| before < id),
                "message {id} came after {before:?} on its stream"
            );
        }
    }

    pub fn all_reliable_came(&self) -> bool {
        self.messages
            .iter()
            .all(|message| message.delivered || !message.reliable)
    }

    /// Nothing is missing that must come, and no message came by half.
    pub fn settle(&self, direction: &str) {
        self.settle_partial(direction);
        assert!(
            self.partial.is_empty(),
            "{direction}: half a message is left"
        );
    }

    /// Nothing is missing that must come.
    pub fn settle_partial(&self, direction: &str) {
        let unsettled = |m: &Message| m.reliable && (!m.delivered || m.given_up);
        let missing = self
            .messages
            .iter()
            .enumerate()
            .filter(|(_, m)| unsettled(m));
        let missing: Vec<_> = missing.map(|(id, m)| (id, *m)).take(5).collect();
        assert!(
            missing.is_empty(),
            "{direction}: {} of {} came; missing {missing:?}",
            self.delivered,
            self.messages.len()
        );
        self.partial
            .values()
            .for_each(|(id, _)| self.assert_may_end_early(*id));
    }
}

fn content(seed: u64, id: u32, len: usize) -> Vec<u8> {
    Chance::new(seed ^ (u64::from(id) << 20)).bytes(len)
}
