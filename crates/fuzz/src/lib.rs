//! A body for each parser of foreign bytes: it takes any bytes and panics where something is wrong. The targets in `fuzz/` call
//! them, and so do plain loops in the tests here.
#![forbid(unsafe_code)]

mod association;
mod handed;
mod handed_over;
mod options;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use headwater_host::board::{Addr, Board, Tuple};
use headwater_host::config::Config;
use headwater_host::image;
use headwater_ipnet::icmp;
use headwater_sctp::wire::Packet;
use headwater_sctp_sockets::control;
use headwater_sockets::inherit::Heir;
use headwater_streams::tunables::Tunables;
use headwater_tpi::option::Options;
use headwater_tpi::{Indication, Request};
use headwater_xti::netaddr::{Address, Family};

pub use association::association;
pub use handed::{Image, Variable};
pub use handed_over::{frame, mailbox, stat};
pub use options::Endpoints;

/// SCTP packets by themselves.
pub fn packet(bytes: &[u8]) {
    if let Ok(packet) = Packet::parse(bytes) {
        let _ = packet.checksum();
        packet.chunks().for_each(drop);
    }
}

/// TPI primitives and lists of options: what decodes means the same encoded again.
pub fn primitive(bytes: &[u8]) {
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
    if let Ok(indication) = Indication::decode(bytes) {
        assert_eq!(Indication::decode(&indication.encode()), Ok(indication));
    }
    for option in Options::new(bytes).flatten() {
        assert!(option.value.len() <= bytes.len());
    }
}

/// Control data of a message that a program sends by an SCTP socket.
pub fn control(bytes: &[u8]) {
    let _ = control::read(bytes, &control::SendInfo::default());
    for room in [0, 20, 64, bytes.len()] {
        let mut cut = bytes.to_vec();
        control::fit(&mut cut, room);
        assert!(cut.len() <= room.min(bytes.len()));
    }
}

/// Errors of ICMP, and what they quote.
pub fn icmp(bytes: &[u8]) {
    let Some((first, message)) = bytes.split_first() else {
        return;
    };
    if let Some(report) = icmp::report(first & 1 != 0, message) {
        assert!(report.quoted.len() <= message.len());
        report.ports();
    }
    icmp::ipv4(message);
}

/// What an image is told of the connections that it inherits.
pub fn heirs(bytes: &[u8]) {
    for text in String::from_utf8_lossy(bytes).split(';') {
        if let Some(heir) = Heir::parse(text) {
            let again = Heir::parse(heir.text().trim_end_matches(';'));
            assert_eq!(again, Some(heir));
        }
    }
}

/// Addresses of `<netdir.h>`, as bytes and as text. True: there was one.
pub fn universal(bytes: &[u8]) -> bool {
    let mut any = false;
    for family in [Family::Inet, Family::Inet6, Family::Loopback] {
        for address in [
            Address::decode(family, bytes),
            Address::from_universal(family, bytes),
        ]
        .into_iter()
        .flatten()
        {
            any |= family != Family::Loopback;
            let text = address.to_universal();
            let again = Address::from_universal(family, text.as_bytes()).expect("our own text");
            assert_eq!(again.to_universal(), text);
            assert_eq!(Address::decode(family, &again.encode()), Some(again));
        }
    }
    any
}

/// A program that is about to be started: a file in `folder`. The first byte chooses what its beginning says that it is.
pub fn program(folder: &Path, bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let mut text = rest.to_vec();
    match first % 4 {
        0 => {}
        1 => text.splice(..0, *b"#! /").for_each(drop),
        _ if text.len() < 64 => {}
        _ => {
            // The class is 64 bits, the machine x86-64.
            text[..5].copy_from_slice(b"\x7fELF\x02");
            text[18..20].copy_from_slice(&[62, 0]);
        }
    }
    let path = folder.join("program");
    std::fs::write(&path, text).expect("a file of our own");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("as above");
    let path = CString::new(path.as_os_str().as_bytes()).expect("a plain name");
    image::of_program(&path);
}

/// The file that the administrator writes numbers of STREAMS into.
pub fn tunables(bytes: &[u8]) {
    let (tunables, _) = Tunables::parse(&String::from_utf8_lossy(bytes));
    assert!(tunables.nband >= 1 && tunables.nband <= 256 && tunables.strmsgsz > 0);
}

/// Values of HEADWATER_ variables, a line for each.
pub fn settings(bytes: &[u8]) {
    const NAMES: [&str; 10] = [
        "HEADWATER_SOCKETS",
        "HEADWATER_RING",
        "HEADWATER_SPIN",
        "HEADWATER_PORTS",
        "HEADWATER_DENY_PORTS",
        "HEADWATER_PROGRAMS",
        "HEADWATER_PEERS",
        "HEADWATER_LOG",
        "HEADWATER_SCTP",
        "HEADWATER_PIPE",
    ];
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    for shift in 0..NAMES.len() {
        let config = Config::from(|name| {
            let at = NAMES.iter().position(|known| *known == name)?;
            lines.get((at + shift) % NAMES.len()).map(|v| v.to_string())
        });
        assert!(config.ring.is_power_of_two());
        config.port_allowed(1);
        config.program_allowed("program");
    }
}

/// A board on which somebody else has written. It lies in `folder`, which becomes this user's alone.
pub struct ForeignBoard {
    board: Board,
    memory: std::fs::File,
    start: u64,
    len: u64,
}

impl ForeignBoard {
    pub fn new(folder: &Path) -> ForeignBoard {
        let text = folder.to_str().expect("a plain name");
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
            .expect("a folder of our own");
        let board = Board::open(text, true).expect("a board");
        // The board is System V memory, which lies in this process too.
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let line = maps.lines().find(|line| line.contains("/SYSV"));
        let range = line.and_then(|line| line.split(' ').next()?.split_once('-'));
        let (from, to) = range.expect("the board's memory");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        let (start, len) = (number(from), number(to) - number(from));
        let memory = std::fs::OpenOptions::new()
            .write(true)
            .open("/proc/self/mem")
            .expect("this process's memory");
        ForeignBoard {
            board,
            memory,
            start,
            len,
        }
    }

    /// Eight bytes choose the place, the rest is written there.
    pub fn feed(&self, bytes: &[u8]) {
        let Some((place, rest)) = bytes.split_first_chunk::<8>() else {
            return;
        };
        let place = u64::from_le_bytes(*place) % self.len;
        let room = (self.len - place).min(rest.len() as u64) as usize;
        self.memory
            .write_all_at(&rest[..room], self.start + place)
            .expect("room in the board");
        let port = u16::from_le_bytes([place as u8, (place >> 8) as u8]);
        let addr = Addr {
            ip: u128::from(place),
            port,
        };
        let tuple = Tuple {
            client: addr,
            server: addr,
            netns: place,
        };
        self.board.account(addr);
        if let Some(offer) = self.board.find(&tuple) {
            self.board.state(offer);
        }
        self.board.connections();
        self.board.listeners();
    }
}
