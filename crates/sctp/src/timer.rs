//! All timers of an association in one table.

use crate::{PathId, Time};

/// Makes the enum, and of each timer its place in the table: those of the association, then as many for each path.
macro_rules! timers {
    ($($(#[$doc:meta])* $name:ident = $place:literal,)*;
     $($(#[$of:meta])* $paths:ident = $which:literal,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Timer {
            $($(#[$doc])* $name,)*
            $($(#[$of])* $paths(PathId),)*
        }

        const PLAIN: usize = [$($place),*].len();
        const OF_PATH: &[fn(PathId) -> Timer] = &[$(Timer::$paths),*];

        impl Timer {
            fn place(self) -> usize {
                let of_path = |path: PathId| PLAIN + usize::from(path.0) * OF_PATH.len();
                match self {
                    $(Timer::$name => $place,)*
                    $(Timer::$paths(path) => of_path(path) + $which,)*
                }
            }

            fn at(place: usize) -> Timer {
                match place {
                    $($place => Timer::$name,)*
                    _ => {
                        let place = place - PLAIN;
                        let path = PathId((place / OF_PATH.len()) as u8);
                        OF_PATH[place % OF_PATH.len()](path)
                    }
                }
            }
        }
    };
}

timers! {
    /// T1-init: an INIT is on its way.
    Init = 0,
    /// T1-cookie: a COOKIE ECHO is on its way.
    Cookie = 1,
    /// T2-shutdown: a SHUTDOWN or SHUTDOWN ACK is on its way.
    Shutdown = 2,
    /// T5-shutdown-guard: the shutdown as a whole.
    Guard = 3,
    /// A delayed SACK is owed.
    Sack = 4,
    /// A RE-CONFIG is on its way.
    Reconf = 5,
    /// T4-rto: an ASCONF is on its way.
    Asconf = 6,
    /// An association without traffic is closed.
    Autoclose = 7,
    /// The first message of limited lifetime expires.
    Expiry = 8,
    ;
    /// T3-rtx: data is outstanding on the path.
    T3 = 0,
    /// The next HEARTBEAT, or the end of waiting for the answer to the last.
    Heartbeat = 1,
    /// The next probe of the path's MTU, or the loss of the last.
    Pmtu = 2,
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
