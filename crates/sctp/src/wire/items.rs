//! Parameters and error causes as tables: a line names a type's number, its variant, and the fields that its value is made of.

use core::net::{Ipv4Addr, Ipv6Addr};

use super::tlv::{List, Malformed};
use crate::Tsn;

/// A field of an item's value. `As` tells apart the ways in which values of one type stand on the wire.
pub(super) trait Field<'a, As = ()>: Sized {
    /// Takes it off the front of `rest`.
    fn read(rest: &mut &'a [u8]) -> Result<Self, Malformed>;

    fn write(&self, out: &mut Vec<u8>);
}

/// 16 bits in front of 16 reserved ones.
pub(super) struct Reserved;

/// A list behind the count of its numbers; one of an odd count may end in padding that the item's length counts.
pub(super) struct Counted;

/// Makes, from such a table: the types' numbers, the enum, its reader and writer, and the iterator over such items.
macro_rules! items {
    ($(#[$about:meta])* numbers $numbers:ident;
     $(#[$one_of:meta])* enum $name:ident<$a:lifetime>, Unknown { $number:ident, $bytes:ident };
     $(#[$all:meta])* struct $list:ident;
     $($(#[$doc:meta])* $NUMBER:ident = $value:literal =>
       $variant:ident $(($one:ident: $one_type:ty $(as $one_how:ty)?))?
       $({ $($field:ident: $type:ty $(as $how:ty)?),* })?;)*) => {
        $(#[$about])*
        pub mod $numbers {
            $(pub const $NUMBER: u16 = $value;)*
        }

        $(#[$one_of])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name<$a> {
            $($(#[$doc])* $variant $(($one_type))? $({ $($field: $type),* })?,)*
            Unknown { $number: u16, $bytes: &$a [u8] },
        }

        impl<$a> $name<$a> {
            pub(crate) fn parse(item: &Tlv<$a>) -> Result<Self, Malformed> {
                let mut rest = item.value;
                let known = match item.kind {
                    $($numbers::$NUMBER => {
                        $(let $one = <$one_type as Field<$a $(, $one_how)?>>::read(&mut rest)?;)?
                        $($(let $field = <$type as Field<$a $(, $how)?>>::read(&mut rest)?;)*)?
                        $name::$variant $(($one))? $({ $($field),* })?
                    })*
                    $number => return Ok($name::Unknown { $number, $bytes: item.$bytes }),
                };
                if rest.is_empty() { Ok(known) } else { Err(Malformed::Length) }
            }

            /// Its type's number.
            pub fn $number(&self) -> u16 {
                match self {
                    $($name::$variant { .. } => $numbers::$NUMBER,)*
                    $name::Unknown { $number, .. } => *$number,
                }
            }

            /// Appends the value.
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$variant $(($one))? $({ $($field),* })? => {
                        $(<$one_type as Field<$($one_how)?>>::write($one, out);)?
                        $($(<$type as Field<$($how)?>>::write($field, out);)*)?
                    })*
                    $name::Unknown { $bytes, .. } => out.extend_from_slice($bytes),
                }
            }
        }

        $(#[$all])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $list<$a>(Tlvs<$a>);

        impl<$a> $list<$a> {
            pub const fn new(bytes: &$a [u8]) -> Self {
                $list(Tlvs::new(bytes))
            }

            /// The bytes not yet read.
            pub const fn as_bytes(&self) -> &$a [u8] {
                self.0.rest()
            }
        }

        impl<$a> Iterator for $list<$a> {
            type Item = Result<$name<$a>, Malformed>;

            fn next(&mut self) -> Option<Self::Item> {
                let item = self.0.next()?.and_then(|item| $name::parse(&item));
                if item.is_err() {
                    self.0 = Tlvs::default();
                }
                Some(item)
            }
        }
    };
}
pub(super) use items;

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (first, behind) = rest.split_first_chunk().ok_or(Malformed::Truncated)?;
    *rest = behind;
    Ok(*first)
}

macro_rules! fields {
    ($($type:ty $(as $how:ty)?, $rest:ident => $read:expr, $value:ident => $bytes:expr;)*) => {$(
        impl<'a> Field<'a $(, $how)?> for $type {
            fn read($rest: &mut &'a [u8]) -> Result<Self, Malformed> {
                Ok($read)
            }

            fn write(&self, out: &mut Vec<u8>) {
                let $value = self;
                out.extend_from_slice(&$bytes);
            }
        }
    )*};
}

fields! {
    u16, rest => u16::from_be_bytes(take(rest)?), number => number.to_be_bytes();
    u32, rest => u32::from_be_bytes(take(rest)?), number => number.to_be_bytes();
    u16 as Reserved, rest => (u32::read(rest)? >> 16) as u16, number => (u32::from(*number) << 16).to_be_bytes();
    Tsn, rest => Tsn(u32::read(rest)?), tsn => tsn.0.to_be_bytes();
    Ipv4Addr, rest => take::<4>(rest)?.into(), address => address.octets();
    Ipv6Addr, rest => take::<16>(rest)?.into(), address => address.octets();
    &'a [u8], rest => core::mem::take(rest), bytes => **bytes;
    List<'a>, rest => List::parse(core::mem::take(rest))?, list => list.as_bytes();
}

impl<'a> Field<'a, Counted> for List<'a> {
    fn read(rest: &mut &'a [u8]) -> Result<Self, Malformed> {
        let bytes = (u32::read(rest)? as usize).checked_mul(2);
        let list = bytes.and_then(|bytes| core::mem::take(rest).get(..bytes));
        List::parse(list.ok_or(Malformed::Length)?)
    }

    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u32).write(out);
        out.extend_from_slice(self.as_bytes());
    }
}

/// So many bytes that mean nothing.
impl Field<'_> for usize {
    fn read(rest: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(core::mem::take(rest).len())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.resize(out.len() + self, 0);
    }
}

/// The sender's and the receiver's next TSN, or nothing.
impl Field<'_> for Option<(Tsn, Tsn)> {
    fn read(rest: &mut &[u8]) -> Result<Self, Malformed> {
        if rest.is_empty() {
            return Ok(None);
        }
        Ok(Some((Tsn::read(rest)?, Tsn::read(rest)?)))
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some((sender, receiver)) = self {
            sender.write(out);
            receiver.write(out);
        }
    }
}
