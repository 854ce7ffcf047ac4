//! What children and the owner of sockets say to each other: {length: 4, word: 4, values}, where the word is a verb's number in a
//! request and an errno in an answer. Values are words of 4 or 8 bytes in the host's order, and bytes with their length in front.
//!
//! # Contract
//! Descriptors that came are this process's. Lengths that came are checked against the bytes that there are.

use std::io::{IoSlice, IoSliceMut};

use headwater_channel::pass::{self, Wanted};
use headwater_host::{hidden, sys, table};
use headwater_providers::loopback::buffers;
use libc::iovec;

/// No frame is longer.
pub const MOST: usize = 256 << 20;
/// Length and word.
pub const HEADER: usize = 8;

macro_rules! verbs {
    ($($(#[$doc:meta])* $verb:ident $(= $number:literal)?,)*) => {
        /// What is asked for, of a socket unless said otherwise.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Verb {
            $($(#[$doc])* $verb $(= $number)?,)*
        }

        impl Verb {
            pub fn of(word: u32) -> Option<Verb> {
                [$(Verb::$verb),*].get((word as usize).checked_sub(1)?).copied()
            }
        }
    };
}

verbs! {
    Bind = 1,
    Connect,
    Listen,
    Accept,
    Shutdown,
    Send,
    Receive,
    SetOption,
    GetOption,
    LocalName,
    PeerName,
    Unread,
    Unsent,
    /// Which of the wanted bits hold; if none does, the bell is rung when one may.
    Ready,
    /// An eventfd for that.
    Bell,
    /// The caller has no more use for it.
    Close,
    /// Of no socket: a child of the caller will have all that the caller has; its presence comes along.
    Fork,
}

/// A frame that is being written.
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new(word: u32) -> Writer {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&word.to_ne_bytes());
        Writer(bytes)
    }

    pub fn asking(verb: Verb, socket: u64) -> Writer {
        Writer::new(verb as u32).long(socket)
    }

    pub fn put_word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_ne_bytes());
    }

    pub fn put_long(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_ne_bytes());
    }

    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_long(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn word(mut self, word: u32) -> Writer {
        self.put_word(word);
        self
    }

    pub fn long(mut self, word: u64) -> Writer {
        self.put_long(word);
        self
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Writer {
        self.put_bytes(bytes);
        self
    }

    pub fn parts(self, parts: &[iovec]) -> Writer {
        let mut writer = self.long(buffers::len(parts) as u64);
        for part in parts {
            writer.0.extend_from_slice(buffers::bytes(part));
        }
        writer
    }

    /// With another word than at first.
    pub fn finish_with(mut self, word: u32) -> sys::Result<Vec<u8>> {
        self.0[4..HEADER].copy_from_slice(&word.to_ne_bytes());
        self.finish()
    }

    /// With its length in place. EMSGSIZE.
    pub fn finish(mut self) -> sys::Result<Vec<u8>> {
        if self.0.len() > MOST {
            return Err(libc::EMSGSIZE);
        }
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        Ok(self.0)
    }
}

/// The values of a frame, one after the other. EPROTO: there is no such value.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn empty() -> Reader<'a> {
        Reader(&[])
    }

    /// Of a whole frame: its word, and the rest.
    pub fn of(frame: &'a [u8]) -> sys::Result<(u32, Reader<'a>)> {
        let mut reader = Reader(frame);
        reader.word()?;
        Ok((reader.word()?, reader))
    }

    fn take(&mut self, len: usize) -> sys::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(libc::EPROTO)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn word(&mut self) -> sys::Result<u32> {
        let bytes = self.take(4)?.try_into().map_err(|_| libc::EPROTO)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub fn long(&mut self) -> sys::Result<u64> {
        let bytes = self.take(8)?.try_into().map_err(|_| libc::EPROTO)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    pub fn bytes(&mut self) -> sys::Result<&'a [u8]> {
        let len = usize::try_from(self.long()?).map_err(|_| libc::EPROTO)?;
        self.take(len)
    }
}

/// The length of the frame that begins there, once that much has come. EPROTO: no frame has that length.
pub fn length(bytes: &[u8]) -> sys::Result<Option<usize>> {
    let Some(Ok(head)) = bytes.get(..4).map(TryInto::try_into) else {
        return Ok(None);
    };
    match u32::from_ne_bytes(head) as usize {
        len @ HEADER..=MOST => Ok(Some(len)),
        _ => Err(libc::EPROTO),
    }
}

/// Receives more of a frame, at most `piece` bytes before its length is known; a descriptor that comes with it is `passed`. True: it is
/// whole. ECONNRESET: the end. EINTR is not told.
pub fn receive_frame(
    fd: i32,
    frame: &mut Vec<u8>,
    passed: &mut Option<i32>,
    piece: usize,
    flags: i32,
) -> sys::Result<bool> {
    let room = match length(frame)? {
        Some(len) if frame.len() == len => return Ok(true),
        Some(len) => len.checked_sub(frame.len()).ok_or(libc::EPROTO)?,
        None => piece,
    };
    let (got, descriptor) = receive(fd, frame, room, flags)?;
    if descriptor.is_some() {
        hidden::close(core::mem::replace(passed, descriptor).unwrap_or(-1));
    }
    match got {
        0 => Err(libc::ECONNRESET),
        _ => Ok(false),
    }
}

/// Two ends, close-on-exec, hidden.
pub fn pair(kind: i32) -> sys::Result<[i32; 2]> {
    let fds = sys::socket_pair_of(kind | libc::SOCK_CLOEXEC)?;
    let first = hidden::hide_needed(fds[0]);
    let second = hidden::hide_needed(fds[1]);
    match (first, second) {
        (Ok(first), Ok(second)) => Ok([first, second]),
        (first, second) => {
            let errno = first.and(second).err().unwrap_or(libc::EMFILE);
            [first, second]
                .into_iter()
                .flatten()
                .for_each(hidden::close);
            Err(errno)
        }
    }
}

/// As much of `bytes` as goes; `pass` goes with the first of them. Never SIGPIPE. EINTR is not told.
pub fn send(fd: i32, bytes: &[u8], pass: Option<i32>, flags: i32) -> sys::Result<usize> {
    pass::send(fd, &[IoSlice::new(bytes)], pass.as_slice(), None, flags)
}

/// Bytes at the end of `into`, at most `room`, and a hidden descriptor that came with them; others are closed. 0: the end. EINTR is not
/// told.
pub fn receive(
    fd: i32,
    into: &mut Vec<u8>,
    room: usize,
    flags: i32,
) -> sys::Result<(usize, Option<i32>)> {
    into.reserve(room);
    let spare = into.spare_capacity_mut().as_mut_ptr().cast();
    // SAFETY: so many bytes are spare, and the kernel alone is given them, to write there.
    let spare = unsafe { core::slice::from_raw_parts_mut(spare, room) };
    let wanted = Wanted {
        descriptors: 1,
        credentials: false,
    };
    let mut came = pass::receive(fd, &mut [IoSliceMut::new(spare)], wanted, flags)?;
    // SAFETY: so many bytes were written there.
    unsafe { into.set_len(into.len() + came.len) };
    let passed = came.take(0).and_then(|passed| {
        table::clear(passed.number());
        hidden::hide_needed(passed.into_number()).ok()
    });
    Ok((came.len, passed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_as_they_were_written() {
        let frame = Writer::asking(Verb::Send, 77)
            .word(5)
            .bytes(b"abc")
            .bytes(b"")
            .finish();
        let frame = frame.unwrap();
        assert_eq!(length(&frame), Ok(Some(frame.len())));
        let (word, mut values) = Reader::of(&frame).unwrap();
        assert_eq!(Verb::of(word), Some(Verb::Send));
        assert_eq!(values.long(), Ok(77));
        assert_eq!(values.word(), Ok(5));
        assert_eq!(values.bytes(), Ok(&b"abc"[..]));
        assert_eq!(values.bytes(), Ok(&b""[..]));
        assert_eq!(values.word(), Err(libc::EPROTO));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        assert_eq!(length(&[1, 2, 3]), Ok(None));
        assert_eq!(length(&7u32.to_ne_bytes()), Err(libc::EPROTO));
        assert_eq!(length(&u32::MAX.to_ne_bytes()), Err(libc::EPROTO));
        let lying = Writer::new(0).long(1 << 40).finish().unwrap();
        assert_eq!(Reader::of(&lying).unwrap().1.bytes(), Err(libc::EPROTO));
    }

    #[test]
    fn every_verb_has_its_number() {
        for word in 1..=Verb::Fork as u32 {
            assert_eq!(Verb::of(word).map(|verb| verb as u32), Some(word));
        }
        assert_eq!(Verb::of(0), None);
        assert_eq!(Verb::of(Verb::Fork as u32 + 1), None);
    }

    #[test]
    fn a_descriptor_goes_with_the_bytes() {
        let [a, b] = pair(libc::SOCK_STREAM).unwrap();
        let [c, d] = pair(libc::SOCK_STREAM).unwrap();
        assert_eq!(send(a, b"x", Some(c), 0), Ok(1));
        let mut got = Vec::new();
        let (n, passed) = receive(b, &mut got, 10, 0).unwrap();
        assert_eq!((n, &got[..]), (1, &b"x"[..]));
        hidden::close(c);
        assert_eq!(send(passed.unwrap(), b"y", None, 0), Ok(1));
        hidden::close(passed.unwrap());
        got.clear();
        assert_eq!(receive(d, &mut got, 10, 0), Ok((1, None)));
        assert_eq!(receive(d, &mut got, 10, 0), Ok((0, None)));
        [a, b, d].into_iter().for_each(hidden::close);
    }
}
