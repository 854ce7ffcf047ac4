//! An endpoint at the bottom of a stream, used by messages: primitives of TPI by putmsg and getmsg, and timod's ioctls, as
//! the library of System V did.
//!
//! What the provider has told but the user has not taken yet waits at the stream head, so the user's state is kept beside it.

mod exchange;
mod port;

use std::cell::Cell;

use headwater_endpoints::stream;
use headwater_host::reclaim::{Entered, enter};
use headwater_host::sync::Ordering::{Acquire, Release};
use headwater_host::table;
use headwater_providers::provider::Outcome;
use headwater_streams::head::local::{self, Local};
use headwater_streams::head::{self, Head, control};
use headwater_tpi::error::{TBADF, TNOTSUPPORT, TOUTSTATE};
use headwater_tpi::prim::{T_CLTS, T_CONN_CON, T_CONN_IND, T_ORDREL_IND};
use headwater_tpi::state::{self, Event as Move, State};
use headwater_tpi::{Info, Refusal, refuse};

use crate::port::Port;

/// A stream with timod on it, for one call.
pub struct Messages {
    head: &'static Head,
    /// Keeps it, but while the call waits at it.
    _looks: Entered,
}

/// What the library knows of an endpoint beside what its provider does: in [`Local::above`].
#[derive(Clone, Copy)]
struct User {
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

/// Inside the stream's perimeter: what the library knows of its endpoint, if it has learnt that.
fn user_in<T>(local: &Local, f: impl FnOnce(&mut User) -> T) -> Option<T> {
    let mut above = local.above.borrow_mut();
    above.as_mut()?.downcast_mut().map(f)
}

/// tirdwr above timod has read(2) and write(2) in the place of the t_ calls.
fn has_timod(local: &Local) -> bool {
    let modules = local.modules.borrow();
    let has = |name| modules.iter().any(|module| module.name() == name);
    has("timod") && !has("tirdwr")
}

/// As [`Messages::seen`]. A connection accepted on this endpoint by means of another is news.
fn seen_in(local: &Local) -> Option<User> {
    let connected = |s| matches!(s, State::DataXfer | State::WindOrdrel | State::WreqOrdrel);
    let now = || stream::endpoint_in(local)?.state().ok();
    user_in(local, |user| {
        let idle = matches!(user.state, State::Unbnd | State::Idle);
        if idle && now().is_some_and(connected) {
            user.state = State::DataXfer;
        }
        *user
    })
}

/// As [`Messages::may`].
fn may_in(local: &Local, request: Move) -> Outcome<User> {
    let user = seen_in(local).ok_or(Refusal::new(TBADF))?;
    if !request.suits(user.info.serv) {
        return refuse(TNOTSUPPORT);
    }
    match state::next(user.state, request) {
        Some(_) => Ok(user),
        None => refuse(TOUTSTATE),
    }
}

impl Messages {
    /// The endpoint behind a stream's descriptor, if it has timod on it and a transport below.
    pub fn at(fd: i32) -> Option<Messages> {
        let this = Messages::on(fd)?;
        if this.head.is_known.load(Acquire) {
            return Some(this);
        }
        let knows = local::inside(this.head, |local| {
            stream::endpoint_in(local).filter(|_| has_timod(local))?;
            let knows = user_in(local, |_| ()).is_some();
            this.head.is_known.store(knows, Release);
            Some(knows)
        });
        if !knows.flatten()? {
            this.sync().ok()?;
        }
        Some(this)
    }

    /// As [`at`](Messages::at), pushing timod first where it is missing. TBADF for a stream without a transport, TSYSERR.
    pub fn begin(fd: i32) -> Outcome<Messages> {
        let this = Messages::of(fd).ok_or(Refusal::new(TBADF))?;
        if local::inside(this.head, has_timod) != Some(true) {
            local::push(this.head, b"timod").map_err(Refusal::system)?;
        }
        // Unless the library knows it already.
        match this.user() {
            Ok(_) => {}
            Err(_) => this.sync()?,
        }
        Ok(this)
    }

    pub(crate) fn of(fd: i32) -> Option<Messages> {
        Messages::on(fd).filter(|this| stream::endpoint_of(this.head).is_some())
    }

    /// Of a stream, whatever is below.
    fn on(fd: i32) -> Option<Messages> {
        let stream = table::stream(fd)?.with_tag(0);
        let looks = enter();
        let head = head::get(stream, &looks)?;
        Some(Messages {
            head,
            _looks: looks,
        })
    }

    /// What the library knows.
    fn user(&self) -> Outcome<User> {
        self.change(|user| *user).ok_or(Refusal::new(TBADF))
    }

    fn change<T>(&self, f: impl FnOnce(&mut User) -> T) -> Option<T> {
        local::inside(self.head, |local| user_in(local, f)).flatten()
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
        let may = local::inside(self.head, |local| may_in(local, request));
        may.unwrap_or(refuse(TBADF))
    }

    /// What the library knows, the state as the user is to see it.
    fn seen(&self) -> Outcome<User> {
        let seen = local::inside(self.head, seen_in).flatten();
        seen.ok_or(Refusal::new(TBADF))
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
