//! An association by packets: of the stack, with the verbs that a socket needs.

mod engine;

use core::net::IpAddr;
use std::sync::Arc;

use self::engine::{adjust, follow, read_status};
use crate::{Association, Order, Sink, Status};
use headwater_host::sys;
use headwater_sctp::{
    AssocConfig, AssocId, Association as Engine, Down, Event, Outgoing, Received, Time,
};
use libc::iovec;

/// Dropping it shuts the association down; what was sent is still delivered.
pub struct ByPackets {
    association: Arc<Association>,
    /// It was there, or is.
    up: bool,
    over: bool,
    /// Messages that were given up, and what the peer said of itself: for its status.
    abandoned: u32,
    adaptation: u32,
}

impl ByPackets {
    /// One that the peer began tells [`Event::Up`] too.
    pub fn new(association: Association, by_peer: bool) -> ByPackets {
        ByPackets {
            association: Arc::new(association),
            up: by_peer,
            over: false,
            abandoned: 0,
            adaptation: 0,
        }
    }

    /// As [`Sink::take`] names it.
    pub fn id(&self) -> AssocId {
        self.association.id()
    }

    /// Shared with those who wait for it.
    pub fn association(&self) -> &Arc<Association> {
        &self.association
    }

    /// It is another socket's from now on, which is told of it at once.
    pub fn attach(&mut self, sink: &Arc<Sink>) {
        self.association.attach(sink);
    }

    /// `None`: it is over and gone, or another process's.
    pub fn look<T>(&self, at: impl FnOnce(&Engine) -> T) -> Option<T> {
        self.association.look(at).ok().flatten()
    }

    pub fn change<T>(&self, what: impl FnOnce(&mut Engine, Time) -> T) -> Option<T> {
        self.association.change(what).ok().flatten()
    }

    /// The next event; after [`Event::Down`], which is told even while there is something to receive, none. An ABORT in answer
    /// to INIT is a refusal.
    pub fn event(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        let event = self.association.event().ok()??;
        match &event {
            Event::Up { .. } => self.up = true,
            Event::SendFailed(_) => self.abandoned += 1,
            Event::Adaptation(code) => self.adaptation = *code,
            Event::Down(why) => {
                self.over = true;
                if !self.up && matches!(why, Down::Aborted { by_peer: true, .. }) {
                    return Some(Event::Down(Down::SetupFailed { refused: true }));
                }
            }
            _ => {}
        }
        Some(event)
    }

    pub fn readable(&mut self) -> bool {
        self.look(Engine::readable).unwrap_or(false)
    }

    /// What [`ByPackets::receive`] would begin with: `len` bytes are there, with `end` those are the whole rest of the message.
    pub fn peek(&mut self) -> Option<Received> {
        self.look(|a| a.receiver().front()).flatten()
    }

    /// The last TSN before which nothing is missing.
    pub fn cumtsn(&self) -> u32 {
        self.look(|a| a.receiver().cumulative().0).unwrap_or(0)
    }

    pub fn receive(&mut self, into: &[iovec]) -> sys::Result<Option<Received>> {
        // SAFETY: what a user receives into is writable, see `loopback::buffers`.
        unsafe { self.association.receive_parts(into) }
    }

    pub fn send(&mut self, message: &Outgoing, data: &[iovec], more: bool) -> sys::Result<()> {
        // SAFETY: what a user sends is readable, see `loopback::buffers`.
        unsafe { self.association.send_parts(message, data, more) }
    }

    /// Where there is none, the sink is told when there is.
    pub fn has_room(&mut self) -> bool {
        self.association.has_room()
    }

    /// The address that faces the peer first, as far as it is known.
    pub fn local(&self) -> (Vec<IpAddr>, u16) {
        let all = self.look(|a| {
            let primary = a.paths().get(a.primary());
            let facing = primary.and_then(|path| path.from.or(path.heard));
            let mut all: Vec<IpAddr> = facing.into_iter().collect();
            all.extend(
                a.local_addresses()
                    .iter()
                    .filter(|&&one| Some(one) != facing),
            );
            all
        });
        (all.unwrap_or_default(), self.association.local_port())
    }

    pub fn peer(&self) -> (Vec<IpAddr>, u16) {
        self.association.peer().unwrap_or_default()
    }

    pub fn streams(&self) -> (u16, u16) {
        self.look(|a| (a.sender().streams(), a.receiver().streams()))
            .unwrap_or_default()
    }

    pub fn status(&self) -> Status {
        Status {
            abandoned: self.abandoned,
            adaptation: self.adaptation,
            ..self.look(read_status).unwrap_or_default()
        }
    }

    pub fn unread(&self) -> usize {
        self.look(|a| a.receiver().buffered()).unwrap_or(0)
    }

    pub fn unsent(&self) -> usize {
        self.look(|a| a.sender().buffered()).unwrap_or(0)
    }

    pub fn obey(&mut self, order: &Order) -> Result<(), i32> {
        let done = self.association.change(|a, _| follow(a, order));
        done?.unwrap_or(Err(libc::ENOTCONN))
    }

    pub fn tune(&mut self, config: &AssocConfig) {
        self.change(|a, now| {
            a.set_scheduler(config.scheduler);
            a.set_config(now, |own| adjust(own, config));
        });
    }

    pub fn want_dry(&mut self, on: bool) {
        let _ = self.association.want_dry(on);
    }

    pub fn shutdown(&mut self) {
        let _ = self.association.shutdown();
    }

    pub fn abort(&mut self, reason: &[u8]) {
        let _ = self.association.abort_now(reason);
    }

    pub fn flush(&mut self) {
        self.association.flush();
    }
}
