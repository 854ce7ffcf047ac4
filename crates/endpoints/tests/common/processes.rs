//! Tests that fork, with the endpoints ready and the streams' handlers around it.

use std::sync::MutexGuard;

use headwater_host::process;
use headwater_streams::head::life;
use headwater_testkit::processes::{self, Library};
pub use headwater_testkit::processes::{Child, execute_again};

/// One test at a time, since a child inherits what the others have open.
pub fn alone() -> MutexGuard<'static, ()> {
    processes::alone(Library {
        identify: process::identify,
        before_fork: life::before_fork,
        after_fork: life::after_fork,
        start: || {
            headwater_streams::start();
            headwater_endpoints::start();
        },
    })
}
