//! The thread that takes packets and runs timers while no call of the program does: it leads (see [`stack`](super::stack)) once
//! nobody has pumped for a millisecond, and dozes otherwise, so that it does not wake for every packet of a program that is in
//! calls. All signals are blocked in it.

use core::time::Duration;

use headwater_channel::bell;
use headwater_host::log::{self, Level};
use headwater_host::sync::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use headwater_host::{hidden, stand_in, sys};

use super::stack::{self, Stack};
use super::stat;

/// For how long callers must have been away.
const AWAY: u64 = Duration::from_millis(1).as_nanos() as u64;

const AWAKE: u32 = 0;
/// Looks again in a moment.
const DOZING: u32 = 1;
/// A caller leads, and says when it leaves.
const HANDED: u32 = 2;

pub struct Background {
    started: AtomicBool,
    state: AtomicU32,
    /// Somebody is about to wait outside of our calls.
    hurry: AtomicBool,
    /// Where others ask for statistics; -1: nowhere.
    stat: AtomicI32,
}

impl Default for Background {
    fn default() -> Background {
        Background {
            started: AtomicBool::new(false),
            state: AtomicU32::new(AWAKE),
            hurry: AtomicBool::new(false),
            stat: AtomicI32::new(-1),
        }
    }
}

impl Background {
    /// Starts the thread, once.
    pub fn start(&self) {
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.stat.load(Ordering::Acquire) < 0 {
            self.stat
                .store(stat::open().unwrap_or(-1), Ordering::Release);
        }
        match headwater_host::thread::spawn_in_time(run) {
            Ok(()) => stand_in::no_more(turn_of_a_call),
            Err(errno) => {
                // Associations then live while calls are made.
                self.started.store(false, Ordering::Release);
                if stand_in::instead_of(turn_of_a_call) {
                    log::write(
                        Level::Warn,
                        format_args!("no thread for SCTP (errno {errno})"),
                    );
                }
            }
        }
    }

    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// To be rung when a caller that leads leaves?
    fn is_handed(&self) -> bool {
        self.state.load(Ordering::SeqCst) == HANDED
    }

    /// In a process that goes on with a copy of the stack: the thread is another process's.
    pub fn begin_anew(&self) {
        hidden::close(self.stat.swap(-1, Ordering::AcqRel));
        self.state.store(AWAKE, Ordering::SeqCst);
        self.hurry.store(false, Ordering::SeqCst);
        self.started.store(false, Ordering::SeqCst);
        self.start();
    }

    pub fn forked(&self) {
        hidden::close(self.stat.swap(-1, Ordering::AcqRel));
    }

    /// While callers are at it.
    fn doze(&self, stack: &Stack, state: u32) {
        self.state.store(state, Ordering::SeqCst);
        let bell = stack.leading.background.bell();
        let stays = state == DOZING || stack.leading.is_by_caller();
        if stays && !self.hurry.load(Ordering::SeqCst) {
            let mut set = [bell, self.stat.load(Ordering::Acquire)].map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            });
            let _ = sys::ppoll(&mut set, (state != HANDED).then_some(AWAY));
        }
        self.state.store(AWAKE, Ordering::SeqCst);
        bell::take(bell);
    }

    fn answer(&self) {
        stat::answer(self.stat.load(Ordering::Acquire));
    }
}

extern "C" fn run(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: a C string of at most 15 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"headwater-sctp".as_ptr()) };
    let ended = std::panic::catch_unwind(|| {
        if let Some(stack) = stack::existing() {
            let started = &stack.background.started;
            loop {
                go_on(stack);
                // Given up; or taken back, before anybody could see that the thread ends.
                started.store(false, Ordering::SeqCst);
                if !stack.is_ours() || started.swap(true, Ordering::SeqCst) {
                    break;
                }
            }
        }
    });
    if ended.is_err() {
        let told = format_args!(
            "the thread for SCTP has failed: associations live only while calls are made"
        );
        log::write(Level::Error, told);
    }
    core::ptr::null_mut()
}

impl Stack {
    /// A caller that led has left.
    pub fn caller_left(&self) {
        if self.background.is_handed() {
            self.leading.background.ring();
        }
    }

    /// The program is about to wait for a descriptor of ours outside of our calls: the thread takes over at once.
    pub fn hand_over(&self) {
        self.background.hurry.store(true, Ordering::SeqCst);
        if self.background.state.load(Ordering::SeqCst) != AWAKE {
            self.leading.background.ring();
        }
    }
}

/// Where there is no thread, a call that waits takes packets now and then.
fn turn_of_a_call() -> u64 {
    let Some(stack) = stack::existing().filter(|stack| stack.is_ours() && stack.serves_any())
    else {
        return u64::MAX;
    };
    stack.background.start();
    if stack.background.is_started() {
        return u64::MAX;
    }
    stack.pump();
    stack.background.answer();
    AWAY
}

fn go_on(stack: &'static Stack) {
    let background = &stack.background;
    let mut seen = stack.pumps.load(Ordering::Relaxed);
    while stack.is_ours() {
        background.answer();
        let pumps = stack.pumps.load(Ordering::Relaxed);
        let hurry = background.hurry.swap(false, Ordering::SeqCst);
        let led = stack.leading.is_by_caller();
        if led || pumps != seen && !hurry {
            let rests = led && pumps == seen;
            seen = pumps;
            background.doze(stack, if rests { HANDED } else { DOZING });
            continue;
        }
        seen = pumps;
        if stack.leading.begin_in_background() {
            lead(stack, seen);
            stack.leading.end_in_background();
        }
    }
}

/// Until a caller comes.
fn lead(stack: &Stack, pumps: u64) {
    let background = &stack.background;
    let stat = background.stat.load(Ordering::Acquire);
    loop {
        let pumped = stack.turn();
        background.answer();
        if !pumped
            || !stack.is_ours()
            || !stack.leading.is_by_background()
            || stack.pumps.load(Ordering::Relaxed) != pumps
        {
            break;
        }
        let _ = stack.sleep_at_links(&stack.leading.background, u64::MAX, &[stat]);
    }
}
