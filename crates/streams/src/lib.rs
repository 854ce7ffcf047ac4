//! STREAMS in user space.
//!
//! ```text
//!   head   the stream head: calls on descriptors, and their waiting
//!   pipe   pipes and FIFOs: two rings in shared memory
//!   modules, drivers   what comes with the system
//!   attach, open       names: devices, fattach, FIFOs      background   its thread
//!   api    streams for programs in Rust: Stream
//! ```
//!
//! Messages, queues and what runs them are `headwater_executive`'s.

pub mod api;
pub mod attach;
pub mod background;
pub mod board;
pub mod drivers;
pub mod head;
pub mod modules;
pub mod open;
pub mod pipe;
pub mod strlog;
pub mod tunables;

pub use headwater_executive::{ddi, exec};

pub use api::{Choice, Error, Priority, Received, Stream, poll};

/// Makes streams possible in this process. Once, at start.
pub fn start() {
    use headwater_host::table::{Kind, register};
    head::life::look_after_forks();
    headwater_host::epoll::start();
    register(Kind::Stream, &head::poll::Streams);
    exec::timer::install(exec::timer::Hooks {
        now: headwater_host::sys::now,
        set_alarm: background::alarm,
    });
    background::TICK.set(|| {
        head::life::bury();
        head::tending::tick(headwater_host::sys::now())
    });
    head::JOINS_NAMES.set(attach::join_names);
    headwater_host::signal::unmask_by(head::signals::unmask);
    head::sleepers::prepare();
    modules::register();
    drivers::register();
    if let Some(text) = headwater_host::env::take(head::exec::VARIABLE) {
        head::exec::inherit(&text);
    }
}
