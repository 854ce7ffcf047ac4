//! Option buffers and addresses of XTI, as the providers take them.

use headwater_endpoints::device;
use headwater_ipnet::options::PacketOptions;
use headwater_providers::provider::Provider;
use headwater_sctp_stack::option::INET_SCTP;
use headwater_tpi::Refusal;
use headwater_tpi::option::{
    INET_IP, INET_TCP, INET_UDP, List, Options, T_CHECK, T_CURRENT, T_DEFAULT, T_NEGOTIATE,
    XTI_GENERIC,
};

const LEVELS: [u32; 6] = [XTI_GENERIC, INET_TCP, INET_UDP, INET_IP, INET_SCTP, 77];
const ACTIONS: [i32; 4] = [T_NEGOTIATE, T_CHECK, T_DEFAULT, T_CURRENT];

/// An endpoint of each transport that can be had here.
pub struct Endpoints(Vec<Box<dyn Provider>>);

impl Default for Endpoints {
    fn default() -> Endpoints {
        let all = device::ALL.iter();
        Endpoints(all.filter_map(|(_, device)| device.open().ok()).collect())
    }
}

impl Endpoints {
    /// The first byte chooses the endpoint and what is done; then comes a buffer as it is, or level, name, length and value of
    /// one option after the other.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Some((&first, rest)) = bytes.split_first() else {
            return;
        };
        let count = self.0.len();
        let provider = &mut self.0[usize::from(first) % count];
        let list = match first >> 6 {
            0 => rest.to_vec(),
            _ => listed(rest),
        };
        for action in ACTIONS {
            if let Ok((_, answers)) = provider.negotiate(action as u32, &list) {
                let read = Options::all(&answers);
                read.unwrap_or_else(|bad| panic!("an answer is {bad:?}: {answers:?}"));
            }
        }
        let _ = PacketOptions::read(&list);
        let bound: Result<_, Refusal> = provider.bind(Some(rest), 1);
        if bound.is_ok() {
            let _ = provider.unbind();
        }
    }
}

fn listed(mut rest: &[u8]) -> Vec<u8> {
    let mut list = List::new();
    while let [level, name, high, len, after @ ..] = rest {
        let name = u32::from(*name) | if high % 2 == 0 { 0 } else { 0x1000 };
        let (value, left) = after.split_at(usize::from(len % 64).min(after.len()));
        list.push(LEVELS[usize::from(*level) % LEVELS.len()], name, 0, value);
        rest = left;
    }
    list.into_bytes()
}
