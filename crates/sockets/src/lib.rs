//! Fast Sockets: TCP connections between processes of one host, carried through shared memory without either program
//! knowing. Every connection stays a real kernel connection, its *shadow*; shared memory only carries the data. Each module
//! uses only those below it:
//!
//! ```text
//!   fork              what becomes of all connections at a fork, an exec and the end of the process
//!   lend, inherit     what images that are started get of them; the same seen from such an image
//!   confine           before seccomp: everything goes back to the kernel
//!   life              listen, connect, accept, close, dup, shutdown, exec, exit
//!   relay             who serves a descriptor's new owner with what is left in a ring
//!   options           fcntl, ioctl, setsockopt
//!   readiness         poll, select, epoll
//!   splice, send, recv the calls, as loops of steps that never block and waits that own nothing
//!   comeback, freeze  a connection leaves the rings in both directions, and comes back
//!   pins              calls that wait, and how their waits are left
//!   ending            how an end ends: with its last number, or its last call
//!   keeper            who sends what the kernel does not take at once then
//!   takeover          offer (client), claim (server), attach (client): by the board, nobody waits
//!   unseen            waits that do not pass through us
//!   reset             when a close is to be a reset
//!   switch            the protocol: each direction moves between kernel and ring, byte-exactly, any number of times
//!   modes, limits     what was set before, and what our own waits obey
//!   restart, holders  calls that the kernel begins anew on a number given away; who else has one, by /proc
//!   sets              what epoll sets know of one
//!   tcp_counts, look  what the kernel counted; how the shadow ended
//!   link, handover    how segment and doorbells reach the other process, in pools, and the messages that bring them
//!   proof             that who brings them holds the other end, where that is another user
//!   conn              the state of a process
//!   images            which images may have connections of ours
//!   segment, record   the state of both ends, and of an end
//!   boards, worth     the board, also when the runtime folder is deleted; which listeners it pays for
//!   buffers, outcome  what a call is given, and what it comes to
//! ```

pub mod boards;
pub mod buffers;
pub mod comeback;
pub mod confine;
pub mod conn;
pub mod ending;
pub mod fork;
pub mod freeze;
pub mod handover;
pub mod holders;
pub mod images;
pub mod inherit;
pub mod keeper;
pub mod lend;
pub mod life;
pub mod limits;
pub mod link;
pub mod look;
pub mod modes;
pub mod options;
pub mod outcome;
pub mod pins;
pub mod proof;
pub mod readiness;
pub mod record;
pub mod recv;
pub mod relay;
pub mod reset;
pub mod restart;
pub mod segment;
pub mod send;
pub mod sets;
pub mod splice;
pub mod switch;
pub mod takeover;
pub mod tcp_counts;
pub mod unseen;
pub mod worth;

use std::panic::{AssertUnwindSafe, catch_unwind};

use headwater_channel::copy::Fault;
use headwater_host::counters::{self, Reason};
use headwater_host::log::{self, Level};
use headwater_host::process;
use headwater_host::sync::{AtomicBool, Ordering};

#[unsafe(link_section = ".data")]
static STARTED: AtomicBool = AtomicBool::new(false);

/// May sockets be carried in this process? Those of the program are if it is [enabled](process::enabled) too.
#[inline]
pub fn started() -> bool {
    STARTED.load(Ordering::Acquire)
}

/// Makes sockets candidates. At start, or with the first transport endpoint over a socket.
pub fn start() {
    use headwater_host::table::{Kind, register};
    if started() {
        return;
    }
    // Two threads may be here at once; each of these may happen twice.
    let spin = headwater_host::config::get().spin_ns;
    headwater_channel::wait::set_limit(spin);
    headwater_host::idle::register(link::tidy);
    pins::prepare();
    headwater_host::signal::prepare();
    headwater_host::epoll::start();
    register(Kind::Socket, &readiness::Sockets);
    fork::look_after_forks();
    STARTED.store(true, Ordering::Release);
}

/// Runs a step; a panic in it costs the connection, not the program, and a wrong pointer of the program's neither.
#[inline]
fn guard<T>(c: &conn::Conn, f: impl FnOnce() -> T) -> Result<T, i32> {
    match catch_unwind(AssertUnwindSafe(|| process::catching_faults(f))) {
        Ok(value) => Ok(value),
        Err(what) if what.is::<Fault>() => Err(libc::EFAULT),
        Err(_) => {
            counters::note(Reason::Panic);
            log::write(
                Level::Error,
                format_args!("internal error on descriptor {}: connection reset", c.fd()),
            );
            Err(libc::ECONNRESET)
        }
    }
}
