//! Changes of addresses while an association goes on (RFC 5061): our requests, one ASCONF at a time, and answers to the peer's.
//!
//! What is asked becomes a chunk that the association sends, and sends again when [`Timer::Asconf`](crate::timer::Timer) expires;
//! what the peer asks becomes [`Change`]s and an ASCONF ACK, which is kept for the same ASCONF coming again. That the chunks
//! are authenticated is for the association to see to.

#[cfg(test)]
mod tests;

use core::net::IpAddr;
use std::collections::VecDeque;

use crate::path::{PATHS, is_host};
use crate::wire::tlv::Writer;
use crate::wire::{Cause, Param, ParamBuilder, Params, kind, must_report, must_stop};
use crate::{Outcome, Tsn};

/// Most bytes of an ASCONF that we send: it has to fit any packet, beside an AUTH.
const LONGEST: usize = 400;
/// Type, flags, length and serial number.
const HEAD: usize = 8;
/// Answers kept for an ASCONF that comes again.
const KEPT: usize = 2;

/// What an end can ask about its own addresses: we about ours, and a peer's ASCONF about its paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Add(IpAddr),
    Delete(IpAddr),
    /// The other end is to send to this one by choice.
    SetPrimary(IpAddr),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It is one of ours already, or about to be.
    Known,
    /// It is none of ours.
    Unknown,
    /// An association can't be without an address.
    Last,
    /// The peer has said that it does not do that.
    Unsupported,
}

/// What is to be done about an ASCONF.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Handled {
    pub actions: Vec<Change>,
    /// The ASCONF ACK, a whole chunk, for the address that the ASCONF came from.
    pub answer: Option<Vec<u8>>,
}

/// An ASCONF ACK for a request that was never made: the association is to be aborted with [`Cause::IllegalAsconfAck`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IllegalAck;

#[derive(Debug)]
struct Outstanding {
    changes: Vec<Change>,
    chunk: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Asconf {
    /// Of the next ASCONF of ours; the one outstanding has the number before.
    serial: Tsn,
    queue: VecDeque<Change>,
    outstanding: Option<Box<Outstanding>>,
    /// The chunk outstanding is to be sent, for the first time or again.
    due: bool,
    no_addresses: bool,
    no_primary: bool,
    /// Of the last ASCONF of the peer's that was handled.
    peer_serial: Tsn,
    answers: VecDeque<(Tsn, Vec<u8>)>,
}

impl Asconf {
    /// Serial numbers begin with the initial TSNs.
    pub fn new(local: Tsn, peer: Tsn) -> Asconf {
        Asconf {
            serial: local,
            peer_serial: peer.previous(),
            ..Asconf::default()
        }
    }

    /// Queues a request. `local`: our addresses as the peer knows them; none where they were never named.
    pub fn ask(&mut self, change: Change, local: &[IpAddr]) -> Result<(), Refused> {
        if self.is_hopeless(change) {
            return Err(Refused::Unsupported);
        }
        let named = !local.is_empty();
        let after = self.after_all(local);
        match change {
            Change::Add(addr) if after.contains(&addr) => return Err(Refused::Known),
            Change::Delete(addr) | Change::SetPrimary(addr) if named && !after.contains(&addr) => {
                return Err(Refused::Unknown);
            }
            // One that is only about to be added may be refused.
            Change::Delete(_) if named && self.certain(local) <= 1 => return Err(Refused::Last),
            _ => {}
        }
        self.queue.push_back(change);
        Ok(())
    }

    /// Is an ASCONF without its answer?
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Is there something to send?
    pub fn wants(&self) -> bool {
        self.due || (self.outstanding.is_none() && !self.queue.is_empty())
    }

    /// The ASCONF that is to be sent now, a whole chunk; it counts as sent, and the timer is to be started. `lookup` is one of
    /// our addresses that the peer knows, `source` the packet's source if that is known: it is not deleted by its own packet.
    pub fn request(
        &mut self,
        lookup: IpAddr,
        source: Option<IpAddr>,
        room: usize,
    ) -> Option<&[u8]> {
        if self.outstanding.is_none() {
            self.begin(lookup, source);
        }
        let outstanding = self.outstanding.as_ref()?;
        if !self.due || outstanding.chunk.len() > room {
            return None;
        }
        self.due = false;
        Some(&outstanding.chunk)
    }

    /// The timer has expired: the same ASCONF again.
    pub fn on_timeout(&mut self) {
        self.due = self.outstanding.is_some();
    }

    /// An ASCONF ACK has come; hands back what became of the requests. The timer is to be stopped when none is outstanding.
    pub fn on_ack(
        &mut self,
        serial: u32,
        params: Params,
    ) -> Result<Vec<(Change, Outcome)>, IllegalAck> {
        if self.serial.at_most(Tsn(serial)) {
            return Err(IllegalAck);
        }
        if Tsn(serial) != self.serial.previous() {
            return Ok(Vec::new());
        }
        let Some(outstanding) = self.outstanding.take() else {
            return Ok(Vec::new());
        };
        self.due = false;
        let answers = Answers::read(params);
        for change in answers
            .not_understood
            .iter()
            .filter_map(|at| outstanding.changes.get(*at))
        {
            match change {
                Change::SetPrimary(_) => self.no_primary = true,
                _ => self.no_addresses = true,
            }
        }
        let changes = outstanding.changes.into_iter().enumerate();
        let mut done: Vec<_> = changes
            .map(|(at, change)| (change, answers.outcome(at)))
            .collect();
        let queue = core::mem::take(&mut self.queue).into_iter();
        let (hopeless, left): (VecDeque<_>, _) =
            queue.partition(|change| self.is_hopeless(*change));
        done.extend(hopeless.into_iter().map(|change| (change, Outcome::Failed)));
        self.queue = left;
        Ok(done)
    }

    /// An ASCONF has come from `from`; `peer`: the peer's addresses.
    pub fn on_asconf(
        &mut self,
        serial: u32,
        params: Params,
        from: IpAddr,
        peer: &[IpAddr],
    ) -> Handled {
        let serial = Tsn(serial);
        if serial != self.peer_serial.next() {
            // Either it comes again, because our answer was lost, or it is not meant for now.
            let kept = self.answers.iter().find(|(of, _)| *of == serial);
            return Handled {
                actions: Vec::new(),
                answer: kept.map(|(_, answer)| answer.clone()),
            };
        }
        let mut all = params;
        let is_named = matches!(all.next(), Some(Ok(lookup)) if lookup.as_address().is_some());
        if !is_named || all.any(|param| param.is_err()) {
            return Handled::default();
        }
        self.peer_serial = serial;
        let mut work = Work {
            from,
            peer: peer.to_vec(),
            shortage: false,
            handled: Handled::default(),
        };
        let results = work.through(params);
        let answer = answer(serial, &results);
        self.answers.push_back((serial, answer.clone()));
        if self.answers.len() > KEPT {
            self.answers.pop_front();
        }
        Handled {
            answer: Some(answer),
            ..work.handled
        }
    }

    /// The peer has said that it does not do that.
    fn is_hopeless(&self, change: Change) -> bool {
        match change {
            Change::SetPrimary(_) => self.no_primary,
            _ => self.no_addresses,
        }
    }

    fn pending(&self) -> impl Iterator<Item = &Change> {
        self.outstanding
            .iter()
            .flat_map(|one| &one.changes)
            .chain(&self.queue)
    }

    /// Our addresses once everything asked was done.
    fn after_all(&self, local: &[IpAddr]) -> Vec<IpAddr> {
        let mut after = local.to_vec();
        for change in self.pending() {
            match change {
                Change::Add(addr) => after.push(*addr),
                Change::Delete(addr) => after.retain(|one| one != addr),
                Change::SetPrimary(_) => {}
            }
        }
        after
    }

    /// How many of our addresses stay, even if nothing is added.
    fn certain(&self, local: &[IpAddr]) -> usize {
        let deleted = |addr: &IpAddr| {
            self.pending()
                .any(|change| *change == Change::Delete(*addr))
        };
        local.iter().filter(|addr| !deleted(addr)).count()
    }

    /// Makes an ASCONF of as much of the queue as fits. The correlation IDs are the requests' places.
    fn begin(&mut self, lookup: IpAddr, source: Option<IpAddr>) {
        let mut changes = Vec::new();
        let mut body = Vec::new();
        ParamBuilder::new(&mut body).put(&lookup.into());
        self.queue.retain(|change| {
            let stays = source.is_some_and(|source| *change == Change::Delete(source))
                || HEAD + body.len() + 28 > LONGEST;
            if !stays {
                let correlation = changes.len() as u32;
                ParamBuilder::new(&mut body).put(&match *change {
                    Change::Add(address) => Param::AddIp {
                        correlation,
                        address,
                    },
                    Change::Delete(address) => Param::DeleteIp {
                        correlation,
                        address,
                    },
                    Change::SetPrimary(address) => Param::SetPrimary {
                        correlation,
                        address,
                    },
                });
                changes.push(*change);
            }
            stays
        });
        if changes.is_empty() {
            return;
        }
        let chunk = chunk(kind::ASCONF, self.serial, &body);
        self.serial = self.serial.next();
        self.due = true;
        self.outstanding = Some(Box::new(Outstanding { changes, chunk }));
    }
}

/// A peer's ASCONF at work. `peer` is kept as the actions will have changed it.
struct Work {
    from: IpAddr,
    peer: Vec<IpAddr>,
    /// An address could not be added: all that follows fails too (F11).
    shortage: bool,
    handled: Handled,
}

/// A request's correlation ID, and what is wrong with it: the cause, encoded.
type Verdict = (u32, Option<Vec<u8>>);

impl Work {
    fn through(&mut self, params: Params) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for param in params.skip(1).filter_map(Result::ok) {
            let mut own = Vec::new();
            ParamBuilder::new(&mut own).put(&param);
            let (correlation, verdict) = match param {
                Param::AddIp {
                    correlation,
                    address,
                } => (correlation, self.add(address, &own)),
                Param::DeleteIp {
                    correlation,
                    address,
                } => (correlation, self.delete(address, &own)),
                Param::SetPrimary {
                    correlation,
                    address,
                } => (correlation, self.set_primary(address, &own)),
                Param::Unknown { kind, whole } => {
                    if must_report(kind) {
                        let id = whole.get(4..8).and_then(|id| id.try_into().ok());
                        let correlation = id.map_or(0, u32::from_be_bytes);
                        verdicts.push((
                            correlation,
                            Some(encoded(&Cause::UnrecognizedParams(whole))),
                        ));
                    }
                    if must_stop(kind) {
                        break;
                    }
                    continue;
                }
                _ => continue,
            };
            verdicts.push((correlation, verdict.err().map(|cause| encoded(&cause))));
        }
        verdicts
    }

    fn add<'a>(&mut self, addr: IpAddr, own: &'a [u8]) -> Result<(), Cause<'a>> {
        let addr = self.or_source(addr);
        if !is_host(addr) {
            return Err(unresolvable(own));
        }
        if self.peer.contains(&addr) {
            return Ok(());
        }
        if self.shortage || self.peer.len() >= PATHS {
            self.shortage = true;
            return Err(Cause::ResourceShortage(own));
        }
        self.peer.push(addr);
        self.handled.actions.push(Change::Add(addr));
        Ok(())
    }

    fn delete<'a>(&mut self, addr: IpAddr, own: &'a [u8]) -> Result<(), Cause<'a>> {
        if self.shortage {
            return Err(Cause::ResourceShortage(own));
        }
        if addr.is_unspecified() {
            let from = self.from;
            self.known(from, own)?;
            let gone = self.peer.iter().filter(|one| **one != from);
            self.handled
                .actions
                .extend(gone.map(|one| Change::Delete(*one)));
            self.peer.retain(|one| *one == from);
            return Ok(());
        }
        self.known(addr, own)?;
        if self.peer.len() == 1 {
            return Err(Cause::DeleteLastAddress(own));
        }
        if addr == self.from {
            return Err(Cause::DeleteSourceAddress(own));
        }
        self.peer.retain(|one| *one != addr);
        self.handled.actions.push(Change::Delete(addr));
        Ok(())
    }

    fn set_primary<'a>(&mut self, addr: IpAddr, own: &'a [u8]) -> Result<(), Cause<'a>> {
        let addr = self.or_source(addr);
        self.known(addr, own)?;
        self.handled.actions.push(Change::SetPrimary(addr));
        Ok(())
    }

    fn known<'a>(&self, addr: IpAddr, own: &'a [u8]) -> Result<(), Cause<'a>> {
        let known = self.peer.contains(&addr);
        known.then_some(()).ok_or_else(|| unresolvable(own))
    }

    /// The wildcard address stands for the packet's source, which a translator may have changed.
    fn or_source(&self, addr: IpAddr) -> IpAddr {
        if addr.is_unspecified() {
            self.from
        } else {
            addr
        }
    }
}

/// What an ASCONF ACK says of our requests, by place.
#[derive(Default)]
struct Answers {
    done: Vec<usize>,
    denied: Vec<usize>,
    not_understood: Vec<usize>,
}

impl Answers {
    fn read(params: Params) -> Answers {
        let mut answers = Answers::default();
        for param in params.filter_map(Result::ok) {
            match param {
                Param::SuccessIndication { correlation } => answers.done.push(correlation as usize),
                Param::ErrorCauseIndication {
                    correlation,
                    mut causes,
                } => {
                    answers.denied.push(correlation as usize);
                    if causes.any(|cause| matches!(cause, Ok(Cause::UnrecognizedParams(_)))) {
                        answers.not_understood.push(correlation as usize);
                    }
                }
                _ => {}
            }
        }
        answers
    }

    /// Requests that are not mentioned were done, unless they come after one that failed (RFC 5061 5.2).
    fn outcome(&self, at: usize) -> Outcome {
        if self.denied.contains(&at) {
            Outcome::Denied
        } else if self.done.contains(&at) || !self.denied.iter().any(|denied| *denied < at) {
            Outcome::Done
        } else {
            Outcome::Failed
        }
    }
}

/// An ASCONF ACK; complete success needs no parameters.
fn answer(serial: Tsn, verdicts: &[Verdict]) -> Vec<u8> {
    let mut body = Vec::new();
    if verdicts.iter().any(|(_, wrong)| wrong.is_some()) {
        let mut params = ParamBuilder::new(&mut body);
        for (correlation, wrong) in verdicts {
            let correlation = *correlation;
            match wrong {
                None => params.put(&Param::SuccessIndication { correlation }),
                Some(cause) => {
                    let causes = crate::wire::Causes::new(cause);
                    params.put(&Param::ErrorCauseIndication {
                        correlation,
                        causes,
                    })
                }
            };
        }
    }
    chunk(kind::ASCONF_ACK, serial, &body)
}

fn chunk(kind: u8, serial: Tsn, body: &[u8]) -> Vec<u8> {
    let mut chunk = Vec::new();
    Writer::new(&mut chunk).item(u16::from(kind) << 8, |out| {
        out.extend_from_slice(&serial.0.to_be_bytes());
        out.extend_from_slice(body);
    });
    chunk
}

fn encoded(cause: &Cause) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::wire::CauseBuilder::new(&mut bytes).put(cause);
    bytes
}

/// RFC 5061 has the address parameter in this cause: it is in the request behind the correlation ID.
fn unresolvable(own: &[u8]) -> Cause<'_> {
    Cause::UnresolvableAddress(own.get(8..).unwrap_or_default())
}
