//! A TCP endpoint on its way to the next image of the process.

use headwater_host::handed::Sort;
use headwater_host::sys;

use super::super::ahead::Ahead;
use super::super::connection::Socket;
use super::super::{hidden_copy, local};
use super::listener::Listener;
use super::urgent::Taken;
use super::{Phase, Tcp};
use crate::loopback::link::{named, taken};

const PHASES: [Phase; 5] = [
    Phase::Idle,
    Phase::Listening,
    Phase::Connecting,
    Phase::Answered,
    Phase::Connected,
];
const NODELAY: u32 = 1;
const TOLD_END: u32 = 2;
const RELEASED: u32 = 4;
const BOUND: u32 = 8;

impl Tcp {
    /// Phase, queue length, flags, what was read ahead, urgent bytes that were taken, the socket that was put aside, and connections not yet told of.
    pub(super) fn image(&mut self) -> String {
        self.push_out(false);
        self.socket.leave_to_kernel();
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let flags = flag(self.nodelay, NODELAY)
            | flag(self.told_end, TOLD_END)
            | flag(self.released, RELEASED)
            | flag(self.bound.is_some(), BOUND);
        let aside = self.aside.as_ref().map_or("-".into(), pass_on);
        let mut text = format!(
            "{} {} {flags} {} {} {aside}",
            self.phase as u32,
            self.listener.qlen,
            self.ahead.to_hex(),
            self.taken.to_text()
        );
        for socket in self
            .listener
            .waiting
            .iter()
            .filter_map(|r| r.socket.as_ref())
        {
            text.push_str(&format!(" {}", pass_on(socket)));
        }
        text
    }

    pub fn restore(fd: i32, saved: &str) -> Option<Tcp> {
        super::start_fast_sockets();
        let mut words = saved.split(' ');
        let mut word = || words.next()?.parse::<u32>().ok();
        let (phase, qlen, flags) = (word()?, word()?, word()?);
        let ahead = Ahead::from_hex(words.next()?)?;
        let taken = Taken::from_text(words.next()?)?;
        let mut passed = words.map(passed_on);
        let socket = Socket::of(hidden_copy(fd)?);
        let own = local(socket.fd())?;
        let mut tcp = Tcp::with(socket, own.is_v6());
        tcp.phase = PHASES.into_iter().find(|p| *p as u32 == phase)?;
        tcp.ahead = ahead;
        tcp.taken = taken;
        tcp.nodelay = flags & NODELAY != 0;
        tcp.told_end = flags & TOLD_END != 0;
        tcp.ended = tcp.told_end;
        tcp.released = flags & RELEASED != 0;
        tcp.bound = (flags & BOUND != 0).then_some(own);
        tcp.aside = passed.next().flatten();
        tcp.listener = Listener::new(qlen);
        passed.flatten().for_each(|socket| tcp.listener.add(socket));
        if tcp.phase == Phase::Listening {
            tcp.socket.listens();
        }
        Some(tcp)
    }
}

/// It stays open over the exec.
fn pass_on(socket: &Socket) -> String {
    socket.leave_to_kernel();
    let fd = socket.fd();
    let _ = sys::fcntl(fd, libc::F_SETFD, 0);
    named(fd)
}

fn passed_on(text: &str) -> Option<Socket> {
    let (fd, _) = text.split_once('.')?;
    local(fd.parse().ok()?)?;
    taken(text, Sort::Inet).map(Socket::of)
}
