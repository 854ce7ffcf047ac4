//! Addresses: opaque bytes, each of which stands for an abstract UNIX socket of this user and provider.

use std::sync::OnceLock;

use headwater_host::sync::{AtomicU32, Ordering};
use headwater_host::{board, hidden, process, sys};
use headwater_ipnet::again;
use headwater_streams::attach::unix;
pub use headwater_streams::attach::unix::{has_hung_up, poll};
use headwater_tpi::Refusal;
use headwater_tpi::error::TADDRBUSY;

use super::{Owned, Space};
use crate::provider::Outcome;

/// Requests that the kernel keeps for us; it may set a lower limit.
const BACKLOG: i32 = 4096;
/// Longer addresses go by their hash. What is behind a name is asked for the whole address.
const LONGEST: usize = 60;

/// An address that nobody has.
pub fn unused() -> Vec<u8> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static BEGUN: OnceLock<u64> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Images after exec have the same process.
    let begun = BEGUN.get_or_init(sys::now);
    format!(
        "{:x}.{:x}.{begun:x}.{count:x}",
        process::pid(),
        process::owner().start()
    )
    .into_bytes()
}

/// Takes the name, so that nobody else can have the address; with `listening` others may connect. EADDRINUSE.
pub fn claim(space: Space, addr: &[u8], listening: bool) -> sys::Result<Owned> {
    let socket = socket()?;
    sys::bind(socket.number(), &name(space, addr))?;
    if listening {
        sys::listen(socket.number(), BACKLOG)?;
    }
    Ok(socket)
}

/// As [`claim`]; without an address, one that nobody has. TADDRBUSY.
pub fn claim_any(space: Space, addr: Option<&[u8]>, listening: bool) -> Outcome<(Vec<u8>, Owned)> {
    loop {
        let wanted = addr.map_or_else(unused, <[u8]>::to_vec);
        match claim(space, &wanted, listening) {
            Ok(name) => return Ok((wanted, name)),
            Err(libc::EADDRINUSE) if addr.is_none() => {}
            Err(libc::EADDRINUSE) => return Err(Refusal::new(TADDRBUSY)),
            Err(e) => return Err(Refusal::system(e)),
        }
    }
}

/// Connects to whoever listens at an address. ECONNREFUSED: nobody of this user; EAGAIN: too many before us, later.
pub fn connect(socket: i32, space: Space, addr: &[u8]) -> sys::Result<()> {
    let name = name(space, addr);
    again(|| unix::connect(socket, &name))
}

/// The next one who has connected; `None`: it was not one of this user. EAGAIN.
pub fn accept(listener: i32) -> sys::Result<Option<Owned>> {
    Ok(again(|| unix::accept(listener))?.map(Owned))
}

pub fn socket() -> sys::Result<Owned> {
    unix::socket().and_then(hidden::hide_needed).map(Owned)
}

fn name(space: Space, addr: &[u8]) -> (libc::sockaddr_un, u32) {
    let mut text = prefix(space);
    if addr.len() <= LONGEST {
        text.push(b'=');
        text.extend_from_slice(addr);
    } else {
        text.push(b'#');
        text.extend_from_slice(format!("{:032x}", hash(addr)).as_bytes());
    }
    unix::named(&text)
}

/// At most 46 bytes.
fn prefix(space: Space) -> Vec<u8> {
    let space = match space {
        Space::Ticlts => "clts",
        Space::Ticots => "cots",
        Space::Ticotsord => "ord",
        Space::Sctp => "sctp",
        Space::Udp2 => "udp2",
    };
    // Another runtime folder is another world.
    let world = hash(board::folder().as_bytes()) as u32;
    format!("headwater.{space}.{}.{world:08x}", sys::getuid()).into_bytes()
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    bytes
        .iter()
        .fold(BASIS, |h, &b| (h ^ b as u128).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_name_of_its_own_that_fits() {
        let long = [7u8; 1024];
        let mut other = long;
        other[1023] = 8;
        let spaces = [Space::Ticlts, Space::Ticots, Space::Ticotsord, Space::Udp2];
        let addresses: [&[u8]; 6] = [&[0], &[0, 0], b"a", &long[..60], &long, &other];
        let mut seen = Vec::new();
        for space in spaces {
            for addr in addresses {
                let (name, len) = name(space, addr);
                assert!(len as usize <= size_of_val(&name));
                let bytes = name.sun_path[..len as usize - 2].to_vec();
                assert!(!seen.contains(&bytes));
                seen.push(bytes);
            }
        }
    }
}
