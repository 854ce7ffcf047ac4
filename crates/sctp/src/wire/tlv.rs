//! The one reader and the one writer of type-length-value items: chunks, parameters and error causes are all made of them.

use core::fmt;

/// Bytes that are not what their place asks for. The chunk, and what follows it in its packet, cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// Fewer bytes than the fixed part needs.
    Truncated,
    /// A length field that is smaller than its own header, or leads out of the enclosing item.
    Length,
    /// A value that its type does not allow.
    Value(&'static str),
}

/// One item. A chunk's type is the upper byte of `kind`, its flags are the lower one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tlv<'a> {
    pub kind: u16,
    pub value: &'a [u8],
    /// Header and value, without padding.
    pub whole: &'a [u8],
}

/// Items in exactly the bytes given. Padding after the last may be missing, in part or wholly; an error is the last item.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tlvs<'a> {
    rest: &'a [u8],
}

impl<'a> Tlvs<'a> {
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Tlvs { rest: bytes }
    }

    /// What has not been read yet.
    #[inline]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn first(bytes: &'a [u8]) -> Result<Tlv<'a>, Malformed> {
        let Some((head, _)) = bytes.split_first_chunk::<4>() else {
            return Err(Malformed::Truncated);
        };
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        match bytes.get(..length) {
            Some(whole @ [_, _, _, _, value @ ..]) => Ok(Tlv {
                kind: u16::from_be_bytes([head[0], head[1]]),
                value,
                whole,
            }),
            _ => Err(Malformed::Length),
        }
    }
}

impl<'a> Iterator for Tlvs<'a> {
    type Item = Result<Tlv<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = core::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        let item = Self::first(bytes);
        if let Ok(tlv) = &item {
            self.rest = bytes
                .get(tlv.whole.len().next_multiple_of(4)..)
                .unwrap_or_default();
        }
        Some(item)
    }
}

/// Writes items behind `base`, each at a multiple of four bytes from it. The last item's padding is left to the enclosing one,
/// whose length does not count it.
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    base: usize,
}

impl<'o> Writer<'o> {
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let base = out.len();
        Writer { out, base }
    }

    /// Items counted from `base`, where earlier ones already stand in `out`.
    #[inline]
    pub fn from(out: &'o mut Vec<u8>, base: usize) -> Self {
        Writer { out, base }
    }

    /// One item whose value `body` appends. A value that no length field can tell is cut.
    #[inline]
    pub fn item(&mut self, kind: u16, body: impl FnOnce(&mut Vec<u8>)) {
        self.pad();
        let start = self.out.len();
        self.out
            .extend_from_slice(&[(kind >> 8) as u8, kind as u8, 0, 0]);
        body(self.out);
        self.out.truncate(start + usize::from(u16::MAX));
        let length = (self.out.len() - start) as u16;
        self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// An item with these bytes as its value.
    #[inline]
    pub fn bytes(&mut self, kind: u16, value: &[u8]) {
        self.item(kind, |out| out.extend_from_slice(value));
    }

    /// An item that is encoded already.
    #[inline]
    pub fn raw(&mut self, whole: &[u8]) {
        self.pad();
        self.out.extend_from_slice(whole);
    }

    /// Fills up to a multiple of four bytes.
    #[inline]
    pub fn pad(&mut self) {
        let missing = (self.base.wrapping_sub(self.out.len())) & 3;
        self.out.extend_from_slice(&[0; 3][..missing]);
    }
}

/// Numbers of 16 bits in a row: stream lists, address types, HMAC identifiers.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct List<'a>(&'a [u8]);

impl<'a> List<'a> {
    /// Exactly these bytes: an odd one is malformed.
    pub const fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        if bytes.len().is_multiple_of(2) {
            Ok(List(bytes))
        } else {
            Err(Malformed::Value("half a number in a list"))
        }
    }

    /// As on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    pub const fn len(&self) -> usize {
        self.0.len() / 2
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = u16> + Clone + 'a {
        self.0.as_chunks().0.iter().map(|n| u16::from_be_bytes(*n))
    }

    pub fn contains(&self, number: u16) -> bool {
        self.iter().any(|n| n == number)
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
