//! Pair links: how a segment and its doorbells get from the accepting process to the connecting one.
//!
//! A process that offers listens on a *mailbox*, an abstract UNIX socket named after it; a process that claims connects to it
//! once and sends each new segment there. Neither waits: connecting needs no accept, and the client looks into its mailbox
//! only when the board says that something is there. Segments are pooled per link and used again; credentials are checked
//! on both sides. The death of either process closes the link and empties its pool.

use core::time::Duration;

use headwater_channel::bell;
use headwater_channel::lock::Owner;
use headwater_channel::segment::Segment;
use headwater_host::counters::{self, Reason};
use headwater_host::guarded::Guarded;
use headwater_host::peer::{Peer, Side};
use headwater_host::process;
use headwater_host::reclaim::Retired;
use headwater_host::sync::{AtomicU32, AtomicU64, Ordering};
use headwater_host::{board, config, hidden, sys};

use crate::handover::{self, Hello};
use crate::look::is_due;
use crate::segment::Mapped;

/// Free segments kept per link while crowds come and go, and once no new one was needed for a while.
const POOL: usize = 256;
const QUIET_POOL: usize = 48;
const QUIET: u64 = Duration::from_secs(1).as_nanos() as u64;
/// Links from other users' processes at most, and connections that wait in the mailbox.
const FOREIGN_LINKS: usize = 64;
const BACKLOG: i32 = 128;
struct Link {
    fd: i32,
    id: u64,
    /// The client's process, on links that we made; `None` on those that came to our mailbox.
    client: Option<Owner>,
    side: Side,
    segments: Vec<&'static Mapped>,
    /// When a segment was last made for it.
    made_at: u64,
}

struct Links {
    list: Vec<Link>,
    mailbox: i32,
    /// Segments that are in no pool any more, nor in a connection's entry: a late call may still look at them.
    retired: Retired<&'static Mapped>,
    next: u32,
}

#[unsafe(link_section = ".data")]
static LINKS: Guarded<Links> = Guarded::new(Links {
    list: Vec::new(),
    mailbox: -1,
    retired: Retired::new(),
    next: 0,
});
/// Where the kernel has no barrier for us a mapping stays for this long after its last use, in nanoseconds.
const RETIREMENT: u64 = Duration::from_millis(750).as_nanos() as u64;
/// So often, in nanoseconds, a process looks whether its peers live.
const INTERVAL: u64 = Duration::from_millis(200).as_nanos() as u64;
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
/// Is there a mailbox or a link, or anything left of one?
static ANY: AtomicU32 = AtomicU32::new(0);
/// The links are those of the process that forked this one; their descriptors are closed.
#[unsafe(link_section = ".data")]
static INHERITED: AtomicU32 = AtomicU32::new(0);

fn with<T>(f: impl FnOnce(&mut Links) -> T) -> T {
    let mut links = LINKS.enter();
    if INHERITED.load(Ordering::Relaxed) != 0 {
        INHERITED.store(0, Ordering::Relaxed);
        links.disown();
    }
    f(&mut links)
}

/// Opens this process's mailbox, if it is not open yet.
pub fn open_mailbox() -> bool {
    with(|links| {
        if links.mailbox < 0
            && let Ok(fd) = listen(process::owner())
        {
            links.mailbox = fd;
            ANY.store(1, Ordering::Relaxed);
        }
        links.mailbox >= 0
    })
}

/// A segment shared with `client`, fresh for a new connection: a pooled one, or a new one that is on its way there. `proof`
/// is asked where the client is another user's: does that user hold the other end of the connection?
pub fn segment_for(
    client: Owner,
    proof: impl FnOnce(u32) -> bool,
) -> Result<&'static Mapped, Reason> {
    with(|links| {
        let at = match links.list.iter().position(|l| l.client == Some(client)) {
            Some(at) => at,
            None => {
                links.sweep();
                links.connect(client)?
            }
        };
        let link = &mut links.list[at];
        if !link.side.may_have(proof) {
            return Err(Reason::OtherUser);
        }
        if let Some(&m) = link.segments.iter().find(|m| m.is_free()) {
            bell::take(m.bells[1]);
            m.in_use.store(1, Ordering::Release);
            m.renew();
            return Ok(m);
        }
        links.next = links.next.wrapping_add(1);
        let m = create(link.fd, link.id, links.next, link.side)?;
        link.segments.push(m);
        link.made_at = sys::now();
        Ok(m)
    })
}

/// The segment that the board names, once it has come in by the mailbox, if it is for the connection `tuple`. `proof` as in
/// [`segment_for`].
pub fn find(
    link: u64,
    index: u64,
    tuple: [u64; 6],
    proof: impl Fn(u32) -> bool,
) -> Result<&'static Mapped, Reason> {
    with(|links| {
        links.collect();
        let mut other_user = false;
        // Who sends segments may give them any names, also those of others.
        let found = links
            .list
            .iter()
            .filter(|l| l.client.is_none())
            .flat_map(|l| l.segments.iter().map(move |m| (l.side, *m)))
            .filter(|(_, m)| m.link == link && m.index as u64 == index && m.is_for(tuple))
            .find(|(side, _)| {
                let may = side.may_have(&proof);
                other_user |= !may;
                may
            });
        // Twice at once would be a peer's doing.
        match found {
            Some((_, m)) if m.in_use.swap(1, Ordering::AcqRel) == 0 => Ok(m),
            None if other_user => Err(Reason::OtherUser),
            _ => Err(Reason::NoSegment),
        }
    })
}

/// This end has finished with a segment. It goes back to its pool, or is retired when it cannot be used again.
pub fn release(m: &'static Mapped, end: usize, generation: u16, last: bool) {
    let h = m.header();
    with(|links| {
        m.in_use.store(0, Ordering::Release);
        let ours = |l: &Link| {
            l.client.is_some() == (end == 1) && l.segments.iter().any(|s| core::ptr::eq(*s, m))
        };
        let pooled = links.list.iter().find(|l| ours(l)).is_some_and(|link| {
            let free = link.segments.iter().filter(|s| s.is_free()).count();
            last && h.shared.load(Ordering::Acquire) == 0 && (end == 0 || free < POOL)
        });
        if pooled {
            h.ends[end]
                .released
                .store(generation as u32, Ordering::Release);
        } else {
            h.shared.store(1, Ordering::Release);
            for link in links.list.iter_mut().filter(|l| ours(l)) {
                link.segments.retain(|s| !core::ptr::eq(*s, m));
            }
            links.retired.push(m);
        }
        links.prune();
    });
}

/// Gives up what is left of peers that have died, a few times a second at most. For calls that are not made for each message:
/// accept, close, and waits that are about to sleep.
#[inline]
pub fn tidy() {
    if ANY.load(Ordering::Relaxed) != 0 && !process::is_confined() {
        look_after_peers();
    }
}

#[cold]
fn look_after_peers() {
    if is_due(&NEXT_LOOK, INTERVAL) {
        with(|links| {
            // Before its own peers say that something has come: a mailbox that others have filled lets none of them in.
            links.collect();
            links.sweep();
            links.prune();
        });
    }
}

/// In the child of a fork, whose only thread this is: links, mailbox and pools are the parent's. They are closed now, and forgotten when
/// the child comes to use its own: most children never do, and each page that is written to is copied for them.
#[unsafe(link_section = ".text.life")]
pub fn in_child() {
    if INHERITED.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: nobody else is there.
    let links = unsafe { LINKS.alone() };
    for fd in links.list.iter().map(|link| link.fd).chain([links.mailbox]) {
        hidden::close(fd);
    }
    INHERITED.store(1, Ordering::Relaxed);
}

/// Around fork: nobody is changing the links.
pub fn before_fork() {
    LINKS.keep_out();
}

pub fn after_fork() {
    LINKS.let_in();
}

impl Links {
    fn connect(&mut self, client: Owner) -> Result<usize, Reason> {
        let fd = socket().map_err(|_| Reason::NoDescriptors)?;
        let connected = sys::connect(fd, &name(client));
        if connected.is_err() {
            hidden::close(fd);
            return Err(Reason::NoLink);
        }
        // Whoever was first may have bound the name: what counts is who it is.
        let (Some(side), Ok(id)) = (side_of(fd), sys::random()) else {
            hidden::close(fd);
            return Err(Reason::OtherUser);
        };
        self.add(fd, id, Some(client), side);
        Ok(self.list.len() - 1)
    }

    fn add(&mut self, fd: i32, id: u64, client: Option<Owner>, side: Side) {
        ANY.store(1, Ordering::Relaxed);
        self.list.push(Link {
            fd,
            id,
            client,
            side,
            segments: Vec::new(),
            made_at: 0,
        });
    }

    /// Takes in what has come to the mailbox.
    fn collect(&mut self) {
        // Anybody may connect, over and over.
        for _ in 0..BACKLOG {
            if self.mailbox < 0 {
                break;
            }
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let Ok(fd) = sys::accept(self.mailbox, flags) else {
                break;
            };
            let Some(side) = side_of(fd) else {
                let _ = sys::close(fd);
                continue;
            };
            self.sweep();
            let foreign = |l: &&Link| l.side != Side::Ours;
            if side != Side::Ours && self.list.iter().filter(foreign).count() >= FOREIGN_LINKS {
                let _ = sys::close(fd);
                continue;
            }
            let Ok(fd) = hidden::hide(fd) else { continue };
            self.add(fd, 0, None, side);
        }
        for link in self.list.iter_mut().filter(|l| l.client.is_none()) {
            // What is not taken in waits in the kernel, where it is the sender's.
            let unused = |m: &&&Mapped| m.in_use.load(Ordering::Acquire) == 0;
            let unused = link.segments.iter().filter(unused).count();
            let room = match link.side {
                Side::Ours => usize::MAX,
                Side::Foreign(_) => POOL.saturating_sub(unused),
            };
            for _ in 0..room {
                let Some(came) = handover::receive(link.fd) else {
                    break;
                };
                if let Some(m) = came.mapped(link.side != Side::Ours) {
                    link.segments.push(keep(m));
                }
            }
        }
    }

    /// Drops the links of processes that have gone.
    fn sweep(&mut self) {
        let ask = |l: &Link| sys::entry(l.fd, 0);
        let mut asked: Vec<_> = self.list.iter().map(ask).collect();
        if !sys::ppoll(&mut asked, Some(0)).is_ok_and(|n| n > 0) {
            return;
        }
        for i in (0..asked.len()).rev().filter(|&i| asked[i].revents != 0) {
            let link = self.list.swap_remove(i);
            hidden::close(link.fd);
            self.retire(link);
        }
    }

    /// Forgets links whose descriptors are closed. Segments of live connections stay mapped.
    fn disown(&mut self) {
        for link in core::mem::take(&mut self.list) {
            self.retire(link);
        }
        self.mailbox = -1;
    }

    fn retire(&mut self, link: Link) {
        // In use here: its own release finds no link and retires it.
        let unused = |m: &&Mapped| m.in_use.load(Ordering::Acquire) == 0;
        let unused = link.segments.into_iter().filter(unused);
        unused.for_each(|m| self.retired.push(m));
    }

    /// Retires what the other side has given up while we did not use it.
    fn prune(&mut self) {
        let given_up = |m: &Mapped| {
            m.in_use.load(Ordering::Acquire) == 0 && m.header().shared.load(Ordering::Acquire) != 0
        };
        let mut gone = Vec::new();
        let now = sys::now();
        for link in &mut self.list {
            if link.client.is_some() && now - link.made_at > QUIET {
                // Marked here, they are given up by both sides.
                let free = link.segments.iter().filter(|m| m.is_free());
                let spare = free.skip(QUIET_POOL);
                spare.for_each(|m| m.header().shared.store(1, Ordering::Release));
            }
            link.segments.retain(|m| {
                let keep = !given_up(m);
                if !keep {
                    gone.push(*m);
                }
                keep
            });
        }
        gone.into_iter().for_each(|m| self.retired.push(m));
        self.bury();
    }

    /// Unmaps what nobody looks at any more.
    fn bury(&mut self) {
        for old in self.retired.take_free(|_| RETIREMENT) {
            for fd in [old.bells[0], old.bells[1], old.memory] {
                hidden::close(fd);
            }
            // SAFETY: made by Box::leak in `keep`, in no list and no entry, and no thread that has entered can have found it.
            drop(unsafe { Box::from_raw(old as *const Mapped as *mut Mapped) });
        }
        let any = self.mailbox >= 0 || !self.list.is_empty() || !self.retired.is_empty();
        ANY.store(any as u32, Ordering::Relaxed);
    }
}

fn socket() -> sys::Result<i32> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    sys::socket(libc::AF_UNIX, kind, 0).and_then(hidden::hide)
}

fn listen(owner: Owner) -> sys::Result<i32> {
    let fd = socket()?;
    let done = sys::bind(fd, &name(owner)).and_then(|()| sys::listen(fd, BACKLOG));
    if let Err(e) = done {
        hidden::close(fd);
        return Err(e);
    }
    Ok(fd)
}

/// The abstract address of a process's mailbox.
fn name(owner: Owner) -> (libc::sockaddr_un, u32) {
    sys::abstract_text(format_args!(
        "headwater.{}.{:016x}",
        board::abi(),
        owner.bits()
    ))
}

/// Whose process is at the other side? `None`: nobody's with whom we share anything.
fn side_of(fd: i32) -> Option<Side> {
    Peer::of(fd)?.side()
}

/// Makes a segment and sends it down the link.
fn create(link_fd: i32, link: u64, index: u32, side: Side) -> Result<&'static Mapped, Reason> {
    let ring = config::get().ring;
    let (segment, memfd) = Segment::create(ring, board::abi()).map_err(|_| Reason::NoSegment)?;
    let make = match side {
        Side::Ours => bell::create,
        Side::Foreign(_) => bell::create_guarded,
    };
    let bells = handover::both([make(), make()].map(|b| b.and_then(hidden::hide)));
    let sent = bells.and_then(|bells @ [a, b]| {
        let mut m = Mapped {
            segment,
            memory: -1,
            bells,
            link,
            index,
            in_use: AtomicU32::new(1),
        };
        m.renew();
        if handover::send(link_fd, &Hello::new(link, index), [memfd, a, b]).is_err() {
            bells.into_iter().for_each(hidden::close);
            return Err(Reason::NoLink);
        }
        m.memory = hidden::hide_spare(memfd).unwrap_or(-1);
        Ok(keep(m))
    });
    sent.inspect_err(|&reason| {
        let _ = sys::close(memfd);
        counters::note(reason);
    })
}

fn keep(m: Mapped) -> &'static Mapped {
    Box::leak(Box::new(m))
}
