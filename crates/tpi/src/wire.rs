//! Primitives as bytes: 32-bit words, some of them the length and offset of a part that follows.

use crate::error::{Refusal, TNOTSUPPORT, TPROTO};

/// Why bytes are not a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Shorter than the structure of this primitive.
    Short { prim: i32 },
    /// An address or option list reaches beyond the message.
    OutOfBounds { prim: i32 },
    /// No primitive of this direction has this number.
    Unknown(i32),
    /// Too short even for PRIM_type.
    Empty,
}

impl Malformed {
    /// PRIM_type, where there was one: ERROR_prim of the answer.
    pub fn prim(&self) -> Option<i32> {
        match *self {
            Malformed::Short { prim }
            | Malformed::OutOfBounds { prim }
            | Malformed::Unknown(prim) => Some(prim),
            Malformed::Empty => None,
        }
    }

    /// What the T_ERROR_ACK says.
    pub fn refusal(&self) -> Refusal {
        match self {
            Malformed::Unknown(_) => Refusal::new(TNOTSUPPORT),
            _ => Refusal::new(TPROTO),
        }
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |prim| crate::prim::name(prim).unwrap_or("unknown primitive");
        match *self {
            Malformed::Short { prim } => write!(out, "{}: message too short", name(prim)),
            Malformed::OutOfBounds { prim } => {
                write!(out, "{}: a part lies outside the message", name(prim))
            }
            Malformed::Unknown(prim) => write!(out, "no primitive {prim} here"),
            Malformed::Empty => write!(out, "no primitive in the message"),
        }
    }
}

impl std::error::Error for Malformed {}

/// A message that is long enough for the structure of its primitive.
pub(crate) struct Checked<'a> {
    bytes: &'a [u8],
    prim: i32,
}

/// PRIM_type.
pub(crate) fn prim_of(bytes: &[u8]) -> Result<i32, Malformed> {
    word(bytes, 0).map(u32::cast_signed).ok_or(Malformed::Empty)
}

impl<'a> Checked<'a> {
    /// `words`: the size of the primitive's structure, PRIM_type included.
    pub fn new(bytes: &'a [u8], prim: i32, words: usize) -> Result<Checked<'a>, Malformed> {
        if bytes.len() < words * WORD {
            return Err(Malformed::Short { prim });
        }
        Ok(Checked { bytes, prim })
    }

    /// The word at `index`, which lies within the structure.
    pub fn unsigned(&self, index: usize) -> u32 {
        word(self.bytes, index).unwrap_or(0)
    }

    pub fn signed(&self, index: usize) -> i32 {
        self.unsigned(index).cast_signed()
    }

    /// MORE_flag: more follows when it is greater than zero.
    pub fn flag(&self, index: usize) -> bool {
        self.signed(index) > 0
    }

    /// The part whose length is at `index` and whose offset is behind it. Without length the offset means nothing.
    pub fn part(&self, index: usize) -> Result<&'a [u8], Malformed> {
        let (length, offset) = (
            self.unsigned(index) as usize,
            self.unsigned(index + 1) as usize,
        );
        if length == 0 {
            return Ok(&[]);
        }
        let end = offset.checked_add(length);
        end.and_then(|end| self.bytes.get(offset..end))
            .ok_or(Malformed::OutOfBounds { prim: self.prim })
    }
}

/// The words, then each part that is not empty, aligned for a struct t_opthdr; its length goes to the word that is named
/// with it, its offset to the next.
pub(crate) fn message(words: &[u32], parts: &[(usize, &[u8])]) -> Vec<u8> {
    let room: usize = parts.iter().map(|(_, part)| part.len() + WORD).sum();
    let mut bytes = Vec::with_capacity(words.len() * WORD + room);
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    for (index, part) in parts.iter().filter(|(_, part)| !part.is_empty()) {
        bytes.resize(bytes.len().next_multiple_of(WORD), 0);
        let offset = bytes.len();
        set(&mut bytes, *index, part.len());
        set(&mut bytes, index + 1, offset);
        bytes.extend_from_slice(part);
    }
    bytes
}

const WORD: usize = 4;

fn word(bytes: &[u8], index: usize) -> Option<u32> {
    bytes
        .get(index * WORD..)?
        .first_chunk()
        .map(|word| u32::from_ne_bytes(*word))
}

fn set(bytes: &mut [u8], index: usize, value: usize) {
    bytes[index * WORD..][..WORD].copy_from_slice(&(value as u32).to_ne_bytes());
}
