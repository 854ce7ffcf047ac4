//! Ends of pipes over exec(2): the new image, if it has the library, finds them again by a variable that names their
//! descriptors. What modules of this process hold is lost with it.

use std::ffi::{CStr, CString, c_char};

use headwater_host::sys;
use headwater_host::table::{self, Kind};

use super::life;
use crate::pipe::{Parts, Pipe};

const VARIABLE: &str = "HEADWATER_INHERIT";

/// The environment for a new image, and the descriptors that it inherits besides the program's.
pub struct Inheritance {
    variable: Option<CString>,
    pointers: Vec<*const c_char>,
    opened: Vec<i32>,
}

/// Before an exec with this environment. Without streams that it would inherit nothing changes.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn prepare(envp: *const *const c_char) -> Option<Inheritance> {
    let mut text = String::new();
    let mut opened = Vec::new();
    for (fd, h) in table::entries().filter(|(_, h)| h.kind() == Kind::Stream) {
        let inherited = sys::fcntl(fd, libc::F_GETFD, 0).is_ok_and(|f| f & libc::FD_CLOEXEC == 0);
        let Some(head) = super::get(h).filter(|_| inherited) else {
            continue;
        };
        let Some(pipe) = head.pipe() else { continue };
        let Ok([first, second]) = pipe.both_bells() else {
            continue;
        };
        text.push_str(&format!(
            "{fd}:{}:{}:{}:{first}:{second};",
            head.side(),
            pipe.fifo as u32,
            pipe.memfd
        ));
        for hidden in [pipe.memfd, first, second] {
            if sys::fcntl(hidden, libc::F_SETFD, 0).is_ok() {
                opened.push(hidden);
            }
        }
        head.words().shared.store(1, super::Ordering::SeqCst);
    }
    if text.is_empty() {
        return None;
    }
    let variable = CString::new(format!("{VARIABLE}={text}")).ok()?;
    let mut pointers = Vec::new();
    let mut at = envp;
    while !at.is_null() && !(*at).is_null() {
        if !CStr::from_ptr(*at)
            .to_bytes()
            .starts_with(b"HEADWATER_INHERIT=")
        {
            pointers.push(*at);
        }
        at = at.add(1);
    }
    pointers.push(variable.as_ptr());
    pointers.push(core::ptr::null());
    Some(Inheritance {
        variable: Some(variable),
        pointers,
        opened,
    })
}

impl Inheritance {
    /// What the new image gets for an environment.
    pub fn environment(&self) -> *const *const c_char {
        debug_assert!(self.variable.is_some());
        self.pointers.as_ptr()
    }
}

impl Drop for Inheritance {
    /// The exec failed, or the new image is another process.
    fn drop(&mut self) {
        for &fd in &self.opened {
            let _ = sys::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize);
        }
    }
}

/// At start: takes over what the former image left. What makes no sense is left alone.
pub fn inherit() {
    let Ok(text) = std::env::var(VARIABLE) else {
        return;
    };
    // SAFETY: before the program runs; nobody else reads the environment yet.
    unsafe { std::env::remove_var(VARIABLE) };
    let mut known: Vec<(i32, &'static Pipe)> = Vec::new();
    for entry in text.split(';').filter(|e| !e.is_empty()) {
        let numbers: Vec<i32> = entry.split(':').filter_map(|n| n.parse().ok()).collect();
        let [fd, side, fifo, memfd, first, second] = numbers[..] else {
            continue;
        };
        if sys::fcntl(fd, libc::F_GETFD, 0).is_err() {
            continue;
        }
        let pipe = match known.iter().find(|(m, _)| *m == memfd) {
            Some((_, pipe)) => *pipe,
            None => {
                let parts = Parts {
                    side: side as u32,
                    fifo: fifo != 0,
                    shadow: fd,
                    memfd,
                    bells: [first, second],
                };
                let Ok(pipe) = Pipe::open(&parts) else {
                    continue;
                };
                known.push((memfd, pipe));
                pipe
            }
        };
        let _ = life::adopt(pipe, side as u32 & 1, fd);
    }
}
