//! All timers of an association in one table.

use crate::{PathId, Time};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// T1-init: an INIT is on its way.
    Init,
    /// T1-cookie: a COOKIE ECHO is on its way.
    Cookie,
    /// T2-shutdown: a SHUTDOWN or SHUTDOWN ACK is on its way.
    Shutdown,
    /// T5-shutdown-guard: the shutdown as a whole.
    Guard,
    /// A delayed SACK is owed.
    Sack,
    /// A RE-CONFIG is on its way.
    Reconf,
    /// T4-rto: an ASCONF is on its way.
    Asconf,
    /// An association without traffic is closed.
    Autoclose,
    /// The first message of limited lifetime expires.
    Expiry,
    /// T3-rtx: data is outstanding on the path.
    T3(PathId),
    /// The next HEARTBEAT, or the end of waiting for the answer to the last.
    Heartbeat(PathId),
    /// The next probe of the path's MTU, or the loss of the last.
    Pmtu(PathId),
}

/// Timers that are not a path's own.
const PLAIN: [Timer; 9] = [
    Timer::Init,
    Timer::Cookie,
    Timer::Shutdown,
    Timer::Guard,
    Timer::Sack,
    Timer::Reconf,
    Timer::Asconf,
    Timer::Autoclose,
    Timer::Expiry,
];
const PER_PATH: usize = 3;

impl Timer {
    fn place(self) -> usize {
        let of_path = |path: PathId, which| PLAIN.len() + usize::from(path.0) * PER_PATH + which;
        match self {
            Timer::Init => 0,
            Timer::Cookie => 1,
            Timer::Shutdown => 2,
            Timer::Guard => 3,
            Timer::Sack => 4,
            Timer::Reconf => 5,
            Timer::Asconf => 6,
            Timer::Autoclose => 7,
            Timer::Expiry => 8,
            Timer::T3(path) => of_path(path, 0),
            Timer::Heartbeat(path) => of_path(path, 1),
            Timer::Pmtu(path) => of_path(path, 2),
        }
    }

    fn at(place: usize) -> Timer {
        match PLAIN.get(place) {
            Some(timer) => *timer,
            None => {
                let place = place - PLAIN.len();
                let path = PathId((place / PER_PATH) as u8);
                match place % PER_PATH {
                    0 => Timer::T3(path),
                    1 => Timer::Heartbeat(path),
                    _ => Timer::Pmtu(path),
                }
            }
        }
    }
}

/// Not running.
const NEVER: u64 = u64::MAX;

/// When each timer expires.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    due: Vec<u64>,
}

impl Timers {
    /// Starts the timer, or starts it anew.
    pub fn set(&mut self, timer: Timer, at: Time) {
        let place = timer.place();
        if place >= self.due.len() {
            self.due.resize(place + 1, NEVER);
        }
        self.due[place] = at.0.min(NEVER - 1);
    }

    /// Starts the timer unless it is running.
    pub fn set_if_stopped(&mut self, timer: Timer, at: Time) {
        if self.get(timer).is_none() {
            self.set(timer, at);
        }
    }

    pub fn stop(&mut self, timer: Timer) {
        if let Some(due) = self.due.get_mut(timer.place()) {
            *due = NEVER;
        }
    }

    pub fn stop_all(&mut self) {
        self.due.clear();
    }

    pub fn get(&self, timer: Timer) -> Option<Time> {
        self.due
            .get(timer.place())
            .copied()
            .filter(|due| *due != NEVER)
            .map(Time)
    }

    /// The earliest of all.
    pub fn next(&self) -> Option<Time> {
        self.due
            .iter()
            .copied()
            .min()
            .filter(|due| *due != NEVER)
            .map(Time)
    }

    /// Takes a timer that has expired by `now`; it is stopped.
    pub fn expired(&mut self, now: Time) -> Option<Timer> {
        let place = self.due.iter().position(|due| *due <= now.0)?;
        self.due[place] = NEVER;
        Some(Timer::at(place))
    }
}
