//! How a sender of datagrams finds the ring of an address.
//!
//! The owner listens under the address's name; the background thread answers whoever connects with the descriptors of the
//! ring, since the owner may not be in any call. The connection then stays: its end tells the sender that the owner is gone.

use core::time::Duration;
use std::sync::Arc;

use headwater_host::guarded::Private;
use headwater_host::handed::identity;
use headwater_host::sync::{AtomicBool, AtomicU64, Ordering};
use headwater_host::{process, sys, table};
use headwater_streams::attach::rights;
use headwater_streams::background::{self, Keep};
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::Pipe;
use headwater_streams::pipe::words::state;

use super::{MOST, Owned, Space, name};

const MAGIC: u64 = 0x4857_434c_5453;
/// How long a sender waits for an answer, and between two looks, in nanoseconds.
const ANSWER_TIMEOUT: u64 = Duration::from_secs(1).as_nanos() as u64;
const MOMENT: u64 = Duration::from_millis(1).as_nanos() as u64;

/// The names of this process. Whoever waits for an answer answers for them too: the background thread may be what waits, or
/// wait for who does.
static NAMES: Private<Vec<Arc<Serving>>> = Private::new(Vec::new());

fn answer_for_all() {
    let names = NAMES.with(|names| names.clone());
    for served in names {
        answer(&served);
    }
}

/// How many routes of this process have lost their owner.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// How many they were when somebody who has some looked last.
#[derive(Default)]
pub struct SeenEnds(u64);

impl SeenEnds {
    /// Are they more by now? Then some of his may be [over](Route::is_over).
    #[inline(always)]
    pub fn are_more(&mut self) -> bool {
        let ended = ENDED.load(Ordering::Acquire);
        let more = self.0 != ended;
        if more {
            self.0 = ended;
        }
        more
    }
}

/// A name that is being served; `None`: it is not any more.
type Serving = Private<Option<Served>>;

/// The name of an address, served until it is dropped.
pub struct Entry {
    served: Arc<Serving>,
    name: i32,
}

struct Served {
    name: Owned,
    addr: Vec<u8>,
    /// memfd and bell.
    fds: [i32; 2],
    senders: Vec<Arc<Owned>>,
}

/// Whoever asks for the name is answered. Their ends are heard of by the background thread, which is not told within the lock.
fn answer(served: &Arc<Serving>) -> Keep {
    let fresh = served.with(|served| served.as_mut().map(Served::answer_all));
    let Some(fresh) = fresh else {
        return Keep::No;
    };
    for sender in fresh {
        let number = sender.number();
        let (list, ending) = (Arc::downgrade(served), sender);
        // It says nothing: what is to be read is its end. Where there is no thread, the next one's question finds it.
        let _ = background::watch(number, move || {
            if let Some(served) = list.upgrade() {
                served.with(|served| {
                    let Some(served) = served else { return };
                    served
                        .senders
                        .retain(|sender| !Arc::ptr_eq(sender, &ending));
                });
            }
            Keep::No
        });
        if served.with(|served| served.is_none()) {
            background::unwatch(number);
        }
    }
    Keep::Yes
}

impl Entry {
    pub fn new(name: Owned, addr: &[u8], head: &Head) -> sys::Result<Entry> {
        let pipe = head.pipe().ok_or(libc::EINVAL)?;
        let number = name.number();
        let fds = [pipe.memfd, pipe.bell(0)?];
        let served = Arc::new(Private::new(Some(Served {
            name,
            addr: addr.to_vec(),
            fds,
            senders: Vec::new(),
        })));
        let ours = Arc::clone(&served);
        background::watch(number, move || answer(&ours))?;
        NAMES.with(|names| names.push(Arc::clone(&served)));
        Ok(Entry {
            served,
            name: number,
        })
    }

    /// The name's number, for the image after exec.
    pub fn pass_on(&self) -> i32 {
        self.served
            .with(|served| served.as_ref().map_or(-1, |served| served.name.pass_on()))
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        background::unwatch(self.name);
        NAMES.with(|names| names.retain(|served| !Arc::ptr_eq(served, &self.served)));
        let served = self.served.with(Option::take);
        for sender in served.iter().flat_map(|served| &served.senders) {
            background::unwatch(sender.number());
        }
    }
}

impl Served {
    /// Those who were answered now.
    fn answer_all(&mut self) -> Vec<Arc<Owned>> {
        // Those that have gone make room.
        self.senders
            .retain(|sender| !name::has_hung_up(sender.number()));
        let known = self.senders.len();
        loop {
            match name::accept(self.name.number()) {
                Ok(Some(sender)) => {
                    let maker = process::owner().bits();
                    let _ = rights::send_with(
                        sender.number(),
                        &rights::body([MAGIC, maker]),
                        &self.addr,
                        &self.fds,
                        false,
                    );
                    self.senders.push(Arc::new(sender));
                }
                Ok(None) => {}
                Err(_) => return self.senders[known..].to_vec(),
            }
        }
    }
}

/// The way to a mailbox.
pub struct Route {
    pub to: Vec<u8>,
    pub head: &'static Head,
    gone: Arc<AtomicBool>,
    connection: Option<Owned>,
}

/// Why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Nobody has the address.
    Nobody,
    /// No answer, or no room for the question: later.
    Later,
    Failed(sys::Errno),
}

impl Route {
    /// Finds an address. Waits for the answer of whoever has it, for a second at most.
    pub fn find(space: Space, to: &[u8]) -> Result<Route, Lost> {
        let connection = connect(space, to)?;
        let until = sys::now() + ANSWER_TIMEOUT;
        let mut addr = [0; MOST];
        let mut answer = loop {
            match rights::receive_with(connection.number(), &mut addr) {
                Ok(Some((answer, len))) if answer.body[0] == MAGIC && addr[..len] == *to => {
                    break answer;
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN) => {
                    answer_for_all();
                    let answered = name::poll(connection.number(), libc::POLLIN, MOMENT) != 0;
                    if !answered && sys::now() > until {
                        return Err(Lost::Later);
                    }
                }
                Ok(_) | Err(_) => return Err(Lost::Nobody),
            }
        };
        let hidden = answer.hide();
        let head = hidden.and_then(|()| map(&mut answer));
        let head = head.map_err(Lost::Failed)?;
        let gone = Arc::new(AtomicBool::new(false));
        let (number, told) = (connection.number(), Arc::clone(&gone));
        let watched = background::watch(number, move || {
            told.store(true, Ordering::Release);
            ENDED.fetch_add(1, Ordering::Release);
            head.notify();
            Keep::No
        });
        let route = Route {
            to: to.to_vec(),
            head,
            gone,
            connection: Some(connection),
        };
        watched.map(|()| route).map_err(Lost::Failed)
    }

    /// To an endpoint's own mailbox.
    pub fn to_self(addr: &[u8], own: &'static Head) -> Result<Route, Lost> {
        let pipe = own.pipe().ok_or(libc::EBADF);
        let head = pipe.and_then(life::adopt_writer).map_err(Lost::Failed)?;
        Ok(Route {
            to: addr.to_vec(),
            head,
            gone: Arc::default(),
            connection: None,
        })
    }

    /// Has the owner gone?
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        self.gone.load(Ordering::Acquire)
            || self
                .head
                .peer_words()
                .is_some_and(|owner| owner.has(state::HANGUP))
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            background::unwatch(connection.number());
        }
        life::let_go(self.head);
    }
}

fn connect(space: Space, to: &[u8]) -> Result<Owned, Lost> {
    let connection = name::socket().map_err(Lost::Failed)?;
    let until = sys::now() + ANSWER_TIMEOUT;
    loop {
        match name::connect(connection.number(), space, to) {
            Ok(()) => return Ok(connection),
            Err(libc::ECONNREFUSED) => return Err(Lost::Nobody),
            Err(libc::EAGAIN) if sys::now() < until => {
                name::poll(-1, 0, MOMENT);
            }
            Err(libc::EAGAIN) => return Err(Lost::Later),
            Err(e) => return Err(Lost::Failed(e)),
        }
    }
}

/// A head for the ring that an answer brought.
fn map(answer: &mut rights::Received) -> sys::Result<&'static Head> {
    if !answer.has(2) {
        return Err(libc::EMFILE);
    }
    let [memfd, bell] = [0, 1].map(|i| {
        let fd = answer.take(i);
        table::set_hidden(fd);
        Owned(fd)
    });
    let is_local = answer.body[1] == process::owner().bits();
    if is_local && let Some(known) = life::borrow_pipe(identity(memfd.number())) {
        return life::adopt_writer(known.pipe());
    }
    life::adopt_writer(map_ring(memfd, bell)?)
}

/// The ring of a mailbox, of hidden descriptors, which are taken over.
pub fn map_ring(memfd: Owned, bell: Owned) -> sys::Result<&'static Pipe> {
    Pipe::open_hidden(true, memfd, [bell, Owned(-1)])
}
