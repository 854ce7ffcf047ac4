//! What happens around fork(2). A socket with nothing but one association in shared memory, or with nothing at all, is the child's
//! own too; whatever has packets, or many associations, or listens, stays with the process that has it, and is the child's by calls.
//!
//! Locks that are held across the fork: those of descriptors, the owner's, those of links to owners of our own, then those of all sockets.

use std::sync::Arc;

use headwater_host::hidden;
use headwater_host::sync::{AtomicBool, Ordering};
use headwater_sctp_stack::Guarded;
use headwater_streams::head::Head;

use super::link::Link;
use super::owner::{OWNER, Owner, id};
use super::verbs::Remote;
use super::{serving, wire};
use crate::{Assoc, Body, Core, Socket, Style, face};

/// Ways to those who own sockets of ours.
pub static LINKS: Guarded<Vec<Arc<Link>>> = Guarded::new(Vec::new());
/// Between the handlers of one fork; changed under the owner's lock.
static FORKING: Guarded<Option<Forking>> = Guarded::new(None);

/// The child becomes a keeper, which goes on with all that there is.
static OF_KEEPER: AtomicBool = AtomicBool::new(false);

struct Forking {
    sockets: Vec<(Arc<Socket>, Kept)>,
    /// The child's end of its presence here; -1: it has no use for one.
    presence: i32,
    /// The same at each of [`LINKS`].
    links: Vec<(Arc<Link>, i32)>,
}

/// Whose a socket is after the fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kept {
    Both,
    Parent,
    /// By another process than the parent.
    Other,
    /// By the parent, for others alone: the program has closed it, or never had it.
    Theirs,
}

/// The next fork makes a keeper; false: it has been made, or could not be.
pub fn of_keeper(on: bool) {
    OF_KEEPER.store(on, Ordering::SeqCst);
}

fn makes_keeper() -> bool {
    OF_KEEPER.load(Ordering::Acquire)
}

pub fn before() -> bool {
    let _ = std::panic::catch_unwind(prepare);
    true
}

pub fn after(in_child: bool) {
    let _ = std::panic::catch_unwind(|| settle(in_child));
}

fn prepare() {
    let all = face::all();
    face::before_fork();
    let keeping = makes_keeper();
    let mut owner = OWNER.enter();
    let mut sockets: Vec<(Arc<Socket>, Kept)> = all
        .into_iter()
        .map(|open| {
            let socket = open.socket.clone();
            let kept = match socket.remote.get() {
                Some(_) => Kept::Other,
                None => kept(&socket.core.enter(), socket.style),
            };
            (socket, kept)
        })
        .collect();
    let served = owner.iter().flat_map(|owner| owner.sockets.values());
    // What is being closed, here or because the process ends, is in both lists for a while; it is shut once.
    let known = |socket| sockets.iter().any(|(known, _)| Arc::ptr_eq(known, socket));
    let theirs = served.filter(|shared| !shared.own && !known(&shared.socket));
    let theirs: Vec<_> = theirs.map(|s| (s.socket.clone(), Kept::Theirs)).collect();
    sockets.extend(theirs);
    let shares = sockets.iter().any(|&(_, kept)| kept == Kept::Parent);
    let presence = if shares && !keeping {
        share(&mut owner, &sockets)
    } else {
        -1
    };
    drop(owner);
    let others = sockets.iter().any(|&(_, kept)| kept == Kept::Other);
    let known: Vec<Arc<Link>> = LINKS.enter().clone();
    let links = known.into_iter().map(|link| {
        let presence = if others && !keeping {
            link.forking()
        } else {
            -1
        };
        (link, presence)
    });
    let links: Vec<(Arc<Link>, i32)> = links.collect();
    OWNER.shut();
    LINKS.shut();
    for (link, _) in &links {
        link.shut();
    }
    for (socket, _) in &sockets {
        socket.core.shut();
    }
    *FORKING.enter() = Some(Forking {
        sockets,
        presence,
        links,
    });
    FORKING.shut();
}

/// The child's presence, and what it gets. -1: it cannot have any.
fn share(owner: &mut Option<Owner>, sockets: &[(Arc<Socket>, Kept)]) -> i32 {
    let owner = owner.get_or_insert_default();
    // A child whose calls nobody serves is not to wait for an answer.
    if !serving::start() {
        return -1;
    }
    let Ok([mine, childs]) = wire::pair(libc::SOCK_SEQPACKET) else {
        return -1;
    };
    let shared = sockets.iter().filter(|&&(_, kept)| kept == Kept::Parent);
    let ids: Vec<u64> = shared
        .map(|(socket, _)| owner.share(socket, true))
        .collect();
    owner.adopt(mine, ids.into_iter());
    serving::look();
    childs
}

fn kept(core: &Core, style: Style) -> Kept {
    let by_packets = |body: &Body| matches!(body, Body::ByPackets(_));
    let packets = core.port.is_some() || core.assocs.values().any(|assoc| by_packets(&assoc.body));
    // What a listener has taken from its kernel socket waits in one process only.
    let listens = core.memory_listener.is_some() || !core.waiting.is_empty();
    let many = style == Style::Many && !core.assocs.is_empty();
    if packets || listens || many {
        Kept::Parent
    } else {
        Kept::Both
    }
}

fn settle(in_child: bool) {
    FORKING.reopen();
    let Some(fork) = FORKING.enter().take() else {
        return;
    };
    for (socket, kept) in &fork.sockets {
        socket.core.reopen();
        let core = &mut socket.core.enter();
        match kept {
            Kept::Both => {
                if in_child {
                    // SAFETY: there is no other thread yet.
                    unsafe { socket.sink.begin_anew() };
                }
                survive(core, in_child)
            }
            Kept::Other => {}
            _ if in_child && makes_keeper() => survive(core, true),
            _ if in_child => strip(core),
            _ => {}
        }
    }
    for (link, _) in &fork.links {
        link.reopen();
    }
    LINKS.reopen();
    OWNER.reopen();
    if in_child {
        begin_anew(fork);
    } else {
        hidden::close(fork.presence);
        for (_, presence) in fork.links {
            hidden::close(presence);
        }
    }
    face::after_fork(in_child);
}

/// What is in shared memory has one more holder.
fn survive(core: &mut Core, in_child: bool) {
    for assoc in core.assocs.values_mut() {
        if let Body::ByMemory(by_memory) = &mut assoc.body {
            by_memory.forked(in_child);
        }
    }
}

pub fn has_other_holders(end: &Head) -> bool {
    end.words().holders.load(Ordering::SeqCst) > 1
}

/// The socket is closed here: what another process has too is not ended.
pub fn let_go_of_shared(socket: &Socket) {
    let shared = |assoc: &mut Assoc| match &assoc.body {
        Body::ByMemory(by_memory) => has_other_holders(by_memory.head()),
        Body::ByPackets(_) => false,
    };
    let mut core = socket.core.enter();
    let gone: Vec<Box<Assoc>> = core
        .assocs
        .extract_if(.., |_, assoc| shared(assoc))
        .map(|(_, assoc)| assoc)
        .collect();
    core.ids_by_memory
        .retain(|id| gone.iter().all(|assoc| assoc.id != *id));
    drop(core);
}

/// What is the parent's alone. Of packets nothing is let go in order: locks behind it may be held by threads that are not here.
pub fn strip(core: &mut Core) {
    for (_, assoc) in core::mem::take(&mut core.assocs) {
        match assoc.body {
            Body::ByMemory(mut by_memory) => {
                by_memory.forked(true);
                drop(by_memory);
            }
            Body::ByPackets(by_packets) => core::mem::forget(by_packets),
        }
    }
    core::mem::forget(core.port.take());
    if let Some(mut listening) = core.memory_listener.take() {
        listening.forked();
    }
    core.names.clear();
    core.ids_by_memory.clear();
    core.ids_by_packets.clear();
    core.peers.clear();
    core.ready.clear();
    core.waiting.clear();
    core.notices.clear();
    core.peeked = None;
    core.current = None;
    core.changes += 1;
}

fn begin_anew(fork: Forking) {
    if makes_keeper() {
        for (link, _) in &fork.links {
            link.forked(-1);
        }
        return;
    }
    if let Some(owner) = OWNER.enter().take() {
        owner.forget();
    }
    for (link, presence) in &fork.links {
        link.forked(*presence);
    }
    let parent = Link::new(fork.presence);
    if fork.presence >= 0 {
        LINKS.enter().push(parent.clone());
    }
    for (socket, kept) in &fork.sockets {
        match kept {
            Kept::Both | Kept::Theirs => {}
            Kept::Parent => {
                let _ = socket.remote.set(Remote::new(parent.clone(), id(socket)));
            }
            Kept::Other => {
                if let Some(remote) = socket.remote.get() {
                    remote.forked();
                }
            }
        }
    }
}
