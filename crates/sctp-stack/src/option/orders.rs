//! Options that do something to an association when they are set: addresses, streams, keys.

use core::net::IpAddr;

use headwater_ipnet::Address;
use headwater_sctp::asconf::Change;

use super::*;

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Of our addresses.
    Addresses(Change),
    /// We send to this address of the peer.
    Primary(IpAddr),
    /// Priority or weight of a stream, as the scheduler has it.
    StreamValue {
        stream: u16,
        value: u16,
    },
    /// Empty: all.
    ResetOutgoing(Vec<u16>),
    ResetIncoming(Vec<u16>),
    ResetAssociation,
    AddStreams {
        out: u16,
        inbound: u16,
    },
    SetKey {
        number: u16,
        secret: Vec<u8>,
    },
    ActivateKey(u16),
    RemoveKey(u16),
}

impl Order {
    /// Keeps what it says of keys for associations to come; false: it is about something else.
    pub fn keep_key(&self, config: &mut AssocConfig) -> bool {
        match self {
            Order::SetKey { number, secret } => config.keep_key(*number, secret),
            Order::ActivateKey(number) => config.active_key = *number,
            Order::RemoveKey(number) => config.shared_keys.retain(|(known, _)| known != number),
            _ => return false,
        }
        true
    }
}

/// How an order is written as an option's value. `Ok(None)`: nothing is asked for (T_ALLOPT sets defaults, which are empty).
/// EINVAL.
pub fn read(name: u32, value: &[u8]) -> Result<Option<Order>, i32> {
    if value.is_empty() {
        return Ok(None);
    }
    let words = value.as_chunks().0.iter();
    let words: Vec<u32> = words.map(|n| u32::from_ne_bytes(*n)).collect();
    let half = |i: usize| {
        let word = words.get(i).copied().ok_or(libc::EINVAL)?;
        u16::try_from(word).map_err(|_| libc::EINVAL)
    };
    let host = || match Address::read(value) {
        Ok(at) => Ok(at.ip().to_canonical()),
        Err(_) => Err(libc::EINVAL),
    };
    Ok(Some(match name {
        T_SCTP_ADD_IP => Order::Addresses(Change::Add(host()?)),
        T_SCTP_DEL_IP => Order::Addresses(Change::Delete(host()?)),
        T_SCTP_SET_IP => Order::Addresses(Change::SetPrimary(host()?)),
        T_SCTP_PRIMARY => Order::Primary(host()?),
        T_SCTP_SCHED_VALUE => Order::StreamValue {
            stream: half(0)?,
            value: half(1)?,
        },
        T_SCTP_RESET_OUT => Order::ResetOutgoing(streams(&words)?),
        T_SCTP_RESET_IN => Order::ResetIncoming(streams(&words)?),
        T_SCTP_ADD_STREAMS => Order::AddStreams {
            out: half(0)?,
            inbound: half(1)?,
        },
        T_SCTP_AUTH_KEY => {
            let len = *words.get(1).ok_or(libc::EINVAL)? as usize;
            let secret = value[8..].get(..len).ok_or(libc::EINVAL)?;
            Order::SetKey {
                number: half(0)?,
                secret: secret.to_vec(),
            }
        }
        T_SCTP_AUTH_DELETE => Order::RemoveKey(half(0)?),
        _ => return Err(libc::EINVAL),
    }))
}

fn streams(words: &[u32]) -> Result<Vec<u16>, i32> {
    match words {
        [] => Err(libc::EINVAL),
        [ALL_STREAMS] => Ok(Vec::new()),
        some => some
            .iter()
            .map(|&s| u16::try_from(s).map_err(|_| libc::EINVAL))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|w| w.to_ne_bytes()).collect()
    }

    #[test]
    fn lists_of_streams() {
        let reset = |all: &[u32]| read(T_SCTP_RESET_OUT, &words(all));
        assert_eq!(reset(&[]), Ok(None));
        assert_eq!(reset(&[!0]), Ok(Some(Order::ResetOutgoing(vec![]))));
        assert_eq!(reset(&[3, 4]), Ok(Some(Order::ResetOutgoing(vec![3, 4]))));
        assert_eq!(reset(&[3, 70_000]), Err(libc::EINVAL));
    }

    #[test]
    fn a_key_is_no_longer_than_its_value() {
        let mut value = words(&[7, 3]);
        value.extend(b"abc");
        let key = Order::SetKey {
            number: 7,
            secret: b"abc".to_vec(),
        };
        assert_eq!(read(T_SCTP_AUTH_KEY, &value), Ok(Some(key)));
        value.pop();
        assert_eq!(read(T_SCTP_AUTH_KEY, &value), Err(libc::EINVAL));
        assert_eq!(read(T_SCTP_ADD_IP, b"xyz"), Err(libc::EINVAL));
    }
}
