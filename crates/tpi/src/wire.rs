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

/// The primitives of one direction, each a line of a table: its number, how many words its structure has, PRIM_type
/// included, `high` if it goes in an M_PCPROTO block instead of M_PROTO, its name here, and of each field the type, what it is
/// there, and at which word.
macro_rules! primitives {
    (
        $(#[$about:meta])*
        $direction:ident<$a:lifetime> {
            $(
                $(#[$doc:meta])*
                $number:ident[$words:literal] $($high:ident)? => $name:ident
                    $({ $($field:ident: $type:ty = $kind:ident($($at:expr),+)),+ })?,
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $direction<$a> {
            $($(#[$doc])* $name $({ $($field: $type),+ })?,)+
        }

        impl<$a> $direction<$a> {
            pub fn decode(bytes: &$a [u8]) -> Result<$direction<$a>, Malformed> {
                let prim = prim_of(bytes)?;
                Ok(match prim {
                    $($number => {
                        let _structure = Checked::new(bytes, prim, $words)?;
                        $direction::$name $({ $($field: _structure.$kind($($at),+)?),+ })?
                    })+
                    other => return Err(Malformed::Unknown(other)),
                })
            }

            pub fn encode(&self) -> Vec<u8> {
                let mut message = Message::new(self.prim());
                let words = match *self {
                    $($direction::$name $({ $($field),+ })? => {
                        $($(message.$kind($($at),+, $field);)+)?
                        $words
                    })+
                };
                message.bytes(words)
            }

            /// PRIM_type.
            pub fn prim(&self) -> i32 {
                match self {
                    $($direction::$name { .. } => $number,)+
                }
            }

            /// Whether it goes in an M_PCPROTO block instead of M_PROTO. T_CAPABILITY_REQ may go in either, and T_CAPABILITY_ACK
            /// in the same as its question.
            pub fn is_high(&self) -> bool {
                match self {
                    $($direction::$name { .. } => $crate::wire::is_high!($($high)?),)+
                }
            }
        }
    };
}
pub(crate) use primitives;

macro_rules! is_high {
    () => {
        false
    };
    (high) => {
        true
    };
}
pub(crate) use is_high;

/// PRIM_type.
pub(crate) fn prim_of(bytes: &[u8]) -> Result<i32, Malformed> {
    word(bytes, 0).map(u32::cast_signed).ok_or(Malformed::Empty)
}

/// A message that is long enough for the structure of its primitive. Fields are asked for at words within that.
pub(crate) struct Checked<'a> {
    bytes: &'a [u8],
    prim: i32,
}

impl<'a> Checked<'a> {
    pub fn new(bytes: &'a [u8], prim: i32, words: usize) -> Result<Checked<'a>, Malformed> {
        if bytes.len() < words * WORD {
            return Err(Malformed::Short { prim });
        }
        Ok(Checked { bytes, prim })
    }

    pub fn unsigned(&self, index: usize) -> Result<u32, Malformed> {
        word(self.bytes, index).ok_or(Malformed::Short { prim: self.prim })
    }

    pub fn signed(&self, index: usize) -> Result<i32, Malformed> {
        self.unsigned(index).map(u32::cast_signed)
    }

    /// MORE_flag: more follows when it is greater than zero.
    pub fn more(&self, index: usize) -> Result<bool, Malformed> {
        Ok(self.signed(index)? > 0)
    }

    pub fn bit(&self, index: usize, bit: u32) -> Result<bool, Malformed> {
        Ok(self.unsigned(index)? & bit != 0)
    }

    /// The part whose length is at `index` and whose offset is behind it. Without length the offset means nothing.
    pub fn part(&self, index: usize) -> Result<&'a [u8], Malformed> {
        let (length, offset) = (self.unsigned(index)?, self.unsigned(index + 1)? as usize);
        if length == 0 {
            return Ok(&[]);
        }
        let end = offset.checked_add(length as usize);
        end.and_then(|end| self.bytes.get(offset..end))
            .ok_or(Malformed::OutOfBounds { prim: self.prim })
    }
}

/// A message in the making: fields go where [`Checked`] looks for them.
pub(crate) struct Message<'a> {
    words: [u32; LONGEST],
    parts: [(usize, &'a [u8]); 2],
}

impl<'a> Message<'a> {
    pub fn new(prim: i32) -> Message<'a> {
        let mut words = [0; LONGEST];
        words[0] = prim.cast_unsigned();
        Message {
            words,
            parts: [(0, &[]); 2],
        }
    }

    pub fn unsigned(&mut self, index: usize, value: u32) {
        self.words[index] = value;
    }

    pub fn signed(&mut self, index: usize, value: i32) {
        self.words[index] = value.cast_unsigned();
    }

    pub fn more(&mut self, index: usize, value: bool) {
        self.words[index] = value.into();
    }

    pub fn bit(&mut self, index: usize, bit: u32, value: bool) {
        self.words[index] |= if value { bit } else { 0 };
    }

    /// An address comes before the options, in the structure as behind it.
    pub fn part(&mut self, index: usize, part: &'a [u8]) {
        let second = usize::from(!self.parts[0].1.is_empty());
        self.parts[second] = (index, part);
    }

    /// The structure, then each part that is not empty, aligned for a struct t_opthdr.
    pub fn bytes(mut self, words: usize) -> Vec<u8> {
        let mut end = words * WORD;
        for (index, part) in self.parts.iter().filter(|(_, part)| !part.is_empty()) {
            end = end.next_multiple_of(WORD);
            self.words[*index] = part.len() as u32;
            self.words[index + 1] = end as u32;
            end += part.len();
        }
        let mut bytes = Vec::with_capacity(end);
        for word in &self.words[..words] {
            bytes.extend_from_slice(&word.to_ne_bytes());
        }
        for (_, part) in self.parts.iter().filter(|(_, part)| !part.is_empty()) {
            bytes.resize(bytes.len().next_multiple_of(WORD), 0);
            bytes.extend_from_slice(part);
        }
        bytes
    }
}

const WORD: usize = 4;
/// The words of T_CAPABILITY_ACK.
const LONGEST: usize = 14;

fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let word = bytes.get(index * WORD..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}
