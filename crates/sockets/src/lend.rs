//! Connections that go into images which this process starts: exec, posix_spawn, system, popen.
//!
//! Such an image is rarely meant to use them. One that has the library is *lent* them: a variable names the descriptors of
//! segment, bells and record, and it adopts a connection when it uses it first (inherit.rs). Until then nothing changes for
//! those who hold it. An image without the library would go round the rings, so its connections are frozen before.

use core::time::Duration;
use std::cell::LazyCell;

use headwater_channel::lock::Lock;
use headwater_host::counters::{self, Reason};
use headwater_host::guarded::Guarded;
use headwater_host::handed::identity;
use headwater_host::image::Image;
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, process, sys};

use crate::conn::{self, Conn, Phase};
use crate::inherit::{self, Heir};
use crate::pins::{self, Entered};
use crate::record::{self, Takeover};
use crate::relay::{self, Relay};
use crate::segment::View;
use crate::{comeback, freeze, images, life, takeover};

pub fn before_fork() {
    process::hold_over_fork(&COPYING);
    UNDER_WAY.keep_out();
}

pub fn after_fork() {
    UNDER_WAY.let_in();
    process::let_go_after_fork(&COPYING);
}

/// In the child of a fork: the lendings of other threads are the parent's.
pub fn in_child() {
    let mut under_way = UNDER_WAY.enter();
    under_way.lendings = 0;
    under_way.opened.clear();
}

/// What was made ready for an image; taken back when dropped: the exec failed, or the image is another process.
pub struct Lending {
    /// The writing end.
    presence: i32,
    /// The writing ends of others, for images without the library.
    kept: Vec<i32>,
    opened: Vec<i32>,
    /// Is it one of those [`UNDER_WAY`]?
    counted: bool,
    /// For [`inherit::VARIABLE`].
    pub text: String,
}

/// Lendings of this process under way, and what those have opened that are over: the last one takes all of it back, since
/// several may have opened the same.
struct UnderWay {
    lendings: u32,
    opened: Vec<i32>,
}

#[unsafe(link_section = ".data")]
static UNDER_WAY: Guarded<UnderWay> = Guarded::new(UnderWay {
    lendings: 0,
    opened: Vec::new(),
});

/// Before an image takes over descriptors, `here` or in another process. `judge` says what kind of image, if that matters.
pub fn before(here: bool, judge: impl FnOnce() -> Image) -> Lending {
    before_acting(here, i32::MAX, &[], judge)
}

/// The same of an image that gets no descriptor from the number `from` on, and `copies_there` of some: of which, and their numbers there.
pub fn before_acting(
    here: bool,
    from: i32,
    copies_there: &[(i32, i32)],
    judge: impl FnOnce() -> Image,
) -> Lending {
    // A child of vfork has descriptors of its own.
    let childs = process::is_borrowed();
    if !childs {
        let mut under_way = UNDER_WAY.enter();
        under_way.lendings = under_way.lendings.wrapping_add(1);
    }
    let mut lending = Lending {
        presence: -1,
        kept: Vec::new(),
        opened: Vec::new(),
        counted: !childs,
        text: String::new(),
    };
    let image = LazyCell::new(judge);
    let set_apart = |fd| {
        if table::lookup(fd).is_some_and(|h| stands_for(fd, h)) {
            life::set_apart(fd);
        }
    };
    if here {
        let sets = epoll::for_image().take_while(|_| *image != Image::None);
        sets.for_each(|ep| epoll::leave_to_others(ep, set_apart));
    }
    match (here, childs) {
        (true, false) => relay_unread(from, || *image),
        (true, true) => relay_copied_input(|| *image),
        (false, false) => relay_spawned_input(copies_there, || *image),
        (false, true) => {}
    }
    let is_hidden_by_copy = |fd| childs && copy_of(fd).is_some();
    let known = table::entries().filter(|&(fd, h)| is_connection(&h) && !is_hidden_by_copy(fd));
    let own = known.chain(copies());
    let own = own.filter(|&(fd, _)| fd < from && sys::survives_exec(fd));
    let given = copies_there.iter().filter_map(|&(fd, there)| {
        let h = table::lookup(fd).filter(is_connection)?;
        Some((fd, there, h))
    });
    for (fd, there, h) in own.map(|(fd, h)| (fd, fd, h)).chain(given) {
        if !stands_for(fd, h) {
            continue;
        }
        match *image {
            Image::None => break,
            // Its C library reads and writes the standard numbers by ways of its own.
            Image::Ours if there > 2 && there < from => lending.lend(fd, there, h),
            Image::Ours => leave(fd, h, Reason::Exec),
            Image::Stranger => lending.let_out(fd, h),
        }
    }
    lending
}

/// How long an exec waits, in nanoseconds, for peers and parents that may make relays needless.
const RELAY_TIMEOUT: u64 = Duration::from_millis(20).as_nanos() as u64;

/// Before this process becomes an image: connections that it alone has, and the image uses without the library, get relays where what is
/// unread would not come by itself. Its C library reads and writes the standard numbers by ways of its own.
fn relay_unread(from: i32, image: impl Fn() -> Image) {
    let mut known: Vec<(Handle, i32)> = table::entries()
        .filter(|&(fd, h)| fd < from && with_unread(h, &pins::entered()).is_some())
        .filter(|&(fd, h)| sys::survives_exec(fd) && stands_for(fd, h))
        .map(|(fd, h)| (h, fd))
        .collect();
    known.sort_by_key(|(h, fd)| (h.bits(), *fd));
    let now = sys::now();
    for numbers in known.chunk_by(|a, b| a.0 == b.0) {
        let (h, lowest) = numbers[0];
        // What is a standard number is meant for the image; others it has by accident, as a rule.
        let patience = if lowest > 2 { now } else { now + RELAY_TIMEOUT };
        let looks = pins::entered();
        let Some((c, v)) = with_unread(h, &looks) else {
            continue;
        };
        if lowest <= 2 || image() == Image::Stranger {
            freeze::take_back_own(c, &v);
        }
        let is_needed = relay::is_needed(c, &v, patience);
        if !is_needed && lowest > 0 {
            continue;
        }
        match image() {
            Image::None => return,
            Image::Ours if lowest > 2 => continue,
            Image::Ours | Image::Stranger => {}
        }
        if !is_needed {
            // Others have it too, but nobody else is meant to read what would be lost.
            if let Some(relay) = input_relay(0, h) {
                put_in_place(relay, [0]);
            }
        } else if let Ok(Some(relay)) = relay::prepare(c, v, Reason::Exec) {
            put_in_place(relay, numbers.iter().map(|&(_, fd)| fd));
        }
    }
}

/// A child of vfork has made a connection its standard input, which its parent has as well.
fn relay_copied_input(image: impl Fn() -> Image) {
    let relay = copy_of(0).and_then(|h| input_relay(0, h));
    if let Some(relay) = relay.filter(|_| image() != Image::None) {
        relay.start();
        put(&relay, 0, 0);
        copied(-1, 0);
    }
}

/// A connection will be the standard input of another process. What is done for that can't be told from here, only which
/// number it is done with: this process has the relay too.
fn relay_spawned_input(copies_there: &[(i32, i32)], image: impl Fn() -> Image) {
    let Some(&(fd, _)) = copies_there.iter().find(|(_, there)| *there == 0) else {
        return;
    };
    let Some(h) = table::lookup(fd) else { return };
    if let Some(relay) = input_relay(fd, h).filter(|_| image() != Image::None) {
        put_in_place(relay, table::numbers(h));
    }
}

/// For an image that is to have `fd` as its standard input, if what it would read there is lost to it.
fn input_relay(fd: i32, h: Handle) -> Option<Relay> {
    let looks = pins::entered();
    let (c, v) = with_unread(h, &looks).filter(|_| stands_for(fd, h))?;
    relay::for_input(c, v, fd)
}

fn with_unread(h: Handle, looks: &Entered) -> Option<(&'static Conn, View<'static>)> {
    let c = conn::get(h).filter(|_| h.kind() == Kind::Socket)?;
    Some((c, c.view(looks).filter(|v| v.in_ring().unread() > 0)?))
}

/// The relay reads already: with the connection itself the image would wait for what is not there any more.
fn put(relay: &Relay, fd: i32, flags: i32) {
    let mut tries = (0..20).map(|_| sys::dup3(relay.end(), fd, flags));
    let put = tries.find(|put| !matches!(put, Err(libc::EINTR | libc::EBUSY)));
    if put.is_none_or(|put| put.is_err()) {
        counters::note(Reason::NoMemory);
        let _ = sys::close(fd);
    }
}

fn put_in_place(relay: Relay, numbers: impl IntoIterator<Item = i32>) {
    relay.start();
    for fd in numbers {
        let flags = if sys::survives_exec(fd) {
            0
        } else {
            libc::O_CLOEXEC
        };
        let after = life::closing(fd);
        put(&relay, fd, flags);
        if let Some(after) = after {
            after.finish();
        }
    }
}

/// Is it one that an image may be lent?
pub fn is_connection(h: &Handle) -> bool {
    matches!(h.kind(), Kind::Socket | Kind::Inherited)
}

/// In a child of vfork a number may stand for something else than here, or it was closed round us. What is not carried yet can't be
/// told from others.
fn stands_for(fd: i32, h: Handle) -> bool {
    if h.kind() == Kind::Inherited {
        return inherit::stands_for(fd, h);
    }
    let is_carried = |c: &Conn| c.phase() == Phase::Carried;
    conn::get(h).is_some_and(|c| !is_carried(c) || c.inode.load(Ordering::Relaxed) == identity(fd))
}

/// The kernel's alone from here on.
fn leave(fd: i32, h: Handle, reason: Reason) {
    let h = match h.kind() {
        Kind::Inherited => inherit::adopt(fd, h),
        _ => Some(h),
    };
    if let Some(h) = h {
        life::leave_to_others(fd, h, reason);
    }
}

impl Lending {
    /// The kernel's alone as long as the image may use it.
    fn let_out(&mut self, fd: i32, h: Handle) {
        let (h, family) = match h.kind() {
            // In the name of who lent it: this process never used it, and may go before the image does.
            Kind::Inherited => {
                let family = self.announce_for(h);
                (inherit::adopt(fd, h), family)
            }
            _ => (Some(h), self.announce().then(images::family)),
        };
        let Some(h) = h else { return };
        let looks = pins::entered();
        let carried = conn::carried(h, &looks);
        match (carried, family) {
            (Some((c, v)), Some(family)) => {
                comeback::let_out(c, &v, process::is_borrowed().then_some(fd), family)
            }
            _ => life::leave_to_others(fd, h, Reason::Exec),
        }
    }

    /// What is `fd` here is `there` in the image.
    fn lend(&mut self, fd: i32, there: i32, h: Handle) {
        if h.kind() == Kind::Inherited {
            let Some(heir) = inherit::pass_on(there, h) else {
                return;
            };
            // They were never closed to exec, but those that it shares with a connection in use are, by now.
            for fd in heir.hidden() {
                self.open(fd);
            }
            return self.text.push_str(&heir.text());
        }
        let Some(c) = conn::get(h) else { return };
        if c.phase() == Phase::Listener {
            return;
        }
        let inode = identity(fd);
        if !self.announce() {
            return leave(fd, h, Reason::Exec);
        }
        // In this order: a takeover that does not see it is seen here.
        let id = images::family();
        let lender = &c.record().lender;
        let _ = lender.compare_exchange(0, id, Ordering::SeqCst, Ordering::Relaxed);
        sys::Turns::while_it_holds(|| c.record().takeover() == Takeover::Changing);
        let looks = pins::entered();
        let v = c.view(&looks);
        if let Some(v) = &v {
            // The image does not look at the board.
            takeover::see_attached(c, v);
        }
        // What came before its ring was left is for the image as it is for this one.
        let is_kernels = |v: &View<'_>| freeze::is_for_good(v) && v.in_ring().is_empty();
        let lent = v.as_ref().is_some_and(is_kernels) || self.hand_over(there, inode, c, v);
        if !lent {
            leave(fd, h, Reason::Exec);
        }
    }

    /// Names the connection's descriptors to the image, and lets it have them.
    fn hand_over(&mut self, fd: i32, inode: u64, c: &Conn, v: Option<View<'_>>) -> bool {
        let index = c.record_index();
        let Some(arena) = record::memory_of(index) else {
            return false;
        };
        let heir = Heir {
            fd,
            inode,
            memory: v.map_or(-1, |v| v.mapped.memory),
            bells: v.map_or([-1; 2], |v| v.mapped.bells),
            arena,
            record: index & 0xffff,
            life: c.record().life(),
            end: c.role() as u32,
            generation: v.map_or(0, |v| v.generation as u32),
            presence: self.presence,
        };
        if v.is_some() && heir.memory < 0 || !heir.hidden().all(|fd| self.open(fd)) {
            return false;
        }
        if let Some(v) = v {
            v.header.share();
        }
        self.text.push_str(&heir.text());
        true
    }

    fn open(&mut self, fd: i32) -> bool {
        if fd == self.presence || self.opened.contains(&fd) {
            return true;
        }
        let opened = sys::fcntl(fd, libc::F_SETFD, 0).is_ok();
        if opened {
            self.opened.push(fd);
        }
        opened
    }

    /// Has the image keep the end of the lender's pipe, which adoption gives up.
    fn announce_for(&mut self, h: Handle) -> Option<u64> {
        let theirs = inherit::presence(h)?;
        let copy = sys::fcntl(theirs, libc::F_DUPFD, theirs as usize).ok()?;
        self.kept.push(copy);
        match identity(copy) {
            0 => None,
            family => Some(family),
        }
    }

    /// Makes the end of the pipe that the image is to have.
    fn announce(&mut self) -> bool {
        if self.presence < 0 {
            self.presence = images::presence().unwrap_or(-1);
        }
        self.presence >= 0
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        if self.counted {
            let mut under_way = UNDER_WAY.enter();
            under_way.opened.append(&mut self.opened);
            // Forked meanwhile, it has been forgotten.
            under_way.lendings = under_way.lendings.wrapping_sub(1);
            if under_way.lendings == 0 {
                for fd in under_way.opened.drain(..) {
                    let _ = sys::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize);
                }
            }
        }
        for fd in self.kept.drain(..).chain([self.presence]) {
            if fd >= 0 {
                let _ = sys::close(fd);
            }
        }
    }
}

// ---- copies that children of vfork make ----

/// A child of vfork shares our memory but not our descriptors: copies that it makes are noted here, not in the table.
struct Copy {
    /// The child; 0: free.
    pid: AtomicI32,
    fd: AtomicI32,
    of: AtomicU64,
}

headwater_host::large! {
    static COPIES: [Copy; 64] = [const {
        Copy {
            pid: AtomicI32::new(0),
            fd: AtomicI32::new(0),
            of: AtomicU64::new(0),
        }
    }; 64];
}
#[unsafe(link_section = ".data")]
static COPYING: Lock = Lock::new();
/// Has there been any?
#[unsafe(link_section = ".data")]
static COPIED: AtomicBool = AtomicBool::new(false);

/// Is this a child of vfork that may have made copies, so that a number which nobody knows may be one?
#[inline]
pub fn may_copy() -> bool {
    COPIED.load(Ordering::Relaxed) && process::is_borrowed()
}

/// A child of vfork made `to` a copy of `fd`, for the image that it is about to become.
pub fn copied(fd: i32, to: i32) {
    let of = copy_of(fd).or_else(|| table::lookup(fd));
    let of = of.filter(|h| is_connection(h) && stands_for(fd, *h));
    let section = process::lock_own(&COPYING);
    let me = sys::getpid();
    let mine =
        |c: &&Copy| c.pid.load(Ordering::Relaxed) == me && c.fd.load(Ordering::Relaxed) == to;
    let Some(h) = of else {
        // What was there before is gone.
        if let Some(copy) = COPIES.iter().find(mine) {
            copy.pid.store(0, Ordering::Relaxed);
        }
        return;
    };
    COPIED.store(true, Ordering::Relaxed);
    // Those of children that have gone are nobody's.
    let free = |c: &&Copy| match c.pid.load(Ordering::Relaxed) {
        0 => true,
        pid => !sys::process_exists(pid),
    };
    let place = COPIES
        .iter()
        .find(mine)
        .or_else(|| COPIES.iter().find(free));
    if let Some(copy) = place {
        copy.pid.store(me, Ordering::Relaxed);
        copy.fd.store(to, Ordering::Relaxed);
        copy.of.store(h.bits(), Ordering::Relaxed);
        return;
    }
    drop(section);
    leave(fd, h, Reason::PassedOn);
}

fn copies() -> impl Iterator<Item = (i32, Handle)> {
    let me = if process::is_borrowed() {
        sys::getpid()
    } else {
        -1
    };
    COPIES.iter().filter_map(move |c| {
        let of = Handle::from_bits(c.of.load(Ordering::Relaxed))?;
        (c.pid.load(Ordering::Relaxed) == me).then(|| (c.fd.load(Ordering::Relaxed), of))
    })
}

fn copy_of(fd: i32) -> Option<Handle> {
    copies().find(|&(copy, _)| copy == fd).map(|(_, h)| h)
}
