use std::sync::Mutex;
use std::time::Instant;

use headwater_testkit::processes::Child;

use super::*;
use crate::stand_in;

/// Longest that anything here takes.
const BOUND: Duration = Duration::from_secs(20);
const LONG: u64 = Duration::from_secs(600).as_nanos() as u64;
const SHORT: u64 = Duration::from_millis(20).as_nanos() as u64;

/// What a client is to do, and what it has done.
struct Played {
    turns: AtomicU32,
    /// How long it rests, in nanoseconds; 0: until it is called.
    rests: AtomicU64,
    /// Where; -1: nowhere.
    at: AtomicI32,
    /// Turns that something at the descriptor has brought.
    told: AtomicU32,
    /// When the last rest was to end, and the last turn began.
    due: AtomicU64,
    began: AtomicU64,
    fails: AtomicBool,
    waits: AtomicBool,
}

impl Played {
    const fn new() -> Played {
        Played {
            turns: AtomicU32::new(0),
            rests: AtomicU64::new(0),
            at: AtomicI32::new(-1),
            told: AtomicU32::new(0),
            due: AtomicU64::new(0),
            began: AtomicU64::new(0),
            fails: AtomicBool::new(false),
            waits: AtomicBool::new(false),
        }
    }

    fn turn(&self, rest: &mut Rest) {
        self.began.store(sys::now(), Ordering::SeqCst);
        if rest.came(0) {
            self.told.fetch_add(1, Ordering::SeqCst);
            bell::take(self.at.load(Ordering::SeqCst));
        }
        rest.clear();
        match self.rests.swap(0, Ordering::SeqCst) {
            0 => {}
            rests => {
                let at = sys::now() + rests;
                self.due.store(at, Ordering::SeqCst);
                rest.until(at);
            }
        }
        rest.at(self.at.load(Ordering::SeqCst), libc::POLLIN);
        self.turns.fetch_add(1, Ordering::SeqCst);
        assert!(!self.fails.load(Ordering::SeqCst), "as it is asked to");
        while self.waits.load(Ordering::SeqCst) {
            sys::sched_yield();
        }
    }

    fn turns(&self) -> u32 {
        self.turns.load(Ordering::SeqCst)
    }
}

fn soon(what: &str, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < BOUND, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

static PACKETS: Played = Played::new();
static SHARING: Played = Played::new();
static FLUSHER: Played = Played::new();
static STREAMS: Played = Played::new();
/// The background of this process is one test's.
static ALONE: Mutex<()> = Mutex::new(());

fn begin_all() {
    begin(Client::Sctp, |rest| PACKETS.turn(rest), None).unwrap();
    begin(Client::Sharing, |rest| SHARING.turn(rest), None).unwrap();
    begin(Client::Flusher, |rest| FLUSHER.turn(rest), Some(work)).unwrap();
    begin(Client::Streams, |rest| STREAMS.turn(rest), None).unwrap();
    for played in [&PACKETS, &SHARING, &FLUSHER, &STREAMS] {
        soon("a first turn", || played.turns() > 0);
    }
}

/// One more turn of it, by a call.
fn call_one(client: Client, played: &Played) {
    let before = played.turns();
    call(client);
    soon("a turn of one who was called", || played.turns() > before);
}

#[test]
fn each_has_its_turn_at_its_time_or_by_its_descriptor_or_when_it_is_called() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    // Whoever is due first, before or behind the other in the list; the other rests on.
    let pairs = [
        (Client::Sctp, &PACKETS, Client::Sharing, &SHARING),
        (Client::Sharing, &SHARING, Client::Sctp, &PACKETS),
    ];
    for (soon_due, first, late, last) in pairs {
        last.rests.store(LONG, Ordering::SeqCst);
        call_one(late, last);
        first.rests.store(SHORT, Ordering::SeqCst);
        call_one(soon_due, first);
        let (before, rested) = (last.turns(), first.turns());
        soon("the end of a rest", || first.turns() > rested);
        assert!(first.began.load(Ordering::SeqCst) >= first.due.load(Ordering::SeqCst));
        assert_eq!(last.turns(), before);
    }
    let bell = bell::create().unwrap();
    SHARING.at.store(bell, Ordering::SeqCst);
    call_one(Client::Sharing, &SHARING);
    let (others, told) = (PACKETS.turns(), SHARING.told.load(Ordering::SeqCst));
    for rung in 1..=3 {
        bell::ring(bell);
        let heard = || SHARING.told.load(Ordering::SeqCst) - told;
        soon("a turn by a descriptor", || heard() == rung);
    }
    assert_eq!(PACKETS.turns(), others);
    SHARING.at.store(-1, Ordering::SeqCst);
    call_one(Client::Sharing, &SHARING);
    sys::close(bell).unwrap();
}

#[test]
fn nobody_waits_for_streams_and_who_fails_has_no_further_turn() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    STREAMS.waits.store(true, Ordering::SeqCst);
    call_one(Client::Streams, &STREAMS);
    for _ in 0..3 {
        call_one(Client::Flusher, &FLUSHER);
        call_one(Client::Sctp, &PACKETS);
    }
    STREAMS.fails.store(true, Ordering::SeqCst);
    STREAMS.waits.store(false, Ordering::SeqCst);
    call(Client::Streams);
    let turn = &PLACES[Client::Streams as usize].turn;
    soon("the end of one who fails", || turn.is(stopped));
    let turns = STREAMS.turns();
    begin_others_again();
    assert_eq!(STREAMS.turns(), turns);
    // For the other test.
    STREAMS.fails.store(false, Ordering::SeqCst);
    turn.clear();
}

/// A thread that had another turn would have had it by then.
fn begin_others_again() {
    begin(Client::Streams, |rest| STREAMS.turn(rest), None).unwrap();
    for _ in 0..3 {
        call(Client::Streams);
        call_one(Client::Flusher, &FLUSHER);
    }
    soon("a rest", || WORKERS[1].sleeps.load(Ordering::SeqCst));
}

static INSTEAD: AtomicU32 = AtomicU32::new(0);

fn work() -> u64 {
    INSTEAD.fetch_add(1, Ordering::SeqCst);
    // Not within itself.
    assert_eq!(stand_in::turn(None), Some(10_000_000));
    1000
}

#[test]
fn a_child_has_a_thread_of_its_own_and_calls_do_its_work_until_then() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    let bells = || [0, 1].map(|n| WORKERS[n].bell.load(Ordering::SeqCst));
    let before = bells();
    let instead = || INSTEAD.load(Ordering::SeqCst);
    let has_none = || !is_there(Client::Flusher) && !is_there(Client::Streams);
    let child = Child::judged(|| {
        let none = has_none() && bells() == [-1, -1] && stand_in::turn(None).is_none();
        // Where it can't be started.
        process::confine();
        let refused = begin(Client::Flusher, |rest| FLUSHER.turn(rest), Some(work)).is_err();
        let done = stand_in::turn(None) == Some(1000) && instead() == 1;
        let bounded = stand_in::turn(Some(10)) == Some(10) && instead() == 2;
        none && refused && done && bounded && has_none()
    });
    assert!(child.succeeded());
    let child = Child::judged(|| {
        Client::Flusher
            .worker()
            .missing
            .store(true, Ordering::SeqCst);
        let turns = FLUSHER.turns();
        let _ = stand_in::turn(Some(10));
        soon("a turn in a child", || FLUSHER.turns() > turns);
        let there = is_there(Client::Flusher) && !is_there(Client::Streams);
        there && stand_in::turn(None).is_none() && instead() == 0
    });
    assert!(child.succeeded());
    // The parent's go on, at the same bells.
    call_one(Client::Flusher, &FLUSHER);
    call_one(Client::Streams, &STREAMS);
    assert_eq!(bells(), before);
}

#[test]
fn a_child_shares_nothing_and_who_has_failed_begins_anew_there() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    let turn = &PLACES[Client::Sctp as usize].turn;
    let before = turn.get().unwrap();
    turn.set(stopped);
    let child = Child::judged(|| {
        let (shared, packets) = (SHARING.turns(), PACKETS.turns());
        begin(Client::Sctp, |rest| PACKETS.turn(rest), None).unwrap();
        soon("a turn of one who failed", || PACKETS.turns() > packets);
        call_one(Client::Sctp, &PACKETS);
        SHARING.turns() == shared
    });
    assert!(child.succeeded());
    turn.set(before);
}

#[test]
fn a_child_that_is_to_have_one_thread_starts_none() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    let begin = || begin(Client::Streams, |rest| STREAMS.turn(rest), None).unwrap();
    start_none_in_child(true);
    let child = Child::judged(|| {
        let turns = STREAMS.turns();
        begin();
        let one = !is_there(Client::Streams)
            && std::fs::read_dir("/proc/self/task").unwrap().count() == 1;
        start_none_in_child(false);
        begin();
        soon("a turn", || STREAMS.turns() > turns);
        one
    });
    // In the parent it changes nothing, nor in a child of another thread.
    call_one(Client::Streams, &STREAMS);
    start_none_in_child(false);
    assert!(child.succeeded());
}

/// As of a set that could not be made, while another thread has made it.
#[test]
fn calls_do_nothing_for_a_thread_that_is_there() {
    let _alone = ALONE.lock().unwrap_or_else(|failed| failed.into_inner());
    begin_all();
    refuse(Client::Streams, work);
    assert_eq!(stand_in::turn(None), Some(10_000_000));
    assert_eq!(stand_in::turn(None), None);
    assert_eq!(INSTEAD.load(Ordering::SeqCst), 0);
}
