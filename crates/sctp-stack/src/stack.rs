//! What a process has one of: its links, and the endpoints that it serves by port.
//!
//! There is no thread for the packets: whoever is in a call takes what has come, has the endpoints handle it, and sends what
//! they want to send. Of those that wait one is the *leader*, who sleeps at the links; the others sleep at their own signals.
//! The background leads when nobody else does.
//!
//! ```text
//!   served    one port: the engine's endpoint, and when messages leave      leading      who sleeps at the links
//!   life      its making, forks, the end of the process                     background   for when nobody is in a call
//!   report    what `headwater stat sctp` is told
//! ```
//!
//! Order of locks: pumping, table, an endpoint, what belongs to a link.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use headwater_host::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use headwater_host::{process, sys};
use headwater_providers::flusher::{self, Holder};
use headwater_sctp::Arrived;
use headwater_sctp::endpoint::out_of_the_blue;

use super::link::udp::Udp;
use super::link::{Link, Run};
use super::on_host::Share;
use super::registry::{Registry, Reservation};
use super::{Guarded, environment};

mod background;
mod leading;
mod life;
mod report;
mod served;

use background::Background;
pub use leading::{Leading, kick};
pub use life::{
    current, existing, exiting, flush_all, flush_due, go_on_in_child, is_watched, look_after_forks,
    unwound_to,
};
pub use served::{Entry, Inner, Served};

/// Pumps in a row without anything from a link but the first, after which it is looked at only every so often.
const QUIET: u32 = 8;
const OFTEN: u32 = 16;
/// Buffers kept for later use.
const MOST_BUFFERS: usize = 8;
const LARGEST_BUFFER: usize = 1 << 20;

pub struct Stack {
    /// The process that it belongs to, as an [`Owner`](headwater_channel::lock::Owner); 0: none for the time being.
    owner: AtomicU64,
    pub registry: Arc<Registry>,
    links: Vec<Box<dyn Link>>,
    /// What associations with processes of this host may have on its way.
    pub on_host: Arc<Share>,
    /// By port.
    table: Guarded<HashMap<u16, Place>>,
    pumping: Guarded<Pumping>,
    /// When a port wants to be asked, by time.
    timers: Guarded<BTreeSet<(u64, u16)>>,
    /// The earliest of all deadlines, or earlier; changed under the lock of `timers`.
    deadline: AtomicU64,
    pub leading: Leading,
    /// A link was ready when the leader last woke.
    suspected: AtomicBool,
    /// Counts the pumps of callers.
    pub pumps: AtomicU64,
    /// Endpoints that hold something back, as told to the flusher.
    holds: AtomicU32,
    holding: Guarded<Vec<Arc<Served>>>,
    buffers: Guarded<Vec<Vec<u8>>>,
    pub background: Background,
}

struct Place {
    served: Arc<Served>,
    reservation: Reservation,
}

#[derive(Default)]
struct Pumping {
    /// Whose packets came.
    touched: Vec<Arc<Served>>,
    /// For answers to strangers.
    out: Vec<u8>,
    /// Of each link: how often it has had nothing.
    quiet: [u32; 4],
}

impl Stack {
    fn new() -> sys::Result<Stack> {
        flusher::ask(Holder::Sctp, &(flush_due as fn(u64)));
        let registry = Arc::new(Registry::new()?);
        let udp = Udp::open(environment::udp_port(), registry.clone())?;
        let on_host = Share::of_buffer(udp.buffer());
        let mut links: Vec<Box<dyn Link>> = vec![Box::new(udp)];
        if let Some(raw) = environment::raw_link() {
            links.push(raw);
        }
        Ok(Stack {
            owner: AtomicU64::new(process::owner().bits()),
            registry,
            links,
            on_host,
            table: Guarded::new(HashMap::new()),
            pumping: Guarded::new(Pumping::default()),
            timers: Guarded::new(BTreeSet::new()),
            deadline: AtomicU64::new(u64::MAX),
            leading: Leading::new()?,
            suspected: AtomicBool::new(false),
            pumps: AtomicU64::new(0),
            holds: AtomicU32::new(0),
            holding: Guarded::new(Vec::new()),
            buffers: Guarded::new(Vec::new()),
            background: Background::default(),
        })
    }

    /// False in a child of the process that made it.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == process::owner().bits()
    }

    pub fn links(&self) -> &[Box<dyn Link>] {
        &self.links
    }

    /// Where packets with or without encapsulation leave.
    pub fn link(&self, encapsulated: bool) -> Option<&dyn Link> {
        let name = if encapsulated { "udp" } else { "raw" };
        self.links.iter().find(|l| l.name() == name).map(|l| &**l)
    }

    /// One more endpoint listens, or one less.
    pub fn listens(&self, on: bool) {
        for link in &self.links {
            link.listens(on);
            let timers = self.timers.enter();
            self.hurry(link.deadline());
            drop(timers);
        }
    }

    // ---- ports ----

    /// Begins to serve a port. EADDRINUSE; errors of the links.
    pub fn serve(&self, served: &Arc<Served>, reservation: Reservation) -> sys::Result<()> {
        let port = reservation.port;
        for (i, link) in self.links.iter().enumerate() {
            if let Err(errno) = link.open_port(port) {
                self.links[..i].iter().for_each(|l| l.close_port(port));
                self.registry.free(reservation);
                return Err(errno);
            }
        }
        let place = Place {
            served: served.clone(),
            reservation,
        };
        self.table.enter().insert(port, place);
        self.background.start();
        Ok(())
    }

    pub fn end_service(&self, port: u16) {
        let mut table = self.table.enter();
        let found = table.get(&port);
        // It may have a user again.
        if !found.is_some_and(|place| place.served.is_unused()) {
            return;
        }
        let Some(place) = table.remove(&port) else {
            return;
        };
        drop(table);
        self.links.iter().for_each(|l| l.close_port(port));
        self.registry.free(place.reservation);
        self.timers.enter().remove(&(place.served.deadline(), port));
        self.holding
            .enter()
            .retain(|served| !Arc::ptr_eq(served, &place.served));
    }

    /// A port that only associations keep gets another user. `None`: nobody here serves it; EADDRINUSE.
    pub fn serve_again(
        &self,
        port: u16,
        with: impl FnOnce(&mut Inner),
    ) -> Option<sys::Result<Arc<Served>>> {
        let table = self.table.enter();
        let served = &table.get(&port)?.served;
        Some(match served.open_again(with) {
            true => Ok(served.clone()),
            false => Err(libc::EADDRINUSE),
        })
    }

    fn served(&self, port: u16) -> Option<Arc<Served>> {
        Some(self.table.enter().get(&port)?.served.clone())
    }

    pub fn all(&self) -> Vec<Arc<Served>> {
        let table = self.table.enter();
        table.values().map(|p| p.served.clone()).collect()
    }

    pub fn serves_any(&self) -> bool {
        !self.table.enter().is_empty()
    }

    /// By port.
    pub fn all_sorted(&self) -> Vec<Arc<Served>> {
        let mut all = self.all();
        all.sort_by_key(|served| served.port);
        all
    }

    // ---- packets ----

    /// Takes what has come and does what is due. False: somebody else is at it.
    pub fn pump(&self) -> bool {
        self.pumps.fetch_add(1, Ordering::Relaxed);
        self.turn()
    }

    /// As [`Stack::pump`], by the background.
    pub fn turn(&self) -> bool {
        let Some(mut pumping) = self.pumping.try_enter() else {
            return false;
        };
        if !self.is_ours() {
            return false;
        }
        let now = sys::now();
        let suspected = self.suspected.swap(false, Ordering::Relaxed);
        for (i, link) in self.links.iter().enumerate() {
            let quiet = pumping.quiet[i];
            if i > 0 && quiet > QUIET && !quiet.is_multiple_of(OFTEN) && !suspected {
                pumping.quiet[i] = quiet.wrapping_add(1).max(QUIET);
                continue;
            }
            let taken = self.take(&**link, now, &mut pumping);
            pumping.quiet[i] = if taken.is_ok() {
                0
            } else {
                quiet.wrapping_add(1)
            };
            // The leader was woken, and perhaps not by packets.
            if taken.is_err_and(|errno| errno != libc::EAGAIN || suspected) {
                self.look_at_troubles(&**link, now, &mut pumping);
            }
        }
        for served in pumping.touched.drain(..) {
            served.settle(now);
        }
        drop(pumping);
        if now >= self.deadline.load(Ordering::SeqCst) {
            self.run_timers(now);
        }
        true
    }

    fn take(&self, link: &dyn Link, now: u64, pumping: &mut Pumping) -> sys::Result<usize> {
        let mut last: Option<Arc<Served>> = None;
        link.receive(&mut |packet| {
            let Some(port) = destination(packet.packet) else {
                return;
            };
            if last.as_ref().is_none_or(|l| l.port != port) {
                last = self.served(port);
                if let Some(served) = &last
                    && served.touch()
                {
                    pumping.touched.push(served.clone());
                }
            }
            match &last {
                Some(served) => served.arrive(now, packet),
                None => self.answer_stranger(link, port, packet, &mut pumping.out),
            }
        })
    }

    fn answer_stranger(&self, link: &dyn Link, port: u16, packet: &Arrived<'_>, out: &mut Vec<u8>) {
        if link.pass_on(port, packet) || !link.answers_strangers() {
            return;
        }
        out.clear();
        if let Some(answer) = out_of_the_blue(packet, out) {
            link.send(&[Run::of(out, 0, &answer)]);
        }
    }

    fn look_at_troubles(&self, link: &dyn Link, now: u64, pumping: &mut Pumping) {
        link.troubles(&mut |returned| {
            // The quoted packet is ours: the source port tells whose.
            let quoted = returned.quoted;
            let Some(port) = quoted.get(..2).map(|b| u16::from_be_bytes([b[0], b[1]])) else {
                return;
            };
            if let Some(served) = self.served(port) {
                served.unreachable(now, returned);
                if served.touch() {
                    pumping.touched.push(served);
                }
            }
        });
    }

    /// A link was ready when somebody last woke there.
    pub fn suspect(&self) {
        self.suspected.store(true, Ordering::Relaxed);
    }

    // ---- time ----

    /// The earliest of all deadlines, or earlier.
    pub fn deadline(&self) -> u64 {
        self.deadline.load(Ordering::SeqCst)
    }

    /// A port's deadline is `at` instead of `before` (`u64::MAX`: none).
    pub fn set_deadline(&self, port: u16, before: u64, at: u64) {
        let mut timers = self.timers.enter();
        timers.remove(&(before, port));
        timers.insert((at, port));
        self.hurry(at);
    }

    /// Under the lock of the timers.
    fn hurry(&self, at: u64) {
        if self.deadline.fetch_min(at, Ordering::SeqCst) > at {
            self.leading.wake_before(at);
            self.background.wake_before(at);
        }
    }

    fn run_timers(&self, now: u64) {
        loop {
            let mut timers = self.timers.enter();
            let Some((_, port)) = timers.first().copied().filter(|&(at, _)| at <= now) else {
                break;
            };
            timers.pop_first();
            drop(timers);
            if let Some(served) = self.served(port) {
                served.on_timeout(now);
            }
        }
        for link in self.links.iter().filter(|link| link.deadline() <= now) {
            link.on_deadline(now);
        }
        let timers = self.timers.enter();
        let links = self.links.iter().map(|link| link.deadline());
        let next = links.chain(timers.first().map(|&(at, _)| at)).min();
        self.deadline
            .store(next.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    // ---- buffers ----

    /// An empty buffer for packets.
    pub fn take_buffer(&self) -> Vec<u8> {
        self.buffers.enter().pop().unwrap_or_default()
    }

    pub fn give_buffer(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut buffers = self.buffers.enter();
        if buffers.len() < MOST_BUFFERS && buffer.capacity() <= LARGEST_BUFFER {
            buffers.push(buffer);
        }
    }

    // ---- what is held back ----

    /// `served` begins to hold something back.
    pub fn hold(&self, served: Arc<Served>) {
        self.holds.fetch_add(1, Ordering::Relaxed);
        self.list_holder(served);
        flusher::hold();
    }

    /// It holds nothing any more.
    pub fn drop_hold(&self) {
        self.holds.fetch_sub(1, Ordering::Relaxed);
        flusher::drop_hold();
    }

    fn list_holder(&self, served: Arc<Served>) {
        if served.list(true) {
            self.holding.enter().push(served);
        }
    }

    /// Those that hold something back, or did a moment ago. Who still does is to be listed again.
    fn take_holders(&self) -> Vec<Arc<Served>> {
        let all = core::mem::take(&mut *self.holding.enter());
        for served in &all {
            served.list(false);
        }
        all
    }
}

fn destination(packet: &[u8]) -> Option<u16> {
    packet.get(2..4).map(|b| u16::from_be_bytes([b[0], b[1]]))
}
