//! Connections that the former image left to this one, which has not used them yet: see lend.rs.
//!
//! At start their numbers get an entry in the table, which costs no system call. With the first use of a number its
//! connection is adopted: this process becomes another holder of the end, as a child of fork is. What was not carried then
//! (the image that lent it may still take it over) is used round us, so it stays with the kernel.

use core::mem::MaybeUninit;
use core::str::{FromStr, Split};
use std::sync::OnceLock;

use headwater_channel::bell;
use headwater_channel::lock::Lock;
use headwater_channel::segment::Segment;
use headwater_host::board;
use headwater_host::counters::{self, Reason};
use headwater_host::handed::{self, Sort, identity};
use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicPtr, AtomicU32, Ordering};
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{epoll, hidden, process, sys};

use crate::conn::{self, Conn, Role};
use crate::record::{self, ATTACHED, BARRED};
use crate::segment::{Mapped, View};
use crate::{pins, reset};

pub const VARIABLE: &str = "HEADWATER_CONNECTIONS";

/// What an image is told of one descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heir {
    pub fd: i32,
    /// The shadow's.
    pub inode: u64,
    /// The segment's descriptor; -1: the connection is not carried.
    pub memory: i32,
    pub bells: [i32; 2],
    pub arena: i32,
    pub record: u32,
    /// Which of the record's connections.
    pub life: u32,
    pub end: u32,
    pub generation: u32,
    pub presence: i32,
}

impl Heir {
    /// The library's own descriptors that belong to it, and those that it shares with others.
    pub fn hidden(&self) -> impl Iterator<Item = i32> {
        self.own().chain([self.arena, self.presence])
    }

    fn own(&self) -> impl Iterator<Item = i32> {
        let own = [self.memory, self.bells[0], self.bells[1]];
        own.into_iter().filter(|&fd| fd >= 0)
    }

    pub fn text(&self) -> String {
        let Heir {
            fd,
            inode,
            memory,
            bells: [first, second],
            arena,
            record,
            life,
            end,
            generation,
            presence,
        } = self;
        format!(
            "{fd},{inode},{memory},{first},{second},{arena},{record},{life},{end},{generation},{presence};"
        )
    }

    /// What [`text`](Heir::text) gave, without its semicolon.
    pub fn parse(text: &str) -> Option<Heir> {
        fn next<T: FromStr>(numbers: &mut Split<'_, char>) -> Option<T> {
            numbers.next()?.parse().ok()
        }
        let mut numbers = text.split(',');
        let from = &mut numbers;
        let heir = Heir {
            fd: next(from)?,
            inode: next(from)?,
            memory: next(from)?,
            bells: [next(from)?, next(from)?],
            arena: next(from)?,
            record: next::<u16>(from)?.into(),
            life: next(from)?,
            end: next::<u32>(from)? & 1,
            generation: next(from)?,
            presence: next(from)?,
        };
        let hidden = heir
            .hidden()
            .all(|fd| (0..table::SIZE as i32).contains(&fd));
        (hidden && numbers.next().is_none()).then_some(heir)
    }

    /// Takes the library's own descriptors, if they are all there still. Others have `taken` those that are everybody's.
    fn take(&self, taken: &mut Vec<i32>) -> bool {
        let is = |fd: &i32, sort| taken.contains(fd) || handed::is_ours(*fd, sort);
        let own: Vec<i32> = self.own().collect();
        let sorts = [Sort::Memory, Sort::Bell, Sort::Bell];
        let whole = is(&self.arena, Sort::Memory)
            && is(&self.presence, Sort::Pipe)
            && (own.is_empty() || own.len() == sorts.len())
            && own
                .iter()
                .zip(sorts)
                .all(|(&fd, sort)| handed::is_ours(fd, sort));
        if whole {
            taken.extend(self.hidden());
            for fd in self.hidden() {
                table::set_hidden(fd);
            }
            self.own().for_each(handed::never_blocks);
        }
        whole
    }

    /// Numbers that stand for one open description have this in common.
    fn is_of(&self, other: &Heir) -> bool {
        self.inode == other.inode && self.memory == other.memory && self.record == other.record
    }
}

struct Entry {
    heir: Heir,
    /// Are the library's own descriptors what they were?
    whole: bool,
    /// Numbers of this process that stand for it, until it is adopted.
    numbers: AtomicU32,
    /// Room for the mapping: nothing is allocated when it is adopted, in a signal handler perhaps.
    room: AtomicPtr<MaybeUninit<Mapped>>,
}

static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
#[unsafe(link_section = ".data")]
pub static ADOPTING: Lock = Lock::new();

/// At start, before the program runs: takes in what the former image said. False: nothing.
pub fn begin() -> bool {
    let Some(text) = headwater_host::env::take(VARIABLE) else {
        return false;
    };
    epoll::given();
    let mut entries: Vec<Entry> = Vec::new();
    let mut numbers = Vec::new();
    let mut taken = Vec::new();
    // A number of the program's that is anything to us already is not what was said.
    let is_free = |heir: &Heir| table::lookup(heir.fd).is_none();
    for heir in text.split(';').filter_map(Heir::parse).filter(is_free) {
        let known = entries.iter().position(|e| e.heir.is_of(&heir));
        let at = known.unwrap_or(entries.len());
        if known.is_none() {
            let room = Box::into_raw(Box::new(MaybeUninit::uninit()));
            entries.push(Entry {
                whole: heir.take(&mut taken),
                heir,
                numbers: AtomicU32::new(0),
                room: AtomicPtr::new(room),
            });
        }
        entries[at].numbers.fetch_add(1, Ordering::Relaxed);
        numbers.push((heir.fd, at));
    }
    let entries = ENTRIES.get_or_init(|| entries);
    table::on_inherited(adopt);
    for (fd, at) in numbers {
        // It may have been named twice.
        if table::lookup(fd).is_some() {
            entries[at].numbers.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        table::set(fd, Handle::new(Kind::Inherited, 0, at as u32));
    }
    true
}

fn entry(h: Handle) -> Option<&'static Entry> {
    ENTRIES.get()?.get(h.index())
}

/// What the next image is told of a descriptor that this one has not used.
pub fn pass_on(fd: i32, h: Handle) -> Option<Heir> {
    entry(h).map(|e| Heir { fd, ..e.heir })
}

/// The writing end by which the lender knows that an image has the connection.
pub fn presence(h: Handle) -> Option<i32> {
    entry(h).filter(|e| e.whole).map(|e| e.heir.presence)
}

/// Is the number what the former image said of it?
pub fn stands_for(fd: i32, h: Handle) -> bool {
    entry(h).is_some_and(|e| identity(fd) == e.heir.inode)
}

/// Has `h` been made of the entry, by its first use?
fn is_adopted(e: &Entry, h: Handle) -> bool {
    let inode = |c: &Conn| c.inode.load(Ordering::Relaxed);
    h.kind() == Kind::Socket && conn::get(h).is_some_and(|c| inode(c) == e.heir.inode)
}

/// Another number for the same open description.
pub fn duplicated(h: Handle, fd: i32) {
    let _section = process::lock_own(&ADOPTING);
    let Some(e) = entry(h) else { return };
    if e.numbers.load(Ordering::Acquire) > 0 {
        if table::set(fd, h) {
            e.numbers.fetch_add(1, Ordering::AcqRel);
        }
        return;
    }
    // Another thread has used it meanwhile.
    if let Some((_, h)) = table::entries().find(|&(_, h)| is_adopted(e, h)) {
        crate::life::duplicated(h, fd);
    }
}

/// Before the program closes such a number without having used it.
pub fn closing(fd: i32, h: Handle) {
    let _section = process::lock_own(&ADOPTING);
    if !table::clear_if(fd, h) {
        return;
    }
    if let Some(e) = entry(h)
        && e.numbers.fetch_sub(1, Ordering::AcqRel) == 1
    {
        reset_if_unread(e, fd);
        let ours = |&fd: &i32| table::lookup(fd).is_some_and(|h| h.kind() == Kind::Hidden);
        let own = e.heir.own().filter(|_| e.whole);
        own.filter(ours).for_each(hidden::close);
        leave_others();
    }
}

/// The process ends, with connections that it has not used.
pub fn exiting() {
    let entries = ENTRIES.get().into_iter().flatten();
    for e in entries.filter(|e| e.numbers.load(Ordering::Acquire) > 0) {
        reset_if_unread(e, e.heir.fd);
    }
}

/// Before an exec that closes connections which were not used: they are, to be ended as all others.
pub fn use_closing() {
    if ENTRIES.get().is_none() {
        return;
    }
    let unused = |h: Handle| entry(h).is_some_and(|e| e.numbers.load(Ordering::Acquire) > 0);
    for (fd, h) in table::entries().filter(|&(_, h)| h.kind() == Kind::Inherited && unused(h)) {
        if !crate::life::outlives_exec(h) {
            adopt(fd, h);
        }
    }
}

/// Before the last number of a connection goes that was not used, and that nobody has adopted: as after a use.
fn reset_if_unread(e: &Entry, fd: i32) {
    let heir = &e.heir;
    if !e.whole || heir.memory < 0 || identity(fd) != heir.inode {
        return;
    }
    let record = record::join(heir.arena).map(|arena| record::get(arena << 16 | heir.record));
    let (Some(record), Some(segment)) = (record, Segment::open(heir.memory, board::abi()).ok())
    else {
        return;
    };
    let mapped = mapped(heir, segment);
    let v = View {
        header: mapped.header(),
        generation: heir.generation as u16,
        mapped: &mapped,
        record,
        end: heir.end as usize,
    };
    // Forks of this image, and others that were lent it, may not have used it either.
    if record.life() != heir.life {
        return;
    }
    if reset::is_left_unread(&v, record, heir.inode) {
        reset::reset(fd);
    }
    v.own().look.fetch_add(1, Ordering::Release);
}

fn mapped(heir: &Heir, segment: Segment) -> Mapped {
    Mapped {
        segment,
        memory: heir.memory,
        bells: heir.bells,
        link: 0,
        index: 0,
        in_use: AtomicU32::new(1),
    }
}

/// Once nothing is left to adopt, who lent the connections may know.
fn leave_others() {
    let waiting = |e: &Entry| e.numbers.load(Ordering::Acquire) > 0;
    if let Some(entries) = ENTRIES.get().filter(|e| !e.iter().any(waiting)) {
        for e in entries {
            if e.whole && table::lookup(e.heir.presence).is_some() {
                hidden::close(e.heir.presence);
            }
        }
    }
}

/// The first use of an inherited descriptor; returns what it is now. `None`: foreign.
pub fn adopt(fd: i32, h: Handle) -> Option<Handle> {
    headwater_host::next::keep_errno(|| adopt_locked(fd, h))
}

fn adopt_locked(fd: i32, h: Handle) -> Option<Handle> {
    crate::start();
    let _section = process::lock_own(&ADOPTING);
    let e = entry(h)?;
    // Another thread may have been faster, or have closed it.
    let (ours, now) = match table::lookup(fd) {
        // A child of vfork has numbers of its own.
        now if now != Some(h) && process::is_borrowed() => {
            table::entries().find(|&(_, x)| x == h || is_adopted(e, x))?
        }
        now => (fd, now?),
    };
    if now != h {
        return (now.kind() == Kind::Socket).then_some(now);
    }
    if identity(fd) != e.heir.inode || crate::life::is_other(fd) {
        // An image in between, without the library, may have used the number for something else; or a child of vfork has.
        if !process::is_borrowed() {
            table::clear_if(fd, h);
        }
        return None;
    }
    // What is wanting may be there a moment later.
    let mut tries = 3;
    let c = loop {
        let c = connection(e, ours);
        tries -= 1;
        if c.is_some() || e.heir.memory < 0 || tries == 0 {
            break c;
        }
        std::thread::yield_now();
    };
    if c.is_none() && e.heir.memory >= 0 {
        counters::fallback(Reason::NoSegment);
        let text = format_args!("inherited descriptor {fd}: its shared memory can't be had");
        log::write(Level::Error, text);
        break_off(table::numbers(h));
    }
    let new = c.map(conn::handle);
    let mut count = 0;
    for number in table::numbers(h) {
        count += match new {
            Some(new) => table::replace_if(number, h, new),
            None => table::clear_if(number, h),
        } as u32;
    }
    e.numbers.store(0, Ordering::Release);
    if let Some(c) = c {
        c.refs.store(count, Ordering::Release);
        join(c);
    }
    leave_others();
    new
}

/// What the ring holds can't be had by this image: its calls get an error rather than wait for ever. These numbers become those
/// of a connection that was reset; others who hold this one go on.
fn break_off(numbers: impl Iterator<Item = i32>) {
    let pair = sys::socket_pair();
    if let Ok([other, end]) = pair {
        // It is closed with something unread.
        let _ = sys::send_bytes(end, &[0], libc::MSG_NOSIGNAL);
        let _ = sys::close(other);
    }
    for fd in numbers {
        if pair.is_ok_and(|[_, end]| sys::dup_over(end, fd).is_ok()) {
            continue;
        }
        let nobody: libc::sockaddr = sys::zeroed();
        let _ = sys::connect(fd, &nobody);
    }
    if let Ok([_, end]) = pair {
        let _ = sys::close(end);
    }
}

/// Makes this process a holder of the connection, which it has by the number `fd`. `None`: it is the kernel's alone.
fn connection(e: &Entry, fd: i32) -> Option<&'static Conn> {
    let heir = &e.heir;
    if !e.whole {
        return None;
    }
    let arena = record::join(heir.arena);
    let known = arena.map(|arena| arena << 16 | heir.record);
    if heir.memory < 0 {
        // Not carried yet, and this image's calls are not counted.
        if let Some(r) = known.map(record::get)
            && r.life() == heir.life
        {
            r.set(BARRED, true);
        }
        return None;
    }
    let segment = Segment::open(heir.memory, board::abi()).ok()?;
    // Of which kind they are has to be learnt, and what was told may be something else by now.
    let is_bell = |&fd: &i32| bell::is_guarded(fd) || bell::may_be_eventfd(fd);
    if !heir.bells.iter().all(is_bell) {
        return None;
    }
    let index = match known.filter(|&index| record::get(index).hold(heir.life)) {
        Some(index) => index,
        // Nobody else has it any more.
        None => {
            let index = record::allocate()?;
            record::get(index).set(ATTACHED, true);
            index
        }
    };
    let room = e.room.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if room.is_null() {
        return None;
    }
    // SAFETY: room for one, from a box, and taken by nobody else: the entry is adopted once.
    let mapped: &'static Mapped = unsafe {
        room.cast::<Mapped>().write(mapped(heir, segment));
        &*room.cast::<Mapped>()
    };
    let role = if heir.end == 0 {
        Role::Client
    } else {
        Role::Server
    };
    let c = conn::take_over(fd, role, index, mapped, heir.generation)?;
    c.inode.store(heir.inode, Ordering::Relaxed);
    Some(c)
}

/// From here on there is one holder more, in a process of its own.
fn join(c: &Conn) {
    let looks = pins::entered();
    let Some(v) = c.view(&looks) else { return };
    v.header.share();
    v.own().holders.fetch_add(1, Ordering::AcqRel);
    // An exec ends all threads but one, wherever they are: nobody of this process is in a section yet.
    let me = process::owner();
    let (out, inn) = (&v.record.sending.lock, &v.record.receiving.lock);
    if out.owner() == me {
        out.unlock();
        let _ = v.out_ring().recover_producer();
    }
    if inn.owner() == me {
        inn.unlock();
        let _ = v.in_ring().recover_consumer();
        crate::switch::recover_reader(c, &v);
    }
    for fd in [v.mapped.memory, v.own_bell(), v.peer_bell()] {
        let _ = sys::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize);
    }
    // Sleepers learn that their sleeps are bounded from now on.
    bell::ring(v.own_bell());
    bell::ring(v.peer_bell());
    c.look_now.store(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEIR: Heir = Heir {
        fd: 3,
        inode: 1 << 40,
        memory: 700,
        bells: [800, 801],
        arena: 650,
        record: 17,
        life: 4_000_000_000,
        end: 1,
        generation: 5,
        presence: 651,
    };

    #[test]
    fn what_is_said_is_understood() {
        let cold = Heir {
            memory: -1,
            bells: [-1; 2],
            ..HEIR
        };
        let text = HEIR.text() + &cold.text();
        let heard: Vec<Heir> = text.split(';').filter_map(Heir::parse).collect();
        assert_eq!(heard, [HEIR, cold]);
        assert_eq!(cold.hidden().collect::<Vec<_>>(), [650, 651]);
    }

    #[test]
    fn nonsense_is_left_alone() {
        let text = HEIR.text();
        let text = text.trim_end_matches(';');
        for wrong in [
            "",
            "1,2,3",
            &format!("{text},1"),
            &text.replace("700", "x"),
            &text.replace("651", "-5"),
            &text.replace("651", "99999999"),
        ] {
            assert_eq!(Heir::parse(wrong), None, "{wrong}");
        }
    }
}
