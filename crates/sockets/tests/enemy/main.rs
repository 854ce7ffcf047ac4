//! An enemy: a peer that writes nonsense into all that it shares with its victim, segment, board, mailbox and bells, while both
//! ends of its connections are at work. It can spoil these, and nothing else: no crash, no hang, no leak, and the victim's
//! other connections carry their bytes.
//!
//! Run by root, enemy and victim are two users that name each other; else they are one, and the enemy leaves alone what one
//! user's processes trust. `HEADWATER_MUTATIONS=N` goes on until that many were made; a tenth of a million is usual.
//! `HEADWATER_TEST_SEED=N` repeats one case.

mod attack;
#[path = "../common/mod.rs"]
mod common;
mod victim;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::calls::{self, Socket};
use common::users::{self, ENEMY, VICTIM};
use common::world::{Child, End, leave, load, shared, soon};

const MUTATIONS: u64 = 100_000;

pub struct World {
    /// Where the victim listens, and where the enemy of the current case does.
    pub port: AtomicU32,
    pub enemy_port: AtomicU32,
    /// Cases that the victim has been through.
    pub done: AtomicU64,
    /// No more of them come.
    pub over: AtomicU32,
    /// Attacks on carried connections, by the role of the enemy's end.
    pub carried: [AtomicU64; 2],
    /// By [`Kind`].
    pub mutations: [AtomicU64; 4],
}

/// What a mutation changes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Segment,
    Board,
    Mailbox,
    Bells,
}

impl World {
    fn made(&self) -> u64 {
        let each = self.mutations.iter().map(|n| n.load(Ordering::Relaxed));
        each.sum()
    }

    /// Of each kind some.
    fn has_all(&self) -> bool {
        let made = |n: &AtomicU64| n.load(Ordering::Relaxed) > 0;
        self.mutations.iter().all(made)
    }
}

#[test]
fn an_enemy_spoils_its_own_connections_only() {
    users::run("fight", &[]);
}

#[test]
#[ignore = "started by the test above"]
fn fight() {
    if common::world::share().is_none() {
        return;
    }
    // Its letters go to every mailbox of its network: to those of this test alone, where there may be such a network.
    headwater_testkit::network::isolate();
    load();
    let world: &'static World = shared();
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let only = number("HEADWATER_TEST_SEED");
    let wanted = number("HEADWATER_MUTATIONS").unwrap_or(MUTATIONS);
    let mut victim = users::child(VICTIM, || victim::live(world));
    until(|| world.port.load(Ordering::Acquire) != 0, &victim);
    let mut attacks = 0;
    let mut told = Instant::now();
    for seed in only.unwrap_or(0).. {
        let mut enemy = users::child(ENEMY, || attack::case(world, seed));
        until(|| world.done.load(Ordering::Acquire) > attacks, &victim);
        attacks += 1;
        // It may hurt itself as well: then it is the victim of its own doing.
        if enemy.wait(soon()).is_none() {
            eprintln!("seed {seed}: the enemy hangs");
        }
        drop(enemy);
        assert_eq!(
            call_honestly(world),
            Some(End::Exit(0)),
            "after seed {seed}"
        );
        attacks += 1;
        until(|| world.done.load(Ordering::Acquire) >= attacks, &victim);
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            let made = world.made();
            eprintln!("{made} of {wanted} mutations in {} cases", attacks / 2);
        }
        // The rarest kind is in one case of a dozen.
        let (made, all) = (world.made(), world.has_all());
        if only.is_some() || made >= wanted && all || made >= 4 * wanted {
            break;
        }
    }
    world.over.store(1, Ordering::Release);
    // Until what was shared with the dead is gone. The victim may end while it is called.
    let end = loop {
        call_honestly(world);
        let moment = Instant::now() + Duration::from_millis(300);
        if let Some(end) = victim.wait(moment) {
            break end;
        }
    };
    assert_eq!(end, End::Exit(0));
    let carried = world.carried.each_ref().map(|n| n.load(Ordering::Relaxed));
    let kinds = [Kind::Segment, Kind::Board, Kind::Mailbox, Kind::Bells];
    let made = kinds.map(|kind| (kind, world.mutations[kind as usize].load(Ordering::Relaxed)));
    eprintln!(
        "mutations {made:?} in {} cases, carried {carried:?}",
        attacks / 2
    );
    // One of them was out of reach for months, and nobody saw it.
    assert!(
        only.is_some() || made.iter().all(|&(_, n)| n > 0),
        "{made:?}"
    );
    assert!(
        only.is_some() || carried.iter().all(|&n| n * 4 > attacks / 2),
        "{carried:?} of {} attacks on carried connections",
        attacks / 2
    );
}

/// Somebody of the victim's user, who wants nothing but what is right.
fn call_honestly(world: &World) -> Option<End> {
    let mut honest = users::child(VICTIM, || {
        let socket = calls::connect(false, world.port.load(Ordering::Relaxed) as u16, 0);
        let said = exchange(socket, true);
        socket.close();
        leave(said.is_err() as i32);
    });
    honest.wait(soon())
}

/// Waits for something that the victim does.
fn until(event: impl Fn() -> bool, victim: &Child) {
    let end = soon();
    while !event() {
        assert!(Instant::now() < end, "the victim hangs ({})", victim.pid);
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Rounds with content that is checked: enough for the takeover to pay, or the listener would be left alone.
pub fn exchange(socket: Socket, client: bool) -> Result<(), calls::Errno> {
    let mut buf = [0u8; 300];
    for i in 0..64u8 {
        if client {
            socket.write_all(&[i; 300])?;
        }
        socket.read_exact(&mut buf)?;
        if buf != [i; 300] {
            return Err(libc::EBADMSG);
        }
        if !client {
            socket.write_all(&[i; 300])?;
        }
    }
    Ok(())
}
