//! STREAMS in user space.
//!
//! ```text
//!   ddi    message blocks and queues, with the C layouts of <sys/stream.h>, and the routines of the DDI/DKI on them
//!   head   the stream head: calls on descriptors, and their waiting
//!   pipe   pipes and FIFOs: two rings in shared memory
//!   modules, drivers   what comes with the system
//!   attach, open       names: devices, fattach, FIFOs      background   the one thread
//!   api    streams for programs in Rust: Stream
//!   exec   the executive: perimeters, the scheduler, queue pairs put in and taken out, modules and devices, timers
//! ```

pub mod api;
pub mod attach;
pub mod background;
pub mod board;
pub mod ddi;
pub mod drivers;
pub mod exec;
pub mod head;
pub mod modules;
pub mod open;
pub mod pipe;
pub mod strlog;
pub mod tunables;

pub use api::{Choice, Error, Priority, Received, Stream, poll};

/// Makes streams possible in this process. Once, at start.
pub fn start() {
    use headwater_host::table::{Kind, register};
    head::life::look_after_forks();
    register(Kind::Stream, &head::poll::Streams);
    exec::timer::install(exec::timer::Hooks {
        now: headwater_host::sys::now,
        set_alarm: background::alarm,
    });
    headwater_host::signal::unmask_by(head::signals::unmask);
    head::sleepers::prepare();
    modules::register();
    drivers::register();
    if let Some(text) = headwater_host::env::take(head::exec::VARIABLE) {
        head::exec::inherit(&text);
    }
}
