//! To whom an endpoint has sent of late. A raw socket hears what the network says about every sender of its protocol on
//! this host.

use headwater_ipnet::Address;
use headwater_ipnet::errors::Failure;
use headwater_ipnet::{ICMP, ICMPV6, icmp};
use libc::iovec;

use super::ping::gather;

/// Destinations remembered. A report comes within seconds or never.
const MOST: usize = 32;

#[derive(Default)]
pub struct Sent {
    to: Vec<Address>,
    /// Where the next one goes.
    next: usize,
    /// Of the last echo request.
    id: Option<[u8; 2]>,
}

impl Sent {
    pub fn note(&mut self, to: &Address, protocol: u8, data: &[iovec]) {
        let mut head = [0; 8];
        if matches!(protocol, ICMP | ICMPV6) && gather(data, &mut head) == 8 && is_echo(head[0]) {
            self.id = Some([head[4], head[5]]);
        }
        if self.to.iter().any(|known| known.host() == to.host()) {
            return;
        }
        if self.to.len() < MOST {
            self.to.push(*to);
        } else {
            self.to[self.next] = *to;
        }
        self.next = (self.next + 1) % MOST;
    }

    /// What a report says that concerns the endpoint. `by_id`: echo requests leave with the identifier that they were given.
    pub fn concerns(&self, by_id: bool) -> impl Fn(&Failure, &[u8]) -> Option<Address> {
        move |failure, quoted| {
            let ours = self
                .to
                .iter()
                .any(|known| known.host() == failure.to.host());
            let ours = match (quoted, self.id) {
                ([kind, _, _, _, a, b, ..], Some(id)) if by_id && is_echo(*kind) => {
                    ours && [*a, *b] == id
                }
                _ => ours,
            };
            ours.then_some(failure.to)
        }
    }
}

fn is_echo(kind: u8) -> bool {
    kind == icmp::ECHO || kind == icmp::ECHO_V6
}
