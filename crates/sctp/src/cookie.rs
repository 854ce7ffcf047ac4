//! The state cookie (RFC 9260 section 5.1.3): everything that an INIT taught us, signed, and left to the peer to bring back. Until
//! it does, nothing is remembered here.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use hmac::{Hmac, Mac};
use rand_chacha::ChaCha20Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::auth::Vectors;
use crate::{Features, Time, Tsn};

/// Bytes of a signature.
pub const SIGNATURE: usize = 32;

/// Signs cookies. Another implementation may share its keys between hosts.
pub trait CookieKeys: core::fmt::Debug + Send {
    fn sign(&mut self, now: Time, bytes: &[u8]) -> [u8; SIGNATURE];

    /// Whether the signature is one that [`sign`](Self::sign) made not too long ago. Takes the same time wherever it is wrong.
    fn verify(&mut self, now: Time, bytes: &[u8], signature: &[u8; SIGNATURE]) -> bool;
}

/// HMAC-SHA256 by a key that is replaced every hour; cookies of the one before are still taken.
pub struct RotatingKeys {
    random: ChaCha20Rng,
    current: Hmac<Sha256>,
    previous: Option<Hmac<Sha256>>,
    /// When `current` was made: at the first use.
    since: Option<Time>,
}

impl RotatingKeys {
    pub const PERIOD: Duration = Duration::from_secs(3600);

    /// The seed is a secret.
    pub fn new(seed: [u8; 32]) -> RotatingKeys {
        let mut random = ChaCha20Rng::from_seed(seed);
        let current = new_key(&mut random);
        RotatingKeys {
            random,
            current,
            previous: None,
            since: None,
        }
    }

    fn rotate(&mut self, now: Time) {
        let since = *self.since.get_or_insert(now);
        let age = now.since(since);
        if age < Self::PERIOD {
            return;
        }
        let old = core::mem::replace(&mut self.current, new_key(&mut self.random));
        self.previous = (age < 2 * Self::PERIOD).then_some(old);
        self.since = Some(now);
    }
}

impl core::fmt::Debug for RotatingKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RotatingKeys")
            .field("since", &self.since)
            .finish_non_exhaustive()
    }
}

fn new_key(random: &mut ChaCha20Rng) -> Hmac<Sha256> {
    let mut secret = [0; 32];
    random.fill_bytes(&mut secret);
    Hmac::new_from_slice(&secret).expect("HMAC takes keys of any length")
}

fn signature(key: &Hmac<Sha256>, bytes: &[u8]) -> [u8; SIGNATURE] {
    let mut keyed = key.clone();
    keyed.update(bytes);
    keyed.finalize().into_bytes().into()
}

impl CookieKeys for RotatingKeys {
    fn sign(&mut self, now: Time, bytes: &[u8]) -> [u8; SIGNATURE] {
        self.rotate(now);
        signature(&self.current, bytes)
    }

    fn verify(&mut self, now: Time, bytes: &[u8], theirs: &[u8; SIGNATURE]) -> bool {
        self.rotate(now);
        let right = |key| bool::from(signature(key, bytes).ct_eq(theirs));
        right(&self.current) || self.previous.as_ref().is_some_and(right)
    }
}

/// What an INIT and our INIT ACK to it said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cookie {
    pub made: Time,
    pub lifetime: Duration,
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_tsn: Tsn,
    pub peer_tsn: Tsn,
    pub peer_window: u32,
    /// Streams as agreed on: of ours, of the peer's.
    pub outbound: u16,
    pub inbound: u16,
    /// Tags of the association that existed already, or 0 (section 5.2.2).
    pub local_tie: u32,
    pub peer_tie: u32,
    /// Where the INIT came from, and the UDP port if it was encapsulated.
    pub source: IpAddr,
    pub encap: Option<u16>,
    pub local_port: u16,
    pub peer_port: u16,
    /// The peer's others.
    pub addresses: Vec<IpAddr>,
    pub features: Features,
    /// Ours and the peer's, where authentication was offered by both.
    pub vectors: Option<(Vectors, Vectors)>,
    pub adaptation: Option<u32>,
}

/// Why a cookie opens no association.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CookieError {
    /// Not signed by us, or too long ago: dropped silently.
    Forged,
    /// Signed by us and not readable, as after an upgrade: dropped silently.
    Malformed,
    /// Answered with an ERROR, unless it belongs to an association that exists (section 5.2.4).
    Stale { by: Duration, cookie: Box<Cookie> },
}

/// Changes whenever the layout does: cookies of another one are malformed.
const VERSION: u8 = 1;

impl Cookie {
    /// The bytes for the INIT ACK.
    pub fn seal(&self, keys: &mut dyn CookieKeys, now: Time) -> Vec<u8> {
        let mut out = self.encode();
        let signature = keys.sign(now, &out);
        out.extend_from_slice(&signature);
        out
    }

    /// The cookie of a COOKIE ECHO. The signature is checked before anything else is looked at.
    pub fn open(bytes: &[u8], keys: &mut dyn CookieKeys, now: Time) -> Result<Cookie, CookieError> {
        let (signed, signature) = bytes
            .split_last_chunk::<SIGNATURE>()
            .ok_or(CookieError::Forged)?;
        if !keys.verify(now, signed, signature) {
            return Err(CookieError::Forged);
        }
        let cookie = Cookie::decode(signed).ok_or(CookieError::Malformed)?;
        let age = now.since(cookie.made);
        match age.checked_sub(cookie.lifetime) {
            Some(by) if !by.is_zero() => Err(CookieError::Stale {
                by,
                cookie: Box::new(cookie),
            }),
            _ => Ok(cookie),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(192);
        out.push(VERSION);
        self.put(&mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Cookie> {
        let mut rest = bytes.strip_prefix(&[VERSION])?;
        let cookie = Cookie::take(&mut rest)?;
        rest.is_empty().then_some(cookie)
    }
}

/// What a cookie is made of.
trait Part<'a>: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Off the front of `rest`; `None`: it is not readable.
    fn take(rest: &mut &'a [u8]) -> Option<Self>;
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Part<'_> for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_be_bytes());
            }

            fn take(rest: &mut &[u8]) -> Option<Self> {
                let (bytes, behind) = rest.split_first_chunk()?;
                *rest = behind;
                Some(<$number>::from_be_bytes(*bytes))
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 u128 }

/// A struct as its fields in this order.
macro_rules! fields {
    ($name:ident { $($field:ident)* }) => {
        impl Part<'_> for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(rest: &mut &[u8]) -> Option<Self> {
                $(let $field = Part::take(rest)?;)*
                Some($name { $($field),* })
            }
        }
    };
}

fields! {
    Cookie {
        made lifetime local_tag peer_tag local_tsn peer_tsn peer_window local_tie peer_tie
        outbound inbound local_port peer_port features source encap adaptation addresses vectors
    }
}

/// A struct of flags as a number, with the bit that each is.
macro_rules! flags {
    ($name:ident { $($flag:ident $bit:literal)* }) => {
        impl Part<'_> for $name {
            fn put(&self, out: &mut Vec<u8>) {
                (0 $(| u16::from(self.$flag) << $bit)*).put(out);
            }

            fn take(rest: &mut &[u8]) -> Option<Self> {
                let bits = u16::take(rest)?;
                Some($name { $($flag: bits >> $bit & 1 != 0),* })
            }
        }
    };
}

flags! {
    Features {
        forward 0 interleave 1 reconfiguration 2 addresses 3 auth 4 pad 5 zero_checksum_out 6 zero_checksum_in 7
    }
}

macro_rules! by_number {
    ($($name:ident as $number:ident: $number_of:expr, $of_number:expr;)*) => {$(
        impl Part<'_> for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $number_of(self).put(out);
            }

            fn take(rest: &mut &[u8]) -> Option<Self> {
                $number::take(rest).map($of_number)
            }
        }
    )*};
}

by_number! {
    Tsn as u32: |tsn: &Tsn| tsn.0, Tsn;
    Time as u64: |time: &Time| time.0, Time;
    Duration as u64: |life: &Duration| u64::try_from(life.as_nanos()).unwrap_or(u64::MAX), Duration::from_nanos;
}

impl Part<'_> for IpAddr {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            IpAddr::V4(address) => {
                out.push(4);
                address.to_bits().put(out);
            }
            IpAddr::V6(address) => {
                out.push(6);
                address.to_bits().put(out);
            }
        }
    }

    fn take(rest: &mut &[u8]) -> Option<Self> {
        match u8::take(rest)? {
            4 => u32::take(rest).map(|bits| Ipv4Addr::from_bits(bits).into()),
            6 => u128::take(rest).map(|bits| Ipv6Addr::from_bits(bits).into()),
            _ => None,
        }
    }
}

impl<'a, T: Part<'a>> Part<'a> for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        self.iter().for_each(|value| value.put(out));
    }

    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        match u8::take(rest)? {
            0 => Some(None),
            1 => T::take(rest).map(Some),
            _ => None,
        }
    }
}

impl Part<'_> for Vec<IpAddr> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u16).put(out);
        self.iter().for_each(|address| address.put(out));
    }

    fn take(rest: &mut &[u8]) -> Option<Self> {
        (0..u16::take(rest)?).map(|_| IpAddr::take(rest)).collect()
    }
}

impl<'a> Part<'a> for &'a [u8] {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u16).put(out);
        out.extend_from_slice(self);
    }

    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let length = u16::take(rest)?;
        let (bytes, behind) = rest.split_at_checked(length.into())?;
        *rest = behind;
        Some(bytes)
    }
}

/// Ours, and the peer's.
impl Part<'_> for (Vectors, Vectors) {
    fn put(&self, out: &mut Vec<u8>) {
        for side in [&self.0, &self.1] {
            let (random, chunks, hmacs) = side.parts();
            random.put(out);
            chunks.put(out);
            hmacs.put(out);
        }
    }

    fn take(rest: &mut &[u8]) -> Option<Self> {
        let mut side = || Vectors::of_peer(Part::take(rest)?, Part::take(rest)?, Part::take(rest)?);
        Some((side()?, side()?))
    }
}

#[cfg(test)]
mod tests;
