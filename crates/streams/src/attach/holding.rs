//! The attachments that this process can answer for: it attached the stream, is a child of who did, has opened it, or held
//! it before.
//!
//! One of the holders has bound the address and answers on its background thread; each other one keeps a connection to it,
//! and tries to bind when that ends. A holder that has closed the stream notices when it is next asked, and then says no more.

use core::time::Duration;

use headwater_host::guarded::Private;
use headwater_host::reclaim::enter;
use headwater_host::sync::{AtomicU64, Ordering};
use headwater_host::table::Handle;
use headwater_host::{hidden, sys};
use libc::c_int;

use super::answer;
use super::registry::{self, Key, Place};
use super::rendezvous::{self, Request};
use super::unix;
use crate::background::{self, Keep};
use crate::head::{self, Head, life};
use crate::pipe::Owned;

/// How often taking over is tried before somebody else must have done it.
const TRIES: u32 = 200;
const MOMENT: u64 = Duration::from_millis(1).as_nanos() as u64;

/// What keeps stream and file as they are while the stream is attached, whatever the program closes: hidden descriptors.
#[derive(Clone, Copy)]
pub struct Hold {
    stream: c_int,
    file: c_int,
}

impl Hold {
    /// For those who hold the stream by their descriptors alone.
    pub const NONE: Hold = Hold {
        stream: -1,
        file: -1,
    };

    /// Of a stream by its descriptor `fd`.
    pub fn take(head: &'static Head, fd: c_int, file: Owned) -> sys::Result<Hold> {
        let stream = Owned(sys::dup_above(fd, 0).and_then(hidden::hide)?);
        if !life::hold(head) {
            return Err(libc::EBADF);
        }
        let (stream, file) = (stream.into_number(), file.into_number());
        head.fd.store(stream, Ordering::Relaxed);
        Ok(Hold { stream, file })
    }

    pub fn release(self, h: Handle) {
        let looks = enter();
        if self.stream >= 0
            && let Some(head) = head::get(h, &looks)
        {
            if head.fd.load(Ordering::Relaxed) == self.stream {
                head.fd.store(life::number_of(h), Ordering::Relaxed);
            }
            hidden::close(self.stream);
            life::let_go(head);
        }
        hidden::close(self.file);
    }
}

struct Holding {
    id: u64,
    place: Place,
    stream: Handle,
    hold: Hold,
    /// The bound socket, if we answer; else the connection to who does; -1: neither.
    listener: c_int,
    server: c_int,
    /// Connections that others keep to us.
    clients: Vec<c_int>,
    /// A thread tries to become the one who answers, or to find who does.
    tries: bool,
}

impl Holding {
    fn new(id: u64, place: Place, stream: Handle, hold: Hold) -> Holding {
        Holding {
            id,
            place,
            stream,
            hold,
            listener: -1,
            server: -1,
            clients: Vec::new(),
            tries: false,
        }
    }
}

static HOLDINGS: Private<Vec<Holding>> = Private::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// This process answers for `place`, by `listener`.
pub fn begin(place: Place, h: Handle, hold: Hold, listener: Owned) -> sys::Result<()> {
    let id = add(place, h, hold, listener.number(), -1);
    background::watch(listener.number(), move || serve_listener(id))
        .inspect_err(|_| drop(take_out(id)))?;
    listener.into_number();
    Ok(())
}

/// This process holds the end that another attached: it can answer for it from now on.
pub fn join(place: Place, head: &'static Head) {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let added = HOLDINGS.with(|list| {
        let new = !list.iter().any(|held| held.place == place);
        if new {
            list.push(Holding::new(id, place, head.handle(), Hold::NONE));
        }
        new
    });
    if added {
        serve_end_of_server(id);
    }
}

/// This process can answer once `server`, which does now, has gone.
pub fn follow(place: Place, h: Handle, server: c_int) {
    let id = add(place, h, Hold::NONE, -1, server);
    place.join();
    learns_end_of(id, server);
}

fn add(place: Place, h: Handle, hold: Hold, listener: c_int, server: c_int) -> u64 {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let holding = Holding {
        listener,
        server,
        ..Holding::new(id, place, h, hold)
    };
    HOLDINGS.with(|list| list.push(holding));
    id
}

/// The stream attached to `key`, if this process holds it.
pub fn find(key: Key) -> Option<(Place, life::Held)> {
    find_known(key).or_else(|| {
        let place = registry::find(key)?;
        let (pipe, side) = place.end()?;
        let _looks = enter();
        join(place, life::borrow_pipe(pipe)?.pipe().head(side)?);
        find_known(key)
    })
}

fn find_known(key: Key) -> Option<(Place, life::Held)> {
    let ids = HOLDINGS.with(|list| {
        let same = list.iter().filter(|held| held.place.key == key);
        same.map(|held| held.id).collect::<Vec<_>>()
    });
    ids.into_iter().find_map(|id| {
        let found = live(id)?;
        takes_over(id);
        Some(found)
    })
}

/// This process has nothing more to do with `place`.
pub fn end(place: &Place) {
    let id = HOLDINGS.with(|list| list.iter().find(|h| h.place == *place).map(|h| h.id));
    if let Some(id) = id {
        give_up(id);
    }
}

/// The stream, if it is attached still and open here; gives the rest up otherwise.
fn live(id: u64) -> Option<(Place, life::Held)> {
    let (place, stream) = with(id, |held| (held.place, held.stream))?;
    let head = life::held(stream).filter(|_| place.is_current());
    if head.is_none() {
        give_up(id);
    }
    Some((place, head?))
}

fn with<T>(id: u64, f: impl FnOnce(&mut Holding) -> T) -> Option<T> {
    HOLDINGS.with(|list| list.iter_mut().find(|held| held.id == id).map(f))
}

fn take_out(id: u64) -> Option<Holding> {
    HOLDINGS.with(|list| list.extract_if(.., |held| held.id == id).next())
}

fn give_up(id: u64) {
    let Some(held) = take_out(id) else { return };
    let detached = !held.place.is_current();
    // The stream first: who waits for fdetach to take effect waits for the end of a connection.
    held.hold.release(held.stream);
    held.place.leave();
    for fd in held.clients.into_iter().chain([held.listener, held.server]) {
        if fd >= 0 {
            background::unwatch(fd);
            if detached {
                // For the processes that share the socket by fork too.
                let _ = sys::shutdown(fd, libc::SHUT_RDWR);
            }
            hidden::close(fd);
        }
    }
}

/// Somebody connects, or another process has ended the attachment.
fn serve_listener(id: u64) -> Keep {
    loop {
        if live(id).is_none() {
            return Keep::Yes;
        }
        let Some(listener) = with(id, |held| held.listener) else {
            return Keep::Yes;
        };
        match unix::accept(listener) {
            Ok(Some(client)) => {
                if with(id, |held| held.clients.push(client)).is_none()
                    || background::watch(client, move || serve_client(id, client)).is_err()
                {
                    hang_up(id, client);
                }
            }
            Ok(None) => {}
            Err(libc::EAGAIN) => return Keep::Yes,
            // Too many descriptors for now, and the like.
            Err(_) => {
                rendezvous::pause(MOMENT);
                return Keep::Yes;
            }
        }
    }
}

/// An opener asks, or goes.
fn serve_client(id: u64, client: c_int) -> Keep {
    let request = match rendezvous::next_request(client) {
        Err(libc::EAGAIN) => return Keep::Yes,
        Ok(Some(request)) => request,
        _ => {
            hang_up(id, client);
            return Keep::Yes;
        }
    };
    if let Some((_, head)) = live(id) {
        match request {
            Request::Open => answer(head.head(), client),
            Request::Probe => rendezvous::answer_present(client),
            Request::Watch => {}
        }
    }
    Keep::Yes
}

fn hang_up(id: u64, client: c_int) {
    with(id, |held| held.clients.retain(|&fd| fd != client));
    background::unwatch(client);
    hidden::close(client);
}

/// Who answered has gone: one of those left takes its place.
fn serve_end_of_server(id: u64) -> Keep {
    drop_watched(id, |held| &mut held.server);
    for _ in 0..TRIES {
        if takes_over(id) {
            return Keep::Yes;
        }
        rendezvous::pause(MOMENT);
    }
    // It is held all the same, and the next who looks for it here tries again.
    Keep::Yes
}

/// Tries to answer, or to learn the end of who does. False: neither can be had at the moment. True also where another thread
/// tries, and where there is nothing to answer for any more.
fn takes_over(id: u64) -> bool {
    let Some((place, _)) = live(id) else {
        return true;
    };
    let begins = |held: &mut Holding| {
        let nobody = held.listener < 0 && held.server < 0;
        nobody && !core::mem::replace(&mut held.tries, true)
    };
    if with(id, begins) != Some(true) {
        return true;
    }
    place.join();
    let done = match rendezvous::listen(&place) {
        Ok(listener) => answers(id, listener.into_number()),
        Err(libc::EADDRINUSE) => rendezvous::connect(&place, Request::Watch)
            .is_ok_and(|server| learns_end_of(id, server.into_number())),
        Err(_) => false,
    };
    with(id, |held| held.tries = false);
    done
}

fn answers(id: u64, listener: c_int) -> bool {
    watches(id, listener, |held| &mut held.listener, serve_listener)
}

fn learns_end_of(id: u64, server: c_int) -> bool {
    watches(id, server, |held| &mut held.server, serve_end_of_server)
}

fn watches(
    id: u64,
    fd: c_int,
    which: fn(&mut Holding) -> &mut c_int,
    serve: fn(u64) -> Keep,
) -> bool {
    with(id, |held| *which(held) = fd);
    let watched = background::watch(fd, move || serve(id));
    if watched.is_err() {
        drop_watched(id, which);
    }
    watched.is_ok()
}

fn drop_watched(id: u64, which: fn(&mut Holding) -> &mut c_int) {
    let fd = with(id, |held| core::mem::replace(which(held), -1));
    if let Some(fd) = fd.filter(|&fd| fd >= 0) {
        background::unwatch(fd);
        hidden::close(fd);
    }
}
