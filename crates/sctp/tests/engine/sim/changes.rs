//! Changes of streams and addresses, as one end asks for them. False: it may not ask for that now.

use std::net::IpAddr;

use headwater_sctp::asconf::Change;
use headwater_sctp::reset::Ask;

use super::Pair;

impl Pair {
    pub fn change_streams(&mut self, side: usize, ask: Ask) -> bool {
        let id = self.id(side);
        let begun = self.ends[side]
            .endpoint
            .change(id, |association| association.change_streams(ask));
        begun.is_some_and(|begun| begun.is_ok())
    }

    fn change_addresses(&mut self, side: usize, change: Change) -> bool {
        let id = self.id(side);
        let begun = self.ends[side]
            .endpoint
            .change(id, |association| association.change_addresses(change));
        begun.is_some_and(|begun| begun.is_ok())
    }

    pub fn reset_streams(&mut self, side: usize, streams: &[u16]) -> bool {
        self.change_streams(side, Ask::Outgoing(streams.to_vec()))
    }

    pub fn add_streams(&mut self, side: usize, outgoing: u16) -> bool {
        self.change_streams(side, Ask::AddOutgoing(outgoing))
    }

    /// From now on packets to `address` reach that end.
    pub fn add_address(&mut self, side: usize, address: IpAddr) -> bool {
        if !self.ends[side].addresses.contains(&address) {
            self.ends[side].addresses.push(address);
        }
        self.change_addresses(side, Change::Add(address))
    }

    pub fn remove_address(&mut self, side: usize, address: IpAddr) -> bool {
        self.change_addresses(side, Change::Delete(address))
    }

    /// The peer is asked to send to `address` by choice.
    pub fn prefer(&mut self, side: usize, address: IpAddr) -> bool {
        self.change_addresses(side, Change::SetPrimary(address))
    }
}
