//! Offer, claim, attach: how a tracked connection becomes a carried one. Nobody waits; each step is taken at the beginning
//! of an ordinary operation, by the thread that makes it.

use core::time::Duration;

use headwater_host::board::{self, Addr, Board, Offer, State, Tuple};
use headwater_host::counters::{self, Reason};
use headwater_host::handed::identity;
use headwater_host::sync::{Exchange, Ordering};
use headwater_host::unwinder::{self, Unwinder};
use headwater_host::{config, epoll, memory, process, sys, table};

use crate::boards::{self, board};
use crate::conn::{self, Conn, Phase, Role};
use crate::record::{ATTACHED, BARRED, Takeover};
use crate::segment::{Agreement, HELD, Mapped, View};
use crate::tcp_counts::{self, TcpCounts, Unknown};
use crate::{images, link, modes, proof, sets, unseen, worth};

/// A client offers after so many operations that moved data, a server claims after so many: a connection for one request
/// and its answer is left alone.
const OFFER_AFTER: u32 = 2;
const CLAIM_AFTER: u32 = 3;
/// A server that finds no offer, and a client whose offer nobody claims, stop looking after so many, and so many nanoseconds:
/// who sends small messages to a reader on the same CPU makes thousands of calls before that makes one.
const GIVES_UP: u64 = Duration::from_millis(100).as_nanos() as u64;
const SERVER_GIVES_UP: u32 = 512;
/// Operations after which a server tries again that was held up by what may be over soon.
const HELD_UP_FOR: u32 = 8;
const CLIENT_GIVES_UP: u32 = 8192;
/// Of a takeover that comes after so many, what has held it up is counted.
const LATE: u32 = 64;

/// Takes the next step of a tracked connection, if it is time for one. No handler of the program runs in it, and no other
/// thread closes the connection under it.
#[inline]
pub fn progress(c: &Conn, fd: i32) {
    let done = c.operations.load(Ordering::Relaxed);
    let due = c.next_try.load(Ordering::Relaxed);
    let step = match c.role() {
        Role::Client if c.offer().is_some() || done >= OFFER_AFTER => client_step,
        Role::Server if done >= CLAIM_AFTER && done >= due => server_step,
        _ => return,
    };
    // What is carried is copied by us, where a wrong pointer of the program's is a panic.
    let step = match unwinder::load() {
        Unwinder::Loaded => step,
        Unwinder::NotNow => return c.hold_up(Reason::NotNow),
        Unwinder::Missing => |c: &Conn, fd: i32, _: u32| decline(c, fd, Reason::NoUnwinder),
    };
    c.take_step(|| {
        if c.phase() == Phase::Tracked && conn::is_at(fd, c) {
            step(c, fd, done);
        }
    });
}

fn client_step(c: &Conn, fd: i32, done: u32) {
    let Some((board, offer)) = offered(c) else {
        return match board() {
            Some(board) => post(c, fd, board),
            None => decline(c, fd, Reason::NoBoard),
        };
    };
    match board.state(offer) {
        State::Offered if done > CLIENT_GIVES_UP && gives_up(c) => {
            if board.advance(offer, State::Offered, State::Cancelled) {
                if let Some(tuple) = tuple_of(fd, Role::Client) {
                    board.forget_dead_listeners(tuple.server);
                }
                decline(c, fd, Reason::NotClaimed);
            }
        }
        State::Offered | State::Writing => {}
        State::Accepted => attach(c, fd, board, offer),
        State::Free | State::Attached | State::Cancelled => decline(c, fd, Reason::NotClaimed),
    }
}

fn post(c: &Conn, fd: i32, board: &Board) {
    if c.record().holders.load(Ordering::Acquire) != 1 {
        return decline(c, fd, Reason::PassedOn);
    }
    if !unseen::may_carry(c, fd) {
        c.hold_up(Reason::UnseenWaits);
        if !is_young(c, fd) {
            decline(c, fd, Reason::UnseenWaits);
        }
        return;
    }
    let Some(tuple) = tuple_of(fd, Role::Client) else {
        return;
    };
    if !link::open_mailbox() {
        return decline(c, fd, Reason::NoDescriptors);
    }
    match board.offer(tuple) {
        Some(offer) => {
            c.set_tuple(&tuple);
            c.set_offer(Some(offer));
        }
        None => decline(c, fd, Reason::BoardFull),
    }
}

/// A wait may be seen yet, until a connection is older.
fn is_young(c: &Conn, fd: i32) -> bool {
    c.operations.load(Ordering::Relaxed) < unseen::gives_up(c, fd)
}

fn server_step(c: &Conn, fd: i32, done: u32) {
    // Each operation at first, then ever more rarely.
    let next = if done < 16 { done + 1 } else { done * 2 };
    c.next_try.store(next, Ordering::Relaxed);
    let find = |t: Tuple| boards::all().find_map(|b| Some((b, t, b.find(&t)?)));
    match tuple_of(fd, Role::Server).and_then(find) {
        Some((board, tuple, offer)) => claim(c, fd, board, offer, &tuple),
        None if done > SERVER_GIVES_UP && gives_up(c) => decline(c, fd, Reason::NoOffer),
        None => c.hold_up(Reason::NoOffer),
    }
}

/// It has looked often enough: for long enough, too, from the first time on that this is asked?
fn gives_up(c: &Conn) -> bool {
    let now = sys::now_roughly();
    let begins = c
        .in_vain_since
        .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    begins.is_err_and(|since| now.saturating_sub(since) >= GIVES_UP)
}

/// Does nobody share the end?
fn is_alone(c: &Conn) -> bool {
    let record = c.record();
    record.holders.load(Ordering::SeqCst) == 1 && !images::is_out(record)
}

/// Begins a takeover, if nobody shares the end: who were killed in one would leave it under way for the others, who wait for it.
fn begin(c: &Conn) -> bool {
    let record = c.record();
    if !is_alone(c) {
        // Who forked for it closes its own copy when it gets to that.
        hold_up_for_now(c, Reason::PassedOn);
        return false;
    }
    if !record.begin(Takeover::Changing) {
        hold_up_for_now(c, Reason::Unsettled);
        return false;
    }
    let may = is_alone(c) && !record.has(BARRED) && !epoll::is_held();
    if !may {
        record.finish(Takeover::Open);
    }
    may
}

/// Why it is not taken over now, or the kernel's counts.
fn allowed(c: &Conn, fd: i32) -> Result<TcpCounts, Reason> {
    if memory::is_scarce() {
        return Err(Reason::NoMemory);
    }
    sets::allow(c, fd)?;
    if !unseen::may_carry(c, fd) {
        return Err(Reason::UnseenWaits);
    }
    if !modes::allow(fd) {
        return Err(Reason::Option);
    }
    settled(c, fd)
}

/// The accepting end's step: OFFERED -> ACCEPTED.
fn claim(c: &Conn, fd: i32, board: &Board, offer: Offer, tuple: &Tuple) {
    if !begin(c) {
        return;
    }
    let claimed = (|| {
        let counts = allowed(c, fd)?;
        let holds_other_end = |uid| proof::other_end_is_of(fd, uid);
        let mapped = link::segment_for(board.slot(offer).client(), holds_other_end)?;
        let h = mapped.header();
        h.directions[1].claim(counts.written);
        h.directions[1].begin(counts.written);
        h.directions[0].claim(tcp_counts::received(fd).unwrap_or(counts.read));
        h.directions[0]
            .receive
            .krecv
            .store(counts.read, Ordering::Relaxed);
        modes::learn(c, fd);
        mapped.accept(tuple);
        board.slot(offer).sign(mapped.link, mapped.index as u64);
        if !board.advance(offer, State::Offered, State::Accepted) {
            link::release(mapped, 1, 0, false);
            return Err(Reason::NoOffer);
        }
        Ok(mapped)
    })();
    finish(c, fd, claimed, Some(offer));
}

/// The connecting end's step: ACCEPTED -> ATTACHED.
fn attach(c: &Conn, fd: i32, board: &Board, offer: Offer) {
    if !begin(c) {
        return;
    }
    let attached = (|| {
        let counts = allowed(c, fd)?;
        let slot = board.slot(offer);
        let (l, index) = (
            slot.link.load(Ordering::Acquire),
            slot.segment.load(Ordering::Acquire),
        );
        let holds_other_end = |uid| proof::other_end_is_of(fd, uid);
        let mapped = link::find(l, index, c.tuple(), holds_other_end)?;
        let h = mapped.header();
        h.directions[0].begin(counts.written);
        h.directions[1]
            .receive
            .krecv
            .store(counts.read, Ordering::Relaxed);
        modes::learn(c, fd);
        h.ends[0].released.store(HELD, Ordering::Release);
        if !mapped.agree(Agreement::Attached) {
            link::release(mapped, 0, 0, false);
            return Err(Reason::NotClaimed);
        }
        // For those who look at the board.
        board.advance(offer, State::Accepted, State::Attached);
        Ok(mapped)
    })();
    finish(c, fd, attached, Some(offer));
}

fn finish(c: &Conn, fd: i32, result: Result<&'static Mapped, Reason>, offer: Option<Offer>) {
    let record = c.record();
    match result {
        Ok(mapped) => {
            c.set_offer(offer);
            c.inode.store(identity(fd), Ordering::Relaxed);
            c.carry(mapped);
            if c.operations.load(Ordering::Relaxed) >= LATE
                && let Some(reason) = c.held_up_by()
            {
                counters::note(reason);
            }
            record.finish(Takeover::Done);
            sets::carried(c, fd);
            if c.refs.load(Ordering::Acquire) > 1 {
                let h = table::socket(fd);
                let others = table::entries().filter(|&(other, x)| Some(x) == h && other != fd);
                for (other, _) in others {
                    sets::carried(c, other);
                }
            }
        }
        Err(reason) => {
            record.finish(Takeover::Open);
            match reason {
                Reason::Unsettled => hold_up_for_now(c, reason),
                // A wait may be seen yet.
                Reason::UnseenWaits if is_young(c, fd) => hold_up_for_now(c, reason),
                _ => decline(c, fd, reason),
            }
        }
    }
}

/// A takeover fails by what may be over soon, such as counts that moved while we looked. A client tries again at its next operation.
fn hold_up_for_now(c: &Conn, reason: Reason) {
    c.hold_up(reason);
    let done = c.operations.load(Ordering::Relaxed);
    let soon = done.saturating_add(HELD_UP_FOR);
    c.next_try.fetch_min(soon, Ordering::Relaxed);
}

/// The kernel's counts, if they agree with ours: otherwise somebody uses the connection without us.
fn settled(c: &Conn, fd: i32) -> Result<TcpCounts, Reason> {
    match tcp_counts::counts(fd, c.role() == Role::Client) {
        Ok(t) => {
            let r = c.record();
            let ours = TcpCounts {
                written: r.sent.load(Ordering::Acquire),
                read: r.received.load(Ordering::Acquire),
            };
            if t == ours {
                Ok(t)
            } else {
                Err(Reason::CountsDisagree)
            }
        }
        Err(Unknown::Moving) => Err(Reason::Unsettled),
        Err(Unknown::OldKernel) => Err(Reason::OldKernel),
        Err(Unknown::NotEstablished) => Err(Reason::HalfClosed),
    }
}

/// Leaves a connection to the kernel for good, unless somebody is in the middle of an operation on it. In a step of it.
pub fn decline(c: &Conn, fd: i32, reason: Reason) {
    if c.phase() != Phase::Tracked || !c.record().begin(Takeover::Declined) {
        return;
    }
    counters::fallback(reason);
    count_kernel(c);
    withdraw_offer(c);
    let Some(h) = table::socket(fd) else { return };
    if h.kind() == table::Kind::Socket && conn::get(h).is_some_and(|x| core::ptr::eq(x, c)) {
        let left = if c.is_ours() {
            table::hide_if(fd, h)
        } else {
            table::clear_if(fd, h)
        };
        // Otherwise it was closed meanwhile, and that has counted.
        if left && c.refs.fetch_sub(1, Ordering::AcqRel) == 1 {
            c.abandon();
        }
    }
}

/// A connection's offer, and the board that it is on.
fn offered(c: &Conn) -> Option<(&'static Board, Offer)> {
    let offer = c.offer()?;
    Some((boards::of(offer)?, offer))
}

/// Takes an offer off the board, at close, fork and decline.
pub fn withdraw_offer(c: &Conn) {
    if let Some((board, offer)) = offered(c) {
        let _ = board.advance(offer, State::Offered, State::Cancelled);
        if c.role() == Role::Client {
            board.release(offer);
        }
        c.set_offer(None);
    }
}

/// The server closes a connection that the client never attached: its segment is free all the same.
pub fn reclaim_unattached(c: &Conn, v: &View<'_>) {
    if c.role() != Role::Server || c.record().has(ATTACHED) {
        return;
    }
    if let Some((board, offer)) = offered(c) {
        let _ = board.advance(offer, State::Accepted, State::Cancelled);
    }
    if v.mapped.agree(Agreement::Cancelled) {
        v.peer().released.exchange(0, v.generation as u32);
    }
}

/// Cancels an offer that nobody has accepted yet, and only that: before a fork, the segment being this process's alone.
pub fn withdraw_if_offered(c: &Conn) {
    if let Some((board, offer)) = offered(c)
        && c.role() == Role::Client
        && board.advance(offer, State::Offered, State::Cancelled)
    {
        board.release(offer);
        c.set_offer(None);
    }
}

/// The server's look at whether the client has attached.
#[inline]
pub fn see_attached(c: &Conn, v: &View<'_>) {
    if c.role() == Role::Server && !v.record.has(ATTACHED) && v.is_attached() {
        v.record.set(ATTACHED, true);
    }
}

/// Lets `headwater stat` see how far the rings have got; now and then, by the client.
#[cold]
pub fn publish_totals(c: &Conn, v: &View<'_>) {
    if c.role() == Role::Client
        && let Some((board, offer)) = offered(c)
    {
        let bytes = &board.slot(offer).bytes;
        bytes[0].store(v.out_ring().produced().0, Ordering::Relaxed);
        bytes[1].store(v.in_ring().consumed().0, Ordering::Relaxed);
    }
}

/// A connection ends that was not taken over.
pub fn count_left(c: &Conn) {
    c.settle_unused();
    let done = c.operations.load(Ordering::Relaxed);
    if done == 0 {
        return;
    }
    // A server needs so many calls before it looks.
    let waits = offered(c).is_some_and(|(board, offer)| board.state(offer) == State::Offered);
    let reason = match c.role() {
        Role::Client if waits && done > CLAIM_AFTER => Reason::NotClaimed,
        _ => c.reason_left(),
    };
    counters::fallback(reason);
}

/// Adds what a connection moved by the kernel, and no holder has counted yet, to the process's counters.
pub fn count_kernel(c: &Conn) {
    use counters::Counter;
    let r = c.record();
    let words = [
        (Counter::KernelBytesTx, &r.sent, &r.counted[0]),
        (Counter::KernelBytesRx, &r.received, &r.counted[1]),
    ];
    for (counter, moved, counted) in words {
        let now = moved.load(Ordering::Relaxed);
        let before = counted.fetch_max(now, Ordering::Relaxed);
        counters::add(counter, now.saturating_sub(before));
    }
}

/// The connection's ends, from the kernel.
fn tuple_of(fd: i32, role: Role) -> Option<Tuple> {
    let local = board::addr_of(&sys::sock_name(fd, false).ok()?)?;
    let remote = board::addr_of(&sys::sock_name(fd, true).ok()?)?;
    let (client, server) = match role {
        Role::Client => (local, remote),
        Role::Server => (remote, local),
    };
    Some(Tuple {
        client,
        server,
        netns: process::netns_of(fd),
    })
}

/// Why a connection to `to` is not worth looking after, if it is not.
pub fn why_not_offer(to: Addr) -> Option<Reason> {
    if !config::get().port_allowed(to.port) {
        return Some(Reason::Denied);
    }
    let Some(board) = board() else {
        return Some(Reason::NoBoard);
    };
    match board.account(to) {
        None => Some(Reason::NoListener),
        Some(account) => (!worth::pays(account)).then_some(Reason::NotWorth),
    }
}
