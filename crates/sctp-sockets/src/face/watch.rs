//! What a socket's readiness is watched at: one epoll set of its own for all its sources, so that a set of the program's, or
//! poll, needs to wait for one descriptor, however many associations come and go.
//!
//! Everything in it is edge-triggered: what there is, the socket knows when it is looked at; the set only says "look again".

use std::collections::HashSet;

use headwater_channel::bell;
use headwater_host::reclaim::enter;
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use headwater_host::table::{self, Handle};
use headwater_host::{hidden, process, sys};
use headwater_sctp_stack::Guarded;
use headwater_streams::head::arming::Want;
use headwater_streams::head::{self, Head};
use libc::epoll_event;

use crate::{Socket, Source};

const ONCE: u32 = libc::EPOLLIN as u32 | libc::EPOLLET as u32;
/// The end is always reported.
const END: u32 = libc::EPOLLET as u32;
const READING: u32 = (libc::POLLIN | libc::POLLRDNORM | libc::POLLRDBAND | libc::POLLPRI) as u32;
const WRITING: u32 = (libc::POLLOUT | libc::POLLWRNORM | libc::POLLWRBAND) as u32;

pub struct Watch {
    /// The set; -1: nobody has asked for it.
    set: AtomicI32,
    /// The kernel had no memory to watch a source: whoever waits looks by the clock.
    blind: AtomicBool,
    /// The socket's changes when its sources were last looked at.
    seen: AtomicU64,
    inside: Guarded<Inside>,
}

struct Inside {
    /// Rung by this process.
    own: i32,
    /// The process that made the set. A child shares it until it must change it.
    maker: i32,
    sources: Vec<Source>,
    members: Vec<Member>,
    armed: Armed,
    watches_room: bool,
}

struct Member {
    source: Source,
    head: Option<&'static Head>,
    bell: i32,
    armed: Want,
}

/// Sleepers, by what they wait for.
#[derive(Clone, Copy, Default)]
struct Armed {
    all: u32,
    reading: u32,
    writing: u32,
}

impl Armed {
    fn change(&mut self, want: u32, by: i32) {
        let count = |n: &mut u32, applies: bool| {
            if applies {
                *n = n.saturating_add_signed(by);
            }
        };
        count(&mut self.all, true);
        count(&mut self.reading, want & READING != 0);
        count(&mut self.writing, want & WRITING != 0);
    }

    /// What the rings must tell: whoever sleeps wants to know of the end, which comes by the ring.
    fn want(&self) -> Want {
        match (self.all, self.writing) {
            (0, _) => Want(0),
            (_, 0) => Want::DATA,
            _ => Want::EITHER,
        }
    }
}

impl Member {
    fn arm(&mut self, want: Want) {
        let Some(head) = self.head else { return };
        if self.armed == want {
            return;
        }
        let before = core::mem::replace(&mut self.armed, Want(0));
        if want.0 != 0
            && let Some(h) = self.by_memory()
        {
            let looks = enter();
            if head::get(h, &looks).is_some_and(|head| head.arm_for(h, want)) {
                self.armed = want;
            }
        }
        // A head that was closed meanwhile stays for as long as it is armed.
        if before.0 != 0 {
            head.disarm(before);
        }
    }

    fn by_memory(&self) -> Option<Handle> {
        match self.source {
            Source::ByMemory(h, _) => Some(h),
            Source::Fd(_) => None,
        }
    }
}

impl Watch {
    pub fn new() -> Watch {
        Watch {
            set: AtomicI32::new(-1),
            blind: AtomicBool::new(false),
            seen: AtomicU64::new(0),
            inside: Guarded::new(Inside {
                own: -1,
                maker: 0,
                sources: Vec::new(),
                members: Vec::new(),
                armed: Armed::default(),
                watches_room: false,
            }),
        }
    }

    /// The set's descriptor, made at the first call. `None`: there is no descriptor left.
    pub fn bell(&self, socket: &Socket) -> Option<i32> {
        let known = self.set.load(Ordering::Acquire);
        if known >= 0 {
            return Some(known);
        }
        let mut inside = self.inside.enter();
        let known = self.set.load(Ordering::Acquire);
        if known >= 0 {
            return Some(known);
        }
        let set = sys::epoll_create().and_then(hidden::hide_needed).ok()?;
        let Ok(own) = bell::create().and_then(hidden::hide_needed) else {
            hidden::close(set);
            return None;
        };
        inside.own = own;
        inside.maker = process::pid();
        if !add(set, own, ONCE) {
            self.blind.store(true, Ordering::Relaxed);
        }
        self.follow(&mut inside, set, socket);
        self.set.store(set, Ordering::Release);
        Some(set)
    }

    /// Is there a source that the set does not tell of?
    pub fn is_blind(&self) -> bool {
        self.blind.load(Ordering::Relaxed)
    }

    fn follow(&self, inside: &mut Inside, set: i32, socket: &Socket) {
        if !inside.follow(set, socket) {
            self.blind.store(true, Ordering::Relaxed);
        }
    }

    pub fn arm(&self, socket: &Socket, want: u32) {
        let mut inside = self.inside.enter();
        inside.armed.change(want, 1);
        let set = self.set.load(Ordering::Relaxed);
        if set >= 0 {
            self.follow(&mut inside, set, socket);
        }
        inside.settle(socket);
    }

    pub fn disarm(&self, socket: &Socket, want: u32) {
        let mut inside = self.inside.enter();
        inside.armed.change(want, -1);
        inside.settle(socket);
    }

    /// The socket's sources may have changed: have they?
    #[inline]
    pub fn refresh(&self, socket: &Socket) -> bool {
        let set = self.set.load(Ordering::Acquire);
        if set < 0 {
            return false;
        }
        let changes = socket.source_changes();
        if self.seen.swap(changes, Ordering::Relaxed) == changes {
            return false;
        }
        let mut inside = self.inside.enter();
        self.follow(&mut inside, set, socket);
        inside.settle(socket);
        true
    }

    /// Takes what makes the set readable, and passes on what the kernel said of connections; was there anything?
    pub fn take(&self) -> bool {
        let set = self.set.load(Ordering::Acquire);
        let mut events = [epoll_event { events: 0, u64: 0 }; 32];
        let mut any = false;
        if set < 0 {
            return false;
        }
        loop {
            let n = sys::epoll_poll(set, &mut events).unwrap_or(0);
            any |= n > 0;
            let ends = events[..n].iter().filter(|e| e.events & !READABLE != 0);
            let ends: Vec<(i32, u32)> = ends.map(|e| (e.u64 as i32, e.events)).collect();
            if !ends.is_empty() {
                self.inside.enter().ended(&ends);
            }
            if n < events.len() {
                break;
            }
        }
        any
    }

    /// Wakes whoever sleeps at the set.
    pub fn ring(&self) {
        let own = self.inside.enter().own;
        if own >= 0 {
            bell::ring(own);
        }
    }

    /// What one sleeper took may be news for another: rings again for those that wait for what holds.
    pub fn pass_on(&self, holds: impl FnOnce() -> u32) {
        let armed = self.inside.enter().armed;
        if armed.all == 0 {
            return;
        }
        let holds = holds();
        let reads = armed.reading > 0 && holds & (READING | ENDED) != 0;
        let writes = armed.writing > 0 && holds & (WRITING | ENDED) != 0;
        if reads || writes {
            self.ring();
        }
    }

    /// Runs `f` for each association in shared memory.
    pub fn each_near(&self, mut f: impl FnMut(Handle, &'static dyn table::Descriptor)) {
        for member in &self.inside.enter().members {
            if let Some(h) = member.by_memory()
                && let Some(d) = table::descriptor(h)
            {
                f(h, d);
            }
        }
    }

    pub fn shut(&self) {
        self.inside.shut();
    }

    pub fn reopen(&self, in_child: bool) {
        self.inside.reopen();
        if in_child {
            // Sleepers of the parent are not the child's; heads have forgotten them.
            let forget = |member: &mut Member| member.armed = Want(0);
            self.inside.enter().members.iter_mut().for_each(forget);
        }
    }
}

const READABLE: u32 = libc::EPOLLIN as u32;
const ENDED: u32 = (libc::POLLERR | libc::POLLHUP) as u32;

impl Inside {
    /// Brings the set in line with the socket's sources. False: there are some that it does not tell of.
    fn follow(&mut self, set: i32, socket: &Socket) -> bool {
        let mut sources = Vec::with_capacity(self.sources.len() + 1);
        socket.sources(&mut |source| sources.push(source));
        if sources == self.sources {
            return true;
        }
        let mut all = self.maker == process::pid() || self.part(set);
        let now: HashSet<Source> = sources.iter().copied().collect();
        self.members.retain_mut(|member| {
            let stays = now.contains(&member.source);
            if !stays {
                member.arm(Want(0));
                leave(set, member);
            }
            stays
        });
        let known: HashSet<Source> = self.sources.iter().copied().collect();
        for &source in sources.iter().filter(|source| !known.contains(source)) {
            let (member, told) = join(set, source);
            self.members.push(member);
            all &= told;
        }
        self.sources = sources;
        all
    }

    /// In a child: a set of its own, by the same number. False as for [`Inside::follow`].
    fn part(&mut self, set: i32) -> bool {
        let replace = |fresh: sys::Result<i32>, number: i32| {
            if let Ok(fresh) = fresh {
                let _ = sys::dup3(fresh, number, libc::O_CLOEXEC);
                let _ = sys::close(fresh);
            }
        };
        replace(sys::epoll_create(), set);
        replace(bell::create(), self.own);
        self.maker = process::pid();
        let mut all = add(set, self.own, ONCE);
        for member in &self.members {
            all &= join(set, member.source).1;
        }
        all
    }

    fn settle(&mut self, socket: &Socket) {
        let want = self.armed.want();
        let for_room = self.armed.writing > 0;
        if for_room != self.watches_room {
            self.watches_room = for_room;
            socket.sink.watch_room(for_room);
        }
        if self.armed.all > 0 {
            socket.hand_over();
        }
        for member in &mut self.members {
            member.arm(want);
        }
    }

    fn ended(&self, ends: &[(i32, u32)]) {
        for &(fd, events) in ends {
            let here =
                |m: &&Member| matches!(m.source, Source::ByMemory(_, Some(shadow)) if shadow == fd);
            if let Some(h) = self.members.iter().find(here).and_then(Member::by_memory)
                && let Some(d) = table::descriptor(h)
            {
                d.kernel_reported(h, events);
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut inside = self.inside.enter();
        for member in &mut inside.members {
            member.arm(Want(0));
        }
        hidden::close(inside.own);
        hidden::close(self.set.load(Ordering::Relaxed));
    }
}

/// Also: does the set tell of it?
fn join(set: i32, source: Source) -> (Member, bool) {
    let mut member = Member {
        source,
        head: None,
        bell: -1,
        armed: Want(0),
    };
    let told = match source {
        Source::Fd(fd) => add(set, fd, ONCE),
        Source::ByMemory(_, shadow) => {
            let looks = enter();
            member.head = member.by_memory().and_then(|h| head::get(h, &looks));
            member.bell = member.head.map_or(-1, Head::bell);
            add(set, member.bell, ONCE) & add(set, shadow.unwrap_or(-1), END)
        }
    };
    (member, told)
}

fn leave(set: i32, member: &Member) {
    let fds = match member.source {
        Source::Fd(fd) => [fd, -1],
        Source::ByMemory(_, shadow) => [member.bell, shadow.unwrap_or(-1)],
    };
    for fd in fds.into_iter().filter(|&fd| fd >= 0) {
        // It is gone already where the descriptor is.
        let _ = sys::epoll_remove(set, fd);
    }
}

/// False: the kernel does not take it.
fn add(set: i32, fd: i32, events: u32) -> bool {
    if fd < 0 {
        return true;
    }
    let event = sys::event(events, fd as u64);
    let added = sys::epoll_set(set, libc::EPOLL_CTL_ADD, fd, event);
    if added == Err(libc::EEXIST) {
        // Left from an earlier association by the same pipe: registering it anew makes an edge of what there is.
        return sys::epoll_set(set, libc::EPOLL_CTL_MOD, fd, event).is_ok();
    }
    // What is closed already tells nothing.
    !matches!(added, Err(libc::ENOMEM | libc::ENOSPC))
}
