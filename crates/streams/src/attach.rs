//! Streams with names: fattach(3C), fdetach(3C), connld's connections, FIFOs by name.
//!
//! ```text
//!   gate         where who opens a FIFO by its name waits for the other side
//!   registry     which names have a stream: a mapped file, for all processes of the user
//!   holding      the attachments that this process can answer for, and the answering
//!   rendezvous   asking a holder for the stream           rights   descriptors in control messages
//!   unix         the sockets for either
//! ```
//!
//! An attachment lives as long as some process of the user holds the stream: the one that attached it, its relatives by fork,
//! those that have opened it. Who held the end before another process attached it notices when it next waits at it, or opens
//! the name. Then the path is the plain file again, as it always is for other users and programs.

pub mod gate;
mod holding;
mod registry;
mod rendezvous;
pub mod rights;
pub mod unix;

use core::ffi::CStr;
use core::time::Duration;

use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering;
use headwater_host::sys::Errno;
use headwater_host::{hidden, signal, sys};
use libc::c_int;

use crate::head::arming::Want;
use crate::head::opening::Opened;
use crate::head::{Head, life, local, passing};
use crate::pipe::{self, Owned, Pipe};
use holding::Hold;
use registry::{Key, Place};
use rendezvous::{Answer, Request, Silence};
use rights::Received;

/// How long a holder that lives may take to answer for one that died, in nanoseconds.
const ANSWER_TIMEOUT: u64 = Duration::from_secs(1).as_nanos() as u64;
const MOMENT: u64 = Duration::from_millis(1).as_nanos() as u64;

/// Attaches the stream to an existing file. A driver's stream is found there by this process alone.
/// Errors: EACCES, EBUSY (has a stream), ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM (neither owner nor root), ENOSR (too
/// many), EMFILE, EIO (no runtime folder).
pub fn fattach(head: &'static Head, fd: c_int, path: &CStr) -> Result<(), Errno> {
    let (file, st) = owned_file(path)?;
    may_access(path, libc::W_OK)?;
    vacate(Key::of_file(&st))?;
    let place = registry::post(Key::of_file(&st))?;
    settle(head, fd, file, place).inspect_err(|_| {
        place.clear();
    })
}

fn settle(head: &'static Head, fd: c_int, file: Owned, place: Place) -> Result<(), Errno> {
    let listener = rendezvous::listen(&place)?;
    let h = head.handle();
    // The file's descriptor keeps its inode from going to another file.
    let hold = Hold::take(head, fd, file)?;
    holding::begin(place, h, hold, listener).inspect_err(|_| hold.release(h))?;
    tell_other_holders(head, &place);
    Ok(())
}

fn tell_other_holders(head: &Head, place: &Place) {
    if let Some(pipe) = head.pipe() {
        place.tell_end(pipe.inode, head.side());
        let names = head.words().names.fetch_add(1, Ordering::SeqCst);
        head.seen_names
            .store(names.wrapping_add(1), Ordering::Relaxed);
    }
}

/// The end was given names by other processes: this one answers for them too, when they are gone.
#[cold]
pub fn join_names(head: &'static Head) {
    let Some(pipe) = head.pipe() else { return };
    for place in registry::of_end(pipe.inode, head.side()) {
        holding::join(place, head);
    }
}

/// Detaches what is attached to the file; those who have the stream open keep it.
/// Errors: EACCES, EINVAL (nothing attached), ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EPERM.
pub fn fdetach(path: &CStr) -> Result<(), Errno> {
    let (_, st) = owned_file(path)?;
    let place = registry::find(Key::of_file(&st)).filter(is_answered);
    let place = place.ok_or(libc::EINVAL)?;
    if !place.clear() {
        return Err(libc::EINVAL);
    }
    holding::end(&place);
    // Whoever answers for it finds it ended; what it held of the stream is released then.
    if let Ok(link) = rendezvous::connect(&place, Request::Probe) {
        rendezvous::wait_for_end(link.number());
    }
    Ok(())
}

/// open(2) of a path: `None` if it has no stream. Costs two loads while no file has one.
#[inline]
pub fn open(path: &CStr, flags: c_int) -> Option<Result<Opened, Errno>> {
    if registry::any_files() {
        open_attached(path, flags)
    } else {
        None
    }
}

/// Does the path have a stream, for an open(2) with these flags?
pub fn is_attached(path: &CStr, flags: c_int) -> bool {
    may_have_stream(flags) && registry::any_files() && matches!(key_of(path, flags), Ok(Some(_)))
}

/// A file that is new has none.
fn may_have_stream(flags: c_int) -> bool {
    const NEW: c_int = libc::O_CREAT | libc::O_EXCL;
    flags & NEW != NEW && flags & (libc::O_PATH | libc::O_DIRECTORY) == 0
}

/// What names the stream that the path has. Errors: those of stat(2).
fn key_of(path: &CStr, flags: c_int) -> Result<Option<Key>, Errno> {
    let key = Key::of_file(&stat(path, flags & libc::O_NOFOLLOW != 0)?);
    Ok(registry::find(key).map(|_| key))
}

#[cold]
fn open_attached(path: &CStr, flags: c_int) -> Option<Result<Opened, Errno>> {
    if !may_have_stream(flags) {
        return None;
    }
    let key = match key_of(path, flags) {
        Ok(key) => key?,
        // The file may be there, and must not be taken for a plain one; of all else open(2) says the same.
        Err(libc::ENOMEM) => return Some(Err(libc::ENOMEM)),
        Err(_) => return None,
    };
    let mode = match flags & libc::O_ACCMODE {
        libc::O_RDONLY => libc::R_OK,
        libc::O_WRONLY => libc::W_OK,
        _ => libc::R_OK | libc::W_OK,
    };
    if let Err(e) = may_access(path, mode) {
        return Some(Err(e));
    }
    reach(key, flags)
}

/// open(2) of /dev/fifo (an empty name) or /dev/fifo.NAME, which the first who opens it makes.
/// Errors: EINTR, EMFILE, ENFILE, ENOMEM, ENOSR, ENXIO (its holders can't be reached from here), EIO (no runtime folder).
pub fn open_fifo(name: &[u8], flags: c_int) -> Result<Opened, Errno> {
    if name.is_empty() {
        return make_fifo(flags);
    }
    let key = Key::of_name(name);
    for _ in 0..4 {
        if let Some(opened) = reach(key, flags) {
            return opened;
        }
        match registry::post(key) {
            Ok(place) => {
                return name_fifo(place, flags).inspect_err(|_| {
                    place.clear();
                });
            }
            Err(libc::EBUSY) => {}
            Err(e) => return Err(e),
        }
    }
    Err(libc::ENXIO)
}

fn name_fifo(place: Place, flags: c_int) -> Result<Opened, Errno> {
    let listener = rendezvous::listen(&place)?;
    let opened = make_fifo(flags)?;
    let Some(held) = life::held(opened.handle) else {
        // Closed by another thread.
        place.clear();
        return Ok(opened);
    };
    if let (Some(pipe), Ok(gate)) = (held.head().pipe(), gate::make()) {
        pipe.take_gate(gate);
    }
    holding::begin(place, opened.handle, Hold::NONE, listener)
        .inspect_err(|_| life::abandon(opened))?;
    tell_other_holders(held.head(), &place);
    Ok(opened)
}

fn make_fifo(flags: c_int) -> Result<Opened, Errno> {
    let (pipe, [fd, _]) = Pipe::create(true, flags)?;
    life::adopt(pipe, 0, fd).inspect_err(|_| {
        let _ = sys::close(fd);
    })
}

/// Gets the stream attached to `key`, from this process or another; `None` once nobody holds it.
fn reach(key: Key, flags: c_int) -> Option<Result<Opened, Errno>> {
    signal::begin_wait();
    let until = sys::now() + ANSWER_TIMEOUT;
    loop {
        if let Some((_, head)) = holding::find(key) {
            return Some(open_here(head.head(), flags));
        }
        let place = registry::find(key)?;
        match rendezvous::ask(&place, Request::Open) {
            Ok((Answer::Shared(parts), link)) => return Some(share(parts, place, link, flags)),
            Ok((answer, link)) => {
                drop(link);
                match answer {
                    Answer::Connection(parts) => return Some(meet(parts, flags)),
                    Answer::Failed(libc::EAGAIN) if flags & libc::O_NONBLOCK == 0 => {}
                    Answer::Failed(e) => return Some(Err(e)),
                    _ => return Some(Err(libc::EPROTO)),
                }
            }
            Err(Silence::Failed(e)) => return Some(Err(e)),
            Err(silence) => {
                if silence == Silence::Nobody && !place.has_holder() {
                    place.clear();
                    return None;
                }
                if sys::now() > until {
                    return None;
                }
            }
        }
        if signal::interrupted() {
            return Some(Err(libc::EINTR));
        }
        rendezvous::pause(MOMENT);
    }
}

/// Another descriptor of a stream of this process; with connld, an end of a new pipe.
fn open_here(head: &'static Head, flags: c_int) -> Result<Opened, Errno> {
    if is_unique(head) {
        return connect_here(head, flags);
    }
    let fd = pipe::duplicate(
        head.fd.load(Ordering::Relaxed),
        flags & libc::O_CLOEXEC != 0,
    )?;
    let handle = head.handle();
    life::duplicated(handle, fd);
    Ok(Opened { head, handle, fd })
}

/// An end of a pipe that others hold too.
fn share(mut parts: Received, place: Place, link: Owned, flags: c_int) -> Result<Opened, Errno> {
    let (side, fifo) = rendezvous::which(&parts);
    let cloexec = flags & libc::O_CLOEXEC != 0;
    let opened = passing::take_end(&mut parts, side, fifo, cloexec)?;
    holding::follow(place, opened.handle, link.into_number());
    Ok(opened)
}

/// The opener's end of a new pipe, once the server has received the other.
fn meet(mut parts: Received, flags: c_int) -> Result<Opened, Errno> {
    let (side, _) = rendezvous::which(&parts);
    let cloexec = flags & libc::O_CLOEXEC != 0;
    wait_for_server(passing::take_end(&mut parts, side, false, cloexec)?)
}

fn wait_for_server(opened: Opened) -> Result<Opened, Errno> {
    let head = opened.head;
    // In case another thread closes it.
    let _looks = enter();
    let accepted = || head.words().accepted.load(Ordering::SeqCst) != 0;
    loop {
        let over = head.has_hung_up();
        let waited = if accepted() {
            return Ok(opened);
        } else if over {
            Err(libc::ENXIO)
        } else {
            head.wait(Want::DATA, None, &mut [], || {
                accepted() || head.has_hung_up()
            })
        };
        waited.inspect_err(|_| life::abandon(opened))?;
    }
}

/// connld, opened in the process that holds the attached end.
fn connect_here(attached: &'static Head, flags: c_int) -> Result<Opened, Errno> {
    let (pipe, [theirs, ours]) = Pipe::create(false, flags & libc::O_CLOEXEC)?;
    let opened = life::adopt(pipe, 1, ours).inspect_err(|_| {
        let _ = (sys::close(theirs), sys::close(ours));
    })?;
    let sent = loop {
        match passing::send_end(attached, pipe, 0, theirs, true) {
            Err(libc::EAGAIN) if flags & libc::O_NONBLOCK == 0 && !signal::interrupted() => {
                rendezvous::pause(MOMENT);
            }
            Err(libc::EAGAIN) if signal::interrupted() => break Err(libc::EINTR),
            sent => break sent,
        }
    };
    let _ = sys::close(theirs);
    sent.inspect_err(|_| life::abandon(opened))?;
    wait_for_server(opened)
}

/// Answers another process that opens the attached stream. On the background thread.
fn answer(head: &'static Head, client: c_int) {
    let Some(pipe) = head.pipe() else {
        // A driver's stream is this process's own.
        return rendezvous::answer_failed(client, libc::ENXIO);
    };
    if is_unique(head) {
        if let Err(e) = answer_connection(head, client) {
            rendezvous::answer_failed(client, e);
        }
        return;
    }
    head.words().shared.store(1, Ordering::SeqCst);
    let [first, second] = match pipe.both_bells() {
        Ok(bells) => bells,
        Err(e) => return rendezvous::answer_failed(client, e),
    };
    let last = pipe.gate().unwrap_or(second);
    let fds = [head.fd.load(Ordering::Relaxed), pipe.memfd, first, last];
    rendezvous::answer_end(client, false, head.side(), pipe.fifo, fds);
}

/// A new pipe: one end as by I_SENDFD to the server, the other to the opener, none for us.
fn answer_connection(head: &'static Head, client: c_int) -> Result<(), Errno> {
    head.check_connected()?;
    let (pipe, ends) = Pipe::create(false, libc::O_CLOEXEC)?;
    let sent = passing::send_end(head, pipe, 0, ends[0], true);
    if sent.is_ok()
        && let Ok([first, second]) = pipe.both_bells()
    {
        let fds = [ends[1], pipe.memfd, first, second];
        rendezvous::answer_end(client, true, 1, false, fds);
    }
    for fd in ends {
        let _ = sys::close(fd);
    }
    // SAFETY: never had a head here.
    unsafe { Pipe::bury(pipe) };
    sent
}

/// connld on top: every open gets a pipe of its own.
fn is_unique(head: &Head) -> bool {
    local::top(head).is_some_and(|name| name == "connld")
}

/// Makes sure that nothing is attached; EBUSY.
fn vacate(key: Key) -> Result<(), Errno> {
    while let Some(place) = registry::find(key) {
        if is_answered(&place) {
            return Err(libc::EBUSY);
        }
    }
    Ok(())
}

/// Does somebody hold the stream? If not, the attachment is over, and cleared.
fn is_answered(place: &Place) -> bool {
    let until = sys::now() + ANSWER_TIMEOUT;
    while place.is_current() {
        if holding::find(place.key).is_some_and(|(ours, _)| ours == *place) {
            return true;
        }
        match rendezvous::ask(place, Request::Probe) {
            Ok(_) => return true,
            Err(Silence::Failed(libc::EINTR)) => {}
            Err(Silence::Nobody) if !place.has_holder() => {
                place.clear();
                return false;
            }
            Err(_) if sys::now() > until => return true,
            Err(_) => {}
        }
        rendezvous::pause(MOMENT);
    }
    false
}

/// The file, held by a hidden descriptor. EPERM unless it is this user's, or root asks.
fn owned_file(path: &CStr) -> Result<(Owned, libc::stat), Errno> {
    let file = sys::open(path, libc::O_PATH | libc::O_CLOEXEC, 0).and_then(hidden::hide)?;
    let file = Owned(file);
    let st = sys::fstat(file.number())?;
    let me = sys::getuid();
    match me == 0 || me == st.st_uid {
        true => Ok((file, st)),
        false => Err(libc::EPERM),
    }
}

fn may_access(path: &CStr, mode: c_int) -> Result<(), Errno> {
    match sys::effective_access(path, mode) {
        Err(libc::ENOSYS) => Ok(()),
        asked => asked,
    }
}

fn stat(path: &CStr, no_follow: bool) -> Result<libc::stat, Errno> {
    let flags = match no_follow {
        true => libc::AT_SYMLINK_NOFOLLOW,
        false => 0,
    };
    sys::stat_as(libc::AT_FDCWD, path, flags)
}
