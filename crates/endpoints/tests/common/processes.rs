//! Tests that fork, with the endpoints ready.

use std::sync::MutexGuard;

use headwater_host::process;
use headwater_testkit::processes;
pub use headwater_testkit::processes::{Child, execute_again};

/// One test at a time, since a child inherits what the others have open.
pub fn alone() -> MutexGuard<'static, ()> {
    processes::alone(|| {
        process::identify();
        headwater_streams::start();
        headwater_endpoints::start();
    })
}
