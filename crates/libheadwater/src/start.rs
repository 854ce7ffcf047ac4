//! Loading and ending.

use headwater_host::log::{self, Level};
use headwater_host::{config, counters, process};
use headwater_sockets::life;
use headwater_streams::head::life as streams;
use headwater_transport::endpoint;
use headwater_transport::sctp::socket::{face, remote};

use crate::environment;

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let _ = std::panic::catch_unwind(|| {
        let c = config::get();
        std::panic::set_hook(Box::new(|info| {
            log::write(Level::Error, format_args!("{info}"));
        }));
        log::start();
        for complaint in &c.complaints {
            log::write(Level::Warn, format_args!("{complaint}"));
        }
        counters::open_file();
        process::identify();
        // SAFETY: plain functions; the handlers are registered before any of the program's.
        unsafe {
            libc::atexit(at_exit);
            libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
        }
        headwater_streams::start();
        headwater_transport::start();
        remote::start();
        headwater_sockets::inherit::begin();
        crate::variadic::start();
        process::arrive();
        for fd in 0..=2 {
            // SAFETY: before the program runs.
            unsafe { crate::stdio::follow(fd) };
        }
        if c.sockets && c.program_allowed(&config::program()) {
            headwater_sockets::start();
            process::enable(true);
        }
    });
}

extern "C" fn at_exit() {
    ended("exit");
}

/// The process (or its image) ends: tell the peers and write the line.
pub fn ended(how: &str) {
    if process::is_confined() || process::pid() == 0 || process::is_borrowed() {
        return;
    }
    face::tell_counts();
    remote::ended(how == "exec");
    endpoint::flush_all();
    life::count_open();
    if how != "exec" {
        // What stands on something else goes first.
        face::exiting();
        streams::exiting();
        endpoint::exiting();
        life::exiting();
    }
    counters::write_line(how);
    // An exec may fail, and the process go on.
    counters::reset();
}

/// A fork that the C library does not make.
pub unsafe fn forking(fork: impl FnOnce() -> libc::c_long) -> libc::c_long {
    before_fork();
    let pid = fork();
    let errno = headwater_host::next::errno();
    if pid == 0 {
        in_child();
    } else {
        in_parent();
        if pid < 0 && process::present() {
            life::fork_failed();
        }
    }
    headwater_host::next::set_errno(errno);
    pid
}

unsafe extern "C" fn before_fork() {
    if process::is_confined() {
        return;
    }
    environment::before_fork();
    streams::before_fork();
    life::before_fork();
}

unsafe extern "C" fn in_parent() {
    if process::is_confined() {
        return;
    }
    life::after_fork_in_parent();
    streams::after_fork(false);
    environment::after_fork();
}

unsafe extern "C" fn in_child() {
    if process::is_confined() {
        return;
    }
    life::after_fork_in_child();
    streams::after_fork(true);
    environment::after_fork();
}
