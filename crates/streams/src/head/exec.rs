//! Ends of pipes over exec(2): the new image, if it has the library, finds them again by a variable that names their
//! descriptors. What modules of this process hold is lost with it.

use std::ffi::{CStr, CString, c_char};

use headwater_host::handed::{self, Sort, identity};
use headwater_host::reclaim::enter;
use headwater_host::table::{self, Handle, Kind};
use headwater_host::{process, sys};

use super::{life, opening};
use crate::pipe::{self, Pipe};

pub const VARIABLE: &str = "HEADWATER_INHERIT";

/// Beside whether it is a FIFO: this open of it has O_NONBLOCK.
const NONBLOCK: i32 = 2;
/// In place of the memory: there was not all that the new image needs.
const NOT_PASSED: i32 = -1;

/// The environment for a new image, and the descriptors that it inherits besides the program's.
pub struct Inheritance {
    /// What the pointers point to.
    _variables: Vec<CString>,
    pointers: Vec<*const c_char>,
    opened: Vec<i32>,
}

/// Before an exec with this environment. Without anything that it would inherit nothing changes.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn prepare(envp: *const *const c_char, others: &[(&str, &str)]) -> Option<Inheritance> {
    let mut text = String::new();
    let mut opened = Vec::new();
    for (fd, h) in table::entries().filter(|(_, h)| h.kind() == Kind::Stream) {
        let looks = enter();
        let Some(head) = super::get(h, &looks).filter(|_| sys::survives_exec(fd)) else {
            continue;
        };
        let Some(pipe) = head.pipe() else { continue };
        let (memfd, [first, second]) = match bells(pipe) {
            Ok(bells) => (pipe.memfd, bells),
            Err(_) => (NOT_PASSED, [-1; 2]),
        };
        let mut kind = pipe.fifo as i32;
        if opening::nonblocking(h) == Some(true) {
            kind |= NONBLOCK;
        }
        // A FIFO has one bell, and perhaps a gate.
        let second = opening::gate(h).or(pipe.gate()).unwrap_or(second);
        let [shadow, memory] = [fd, memfd].map(identity);
        let side = head.side();
        text += &format!("{fd}:{side}:{kind}:{memfd}:{first}:{second}:{shadow}:{memory};");
        for hidden in [memfd, first, second] {
            if sys::fcntl(hidden, libc::F_SETFD, 0).is_ok() {
                opened.push(hidden);
            }
        }
        head.words().shared.store(1, super::Ordering::SeqCst);
    }
    let ours = [others, &[(VARIABLE, text.as_str())]].concat();
    // SAFETY: an environment or null, as the caller says.
    let mut inheritance = unsafe { with_variables(envp, &ours) }?;
    inheritance.opened = opened;
    Some(inheritance)
}

/// An environment with these variables in place of others of their names; `None`: all are empty.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn with_variables(
    envp: *const *const c_char,
    ours: &[(&str, &str)],
) -> Option<Inheritance> {
    let ours: Vec<_> = ours.iter().filter(|(_, text)| !text.is_empty()).collect();
    if ours.is_empty() {
        return None;
    }
    let variable = |(name, text): &&(&str, &str)| CString::new(format!("{name}={text}")).ok();
    let variables: Vec<CString> = ours.iter().filter_map(variable).collect();
    let mut pointers = Vec::new();
    let mut at = envp;
    // SAFETY: C strings up to a null, as the caller says.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            let old = CStr::from_ptr(*at).to_bytes();
            let is_ours = |(name, _): &&(&str, &str)| {
                old.strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"="))
            };
            if !ours.iter().any(is_ours) {
                pointers.push(*at);
            }
            at = at.add(1);
        }
    }
    pointers.extend(variables.iter().map(|v| v.as_ptr()));
    pointers.push(core::ptr::null());
    Some(Inheritance {
        _variables: variables,
        pointers,
        opened: Vec::new(),
    })
}

/// Both bells. A child of vfork has descriptors of its own, which the words it shares with its parent must not name: what
/// is missing there is made for the new image alone, and the ends find each other by the clock.
fn bells(pipe: &Pipe) -> sys::Result<[i32; 2]> {
    if !process::is_borrowed() {
        return pipe.both_bells();
    }
    let bell = |side| match pipe.known_bell(side) {
        known if known >= 0 => Ok(known),
        _ => headwater_channel::bell::create(),
    };
    Ok([bell(0)?, bell(1)?])
}

impl Inheritance {
    /// What the new image gets for an environment.
    pub fn environment(&self) -> *const *const c_char {
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
pub fn inherit(text: &str) {
    // By their memory; without a pipe where it can't be had, which goes for each of its names.
    let mut known: Vec<(i32, Option<&'static Pipe>)> = Vec::new();
    let mut gates: Vec<(i32, Handle)> = Vec::new();
    let mut named: Vec<i32> = Vec::new();
    let mut resumed: Vec<i32> = Vec::new();
    for entry in text.split(';').filter(|e| !e.is_empty()) {
        let Some(numbers) = numbers(entry) else {
            continue;
        };
        let [fd, side, kind, memfd, first, second] = numbers.0;
        let (fifo, nonblocking) = (kind & 1 != 0, kind & NONBLOCK != 0);
        let [shadow, memory] = numbers.1;
        if fifo && first != second && !named.contains(&second) {
            named.push(second);
        }
        if !handed::is_here(fd, shadow) {
            continue;
        }
        if memfd == NOT_PASSED {
            break_off(fd);
            continue;
        }
        let pipe = match known.iter().find(|(m, _)| *m == memfd) {
            Some((_, pipe)) => *pipe,
            None => {
                let bells = if fifo { &[first][..] } else { &[first, second] };
                let whole = identity(memfd) == memory
                    && handed::is_ours(memfd, Sort::Memory)
                    && bells.iter().all(|&bell| handed::is_ours(bell, Sort::Bell))
                    && (fifo || first != second);
                if !whole {
                    continue;
                }
                bells.iter().for_each(|&bell| handed::never_blocks(bell));
                let pipe = Pipe::open(fifo, memfd, [first, second]).ok();
                known.push((memfd, pipe));
                pipe
            }
        };
        let adopted = pipe.map(|pipe| life::adopt(pipe, side as u32 & 1, fd));
        if !matches!(adopted, Some(Ok(_))) {
            break_off(fd);
            continue;
        }
        if !fifo || first == second {
            continue;
        }
        match gates.iter().find(|(gate, _)| *gate == second) {
            // Several descriptors of one open.
            Some((_, h)) => {
                table::clear(fd);
                table::set(fd, *h);
                opening::duplicated(*h);
            }
            None if is_gate(second) => {
                resumed.push(second);
                opening::resume(fd, second, nonblocking);
                gates.extend(table::stream(fd).map(|h| (second, h)));
            }
            None => {}
        }
    }
    // Whose FIFO did not come along: nobody would close them.
    let left = named.iter().filter(|gate| !resumed.contains(gate));
    for &gate in left.filter(|&&gate| is_gate(gate)) {
        let _ = sys::close(gate);
    }
}

/// Makes the number of an end that can't be had here that of a stream whose other end has gone, rather than one that waits for ever. Where
/// there is nothing for that either it is closed.
fn break_off(fd: i32) {
    let kept = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0) & libc::O_NONBLOCK;
    let Ok([end, other]) = pipe::socketpair(kept | libc::O_CLOEXEC) else {
        let _ = sys::close(fd);
        return;
    };
    let _ = sys::close(other);
    let _ = sys::dup3(end, fd, 0);
    let _ = sys::close(end);
}

/// Could this be a gate? A text can name anything; but what a program has is a pipe, or has a name, which gates have lost.
fn is_gate(fd: i32) -> bool {
    handed::is_ours(fd, Sort::Pipe) && sys::fstat(fd).is_ok_and(|st| st.st_nlink == 0)
}

/// Six descriptors and flags, and the identities of two files.
fn numbers(entry: &str) -> Option<([i32; 6], [u64; 2])> {
    let mut fields = entry.split(':');
    let mut small = [0; 6];
    for number in &mut small {
        *number = fields.next()?.parse().ok()?;
    }
    let large = [fields.next()?.parse().ok()?, fields.next()?.parse().ok()?];
    fields.next().is_none().then_some((small, large))
}
