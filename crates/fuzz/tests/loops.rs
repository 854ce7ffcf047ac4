//! Each body on bytes by chance, as often as a test may take; HEADWATER_FUZZ_SECONDS: for so long.

use std::time::{Duration, Instant};

use headwater_fuzz::{Image, Variable};

/// Splitmix64.
struct Chance(u64);

impl Chance {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Small numbers make lengths and kinds that mean something more often.
    fn bytes(&mut self) -> Vec<u8> {
        let small = self.word() % 3;
        let len = self.word() % 300;
        let byte = |word: u64| match (small, word >> 8 & 3) {
            (0, _) => word as u8,
            (1, _) => [0, 1, 3, 4, 5, 8, 16, 64, 0x80, 0xc0, 0xff][(word % 11) as usize],
            (_, 0) => word as u8 % 16,
            _ => 0,
        };
        (0..len).map(|_| byte(self.word())).collect()
    }
}

/// Nothing is tested by a body that understands nothing.
fn run_some(count: u64, body: impl Fn(&[u8]) -> bool) {
    let (all, understood) = (std::cell::Cell::new(0u64), std::cell::Cell::new(0u64));
    run(count, |bytes| {
        all.set(all.get() + 1);
        understood.set(understood.get() + u64::from(body(bytes)));
    });
    let (all, understood) = (all.get(), understood.get());
    assert!(
        understood > all / 20,
        "{understood} of {all} are understood"
    );
}

fn run(count: u64, body: impl Fn(&[u8])) {
    let seconds = std::env::var("HEADWATER_FUZZ_SECONDS").ok();
    let limit = seconds.map(|text| Duration::from_secs(text.parse().expect("seconds")));
    let began = Instant::now();
    let mut chance = Chance(limit.map_or(1, |_| u64::from(std::process::id())));
    let mut done = 0;
    while limit.map_or(done < count, |limit| began.elapsed() < limit) {
        let bytes = chance.bytes();
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(&bytes))).is_err() {
            panic!("by {bytes:?}");
        }
        done += 1;
    }
}

#[test]
fn packets() {
    run(20_000, headwater_fuzz::packet);
}

#[test]
fn packets_in_an_association() {
    run(1500, headwater_fuzz::association);
}

#[test]
fn primitives() {
    run(20_000, headwater_fuzz::primitive);
}

#[test]
fn control_messages() {
    run(20_000, headwater_fuzz::control);
    // Messages of lengths that mean something, one after the other.
    run(20_000, |bytes| {
        let mut control = Vec::new();
        for len in bytes.iter().take(4) {
            let len = usize::from(len % 64);
            control.extend_from_slice(&len.to_ne_bytes());
            control.resize(control.len() + len.saturating_sub(8).next_multiple_of(8), 1);
        }
        headwater_fuzz::control(&control);
    });
}

#[test]
fn settings() {
    run(2000, headwater_fuzz::settings);
}

#[test]
fn tunables() {
    run(20_000, headwater_fuzz::tunables);
    // Words that mean something are rare among bytes by chance.
    run(5000, |bytes| {
        const WORDS: [&[u8]; 8] = [
            b"hiwat=",
            b"nband=",
            b"cltime",
            b"=",
            b"#",
            b" ",
            b"\n",
            b"99999999999",
        ];
        let text = bytes.iter().map(|byte| WORDS[usize::from(byte % 8)]);
        headwater_fuzz::tunables(&text.collect::<Vec<_>>().concat());
    });
}

#[test]
fn boards() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = headwater_fuzz::ForeignBoard::new(folder.path());
    run(500, |bytes| board.feed(bytes));
}

#[test]
fn errors_of_icmp() {
    run(20_000, headwater_fuzz::icmp);
}

#[test]
fn options_and_addresses() {
    let endpoints = std::cell::RefCell::new(headwater_fuzz::Endpoints::default());
    run(3000, |bytes| endpoints.borrow_mut().feed(bytes));
}

#[test]
fn inherited_connections() {
    // Digits and commas, among them numbers that are too large.
    run(20_000, |bytes| {
        const WORDS: [&str; 8] = ["0", "7", "-1", "12", ",", ",", "99999999999", ";"];
        let text = bytes.iter().map(|byte| WORDS[usize::from(byte % 8)]);
        headwater_fuzz::heirs(text.collect::<String>().as_bytes());
        let ten = bytes
            .iter()
            .map(|byte| WORDS[usize::from(byte % 4)])
            .take(11);
        headwater_fuzz::heirs(ten.collect::<Vec<_>>().join(",").as_bytes());
    });
}

#[test]
fn programs() {
    let folder = tempfile::tempdir().expect("a folder");
    run(2000, |bytes| headwater_fuzz::program(folder.path(), bytes));
}

#[test]
fn universal_addresses() {
    const WORDS: [&[u8]; 16] = [
        b"1", b"127", b"255", b"256", b".", b".", b".", b".", b"0", b":", b"::1", b"fe80", b"\\",
        b"\\0", b"77", b"\xff",
    ];
    run_some(20_000, |bytes| {
        let pick = |mask: u8| move |byte: &u8| WORDS[usize::from(byte & mask)];
        let text: Vec<_> = bytes.iter().take(24).map(pick(15)).collect();
        // Numbers with points between.
        let points: Vec<_> = bytes.iter().take(6).map(pick(3)).collect();
        let mut address = bytes.to_vec();
        if let [first, second, ..] = &mut address[..] {
            [*first, *second] = [[2, 0], [10, 0]][usize::from(*first & 1)];
        }
        let texts = [text.concat(), points.join(&b'.'), address, bytes.to_vec()];
        texts.iter().any(|text| headwater_fuzz::universal(text))
    });
}

fn inherited(variable: Variable) {
    let image = std::cell::RefCell::new(Image::default());
    // As they are, each is understood.
    for which in 0..13 {
        let taken = image.borrow_mut().feed(variable, &[which]);
        assert!(taken > 0, "{variable:?} {which}");
    }
    run_some(1500, |bytes| image.borrow_mut().feed(variable, bytes) > 0);
    run(500, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        image.borrow_mut().begin(variable, &text);
    });
}

#[test]
fn inherited_streams() {
    inherited(Variable::Streams);
}

#[test]
fn inherited_endpoints() {
    inherited(Variable::Endpoints);
}

#[test]
fn inherited_sctp_sockets() {
    inherited(Variable::Sctp);
}

#[test]
fn mailboxes() {
    run_some(3000, headwater_fuzz::mailbox);
}

#[test]
fn frames_of_children() {
    run_some(20_000, |bytes| {
        headwater_fuzz::frame(bytes);
        // The length as it is, or about that.
        let len = bytes.len() as u32 / 2 + u32::from(bytes.first().is_some_and(|b| *b > 250));
        let head = [len.max(8), u32::from(bytes.len() as u8 % 20)];
        let head = head.map(u32::to_ne_bytes).concat();
        headwater_fuzz::frame(&[&head, bytes].concat())
    });
}

#[test]
fn names_of_processes() {
    run(20_000, headwater_fuzz::stat);
    headwater_fuzz::stat(b"a) R 1 (b");
}

/// Each body has a target, and what is built is what is there.
#[test]
fn targets_are_complete() {
    let fuzz = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let read = |path: &str| std::fs::read_to_string(fuzz.join(path)).expect("a file of the tree");
    let manifest = read("Cargo.toml");
    let mut calls = String::new();
    let mut targets = 0;
    for entry in std::fs::read_dir(fuzz.join("fuzz_targets")).expect("a folder of the tree") {
        let name = entry.expect("its names").file_name();
        let name = name.to_str().expect("a name");
        let line = format!("path = \"fuzz_targets/{name}\"");
        assert!(manifest.contains(&line), "{name} is not built");
        calls += &read(&format!("fuzz_targets/{name}"));
        targets += 1;
    }
    assert_eq!(manifest.matches("[[bin]]").count(), targets);
    let bodies = include_str!("../src/lib.rs");
    let functions = bodies
        .lines()
        .filter_map(|line| line.strip_prefix("pub fn ")?.split_once('('));
    let others = [
        "association",
        "Image",
        "Endpoints",
        "ForeignBoard",
        "frame",
        "mailbox",
        "stat",
    ];
    for name in functions.map(|(name, _)| name).chain(others) {
        assert!(calls.contains(name), "{name} has no target");
    }
}
