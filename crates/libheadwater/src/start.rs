//! Beginning and ending.
//!
//! What each kind of descriptor needs is got ready by the first call that may make one ([`sockets`], [`streams`]), so fork and exit have
//! nothing to do before that.

use std::cell::Cell;

use headwater_channel::lock::Lock;
use headwater_host::lifecycle::{self, End, Moment};
use headwater_host::log::{self, Level};
use headwater_host::next::keep_errno;
use headwater_host::sync::{AtomicBool, AtomicU32, Ordering, fence};
use headwater_host::{config, counters, env, process, signal, unwinder};
use headwater_sctp_sockets::remote;
use headwater_sockets::life;
use libc::{c_int, c_void};

use crate::{environment, modules, sanitizer};

/// Of [`SOCKETS`]: not asked yet, what the program's sockets are to be, and once it is so.
const UNKNOWN: u32 = 0;
const KERNELS: u32 = 1;
const OURS: u32 = 2;

#[unsafe(link_section = ".data")]
static SOCKETS: AtomicU32 = AtomicU32::new(UNKNOWN);
#[unsafe(link_section = ".data")]
static STREAMS: AtomicBool = AtomicBool::new(false);
/// Held by whoever gets something ready, and over fork.
#[unsafe(link_section = ".data")]
static BEGINNING: Lock = Lock::new();

unsafe extern "C" {
    /// In unwind.c: false if there is none.
    fn hw_load_unwinder() -> c_int;
}

thread_local! {
    static BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// May the program's sockets be ours, as far as is known without asking further?
#[inline]
pub fn wants_sockets() -> bool {
    match SOCKETS.load(Ordering::Acquire) {
        UNKNOWN => env::is_set("HEADWATER_SOCKETS", &["0"]),
        known => known == OURS,
    }
}

/// Are they, without any doubt?
#[inline]
pub fn has_sockets() -> bool {
    SOCKETS.load(Ordering::Acquire) == OURS
}

/// Are the program's sockets ours? The first call that comes here makes it so. Not in a signal handler, which may have
/// interrupted an allocation, nor in a child of vfork, which has its parent's memory: what they make stays the kernel's.
pub fn sockets() -> bool {
    if SOCKETS.load(Ordering::Acquire) == UNKNOWN {
        if !wants_sockets() {
            SOCKETS.store(KERNELS, Ordering::Release);
            return false;
        }
        let asked = || SOCKETS.load(Ordering::Acquire) != UNKNOWN;
        if !once(asked, begin_sockets) {
            counters::note(counters::Reason::NotNow);
        }
    }
    has_sockets()
}

/// The process has confined itself: none of its sockets is asked any more what it may be.
pub fn leave_sockets() {
    SOCKETS.store(KERNELS, Ordering::Release);
}

/// Looked up before the lock is taken.
static SANITIZED: AtomicBool = AtomicBool::new(false);

fn begin_sockets() {
    begin_any();
    let c = config::get();
    let sanitized = SANITIZED.load(Ordering::Acquire);
    if sanitized {
        counters::note(counters::Reason::Sanitizer);
        log::write(
            Level::Warn,
            format_args!("built with a sanitizer: its sockets stay with the kernel"),
        );
    }
    let ours = c.sockets && c.this_program_allowed() && !sanitized;
    if ours {
        register_unwinder();
        headwater_sockets::start();
        process::enable(true);
    }
    SOCKETS.store(if ours { OURS } else { KERNELS }, Ordering::Release);
}

/// Are streams and transports possible? The first call that comes here makes them so; false where [`sockets`] would be.
#[inline]
pub fn streams() -> bool {
    let begun = || STREAMS.load(Ordering::Acquire);
    begun() || {
        // Modules are others' code, and panic as they like.
        register_unwinder();
        unwinder::load();
        once(begun, begin_streams)
    }
}

/// Not when the library is loaded: most programs never need to know it, and it would cost each of them a page.
fn register_unwinder() {
    // SAFETY: no arguments.
    unwinder::register(|| unsafe { hw_load_unwinder() != 0 });
}

/// Have there been, or could there have been, streams or endpoints?
#[inline]
pub fn has_streams() -> bool {
    STREAMS.load(Ordering::Acquire)
}

/// Would [`streams`] say yes?
pub fn may_have_streams() -> bool {
    process::present() && (has_streams() || !is_bad_moment())
}

fn begin_streams() {
    begin_any();
    headwater_streams::start();
    modules::begin();
    headwater_endpoints::start();
    headwater_sctp_sockets::start();
    remote::start();
    STREAMS.store(true, Ordering::Release);
}

/// What all kinds need.
fn begin_any() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    environment::look_after_forks();
    std::panic::set_hook(Box::new(|info| {
        log::write(Level::Error, format_args!("{info}"));
    }));
    log::start();
    for complaint in &config::get().complaints {
        log::write(Level::Warn, format_args!("{complaint}"));
    }
    counters::open_file();
    if counters::is_wanted() {
        signal::watch_ends(killed);
    }
}

/// A handler of the program's was installed: what it may call is looked up before, as soon as any of it is ours.
#[inline]
pub fn handler_installed() {
    static DONE: AtomicBool = AtomicBool::new(false);
    // Who begins meanwhile looks whether there are handlers after it has begun: one of the two sees the other.
    fence(Ordering::SeqCst);
    let begun = headwater_sockets::started() || has_streams();
    if begun && !DONE.load(Ordering::Relaxed) && signal::handles() {
        keep_errno(|| {
            crate::real::in_handlers::nexts::resolve();
            crate::prototypes::nexts::resolve();
        });
        DONE.store(true, Ordering::Relaxed);
    }
}

/// Runs `begin`, unless it is `done`. False: that can't be now.
#[cold]
fn once(done: impl Fn() -> bool, begin: fn()) -> bool {
    if is_bad_moment() {
        return false;
    }
    keep_errno(|| {
        headwater_host::next::nexts::resolve();
        // Asks the loader the first time, which frees memory by malloc's rules: later calls may be made in handlers.
        headwater_host::sys::cpu();
        SANITIZED.store(sanitizer::is_here(), Ordering::Release);
        let beginning = process::lock_own(&BEGINNING);
        if !done() {
            BEGINS.set(true);
            let _ = std::panic::catch_unwind(begin);
            BEGINS.set(false);
        }
        drop(beginning);
        handler_installed();
    });
    done()
}

/// Can't it begin now? Calls of our own on the way are the kernel's, too.
fn is_bad_moment() -> bool {
    process::is_confined() || BEGINS.get() || signal::in_handler() || process::is_borrowed()
}

// ---- ending ----

#[unsafe(link_section = ".text.life")]
pub extern "C" fn at_exit(_: *mut c_void) {
    lifecycle::tell(Moment::Exit);
    ended(End::Exit);
}

fn word(how: End) -> &'static str {
    match how {
        End::Exit => "exit",
        End::AtOnce => "_exit",
        End::Exec => "exec",
    }
}

/// The process (or its image) ends: tell the peers and write the line.
#[unsafe(link_section = ".text.life")]
pub fn ended(how: End) {
    if process::is_confined() {
        return;
    }
    if !lifecycle::tells_any() && !counters::is_wanted() || process::is_borrowed() {
        return;
    }
    lifecycle::tell(Moment::Ending(how));
    lifecycle::tell(Moment::Counting);
    if how != End::Exec {
        lifecycle::tell(Moment::Leaving);
    }
    if counters::is_wanted() {
        counters::write_line(word(how));
    }
    // An exec may fail, and the process go on.
    counters::reset();
}

/// The default action of a signal is about to end the process, and all is left to the kernel but the line.
fn killed() {
    if process::is_confined() {
        return;
    }
    lifecycle::tell(Moment::Counting);
    counters::write_line("signal");
}

// ---- fork ----

/// A fork that the C library does not make.
pub fn forking(fork: impl FnOnce() -> libc::c_long) -> libc::c_long {
    if process::is_confined() && !has_streams() {
        return fork();
    }
    lifecycle::before_fork();
    let pid = fork();
    keep_errno(|| match pid {
        0 => lifecycle::in_child_of_another(),
        _ => {
            lifecycle::in_parent();
            if pid < 0 && headwater_sockets::started() && process::present() {
                life::fork_failed();
            }
        }
    });
    pid
}

/// [`Part::Beginning`](lifecycle::Part).
#[unsafe(link_section = ".text.life")]
pub fn before_fork() -> bool {
    // Asks the loader: before anything is held that a constructor of a library may wait for.
    look_names_up();
    // With a single thread nobody else begins; and what this one interrupts goes on in both processes.
    if crate::variadic::is_single_threaded() || BEGINS.get() {
        return false;
    }
    core::mem::forget(process::lock_own(&BEGINNING));
    true
}

#[unsafe(link_section = ".text.life")]
pub fn after_fork(_in_child: bool) {
    BEGINNING.unlock();
    process::end_section();
}

/// Once in a server, what each of its children would look up for itself.
#[unsafe(link_section = ".text.life")]
fn look_names_up() {
    #[unsafe(link_section = ".data")]
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.load(Ordering::Relaxed) || !headwater_sockets::started() {
        return;
    }
    if life::listens() && !signal::in_handler() {
        crate::real::nexts::resolve();
        crate::made::nexts::resolve();
        crate::prototypes::nexts::resolve();
        DONE.store(true, Ordering::Relaxed);
    }
}
