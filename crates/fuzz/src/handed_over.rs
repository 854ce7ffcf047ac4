//! What comes by sockets of the library's own: greetings with a segment and bells, and frames of children that use their parent's SCTP
//! sockets. And what /proc says of a process, in which its name is anybody's.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;

use headwater_channel::identity::Process;
use headwater_channel::segment::{MIN_RING, Segment};
use headwater_host::{board, hidden, sys};
use headwater_sctp_sockets::remote::wire::{self, Reader, Verb};
use headwater_sockets::handover::{self, Hello};

/// Was it taken? The first byte chooses whether these are the bytes of the greeting, or what is written here and there into the segment
/// that comes with one: two bytes say where, the third what.
pub fn mailbox(bytes: &[u8]) -> bool {
    let Some((first, rest)) = bytes.split_first() else {
        return false;
    };
    let (ours, theirs) = UnixDatagram::pair().expect("a pair");
    if first % 4 == 0 {
        theirs.send(rest).expect("room");
    } else {
        let (_segment, memory) = Segment::create(MIN_RING, board::abi()).expect("memory");
        let by_name = format!("/proc/self/fd/{memory}");
        let file = File::options().write(true).open(by_name);
        let file = file.expect("it is not sealed against writing");
        for change in rest.chunks_exact(3) {
            // The words that are checked are the first.
            let place = match first % 4 {
                1 => u64::from(change[0] % 32),
                _ => u64::from(u16::from_le_bytes([change[0], change[1]])),
            };
            file.write_all_at(&change[2..], place % 4096).expect("room");
        }
        let [a, b] = [0, 1].map(|_| sys::eventfd(0, 0).expect("an eventfd"));
        let hello = Hello::new(u64::from(*first), rest.len() as u32);
        handover::send(theirs.as_raw_fd(), &hello, [memory, a, b]).expect("room");
        for fd in [memory, a, b] {
            sys::close(fd).expect("it is open");
        }
    }
    let Some(came) = handover::receive(ours.as_raw_fd()) else {
        return false;
    };
    let Some(mapped) = came.mapped(first % 8 == 7) else {
        return false;
    };
    assert_eq!(mapped.segment.ring_size(), MIN_RING);
    for fd in mapped.bells.into_iter().chain([mapped.memory]) {
        hidden::close(fd);
    }
    true
}

/// A frame, and what its values are read as by the bytes behind.
pub fn frame(bytes: &[u8]) -> bool {
    let Ok(Some(len)) = wire::length(bytes) else {
        return false;
    };
    let Some((frame, kinds)) = bytes.split_at_checked(len) else {
        return false;
    };
    let Ok((word, mut reader)) = Reader::of(frame) else {
        unreachable!("a frame has its head");
    };
    if let Some(verb) = Verb::of(word) {
        assert_eq!(verb as u32, word);
    }
    let mut left = len - wire::HEADER;
    for kind in kinds {
        let read = match kind % 3 {
            0 => reader.word().map(|_| 4),
            1 => reader.long().map(|_| 8),
            _ => reader.bytes().map(|bytes| 8 + bytes.len()),
        };
        match read {
            Ok(n) => left = left.checked_sub(n).expect("no more than there is"),
            Err(e) => assert_eq!(e, libc::EPROTO),
        }
    }
    true
}

/// What /proc/PID/stat says: as any text, and with a name that is any.
pub fn stat(bytes: &[u8]) {
    let _ = Process::parse(bytes);
    let name = bytes.iter().copied().take(64).collect::<Vec<u8>>();
    let mut text = b"4711 (".to_vec();
    text.extend_from_slice(&name);
    text.extend_from_slice(b") S 42 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 1234 23 24\n");
    let told = Process::parse(&text).map(|p| (p.parent, p.start));
    assert_eq!(told, Some((42, 1234)));
}
