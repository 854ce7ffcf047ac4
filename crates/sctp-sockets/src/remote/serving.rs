//! The thread that serves those who have sockets of this process. It sleeps at their lines and at the sockets that they wait for.

use core::time::Duration;

use headwater_channel::bell;
use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicBool, Ordering};
use headwater_host::table::{self, Handle};
use headwater_host::{hidden, sys};
use headwater_sctp_stack::guarded::Entered;
use headwater_sctp_stack::stack;

use super::owner::{OWNER, Owner};
use crate::{Socket, Source};

/// A first look again at what somebody waits for, whatever its descriptors say: the program itself may have taken the news. Then less
/// and less often.
const SHORTEST: u64 = Duration::from_millis(5).as_nanos() as u64;
const LONGEST: u64 = Duration::from_millis(640).as_nanos() as u64;

/// So many times in a row news that are news to nobody are looked at at once, then after a rest.
const MOST_BARREN: u32 = 4;
const REST: u64 = Duration::from_millis(2).as_nanos() as u64;

static RUNNING: AtomicBool = AtomicBool::new(false);

/// Starts the thread if there is none. False: there can't be one.
pub fn start() -> bool {
    if RUNNING.swap(true, Ordering::SeqCst) {
        return true;
    }
    let started = headwater_host::thread::spawn(run);
    if let Err(errno) = started {
        RUNNING.store(false, Ordering::Release);
        let told = format_args!("no thread for the sockets of children (errno {errno})");
        log::write(Level::Warn, told);
    }
    started.is_ok()
}

/// In a child: the thread is the parent's.
pub fn forked() {
    RUNNING.store(false, Ordering::Release);
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: a C string of at most 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"headwater-share".as_ptr()) };
    let ended = std::panic::catch_unwind(|| {
        loop {
            serve(super::has_left);
            RUNNING.store(false, Ordering::SeqCst);
            // The process may have come back meanwhile, and found the thread still there.
            if super::has_left() || RUNNING.swap(true, Ordering::SeqCst) {
                break;
            }
        }
    });
    if ended.is_err() {
        let told = format_args!("the thread for the sockets of children has failed");
        log::write(Level::Error, told);
    }
    core::ptr::null_mut()
}

/// Until `over`.
pub fn serve(over: impl Fn() -> bool) {
    super::wait_never();
    let mut slice = SHORTEST;
    let mut barren = 0;
    while !over() {
        let rests = barren >= MOST_BARREN;
        let (told, came) = turn(slice, rests);
        slice = match came {
            Came::Nothing if !rests => (slice * 2).min(LONGEST),
            _ => SHORTEST,
        };
        barren = match came {
            Came::News if !told => barren + 1,
            _ => 0,
        };
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
    Bell,
    Presence(u32),
    Line(u32, i32),
    /// Of a socket that somebody waits for; a bell to be taken.
    Socket(Option<Handle>),
}

/// Tells of what has come, sleeps once, and does what there is to be done. Was anybody told? `rests`: sockets are left alone for a moment.
fn turn(slice: u64, rests: bool) -> (bool, Came) {
    let mut entered = enter();
    let Some(owner) = entered.as_deref_mut().and_then(Option::as_mut) else {
        drop(entered);
        let _ = sys::ppoll(&mut [], Some(slice));
        return (false, Came::Nothing);
    };
    let told = owner.tell();
    let mut places = Places::default();
    places.add_lines(owner);
    let watches = owner.watched().next().is_some();
    if !rests {
        places.add_sockets(owner);
    }
    drop(entered);
    if watches && let Some(stack) = stack::existing() {
        stack.hand_over();
    }
    let ready = places.armed.iter().any(|&(h, want)| holds(h, want));
    let timeout = match (ready, rests) {
        (true, _) => Some(0),
        (_, true) => Some(REST),
        _ => watches.then_some(slice),
    };
    let slept = sys::ppoll(&mut places.set, timeout);
    for &(h, want) in &places.armed {
        if let Some(d) = table::descriptor(h) {
            d.disarm(h, want);
        }
    }
    if slept.is_ok_and(|n| n > 0) {
        return (told, attend(&places.set, &places.what));
    }
    (told, if ready { Came::News } else { Came::Nothing })
}

/// Not where another process serves from now on.
fn enter() -> Option<Entered<'static, Option<Owner>>> {
    let owner = OWNER.enter();
    (owner.is_some() && !super::has_left()).then_some(owner)
}

/// Where a turn sleeps.
#[derive(Default)]
struct Places {
    set: Vec<libc::pollfd>,
    what: Vec<What>,
    /// Rings, and what is waited for there.
    armed: Vec<(Handle, u32)>,
}

impl Places {
    fn add(&mut self, fd: i32, events: i16, what: What) {
        self.set.push(libc::pollfd {
            fd,
            events,
            revents: 0,
        });
        self.what.push(what);
    }

    fn add_lines(&mut self, owner: &Owner) {
        self.add(owner.bell, libc::POLLIN, What::Bell);
        for child in &owner.children {
            self.add(child.presence, libc::POLLIN, What::Presence(child.key));
            for line in &child.lines {
                // No further request before the answer has gone.
                let events = if line.answer.is_empty() {
                    libc::POLLIN
                } else {
                    libc::POLLOUT
                };
                self.add(line.fd, events, What::Line(child.key, line.fd));
            }
        }
    }

    fn add_sockets(&mut self, owner: &Owner) {
        for (socket, want) in owner.watched() {
            socket.sources(&mut |source| match source {
                Source::Fd(fd) => self.add(fd, libc::POLLIN, What::Socket(None)),
                Source::ByMemory(h, shadow) => {
                    let Some(d) = table::descriptor(h) else {
                        return;
                    };
                    d.arm(h, want);
                    self.armed.push((h, want));
                    if let Some(fd) = d.bell(h) {
                        self.add(fd, libc::POLLIN, What::Socket(Some(h)));
                    }
                    if let Some(fd) = shadow {
                        self.add(fd, libc::POLLIN | libc::POLLRDHUP, What::Socket(None));
                    }
                }
            });
        }
    }
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
            What::Bell => {
                bell::take(entry.fd);
            }
            What::Socket(None) => {}
            What::Socket(Some(h)) => {
                if bell::take(entry.fd)
                    && let Some(d) = table::descriptor(h)
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
        socket.forget_linger();
        socket.close();
    }
    came
}

impl Socket {
    fn forget_linger(&self) {
        let linger = &mut self.core.enter().options.linger;
        *linger = linger.filter(|&seconds| seconds == 0);
    }
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
