//! Authentication of chunks (RFC 4895): what each side sends to make keys from, the keys, and digests.
//!
//! An [`Auth`] can only be made from the vectors of both sides, so there is no key, and nothing that could be verified or signed
//! with an empty one, before both are known.

use hmac::{Hmac as Keyed, Mac};
use sha1::Sha1;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::wire::tlv::Writer;
use crate::wire::{self, Packet, PacketBuilder, ParamBuilder, kind, param};

/// Bytes of RANDOM (RFC 4895 section 6.1).
pub const RANDOM: usize = 32;

/// Each is its identifier on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hmac {
    Sha1 = 1,
    Sha256 = 3,
}

impl Hmac {
    pub const fn from_id(id: u16) -> Option<Hmac> {
        match id {
            1 => Some(Hmac::Sha1),
            3 => Some(Hmac::Sha256),
            _ => None,
        }
    }

    pub const fn id(self) -> u16 {
        self as u16
    }

    /// Bytes of a digest.
    #[allow(clippy::len_without_is_empty)]
    pub const fn len(self) -> usize {
        match self {
            Hmac::Sha1 => 20,
            Hmac::Sha256 => 32,
        }
    }
}

/// What one side said in its INIT or INIT ACK: RANDOM, CHUNKS and HMAC-ALGO.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Vectors {
    random: Vec<u8>,
    /// Without CHUNKS: `None`, which makes another key than an empty list.
    chunks: Option<Vec<u8>>,
    /// As on the wire, unknown ones too: the key is made from them.
    hmacs: Vec<u8>,
}

impl Vectors {
    /// Ours: `chunks` are the types that the peer has to authenticate, `hmacs` what we understand, best first. SHA-1 is always
    /// among them, as the RFC demands.
    pub fn ours(random: [u8; RANDOM], chunks: &[u8], hmacs: &[Hmac]) -> Vectors {
        let mut hmacs = hmacs.to_vec();
        if !hmacs.contains(&Hmac::Sha1) {
            hmacs.push(Hmac::Sha1);
        }
        Vectors {
            random: random.to_vec(),
            chunks: (!chunks.is_empty()).then(|| chunks.to_vec()),
            hmacs: hmacs
                .iter()
                .flat_map(|hmac| hmac.id().to_be_bytes())
                .collect(),
        }
    }

    /// The peer's, from its parameters' values. `None` where they break RFC 4895 section 6.1: a RANDOM that is not of 32 bytes, or
    /// HMACs without SHA-1.
    pub fn of_peer(random: &[u8], chunks: Option<&[u8]>, hmacs: &[u8]) -> Option<Vectors> {
        let vectors = Vectors {
            random: random.to_vec(),
            chunks: chunks.map(<[u8]>::to_vec),
            hmacs: hmacs.to_vec(),
        };
        let usable = random.len() == RANDOM
            && hmacs.len().is_multiple_of(2)
            && vectors.understands(Hmac::Sha1.id());
        usable.then_some(vectors)
    }

    pub fn write(&self, params: &mut ParamBuilder<'_>) {
        params.put(&wire::Param::Random(&self.random));
        if let Some(chunks) = &self.chunks {
            params.put(&wire::Param::ChunkList(chunks));
        }
        if let Ok(hmacs) = wire::List::parse(&self.hmacs) {
            params.put(&wire::Param::HmacAlgorithms(hmacs));
        }
    }

    /// This side wants chunks of this type authenticated. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH never are (section 3.2).
    pub fn asks_for(&self, kind: u8) -> bool {
        !matches!(
            kind,
            kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH
        ) && self.chunks().contains(&kind)
    }

    /// The types that this side wants authenticated, as it said them.
    pub fn chunks(&self) -> &[u8] {
        self.chunks.as_deref().unwrap_or_default()
    }

    /// The values of RANDOM, CHUNKS and HMAC-ALGO.
    pub fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        (&self.random, self.chunks.as_deref(), &self.hmacs)
    }

    fn hmacs(&self) -> impl Iterator<Item = u16> {
        self.hmacs
            .as_chunks()
            .0
            .iter()
            .map(|id| u16::from_be_bytes(*id))
    }

    fn understands(&self, id: u16) -> bool {
        self.hmacs().any(|own| own == id)
    }

    /// The parameters as sent, headers included and paddings not.
    fn key_vector(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        // Each is written as the first of a writer of its own, so that nothing is put in between.
        let mut append = |kind, value: &[u8]| Writer::new(&mut whole).bytes(kind, value);
        append(param::kind::RANDOM, &self.random);
        if let Some(chunks) = &self.chunks {
            append(param::kind::CHUNK_LIST, chunks);
        }
        append(param::kind::HMAC_ALGORITHMS, &self.hmacs);
        whole
    }
}

/// A key of an association, ready for use.
#[derive(Clone)]
pub struct Key {
    sha1: Keyed<Sha1>,
    sha256: Keyed<Sha256>,
}

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    fn new(secret: &[u8]) -> Key {
        let sha1 = Keyed::new_from_slice(secret).expect("HMAC takes keys of any length");
        let sha256 = Keyed::new_from_slice(secret).expect("HMAC takes keys of any length");
        Key { sha1, sha256 }
    }

    /// The digest of the parts in a row, in the first [`Hmac::len`] bytes.
    pub fn digest(&self, hmac: Hmac, parts: &[&[u8]]) -> [u8; 32] {
        let mut digest = [0; 32];
        match hmac {
            Hmac::Sha1 => digest[..20].copy_from_slice(&digest_with(&self.sha1, parts)),
            Hmac::Sha256 => digest.copy_from_slice(&digest_with(&self.sha256, parts)),
        }
        digest
    }
}

fn digest_with<M: Mac + Clone>(keyed: &M, parts: &[&[u8]]) -> hmac::digest::Output<M> {
    let mut keyed = keyed.clone();
    parts.iter().for_each(|part| keyed.update(part));
    keyed.finalize().into_bytes()
}

/// Why a packet with an AUTH chunk is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthError {
    /// Answered with an ERROR that has this cause.
    UnsupportedHmac(u16),
    /// Told to the user, who may have to name it.
    UnknownKey(u16),
    /// Dropped silently.
    Wrong,
}

/// A key was not changed as asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyError {
    Unknown,
    /// It is the one that packets are signed with.
    InUse,
}

/// The authentication of one association.
#[derive(Clone, Debug)]
pub struct Auth {
    ours: Vectors,
    theirs: Vectors,
    /// Few: searched in order.
    keys: Vec<(u16, Key)>,
    active: u16,
    /// That of the packet that is being made.
    signing: u16,
    /// The algorithm that packets are signed with: the first of the peer's that we have.
    hmac: Hmac,
}

impl Auth {
    /// From what both sides said. There is one key, number 0 with an empty secret, until the user adds others. `None` where either
    /// side's vectors can't be used.
    pub fn agree(ours: &Vectors, theirs: &Vectors) -> Option<Auth> {
        let usable = |side: &Vectors| side.random.len() == RANDOM;
        let hmac = theirs.hmacs().find_map(Hmac::from_id)?;
        if !usable(ours) || !usable(theirs) {
            return None;
        }
        let mut auth = Auth {
            ours: ours.clone(),
            theirs: theirs.clone(),
            keys: Vec::new(),
            active: 0,
            signing: 0,
            hmac,
        };
        auth.set_key(0, &[]);
        Some(auth)
    }

    /// Adds an endpoint pair's shared key, or replaces the one of this number.
    pub fn set_key(&mut self, number: u16, secret: &[u8]) {
        let key = Key::new(&association_secret(secret, &self.ours, &self.theirs));
        match self.keys.iter_mut().find(|(n, _)| *n == number) {
            Some(entry) => entry.1 = key,
            None => self.keys.push((number, key)),
        }
    }

    /// Packets are signed with this key from now on.
    pub fn activate(&mut self, number: u16) -> Result<(), KeyError> {
        self.key(number).ok_or(KeyError::Unknown)?;
        self.active = number;
        self.signing = number;
        Ok(())
    }

    /// The next packets are signed with this key, if it is known, or else with the active one.
    pub fn sign_with(&mut self, key: Option<u16>) {
        let known = key.filter(|number| self.key(*number).is_some());
        self.signing = known.unwrap_or(self.active);
    }

    /// Nothing more is to be signed with this key: it may not be the active one.
    pub fn deactivate(&mut self, number: u16) -> Result<(), KeyError> {
        self.key(number).ok_or(KeyError::Unknown)?;
        match number == self.active {
            true => Err(KeyError::InUse),
            false => Ok(()),
        }
    }

    pub fn remove_key(&mut self, number: u16) -> Result<(), KeyError> {
        self.deactivate(number)?;
        self.keys.retain(|(known, _)| *known != number);
        Ok(())
    }

    /// The peer wants chunks of this type authenticated.
    pub fn peer_requires(&self, kind: u8) -> bool {
        self.theirs.asks_for(kind)
    }

    /// We want chunks of this type authenticated: without a right AUTH in front of them they are dropped.
    pub fn we_require(&self, kind: u8) -> bool {
        self.ours.asks_for(kind)
    }

    pub fn ours(&self) -> &Vectors {
        &self.ours
    }

    pub fn theirs(&self) -> &Vectors {
        &self.theirs
    }

    /// An AUTH chunk in front of the chunks that follow; the packet is to be finished with [`signing_key`](Self::signing_key).
    pub fn place(&self, packet: &mut PacketBuilder<'_>) {
        packet.auth(self.signing, self.hmac);
    }

    /// Bytes of the chunk that [`place`](Self::place) adds.
    pub fn overhead(&self) -> usize {
        8 + self.hmac.len()
    }

    pub fn signing_key(&self) -> Option<&Key> {
        self.key(self.signing)
    }

    /// Whether the digest covers the rest of the packet that the chunk came in. The comparison takes the same time wherever they
    /// differ.
    pub fn verify(&self, packet: &Packet<'_>, chunk: &wire::Auth<'_>) -> Result<(), AuthError> {
        let hmac = Hmac::from_id(chunk.hmac).filter(|hmac| self.ours.understands(hmac.id()));
        let hmac = hmac.ok_or(AuthError::UnsupportedHmac(chunk.hmac))?;
        let key = self
            .key(chunk.key)
            .ok_or(AuthError::UnknownKey(chunk.key))?;
        let signed = packet
            .bytes()
            .get(chunk.at..)
            .and_then(|rest| rest.split_at_checked(8));
        let (head, after) = signed.ok_or(AuthError::Wrong)?;
        let after = after.get(hmac.len()..).ok_or(AuthError::Wrong)?;
        let digest = key.digest(hmac, &[head, &[0; 32][..hmac.len()], after]);
        if bool::from(digest[..hmac.len()].ct_eq(chunk.digest)) {
            Ok(())
        } else {
            Err(AuthError::Wrong)
        }
    }

    fn key(&self, number: u16) -> Option<&Key> {
        self.keys
            .iter()
            .find(|(n, _)| *n == number)
            .map(|(_, key)| key)
    }
}

/// Section 6.1: the shared key, then the two key vectors, the numerically smaller one first.
fn association_secret(shared: &[u8], ours: &Vectors, theirs: &Vectors) -> Vec<u8> {
    let (mut small, mut large) = (ours.key_vector(), theirs.key_vector());
    if as_number(&large) < as_number(&small) {
        core::mem::swap(&mut small, &mut large);
    }
    [shared, &small, &large].concat()
}

/// Sorts byte vectors by the number that they are, equal numbers by length.
fn as_number(vector: &[u8]) -> (usize, &[u8], usize) {
    let zeros = vector.iter().take_while(|byte| **byte == 0).count();
    let digits = &vector[zeros..];
    (digits.len(), digits, vector.len())
}

#[cfg(test)]
mod tests;
