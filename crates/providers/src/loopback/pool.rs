//! Pipes of former connections, kept mapped: to make and map one costs several times what a connection costs otherwise.
//!
//! The socket of a connection that ended in peace stays too, if its listener keeps the other end (see [`idle_sockets`](super::idle_sockets)):
//! then the next connection there needs a message and nothing else.
//!
//! Who made a pipe may use it for another connection once both ends are closed, in peace and by their only holders; the
//! other process recognizes it by its identity.

use headwater_channel::lock::Owner;
use headwater_host::guarded::Private;
use headwater_host::lifecycle;
use headwater_host::sync::Ordering;
use headwater_host::{process, sys};
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::Pipe;

use super::{Owned, Space, name};

/// Pipes kept by a process.
const MOST: usize = 32;

#[derive(Default)]
struct Pool {
    /// A child of fork has nothing of its parent's.
    owner: u64,
    kept: Vec<Kept>,
}

struct Kept {
    pipe: &'static Pipe,
    /// By this process.
    made: bool,
    way: Option<Way>,
}

/// The socket of a former connection, by which its listener can be asked again.
pub struct Way {
    pub socket: Owned,
    pub space: Space,
    pub to: Vec<u8>,
    /// Forks of this process before there was the socket: later ones have copied it.
    pub forks: u32,
}

static POOL: Private<Pool> = Private::new(Pool {
    owner: 0,
    kept: Vec::new(),
});

/// A pipe for a new connection to a listener who keeps its other end for that, and the way there.
pub fn known_way(space: Space, to: &[u8], ring: usize) -> Option<(&'static Pipe, Way)> {
    let forks = lifecycle::forks();
    with(|kept| {
        let leads = |way: &Way| way.space == space && way.to == to && way.forks == forks;
        let is_known = |k: &mut Kept| {
            k.way.as_ref().is_some_and(leads)
                && k.pipe.ring_size() == ring
                && k.pipe.is_settled()
                && k.pipe.try_renew()
        };
        let found = kept.extract_if(.., is_known).next()?;
        Some((found.pipe, found.way?))
    })
}

/// A pipe for a new connection, with rings of this size.
pub fn fresh(ring: usize) -> sys::Result<&'static Pipe> {
    let is_fit =
        |k: &mut Kept| k.made && k.pipe.ring_size() == ring && k.is_free() && k.pipe.try_renew();
    let used = with(|kept| kept.extract_if(.., is_fit).next());
    if let Some(used) = used {
        return Ok(used.pipe);
    }
    Pipe::bare(false, ring).inspect(|pipe| pipe.keep())
}

impl Kept {
    /// Has nobody a way by it?
    fn is_free(&self) -> bool {
        self.way
            .as_ref()
            .is_none_or(|way| !self.pipe.is_settled() && name::has_hung_up(way.socket.number()))
    }
}

/// The pipe with this identity, if this process has mapped it for a former connection.
pub fn known(inode: u64) -> Option<Mapped> {
    let is_it = |k: &mut Kept| !k.made && k.pipe.inode == inode && k.pipe.heads_gone();
    let known = with(|kept| kept.extract_if(.., is_it).next());
    known.map(|k| Mapped::from(k.pipe))
}

/// A pipe of another process that is mapped for a connection: not used after all when it is dropped.
pub struct Mapped {
    pipe: &'static Pipe,
    /// It has carried one before.
    of_pool: bool,
}

impl Mapped {
    /// memfd and bells of one that is new here. ENOMEM, EPROTO.
    pub fn new(memfd: Owned, bells: [Owned; 2]) -> sys::Result<Mapped> {
        let pipe = Pipe::open_hidden(false, memfd, bells)?;
        pipe.keep();
        let of_pool = false;
        Ok(Mapped { pipe, of_pool })
    }

    pub fn from(pipe: &'static Pipe) -> Mapped {
        let of_pool = true;
        Mapped { pipe, of_pool }
    }

    /// Makes it the accepting end of a connection. ENOSR.
    pub fn adopt(self, shadow: i32) -> sys::Result<&'static Head> {
        let head = life::adopt_hidden(self.pipe, 1, shadow)?;
        core::mem::forget(self);
        Ok(head)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        match self.of_pool {
            true => give(self.pipe, false, None),
            false => life::give_up(self.pipe),
        }
    }
}

/// A connection is over, and its pipe may be used for another.
pub fn give(pipe: &'static Pipe, made: bool, way: Option<Way>) {
    if !made {
        forget_one_of_the_dead();
    }
    let oldest = with(|kept| {
        if !pipe.is_kept() {
            return None;
        }
        match kept.iter_mut().find(|k| core::ptr::eq(k.pipe, pipe)) {
            Some(known) => known.made |= made,
            None => kept.push(Kept { pipe, made, way }),
        }
        (kept.len() > MOST).then(|| kept.remove(0))
    });
    oldest.into_iter().for_each(|k| life::give_up(k.pipe));
}

/// The oldest pipe that another process made goes, if that process is no more.
fn forget_one_of_the_dead() {
    let gone = with(|kept| {
        let at = kept.iter().position(|k| !k.made)?;
        let maker = kept[at].pipe.words(0).user.load(Ordering::Relaxed);
        process::dead(Owner::from_bits(maker)).then(|| kept.remove(at))
    });
    gone.into_iter().for_each(|k| life::give_up(k.pipe));
}

/// Nobody is to use a pipe again.
pub fn forget(pipe: &'static Pipe) {
    with(|kept| kept.retain(|k| !core::ptr::eq(k.pipe, pipe)));
    life::give_up(pipe);
}

fn with<T>(f: impl FnOnce(&mut Vec<Kept>) -> T) -> T {
    let me = process::owner().bits();
    let (value, foreign) = POOL.with(|pool| {
        let foreign = if pool.owner == me {
            Vec::new()
        } else {
            core::mem::take(&mut pool.kept)
        };
        pool.owner = me;
        (f(&mut pool.kept), foreign)
    });
    foreign.into_iter().for_each(|k| life::give_up(k.pipe));
    value
}
