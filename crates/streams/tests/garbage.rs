//! Peers that are broken: nonsense in the segment, or dead in the middle of a message.

#![cfg(not(loom))]

#[path = "common/processes.rs"]
mod processes;

use std::time::{Duration, Instant};

use headwater_host::table::{self, Descriptor};
use headwater_streams::head::Head;
use headwater_streams::head::control::ioctl;
use headwater_streams::head::message::{Choice, Priority};
use headwater_streams::head::poll::Streams;
use headwater_streams::pipe::RING;
use processes::*;

const SID: u32 = (b'S' as u32) << 8;
const I_POP: u32 = SID | 3;
const I_SRDOPT: u32 = SID | 6;
const RMSGN: usize = 2;
const HEADER: usize = 4096;
/// Whatever hangs is ended by SIGALRM, which fails the test.
const PATIENCE: u32 = 120;
/// Messages in a band, each of which fills it.
const BANDED: usize = 20_000;

/// xorshift64*
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n
    }
    /// Mostly small: what is plausible goes deeper than noise.
    fn word(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => self.next() & 0xff,
            2 => self.next() & 0xf_ffff,
            3 => 1 << self.below(64),
            4 => u64::MAX,
            _ => self.next(),
        }
    }
}

fn set_alarm(seconds: u32) {
    // SAFETY: a number.
    unsafe { libc::alarm(seconds) };
}

/// Writes nonsense over the segment, between ordinary calls, for a few milliseconds.
fn spoil(fd: i32, random: &mut Random) {
    let head = stream(fd);
    let base = head.pipe().unwrap().base();
    let headers_only = random.below(3) == 0;
    let until = Instant::now() + Duration::from_micros(random.below(4000) as u64);
    while Instant::now() < until {
        // The mapping begins with the header page; each ring is there twice.
        let offset = if headers_only || random.below(2) == 0 {
            256 + random.below(HEADER - 256)
        } else {
            HEADER + random.below(4 * RING)
        };
        for i in 0..random.below(4) {
            let at = (offset & !7) + i * 8;
            if at < HEADER + 4 * RING {
                // SAFETY: inside the mapping, aligned; volatile, since others write there too.
                unsafe { base.add(at).cast::<u64>().write_volatile(random.word()) };
            }
        }
        for _ in 0..random.below(5) {
            some_call(fd, random);
        }
    }
}

/// Any call; whatever it returns is right.
fn some_call(fd: i32, random: &mut Random) {
    let head = stream(fd);
    let mut buf = vec![0; random.below(3000)];
    let mut control = [0; 64];
    match random.below(16) {
        0..=2 => drop(head.read(&mut buf)),
        3..=5 => drop(head.write(&buf)),
        6 | 7 => put_some(head, &buf, random),
        8 => {
            let long = vec![1; random.below(200_000)];
            let _ = head.put_message(Some(&control), Some(&long), Priority::Band(0), soon());
        }
        9 | 10 => {
            let choice = [Choice::Any, Choice::High, Choice::AtLeast(3)][random.below(3)];
            let _ = head.get_message(Some(&mut control), Some(&mut buf), choice, soon());
        }
        11 => {
            let h = table::stream(fd).unwrap();
            let want = random.next() as u32;
            Streams.ready(h, want);
            Streams.arm(h, want);
            Streams.edges(h);
            Streams.settle(h);
            Streams.disarm(h, want);
        }
        12 => change_modules(head, random),
        _ => some_ioctl(head, fd, random),
    }
}

/// A deadline, since the word that says O_NONBLOCK may be spoiled too.
fn soon() -> Option<u64> {
    Some(headwater_host::sys::now() + 1_000_000)
}

fn put_some(head: &Head, buf: &[u8], random: &mut Random) {
    let priority = match random.below(3) {
        0 => Priority::High,
        1 => Priority::Band(0),
        _ => Priority::Band(random.next() as u8),
    };
    let control = (random.below(3) > 0).then_some(&buf[..buf.len().min(40)]);
    let _ = head.put_message(control, Some(buf), priority, soon());
}

fn change_modules(head: &'static Head, random: &mut Random) {
    let name = [c"nullmod", c"bufmod"][random.below(2)];
    // SAFETY: the requests read a C string, or nothing.
    unsafe {
        if random.below(2) == 0 {
            let _ = ioctl(head, I_PUSH, name.as_ptr() as usize);
        } else {
            let _ = ioctl(head, I_POP, 0);
        }
    }
}

fn some_ioctl(head: &'static Head, fd: i32, random: &mut Random) {
    let mut words = [0u64; 64];
    let pointer = words.as_mut_ptr() as usize;
    // SAFETY: each request gets what it wants; I_PEEK finds two buffers without room.
    unsafe {
        let _ = match random.below(14) {
            0 => ioctl(head, SID | 1, pointer),
            1 => ioctl(head, SID | 5, 1 + random.below(3)),
            2 => ioctl(head, SID | 15, pointer),
            3 => ioctl(head, SID | 30, pointer),
            4 => ioctl(head, SID | 29, random.below(256)),
            5 => ioctl(head, SID | 31, 1 + random.below(2)),
            6 => ioctl(head, SID | 34, random.below(256)),
            7 => ioctl(head, I_SRDOPT, random.below(3)),
            8 => ioctl(head, SID | 7, pointer),
            9 => ioctl(head, SID | 21, 0),
            10 => ioctl(head, SID | 4, pointer),
            11 => ioctl(head, 0x541b, pointer),
            12 => send_fd(fd, 0),
            _ if head.events(!0) & libc::POLLIN as u32 != 0 && head.words().is_nonblocking() => {
                receive_fd(fd).inspect(|&fd| close(fd))
            }
            _ => Ok(0),
        };
    }
}

#[test]
fn nonsense_in_a_segment_spoils_one_stream_only() {
    let _turn = alone();
    set_alarm(PATIENCE);
    let sound = pipe();
    for seed in 0..80 {
        let [ours, theirs] = pipe();
        let child = Child::judged(|| {
            close(ours);
            nonblocking(theirs);
            let mut random = Random::new(seed);
            spoil(theirs, &mut random);
            // Not by the library: what a broken process does last.
            true
        });
        close(theirs);
        nonblocking(ours);
        let mut random = Random::new(!seed);
        let until = Instant::now() + Duration::from_micros(random.below(8000) as u64);
        while Instant::now() < until {
            some_call(ours, &mut random);
        }
        write(sound[0], "undisturbed").unwrap();
        assert_eq!(read(sound[1]).unwrap(), "undisturbed", "seed {seed}");
        if random.below(2) == 0 {
            close(ours);
            drop(child);
        } else {
            drop(child);
            some_call(ours, &mut random);
            close(ours);
        }
    }
    set_alarm(0);
    let _ = sound.map(close);
}

/// {length, checksum, noise}
fn message(random: &mut Random, longest: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..8 + random.below(longest)).map(|i| i as u8).collect();
    let tag = random.next().to_ne_bytes();
    let end = bytes.len();
    bytes[end - 8..].copy_from_slice(&tag);
    let len = bytes.len() as u32;
    bytes[..4].copy_from_slice(&len.to_ne_bytes());
    let sum = checksum(&bytes[8.min(end)..]);
    bytes[4..8].copy_from_slice(&sum.to_ne_bytes());
    bytes
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1, |sum, &b| {
        (sum ^ b as u32).wrapping_mul(0x0100_0193).rotate_left(3)
    })
}

fn assert_whole(bytes: &[u8]) {
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(word(0) as usize, bytes.len());
    assert_eq!(word(4), checksum(&bytes[8..]));
}

/// Writes messages until it is killed.
fn stream_forever(fd: i32, by_putmsg: bool, seed: u64) -> ! {
    let mut random = Random::new(seed);
    let messages: Vec<_> = (0..16)
        .map(|_| message(&mut random, if by_putmsg { 200_000 } else { 60_000 }))
        .collect();
    for bytes in messages.iter().cycle() {
        let sent = if by_putmsg {
            let control = checksum(bytes).to_ne_bytes();
            let priority = Priority::Band(random.below(2) as u8);
            stream(fd).put_message(Some(&control), Some(bytes), priority, None)
        } else {
            stream(fd).write(bytes).map(drop)
        };
        if let Err(e) = sent {
            let text = format!("seed {seed}: errno {e}, {} bytes\n", bytes.len());
            // SAFETY: bytes to standard error, past the test program's capture.
            unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
            sent.unwrap();
        }
    }
    unreachable!()
}

/// Receives one whole message; false at the end.
fn receive_whole(fd: i32, by_putmsg: bool, buf: &mut [u8]) -> bool {
    if !by_putmsg {
        let n = stream(fd).read(buf).unwrap();
        if n > 0 {
            assert_whole(&buf[..n]);
        }
        return n > 0;
    }
    let mut control = [0; 8];
    let got = stream(fd)
        .get_message(Some(&mut control), Some(buf), Choice::Any, None)
        .unwrap();
    assert_eq!(got.more, 0);
    if got.control == 0 {
        return false;
    }
    let data = &buf[..got.data as usize];
    assert_whole(data);
    assert_eq!(control[..4], checksum(data).to_ne_bytes());
    true
}

#[test]
fn of_a_killed_peer_only_whole_messages_come_and_then_the_end() {
    let _turn = alone();
    set_alarm(PATIENCE);
    let mut buf = vec![0; 300_000];
    for seed in 0..64 {
        let mut random = Random::new(seed);
        let by_putmsg = seed % 2 == 0;
        let [ours, theirs] = pipe();
        let child = Child::judged(|| {
            close(ours);
            if seed % 8 >= 6 {
                push(theirs, "nullmod");
            }
            stream_forever(theirs, by_putmsg, seed)
        });
        close(theirs);
        if seed % 8 == 2 || seed % 8 == 3 {
            push(ours, "bufmod");
        }
        if !by_putmsg {
            // SAFETY: the request takes a number.
            unsafe { ioctl(stream(ours), I_SRDOPT, RMSGN) }.unwrap();
        }
        for _ in 0..random.below(40) {
            assert!(receive_whole(ours, by_putmsg, &mut buf), "seed {seed}");
        }
        std::thread::sleep(Duration::from_micros(random.below(300) as u64));
        drop(child);
        let killed = Instant::now();
        while receive_whole(ours, by_putmsg, &mut buf) {}
        assert!(killed.elapsed() < Duration::from_secs(20), "seed {seed}");
        assert_ne!(stream(ours).events(!0) & libc::POLLHUP as u32, 0);
        assert_eq!(write(ours, "x"), Err(libc::EPIPE));
        close(ours);
    }
    set_alarm(0);
}

/// A reader that takes a message as soon as it is there, and counts it out of its band, before its writer goes on.
#[test]
fn a_band_takes_messages_again_when_all_of_it_was_read() {
    let _turn = alone();
    set_alarm(PATIENCE);
    let [ours, theirs] = pipe();
    let child = Child::judged(|| {
        close(ours);
        // Each fills the band.
        let bytes = vec![1; 20_000];
        for _ in 0..BANDED {
            let sent = stream(theirs).put_message(None, Some(&bytes), Priority::Band(1), None);
            if sent.is_err() {
                return false;
            }
        }
        true
    });
    close(theirs);
    let mut buf = vec![0; 20_000];
    for _ in 0..BANDED {
        let got = stream(ours).get_message(None, Some(&mut buf), Choice::Any, None);
        assert_eq!(got.map(|got| got.data), Ok(20_000));
    }
    assert!(child.succeeded());
    set_alarm(0);
    close(ours);
}
