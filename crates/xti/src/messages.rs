//! An endpoint at the bottom of a stream, used by messages: primitives of TPI by putmsg and getmsg, and timod's ioctls, as
//! the library of System V did.
//!
//! What the provider has told but the user has not taken yet waits at the stream head, so the user's state is kept here.

mod exchange;
mod port;

use std::cell::Cell;
use std::collections::BTreeMap;

use headwater_endpoints::stream;
use headwater_host::guarded::Guarded;
use headwater_host::reclaim::{Entered, enter};
use headwater_host::table::{self, Handle};
use headwater_providers::provider::Outcome;
use headwater_streams::head::{self, Head, control, local};
use headwater_tpi::error::{TBADF, TNOTSUPPORT, TOUTSTATE};
use headwater_tpi::prim::{T_CLTS, T_CONN_CON, T_CONN_IND, T_ORDREL_IND};
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Info, Refusal, refuse};

use crate::port::Port;

/// A stream with timod on it, for one call.
pub struct Messages {
    head: &'static Head,
    stream: Handle,
    /// Keeps it, but while the call waits at it.
    _looks: Entered,
}

/// What the library knows of an endpoint beside what its provider does.
#[derive(Clone, Copy)]
struct User {
    /// Whose it is; a head's number is used again.
    stream: Handle,
    info: Info,
    /// As the user has seen it.
    state: State,
    /// Connect indications heard and not answered.
    outstanding: usize,
    qlen: u32,
    /// Of ordinary messages, and of those in a band: the one in front is the rest of one taken in part.
    midway: [Option<Midway>; 2],
    /// Sending data, and expedited data, failed for want of room.
    blocked: [bool; 2],
}

#[derive(Clone, Copy, Default)]
struct Midway {
    more: bool,
    expedited: bool,
}

/// By ACCEPTOR_id. Entered inside a perimeter, so that a fork finds it free.
static USERS: Guarded<BTreeMap<u32, User>> = Guarded::new(BTreeMap::new());

impl Messages {
    /// The endpoint behind a stream's descriptor, if it has timod on it and a transport below.
    pub fn at(fd: i32) -> Option<Messages> {
        let this = Messages::of(fd).filter(Messages::has_timod)?;
        this.learn().ok()?;
        Some(this)
    }

    /// As [`at`](Messages::at), pushing timod first where it is missing. TBADF for a stream without a transport, TSYSERR.
    pub fn begin(fd: i32) -> Outcome<Messages> {
        let this = Messages::of(fd).ok_or(Refusal::new(TBADF))?;
        if !this.has_timod() {
            local::push(this.head, b"timod").map_err(Refusal::system)?;
        }
        this.learn()?;
        Ok(this)
    }

    pub(crate) fn of(fd: i32) -> Option<Messages> {
        let stream = table::stream(fd)?.with_tag(0);
        let looks = enter();
        let head = head::get(stream, &looks)?;
        stream::endpoint_of(head)?;
        Some(Messages {
            head,
            stream,
            _looks: looks,
        })
    }

    /// tirdwr above it has read(2) and write(2) in the place of the t_ calls.
    fn has_timod(&self) -> bool {
        let modules = local::modules(self.head);
        modules.iter().any(|module| module == "timod")
            && !modules.iter().any(|module| module == "tirdwr")
    }

    /// Unless the library knows it already.
    fn learn(&self) -> Outcome<()> {
        match self.user() {
            Ok(_) => Ok(()),
            Err(_) => self.sync(),
        }
    }

    fn users<T>(&self, f: impl FnOnce(&mut BTreeMap<u32, User>) -> T) -> Option<T> {
        local::inside(self.head, |_| f(&mut USERS.enter()))
    }

    /// What the library knows.
    fn user(&self) -> Outcome<User> {
        let user = self.users(|users| self.known_in(users).copied());
        user.flatten().ok_or(Refusal::new(TBADF))
    }

    fn known_in<'a>(&self, users: &'a BTreeMap<u32, User>) -> Option<&'a User> {
        let user = users.get(&local::acceptor(self.head));
        user.filter(|user| user.stream == self.stream)
    }

    fn change(&self, f: impl FnOnce(&mut User)) {
        self.users(|users| users.get_mut(&local::acceptor(self.head)).map(f));
    }

    /// A request is done.
    fn done(&self, request: Move, same: bool) {
        self.change(|user| {
            let (outstanding, before) = (user.outstanding, user.state);
            user.state = state::completed(before, request, outstanding, same).unwrap_or(before);
            let answers = matches!(request, Move::ConnRes)
                || request == Move::DisconReq && before == State::WresCind;
            if answers {
                user.outstanding = outstanding.saturating_sub(1);
            }
        });
    }

    /// The provider has told the user something.
    fn told(&self, event: Move) {
        self.change(|user| {
            user.state = state::next(user.state, event).unwrap_or(user.state);
            user.outstanding = user
                .outstanding
                .saturating_add_signed(event.outstanding() as isize);
        });
    }

    /// May this be asked now?
    fn may(&self, request: Move) -> Outcome<User> {
        let user = self.user()?;
        if !request.suits(user.info.serv) {
            return refuse(TNOTSUPPORT);
        }
        match state::next(self.seen_state(&user), request) {
            Some(_) => Ok(user),
            None => refuse(TOUTSTATE),
        }
    }

    /// The user's state. A connection accepted on this endpoint by means of another is news.
    fn seen_state(&self, user: &User) -> State {
        let idle = matches!(user.state, State::Unbnd | State::Idle);
        let connected = |s| matches!(s, State::DataXfer | State::WindOrdrel | State::WreqOrdrel);
        let now = || self.endpoint()?.state().ok();
        if idle && now().is_some_and(connected) {
            self.change(|user| user.state = State::DataXfer);
            return State::DataXfer;
        }
        user.state
    }

    /// The state that a user who has not read what waits at the head would be in.
    fn unseen(&self, provider: State, serv: i32) -> (State, usize) {
        let outstanding = self.endpoint().map_or(0, |e| e.requests().0);
        let Some((_, prim)) = self.front().filter(|_| serv != T_CLTS) else {
            return (provider, outstanding);
        };
        let before = match (prim, provider) {
            (Some(T_CONN_CON), _) => State::WconCreq,
            (Some(T_CONN_IND), _) => {
                return match outstanding.saturating_sub(self.waiting()) {
                    0 => (State::Idle, 0),
                    heard => (State::WresCind, heard),
                };
            }
            (Some(T_ORDREL_IND), State::Idle) => State::WindOrdrel,
            (Some(T_ORDREL_IND), _) => State::DataXfer,
            (_, State::Idle | State::WreqOrdrel) => State::DataXfer,
            (_, state) => state,
        };
        (before, outstanding)
    }

    /// How many messages wait.
    fn waiting(&self) -> usize {
        let count = Cell::new(0);
        let counted = control::look(self.head, |inlet| {
            count.set(0);
            inlet.each(&mut |_| count.set(count.get() + 1))
        });
        counted.map_or(0, |()| count.get())
    }
}
