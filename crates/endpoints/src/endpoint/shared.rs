//! What processes that have an endpoint by fork know of it together: how many they are, and its state whichever of them moved
//! it, which t_sync tells. Each goes on by the state that it knows itself until it asks.

use std::sync::OnceLock;

use headwater_channel::shm::SharedSafe;
use headwater_host::sync::{AtomicU32, Exchange, Ordering};
use headwater_host::sys;
use headwater_tpi::state::{self, Event as Move, State};

/// Used in turn, but for those in use.
const MOST: usize = 1 << 19;
/// Who has been killed uses one for ever: after so many of those in a row the next is taken all the same.
const TRIES: usize = 1 << 10;

#[repr(C)]
#[derive(SharedSafe)]
pub struct Shared {
    holders: AtomicU32,
    /// {state: 8, outstanding requests: 12, qlen: 12}
    standing: AtomicU32,
}

#[repr(C)]
#[derive(SharedSafe)]
struct All {
    given: AtomicU32,
    each: [Shared; MOST],
}

/// The state, and how many requests were taken and not answered, of how many that may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    pub state: State,
    pub outstanding: usize,
    pub qlen: u32,
}

const LOW: u32 = 0xfff;

impl Standing {
    fn packed(self) -> u32 {
        let outstanding = (self.outstanding as u32).min(LOW);
        self.state.number() << 24 | outstanding << 12 | self.qlen.min(LOW)
    }

    fn unpacked(word: u32) -> Option<Standing> {
        Some(Standing {
            state: State::from_number(word >> 24)?,
            outstanding: (word >> 12 & LOW) as usize,
            qlen: word & LOW,
        })
    }

    /// After a move; as many are outstanding as are, whatever who made it knows. `None`: it was made by a state of long ago.
    fn after(self, m: Move) -> Option<Standing> {
        let m = match m {
            Move::OkAck3 | Move::OkAck4 => Move::ok_ack(self.outstanding, false),
            Move::DisconInd1 | Move::DisconInd2 | Move::DisconInd3 => {
                Move::discon_ind(self.outstanding)
            }
            m => m,
        };
        Some(Standing {
            state: state::next(self.state, m)?,
            outstanding: self
                .outstanding
                .saturating_add_signed(m.outstanding() as isize),
            ..self
        })
    }
}

/// For one process; `None` where there is no memory for it.
pub fn fresh(state: State) -> Option<&'static Shared> {
    static ALL: OnceLock<Option<&'static All>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping, never unmapped; zeroes are valid words.
        unsafe {
            sys::map(size_of::<All>(), rw, flags, -1)
                .ok()
                .map(|at| &*(at as *const _))
        }
    });
    let all = (*all)?;
    let next = || &all.each[all.given.fetch_add(1, Ordering::Relaxed) as usize % MOST];
    let mut each = (0..TRIES).map(|_| next());
    let free = each.find(|s| s.holders.exchange(0, 1));
    let shared = free.unwrap_or_else(next);
    let standing = Standing {
        state,
        outstanding: 0,
        qlen: 0,
    };
    shared.standing.store(standing.packed(), Ordering::Release);
    shared.holders.store(1, Ordering::Release);
    Some(shared)
}

impl Shared {
    /// How many processes have it, after a change.
    pub fn count(&self, change: i32) -> u32 {
        self.holders
            .fetch_add(change as u32, Ordering::AcqRel)
            .wrapping_add(change as u32)
    }

    pub fn standing(&self) -> Option<Standing> {
        Standing::unpacked(self.standing.load(Ordering::Acquire))
    }

    /// This process has made these moves, in a row.
    pub fn moved(&self, moves: &[Move]) {
        self.change(|standing| moves.iter().try_fold(standing, |s, &m| s.after(m)));
    }

    pub fn set_qlen(&self, qlen: u32) {
        self.change(|standing| Some(Standing { qlen, ..standing }));
    }

    fn change(&self, f: impl Fn(Standing) -> Option<Standing>) {
        let _ = self
            .standing
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                f(Standing::unpacked(word)?).map(Standing::packed)
            });
    }
}
