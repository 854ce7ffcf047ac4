//! In which scheduling class processes run.

use std::io;

use rustix::process::setpriority_process;

use crate::speed::options::{Class, Options};
use crate::sys::check;

/// The class and the priority that both ends inherit.
pub fn apply(options: &Options) -> io::Result<()> {
    let policy = match options.class {
        Class::Normal => None,
        Class::Batch => Some((libc::SCHED_BATCH, "SCHED_BATCH", 0)),
        Class::Fifo => Some((libc::SCHED_FIFO, "SCHED_FIFO", 1)),
        Class::RoundRobin => Some((libc::SCHED_RR, "SCHED_RR", 1)),
    };
    if let Some((policy, name, sched_priority)) = policy {
        let priority = libc::sched_param { sched_priority };
        // SAFETY: the parameter outlives the call.
        let set = check(unsafe { libc::sched_setscheduler(0, policy, &priority) });
        set.map_err(|error| refused(name, &error))?;
    }
    if options.nice != 0 {
        setpriority_process(None, options.nice)
            .map_err(|error| refused(&format!("the priority {}", options.nice), &error.into()))?;
    }
    Ok(())
}

fn refused(what: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "no permission for {what}, which root and CAP_SYS_NICE have: {error}"
    ))
}
