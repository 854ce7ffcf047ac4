//! Serves those who have sockets of this process, in the [background](worker). It rests at their lines and at the sockets that they wait for.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use core::time::Duration;

use headwater_channel::bell;
use headwater_host::log::{self, Level};
use headwater_host::table::{self, Handle};
use headwater_host::worker::{self, Client, Rest};
use headwater_host::{hidden, sys};
use headwater_sctp_stack::{Entered, stack};

use super::owner::{OWNER, Owner};
use crate::Source;

/// A first look again at what somebody waits for, whatever its descriptors say: the program itself may have taken the news. Then less
/// and less often.
const SHORTEST: u64 = Duration::from_millis(5).as_nanos() as u64;
const LONGEST: u64 = Duration::from_millis(640).as_nanos() as u64;

/// So many times in a row news that are news to nobody are looked at at once, then after a rest.
const MOST_BARREN: u32 = 4;
const REST: u64 = Duration::from_millis(2).as_nanos() as u64;

thread_local! {
    /// Without a destructor, which the C library would need memory for, and end the process where there is none.
    static LOOK: Cell<ManuallyDrop<Look>> = const { Cell::new(ManuallyDrop::new(Look::NEW)) };
}

/// What is known from turn to turn.
struct Look {
    slice: u64,
    barren: u32,
    told: bool,
    /// What the places of the rest are.
    what: Vec<What>,
    /// Rings, and what is waited for there.
    armed: Vec<(Handle, u32)>,
    /// One of those rings has something.
    ready: bool,
}

impl Look {
    const NEW: Look = Look {
        slice: SHORTEST,
        barren: 0,
        told: false,
        what: Vec::new(),
        armed: Vec::new(),
        ready: false,
    };
}

/// The thread serves them. False: there can't be one.
pub fn start() -> bool {
    let begun = worker::begin(Client::Sharing, turn, None);
    if let Err(errno) = begun {
        let told = format_args!("no thread for the sockets of children (errno {errno})");
        log::write(Level::Warn, told);
    }
    begun.is_ok()
}

/// Who they are has changed.
pub fn look() {
    worker::call(Client::Sharing);
}

/// In this thread, until `over`.
pub fn serve(over: impl Fn() -> bool) {
    let mut rest = Rest::default();
    turn(&mut rest);
    // A turn finds out that the last of them has left: nothing would end a rest behind it.
    while !over() {
        rest.take();
        turn(&mut rest);
    }
}

/// What ended a sleep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Nothing,
    /// Something of a socket's that somebody waits for.
    News,
    Request,
}

/// What an entry of the set is.
#[derive(Clone, Copy)]
enum What {
    Presence(u32),
    Line(u32, i32),
    /// Of a socket that somebody waits for; a bell to be taken.
    Socket(Option<Handle>),
}

fn turn(rest: &mut Rest) {
    super::wait_never(true);
    let mut look = LOOK.replace(ManuallyDrop::new(Look::NEW));
    look.attend(rest);
    rest.clear();
    look.begin(rest);
    LOOK.set(look);
    super::wait_never(false);
}

impl Look {
    /// Does what has come since the last turn asks for.
    fn attend(&mut self, rest: &Rest) {
        for &(h, want) in &self.armed {
            if let Some(d) = table::descriptor(h) {
                d.disarm(h, want);
            }
        }
        let came = match rest.set().iter().any(|entry| entry.revents != 0) {
            true => attend(rest.set(), &self.what),
            false if self.ready => Came::News,
            false => Came::Nothing,
        };
        self.slice = match came {
            Came::Nothing if !self.rests() => (self.slice * 2).min(LONGEST),
            _ => SHORTEST,
        };
        self.barren = match came {
            Came::News if !self.told => self.barren + 1,
            _ => 0,
        };
        self.what.clear();
        self.armed.clear();
        (self.told, self.ready) = (false, false);
    }

    /// Sockets are left alone for a moment.
    fn rests(&self) -> bool {
        self.barren >= MOST_BARREN
    }

    /// Tells of what has come, and looks where the rest is to be.
    fn begin(&mut self, rest: &mut Rest) {
        let mut entered = enter();
        let Some(owner) = entered.as_deref_mut().and_then(Option::as_mut) else {
            return;
        };
        self.told = owner.tell();
        self.add_lines(owner, rest);
        let watches = owner.watched().next().is_some();
        if !self.rests() {
            self.add_sockets(owner, rest);
        }
        drop(entered);
        if watches && let Some(stack) = stack::existing() {
            stack.hand_over();
        }
        self.ready = self.armed.iter().any(|&(h, want)| holds(h, want));
        if self.ready {
            rest.until(0);
        } else if self.rests() {
            rest.until(sys::now() + REST);
        } else if watches {
            rest.until(sys::now() + self.slice);
        }
    }

    fn add(&mut self, rest: &mut Rest, fd: i32, events: i16, what: What) {
        rest.at(fd, events);
        self.what.push(what);
    }

    fn add_lines(&mut self, owner: &Owner, rest: &mut Rest) {
        for child in &owner.children {
            self.add(
                rest,
                child.presence,
                libc::POLLIN,
                What::Presence(child.key),
            );
            for line in &child.lines {
                // No further request before the answer has gone.
                let events = if line.answer.is_empty() {
                    libc::POLLIN
                } else {
                    libc::POLLOUT
                };
                self.add(rest, line.fd, events, What::Line(child.key, line.fd));
            }
        }
    }

    fn add_sockets(&mut self, owner: &Owner, rest: &mut Rest) {
        for (socket, want) in owner.watched() {
            socket.sources(&mut |source| match source {
                Source::Fd(fd) => self.add(rest, fd, libc::POLLIN, What::Socket(None)),
                Source::ByMemory(h, shadow) => {
                    let Some(d) = table::descriptor(h) else {
                        return;
                    };
                    d.arm(h, want);
                    self.armed.push((h, want));
                    if let Some(fd) = d.bell(h) {
                        self.add(rest, fd, libc::POLLIN, What::Socket(Some(h)));
                    }
                    if let Some(fd) = shadow {
                        self.add(rest, fd, libc::POLLIN | libc::POLLRDHUP, What::Socket(None));
                    }
                }
            });
        }
    }
}

/// Not where another process serves from now on.
fn enter() -> Option<Entered<'static, Option<Owner>>> {
    let owner = OWNER.enter();
    (owner.is_some() && !super::has_left()).then_some(owner)
}

fn attend(set: &[libc::pollfd], what: &[What]) -> Came {
    let mut came = Came::News;
    let Some(mut entered) = enter() else {
        return Came::Request;
    };
    let Some(owner) = entered.as_mut() else {
        return Came::Request;
    };
    for (entry, what) in set.iter().zip(what) {
        if entry.revents == 0 {
            continue;
        }
        if !matches!(what, What::Socket(_)) {
            came = Came::Request;
        }
        match *what {
            What::Socket(None) => {}
            What::Socket(Some(h)) => {
                // It may have been closed since, and its number be the program's: others' turns end the thread's sleep too.
                if let Some(d) = table::descriptor(h)
                    && d.bell(h) == Some(entry.fd)
                    && bell::take(entry.fd)
                {
                    d.settle(h);
                }
            }
            What::Presence(key) => {
                if let Some(at) = place(owner, key)
                    && !owner.hear(at)
                {
                    owner.bury(at);
                }
            }
            What::Line(key, fd) => attend_to_line(owner, key, fd),
        }
    }
    let ended = core::mem::take(&mut owner.ended);
    drop(entered);
    for socket in ended {
        // Nobody waits for that.
        let is_long = |seconds: &mut u32| *seconds > 0;
        socket.core.enter().options.linger.take_if(is_long);
        socket.close();
    }
    came
}

fn attend_to_line(owner: &mut Owner, key: u32, fd: i32) {
    let Some(at) = place(owner, key) else { return };
    let lines = &owner.children[at].lines;
    let Some(line) = lines.iter().position(|line| line.fd == fd) else {
        return;
    };
    if !owner.attend(at, line) {
        owner.children[at].lines.swap_remove(line);
        hidden::close(fd);
    }
}

fn place(owner: &Owner, key: u32) -> Option<usize> {
    owner.children.iter().position(|child| child.key == key)
}

fn holds(h: Handle, want: u32) -> bool {
    table::descriptor(h).is_some_and(|d| d.ready(h, want) != 0)
}

#[cfg(test)]
mod tests {
    use headwater_host::table::Kind;

    use super::*;

    #[test]
    fn what_is_no_bell_of_a_socket_any_more_is_left_alone() {
        OWNER.enter().get_or_insert_default();
        let fd = bell::create().unwrap();
        bell::ring(fd);
        let entry = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: libc::POLLIN,
        };
        let closed = Handle::new(Kind::Socket, 1, 77);
        attend(&[entry], &[What::Socket(Some(closed))]);
        assert!(bell::take(fd));
        sys::close(fd).unwrap();
        OWNER.enter().take();
    }
}
