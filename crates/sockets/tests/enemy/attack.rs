//! The enemy of one case: two connections with the victim, one in each role, and what it does to them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use super::common::calls::{self, Socket, piece};
use super::common::stream::Random;
use super::common::users;
use super::{Kind, World, exchange};
use headwater_channel::bell;
use headwater_channel::segment::Segment;
use headwater_host::shared::Shared;
use headwater_host::{board, sys};
use headwater_sockets::handover::{self, Hello};
use headwater_sockets::segment::{Header, View};

/// What an enemy can reach beside the segment.
struct Reach {
    board: Option<Board>,
    /// Connections to mailboxes.
    letters: Vec<i32>,
    /// Descriptors to send.
    strange: Vec<i32>,
}

pub fn case(world: &World, seed: u64) {
    let mut random = Random::new(seed);
    let (listener, port) = calls::listen(false, 0);
    world.enemy_port.store(port as u32, Ordering::Release);
    let mut reach = Reach {
        board: random.one_in(4).then(Board::attach),
        letters: Vec::new(),
        strange: strange(),
    };
    let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
    attack(world, socket, 0, &mut reach, &mut random);
    socket.close();
    let socket = calls::accept(listener);
    attack(world, socket, 1, &mut reach, &mut random);
    let killed = random.one_in(2);
    if let Some(board) = reach.board {
        board.restore();
    }
    // SAFETY: ends this process at once, with its descriptors as they are and without a word to the peer.
    unsafe {
        if killed {
            libc::kill(libc::getpid(), libc::SIGKILL);
        }
        libc::_exit(0)
    }
}

fn attack(world: &World, socket: Socket, role: usize, reach: &mut Reach, random: &mut Random) {
    if exchange(socket, true).is_err() {
        return;
    }
    let Some(v) = socket.view() else { return };
    world.carried[role].fetch_add(1, Ordering::Relaxed);
    // Nothing but nonsense, or nonsense between proper calls.
    let polite = random.one_in(2);
    let mut buf = [0u8; 3000];
    for _ in 0..random.scale(1, 2000) {
        let count = random.scale(1, 8);
        for _ in 0..count {
            let kind = mutate(&v, reach, random);
            world.mutations[kind as usize].fetch_add(1, Ordering::Relaxed);
        }
        bell::ring(v.peer_bell());
        if polite {
            let _ = socket.send(&[piece(&buf[..random.below(3000)])], libc::MSG_DONTWAIT);
            let _ = socket.recv(&[piece(&buf)], libc::MSG_DONTWAIT);
        } else if random.one_in(4) {
            std::thread::yield_now();
        }
        buf[0] = buf[0].wrapping_add(1);
    }
}

/// Says what it has changed.
fn mutate(v: &View<'_>, reach: &mut Reach, random: &mut Random) -> Kind {
    match random.below(64) {
        0 if reach.write_letter(random) => Kind::Mailbox,
        1..4 => {
            abuse_bells(v, random);
            Kind::Bells
        }
        4..16 if reach.scribble_board(random) => Kind::Board,
        _ => {
            scribble(v, random);
            Kind::Segment
        }
    }
}

/// Changes one shared word.
fn scribble(v: &View<'_>, random: &mut Random) {
    let base = v.header as *const Header as *const AtomicU32;
    let word = if random.one_in(4) {
        // The bytes of a ring: frame headers and payload. Often near a position, where they are looked at.
        let ring = v.mapped.segment.ring_data(random.below(2));
        let near = [v.in_ring().head(), v.out_ring().tail()];
        let at = match random.below(3) {
            0 => random.next(),
            i => near[i - 1].wrapping_add(random.below(64) as u64),
        };
        let at = ring.at(at & !7) as *const AtomicU32;
        // SAFETY: inside the mapping and aligned.
        unsafe { &*at }
    } else {
        let at = random.below(size_of::<Header>() / 4);
        // SAFETY: inside the header.
        unsafe { &*base.add(at) }
    };
    change(word, random);
}

fn change(word: &AtomicU32, random: &mut Random) {
    let seen = word.load(Ordering::Relaxed);
    let value = match random.below(6) {
        0 => 0,
        1 => u32::MAX,
        2 => random.next() as u32,
        3 => seen ^ 1 << random.below(32),
        4 => seen.wrapping_add(random.below(64) as u32),
        _ => seen.wrapping_sub(random.below(64) as u32),
    };
    word.store(value, Ordering::Relaxed);
}

fn abuse_bells(v: &View<'_>, random: &mut Random) {
    let bell = random.pick(&[v.own_bell(), v.peer_bell()]);
    match random.below(4) {
        0 => (0..random.below(50)).for_each(|_| bell::ring(bell)),
        1 => drop(bell::take(bell)),
        // One user's processes trust each other in this.
        _ if !users::several() => {}
        2 => drop(sys::fcntl(
            bell,
            libc::F_SETFL,
            random.pick(&[0, libc::O_NONBLOCK as usize]),
        )),
        _ => {
            let at = |random: &mut Random| libc::timespec {
                tv_sec: random.below(2) as i64,
                tv_nsec: random.below(999_999_999) as i64,
            };
            let time = libc::itimerspec {
                it_interval: at(random),
                it_value: at(random),
            };
            // SAFETY: the time is readable.
            unsafe { libc::timerfd_settime(bell, 0, &time, core::ptr::null_mut()) };
        }
    }
}

// ---- the mailbox ----

/// Descriptors of all kinds, proper ones among them.
fn strange() -> Vec<i32> {
    let mut fds = vec![
        bell::create(),
        bell::create_guarded(),
        bell::create_guarded(),
    ];
    for size in [0, 4096, 4096 + 2 * 65536] {
        let memfd = sys::memfd_create(c"strange", libc::MFD_CLOEXEC);
        fds.push(memfd.inspect(|&fd| sys::ftruncate(fd, size).unwrap_or(())));
    }
    let segment = Segment::create(65536, board::abi());
    fds.push(segment.map(|(_, fd)| fd));
    fds.push(sys::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
    let mut fds: Vec<i32> = fds.into_iter().flatten().collect();
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    if unsafe { libc::pipe(pipe.as_mut_ptr()) } == 0 {
        fds.extend(pipe);
    }
    fds
}

impl Reach {
    /// False: this case leaves it alone.
    fn scribble_board(&self, random: &mut Random) -> bool {
        self.board
            .as_ref()
            .inspect(|b| b.scribble(random))
            .is_some()
    }

    /// False: there is no mailbox that it could be for.
    fn write_letter(&mut self, random: &mut Random) -> bool {
        if self.letters.is_empty() || self.letters.len() < 8 && random.one_in(16) {
            self.letters.extend(open_letters());
        }
        if self.letters.is_empty() {
            return false;
        }
        let to = random.pick(&self.letters);
        let mut hello = Hello::new(random.next(), random.below(4) as u32);
        if random.one_in(3) {
            let fds = [(); 3].map(|()| random.pick(&self.strange));
            let _ = handover::send(to, &hello, fds);
            return true;
        }
        // SAFETY: plain integers, of which any may be changed.
        let words = unsafe { &mut *(&raw mut hello).cast::<[AtomicU32; 6]>() };
        change(&words[random.below(6)], random);
        let fds: Vec<i32> = (0..random.below(12))
            .map(|_| random.pick(&self.strange))
            .collect();
        let len = size_of::<Hello>() - random.pick(&[0, 0, 1, 8, size_of::<Hello>()]);
        send_raw(to, &raw const hello as *const u8, len, &fds);
        true
    }
}

fn send_raw(to: i32, bytes: *const u8, len: usize, fds: &[i32]) {
    let mut control = [0u64; 16];
    let mut iov = libc::iovec {
        iov_base: bytes as *mut libc::c_void,
        iov_len: len,
    };
    // SAFETY: the bytes are readable, and the control buffer has room for more than a dozen descriptors.
    unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = &mut iov;
        msg.msg_iovlen = 1;
        if !fds.is_empty() {
            let size = size_of_val(fds) as u32;
            msg.msg_control = control.as_mut_ptr().cast();
            msg.msg_controllen = libc::CMSG_SPACE(size) as _;
            let c = libc::CMSG_FIRSTHDR(&msg);
            (*c).cmsg_level = libc::SOL_SOCKET;
            (*c).cmsg_type = libc::SCM_RIGHTS;
            (*c).cmsg_len = libc::CMSG_LEN(size) as _;
            let data = libc::CMSG_DATA(c).cast::<i32>();
            fds.iter()
                .enumerate()
                .for_each(|(i, fd)| data.add(i).write_unaligned(*fd));
        }
        let _ = sys::sendmsg(to, &msg, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    }
}

/// Connects to all mailboxes there are, known by the list of abstract names.
fn open_letters() -> Vec<i32> {
    let prefix = format!("@headwater.{}.", board::abi());
    let names = std::fs::read("/proc/net/unix").unwrap_or_default();
    let names = String::from_utf8_lossy(&names);
    let names = names.lines().filter_map(|l| l.split_whitespace().last());
    // What a mailbox has accepted is in the list by its name.
    let names: BTreeSet<&str> = names.filter(|n| n.starts_with(&prefix)).collect();
    let mut found: Vec<i32> = Vec::new();
    for name in names.into_iter().take(4) {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK;
        let Ok(fd) = sys::socket(libc::AF_UNIX, kind, 0) else {
            continue;
        };
        let mut addr: libc::sockaddr_un = sys::zeroed();
        addr.sun_family = libc::AF_UNIX as u16;
        for (to, from) in addr.sun_path[1..].iter_mut().zip(&name.as_bytes()[1..]) {
            *to = *from as libc::c_char;
        }
        let connected = sys::connect(fd, &(addr, 2 + name.len() as u32));
        match connected {
            Ok(()) => found.push(fd),
            Err(_) => drop(sys::close(fd)),
        }
    }
    found
}

// ---- the board ----

struct Board {
    words: &'static [AtomicU32],
    before: Vec<u32>,
    /// Those that were not zero.
    used: Vec<usize>,
}

impl Board {
    /// Attached as anybody does who opens the board.
    fn attach() -> Board {
        let file = board::file(board::abi());
        let shared = Shared::open(&board::folder(), &file, board::SIZE, false);
        let at = shared.expect("the victim has made it").without_file();
        // SAFETY: attached for the life of the process, that long, aligned to a line, and any bits are valid.
        let words = unsafe { core::slice::from_raw_parts(at as *const AtomicU32, board::SIZE / 4) };
        let before: Vec<u32> = words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        let used = (0..before.len()).filter(|&i| before[i] != 0).collect();
        Board {
            words,
            before,
            used,
        }
    }

    fn scribble(&self, random: &mut Random) {
        let at = if random.one_in(4) {
            random.below(self.words.len())
        } else {
            // An entry that is in use, all of it.
            (random.pick(&self.used) & !31) + random.below(32)
        };
        if let Some(word) = self.words.get(at) {
            change(word, random);
        }
    }

    /// Listeners and free places are wanted by the next case.
    fn restore(&self) {
        for (word, before) in self.words.iter().zip(&self.before) {
            word.store(*before, Ordering::Relaxed);
        }
    }
}
