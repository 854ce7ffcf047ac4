//! Sockets over exec(2) and posix_spawn(3). The new image reaches those whose numbers stay open by calls, as a child does: a variable names the
//! presence at each owner, and which number is which socket. Where this process owns sockets itself, and is the one that gets the new
//! image, it leaves a keeper for them.
//!
//! ```text
//!   HEADWATER_SCTP_INHERIT = link / link ...      link = PRESENCE , INODE { ; NUMBER , INODE , ID , V6 , MANY }
//! ```
//! A number of -1 stands for a socket that the new image has no number of: it is let go there. A presence of -1 is at nobody, where there was
//! none to be had: each call of the new image says so at once (ECONNRESET), rather than go to a UNIX socket that nobody ever sends to.

use std::sync::Arc;

use headwater_host::handed::{self, Sort, identity};
use headwater_host::sync::Ordering;
use headwater_host::table::{self, Kind};
use headwater_host::{hidden, process, sys};
use headwater_sctp_stack::Guarded;
use headwater_streams::head::Head;

use super::forking::{self, LINKS};
use super::link::Link;
use super::owner::{self, OWNER};
use super::verbs::Remote;
use super::{serving, wire};
use crate::face::{self, Number};
use crate::{Body, Socket, Style};

pub const VARIABLE: &str = "HEADWATER_SCTP_INHERIT";

/// What an exec that is under way has opened.
struct Passed {
    /// Presences of this process; close-on-exec otherwise.
    lent: Vec<i32>,
    /// Presences of another one that is spawned.
    made: Vec<i32>,
    /// The presence here, or at the keeper, and the sockets there.
    own: Option<(i32, Vec<Arc<Socket>>)>,
    /// Ends in shared memory that other processes have too, and this one no more.
    ends: Vec<&'static Head>,
}

static PASSED: Guarded<Passed> = Guarded::new(Passed {
    lent: Vec::new(),
    made: Vec::new(),
    own: None,
    ends: Vec::new(),
});

/// Before an exec, `here` or in a process that is spawned.
pub fn save(here: bool, variables: &mut Vec<(&'static str, String)>) {
    let said = describe_all(here);
    if said.is_empty() {
        face::note_lost(face::lost_by_exec());
    }
    variables.push((VARIABLE, said));
}

/// What the variable is to say; empty: nothing.
fn describe_all(here: bool) -> String {
    let open: Vec<(i32, Arc<Socket>)> = numbers().collect();
    if open.is_empty() || process::is_borrowed() {
        return String::new();
    }
    let all: Vec<Arc<Socket>> = face::all().iter().map(|o| o.socket.clone()).collect();
    let mut links = Vec::new();
    let known = LINKS.enter().clone();
    for link in known {
        let of_link = |socket: &Socket| {
            let remote = socket.remote.get()?;
            remote.is_of(&link).then(|| remote.id())
        };
        if let Some(text) = sockets_of(&open, &all, of_link) {
            links.push(describe(pass_on(&link, here), &text));
        }
    }
    let own = |socket: &Socket| socket.remote.get().is_none().then(|| owner::id(socket));
    if let Some(text) = sockets_of(&open, &all, own) {
        let mine = all.iter().filter(|socket| own(socket).is_some());
        // Of one that is spawned this process is the owner, by a thread of its own.
        let served = here || serving::start();
        let shared = match served {
            true => share(mine.cloned().collect()),
            false => None,
        };
        links.push(describe(shared, &text));
    }
    links.join("/")
}

/// The program's numbers that stay open.
fn numbers() -> impl Iterator<Item = (i32, Arc<Socket>)> {
    table::entries()
        .filter(|(_, h)| h.kind() == Kind::Sctp)
        .filter(|&(fd, _)| sys::survives_exec(fd))
        .filter_map(|(fd, h)| Some((fd, face::get(h)?.socket.clone())))
}

/// Those for which there is a name; `None`: no number stays open of any of them.
fn sockets_of(
    open: &[(i32, Arc<Socket>)],
    all: &[Arc<Socket>],
    name: impl Fn(&Socket) -> Option<u64>,
) -> Option<String> {
    let mut text = String::new();
    for (fd, socket) in open {
        if let Some(id) = name(socket) {
            let many = socket.style == Style::Many;
            let [v6, many] = [socket.v6, many].map(u32::from);
            text += &format!(";{fd},{},{id},{v6},{many}", identity(*fd));
        }
    }
    if text.is_empty() {
        return None;
    }
    for socket in all {
        let stays = open.iter().any(|(_, other)| Arc::ptr_eq(other, socket));
        if let Some(id) = name(socket).filter(|_| !stays) {
            text += &format!(";-1,0,{id},0,0");
        }
    }
    Some(text)
}

fn describe(presence: Option<i32>, sockets: &str) -> String {
    match presence {
        Some(presence) => format!("{presence},{}{sockets}", identity(presence)),
        None => format!("-1,0{sockets}"),
    }
}

/// The presence at another process that the new image has from now on.
fn pass_on(link: &Link, here: bool) -> Option<i32> {
    let presence = match here {
        true => link.presence(),
        false => link.forking(),
    };
    let stays_open = sys::fcntl(presence, libc::F_SETFD, 0).is_ok();
    if !stays_open && !here {
        hidden::close(presence);
    }
    if !stays_open {
        return None;
    }
    let mut passed = PASSED.enter();
    match here {
        true => passed.lent.push(presence),
        false => passed.made.push(presence),
    }
    Some(presence)
}

/// The new image's presence at the keeper that this process will leave.
fn share(sockets: Vec<Arc<Socket>>) -> Option<i32> {
    let mut entered = OWNER.enter();
    let owner = entered.get_or_insert_default();
    let [mine, images] = wire::pair(libc::SOCK_SEQPACKET).ok()?;
    if sys::fcntl(images, libc::F_SETFD, 0).is_err() {
        [mine, images].into_iter().for_each(hidden::close);
        return None;
    }
    let ids: Vec<u64> = sockets.iter().map(|s| owner.share(s, true)).collect();
    owner.adopt(mine, ids.into_iter());
    drop(entered);
    PASSED.enter().own = Some((images, sockets));
    Some(images)
}

/// The image goes, and with it what is not passed on: other holders of ends in shared memory are to know that.
pub fn let_go() {
    let mut passed = PASSED.enter();
    for open in face::all() {
        for assoc in open.socket.core.enter().assocs.values() {
            if let Body::ByMemory(by_memory) = &assoc.body
                && forking::has_other_holders(by_memory.head())
            {
                by_memory
                    .head()
                    .words()
                    .holders
                    .fetch_sub(1, Ordering::SeqCst);
                passed.ends.push(by_memory.head());
            }
        }
    }
}

/// A process was spawned, or could not be.
pub fn spawned() {
    let mut passed = PASSED.enter();
    let mut made = core::mem::take(&mut passed.made);
    made.extend(passed.own.take().map(|own| own.0));
    drop(passed);
    if made.is_empty() {
        return;
    }
    made.into_iter().for_each(hidden::close);
    serving::look();
}

/// In the keeper: the presence is the new image's.
pub fn forget() {
    if let Some((presence, _)) = PASSED.enter().own.take() {
        hidden::close(presence);
    }
}

/// The exec has failed. What a keeper has now is reached by calls.
pub fn failed() {
    let mut passed = PASSED.enter();
    let lent = core::mem::take(&mut passed.lent);
    let own = passed.own.take();
    for end in passed.ends.drain(..) {
        end.words().holders.fetch_add(1, Ordering::SeqCst);
    }
    drop(passed);
    for fd in lent {
        let _ = sys::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC as usize);
    }
    let Some((presence, sockets)) = own else {
        return;
    };
    let _ = sys::fcntl(presence, libc::F_SETFD, libc::FD_CLOEXEC as usize);
    let link = Link::new(presence);
    LINKS.enter().push(link.clone());
    for socket in sockets {
        forking::strip(&mut socket.core.enter());
        let _ = socket
            .remote
            .set(Remote::new(link.clone(), owner::id(&socket)));
    }
}

/// At start: what an earlier image has passed on.
pub fn inherit(text: &str) {
    for link in text.split('/') {
        let _ = inherit_link(link);
    }
}

fn inherit_link(text: &str) -> Option<()> {
    let mut parts = text.split(';');
    let (presence, inode) = parts.next()?.split_once(',')?;
    let presence = handed::take(presence.parse().ok()?, inode.parse().ok()?, Sort::Local);
    let link = Link::new(presence.unwrap_or(-1));
    LINKS.enter().push(link.clone());
    let mut known: Vec<(u64, i32)> = Vec::new();
    for part in parts {
        let Some((fd, [inode, id, v6, many])) = words(part) else {
            continue;
        };
        if !handed::is_here(fd, inode) {
            Remote::new(link.clone(), id).close();
        } else if let Some(&(_, first)) = known.iter().find(|known| known.0 == id) {
            table::lookup(first)
                .into_iter()
                .for_each(|h| face::duplicated(h, fd));
        } else {
            let style = if many != 0 { Style::Many } else { Style::One };
            let flags = sys::fcntl(fd, libc::F_GETFL, 0).unwrap_or(0);
            let socket = Socket::open(v6 != 0, style, flags & libc::O_NONBLOCK != 0);
            let _ = socket.remote.set(Remote::new(link.clone(), id));
            if Number::inherited(fd).stands_for(Arc::new(socket)).is_ok() {
                known.push((id, fd));
            }
        }
    }
    Some(())
}

/// A number of the program's, and four words about it.
fn words(text: &str) -> Option<(i32, [u64; 4])> {
    let mut fields = text.split(',');
    let fd = fields.next()?.parse().ok()?;
    let mut words = [0; 4];
    for word in &mut words {
        *word = fields.next()?.parse().ok()?;
    }
    fields.next().is_none().then_some((fd, words))
}
