//! The calling end, until there is a connection: by the socket of a former one, or by a new one, over and over where the
//! listener's backlog is full.

use headwater_channel::bell;
use headwater_host::lifecycle;
use headwater_host::sync::Ordering;
use headwater_host::{hidden, sys};
use headwater_streams::attach::rights::{self, Body};
use headwater_streams::background::{self, Keep};
use headwater_streams::head::{Head, life};
use headwater_streams::pipe::words::state;
use headwater_tpi::Refusal;
use syscalls::{Sysno, syscall};

use super::{End, Link, Phase};
use crate::loopback::request::{self, Call};
use crate::loopback::{Owned, name, pool};
use crate::provider::Outcome;

/// Between two attempts to get into a full backlog, in nanoseconds.
const RETRY: i64 = 1_000_000;

/// A call that may have to be made again.
pub(super) struct Again {
    message: (Body, Vec<u8>),
    /// While the backlog is full.
    alarm: Option<Alarm>,
}

impl Link {
    /// Asks for a connection. An inner error: there is none to be had. An outer one: something is lacking here, and nobody was asked.
    pub fn call(call: &Call<'_>) -> Outcome<Result<Link, End>> {
        let message = request::message(call);
        if let Some(link) = Link::call_by_known_way(call, &message)? {
            return Ok(Ok(link));
        }
        let forks = lifecycle::forks();
        let socket = name::socket().map_err(Refusal::system)?;
        let phase = match name::connect(socket.number(), call.space, call.to) {
            Ok(()) => Phase::Asked,
            Err(libc::EAGAIN) => Phase::Calling,
            Err(libc::ECONNREFUSED) => return Ok(Err(End::of(libc::ECONNREFUSED))),
            Err(e) => return Err(Refusal::system(e)),
        };
        let shadow = if phase == Phase::Asked {
            socket.number()
        } else {
            -1
        };
        let head = calling_end(call.ring, shadow).map_err(Refusal::system)?;
        let mut link = Link::new(head, socket, phase, call.to.to_vec());
        link.forks = forks;
        link.called = Some((call.space, call.to.to_vec()));
        if phase == Phase::Asked {
            return match link.ask(&message) {
                Ok(()) => Ok(Ok(link)),
                Err(errno) if is_refusal(errno) => Ok(Err(End::of(libc::ECONNREFUSED))),
                Err(errno) => Err(Refusal::system(errno)),
            };
        }
        let alarm = Some(Alarm::every(RETRY, head).map_err(Refusal::system)?);
        link.again = Some(Again { message, alarm });
        Ok(Ok(link))
    }

    /// Asks by the socket of a former connection to the same listener, who has its pipe mapped.
    fn call_by_known_way(call: &Call<'_>, message: &(Body, Vec<u8>)) -> Outcome<Option<Link>> {
        let Some((pipe, way)) = pool::known_way(call.space, call.to, call.ring) else {
            return Ok(None);
        };
        let mut body = message.0;
        body[request::INODE] = pipe.inode;
        // Before somebody waits for what the end has to say.
        let head = life::adopt_hidden(pipe, 0, way.socket.number());
        let head = head.inspect_err(|_| pool::forget(pipe));
        let head = head.map_err(Refusal::system)?;
        let mut link = Link::new(head, way.socket, Phase::Asked, call.to.to_vec());
        if rights::send_with(link.socket.number(), &body, &message.1, &[], false).is_err() {
            return Ok(None);
        }
        link.forks = way.forks;
        link.called = Some((way.space, way.to));
        // The listener may have gone, or be another one by now.
        link.again = Some(Again {
            message: (message.0, message.1.clone()),
            alarm: None,
        });
        Ok(Some(link))
    }

    fn ask(&mut self, message: &(Body, Vec<u8>)) -> sys::Result<()> {
        let pipe = self.head.pipe().ok_or(libc::ENOMEM)?;
        let [first, second] = pipe.both_bells()?;
        let fds = [pipe.memfd, first, second];
        rights::send_with(self.socket.number(), &message.0, &message.1, &fds, false)
    }

    #[cold]
    pub(super) fn call_again(&mut self) {
        let (Some(again), Some((space, to))) = (&mut self.again, &self.called) else {
            return;
        };
        match name::connect(self.socket.number(), *space, to) {
            Err(libc::EAGAIN) => match Alarm::every(RETRY, self.head) {
                _ if again.alarm.is_some() => return,
                Ok(alarm) => {
                    again.alarm = Some(alarm);
                    return;
                }
                Err(e) => self.end = Some(End::of(e)),
            },
            Err(e) => self.end = Some(End::of(e)),
            Ok(()) => {
                self.phase = Phase::Asked;
                self.head.fd.store(self.socket.number(), Ordering::Release);
                if let Some(again) = self.again.take()
                    && let Err(errno) = self.ask(&again.message)
                {
                    self.end = Some(End::of(match errno {
                        errno if is_refusal(errno) => libc::ECONNREFUSED,
                        errno => errno,
                    }));
                }
            }
        }
        self.again = None;
    }

    /// The known way to a listener has ended without an answer: there may be another listener.
    pub(super) fn calls_afresh(&mut self) -> bool {
        let unseen = self
            .head
            .peer_words()
            .is_some_and(|words| words.user.load(Ordering::Acquire) == 0);
        if self.phase != Phase::Asked
            || self.again.is_none()
            || !unseen
            || self.head.words().has(state::READ_ERROR)
        {
            return false;
        }
        if let Some(data) = request::refusal(self.socket.number()) {
            self.end = Some(End {
                reason: libc::ECONNREFUSED,
                data,
            });
            return false;
        }
        let Ok(socket) = name::socket() else {
            return false;
        };
        self.phase = Phase::Calling;
        self.forks = lifecycle::forks();
        self.head.fd.store(-1, Ordering::Release);
        self.socket = socket;
        self.head.words().clear(state::HANGUP);
        self.call_again();
        self.end.is_none()
    }
}

/// An end for a new connection, with all that a request takes: none of it is lacking later.
fn calling_end(ring: usize, shadow: i32) -> sys::Result<&'static Head> {
    let pipe = pool::fresh(ring)?;
    let head = pipe
        .both_bells()
        .and_then(|_| life::adopt_hidden(pipe, 0, shadow));
    head.inspect_err(|_| pool::forget(pipe))
}

/// The listener has gone.
fn is_refusal(errno: sys::Errno) -> bool {
    matches!(errno, libc::EPIPE | libc::ECONNRESET | libc::ENOTCONN)
}

/// Makes who sleeps at a head look again, over and over.
struct Alarm(Owned);

impl Alarm {
    fn every(ns: i64, head: &'static Head) -> sys::Result<Alarm> {
        let turn = libc::timespec {
            tv_sec: 0,
            tv_nsec: ns,
        };
        let turns = libc::itimerspec {
            it_interval: turn,
            it_value: turn,
        };
        let timer = sys::timerfd().and_then(hidden::hide_needed).map(Owned)?;
        let fd = timer.number();
        // SAFETY: `turns` is readable, and the old value is not asked for.
        unsafe { syscall!(Sysno::timerfd_settime, fd, 0, &turns as *const _, 0) }
            .map_err(|e| e.into_raw())?;
        background::watch(fd, move || {
            bell::take(fd);
            head.notify();
            Keep::Yes
        })?;
        Ok(Alarm(timer))
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        background::unwatch(self.0.number());
    }
}
