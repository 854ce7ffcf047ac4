//! Streams that begin anew, and more of them (RFC 6525): our requests, one at a time, and answers to the peer's.
//!
//! ```text
//!   ask -> waiting: streams held until all was acknowledged -> outstanding -> answer: numbers begin at 0, streams go on
//!                                                                ^     |
//!                                           timer, "in progress" `-----'
//! ```
//! Outgoing streams are reset only when nothing of them is on its way, so that the peer has all before it hears of the reset.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::wire::{List, PacketBuilder, Param, ParamBuilder, Params, kind};
use crate::{Allowed, Event, Outcome, Receiver, Sender, Tsn};

/// Streams named in one request, so that it fits any packet; longer lists are cut.
const MOST_STREAMS: usize = 200;
/// Requests of one RE-CONFIG, and so the answers that may be asked for again.
const MOST_REQUESTS: usize = 2;
/// Requests that the peer may make wait: it is denied more.
const MOST_QUEUED: usize = 16;
/// Header of a chunk.
const HEAD: usize = 4;

/// Results, RFC 6525 section 4.4.
mod result {
    pub const NOTHING_TO_DO: u32 = 0;
    pub const PERFORMED: u32 = 1;
    pub const DENIED: u32 = 2;
    pub const WRONG_STREAM: u32 = 3;
    pub const ALREADY: u32 = 4;
    pub const BAD_NUMBER: u32 = 5;
    pub const IN_PROGRESS: u32 = 6;
}

/// What can be asked. An empty list of streams: all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Our outgoing streams.
    Outgoing(Vec<u16>),
    /// The peer's.
    Incoming(Vec<u16>),
    /// All streams, and TSNs too, in both directions.
    Association,
    /// So many more streams of ours.
    AddOutgoing(u16),
    /// Of the peer's.
    AddIncoming(u16),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskRefused {
    BadStream,
    /// There can't be so many.
    TooMany,
}

#[derive(Debug)]
struct Request {
    ask: Ask,
    /// The peer's request that this one answers, or the last one that came.
    answers: Option<Tsn>,
    held: bool,
}

#[derive(Debug)]
struct Outstanding {
    request: Request,
    /// It has been sent with this one.
    number: Option<Tsn>,
    /// To be sent, for the first time or again.
    due: bool,
    /// Sent, and not answered by "in progress": the peer may have done it.
    open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Answer {
    number: Tsn,
    result: u32,
    next: Option<(Tsn, Tsn)>,
}

/// What requests and answers to them change, and what is to be told of that.
struct Work<'a> {
    sender: &'a mut Sender,
    receiver: &'a mut Receiver,
    events: Vec<Event>,
}

#[derive(Debug, Default)]
pub struct Reset {
    pub allowed: Allowed,
    /// Of our next request.
    number: Tsn,
    queue: VecDeque<Request>,
    outstanding: Option<Box<Outstanding>>,
    /// Of the peer's next request.
    expected: Tsn,
    given: VecDeque<Answer>,
    unsent: Vec<Answer>,
}

impl Reset {
    /// Request numbers begin with the initial TSNs.
    pub fn new(local: Tsn, peer: Tsn) -> Reset {
        Reset {
            allowed: Allowed::ALL,
            number: local,
            expected: peer,
            ..Reset::default()
        }
    }

    /// Queues a request.
    pub fn ask(
        &mut self,
        ask: Ask,
        sender: &Sender,
        receiver: &Receiver,
    ) -> Result<(), AskRefused> {
        let (list, streams) = match &ask {
            Ask::Outgoing(list) => (list.as_slice(), sender.streams()),
            Ask::Incoming(list) => (list.as_slice(), receiver.streams()),
            Ask::AddOutgoing(more) if sender.streams().checked_add(*more).is_none() => {
                return Err(AskRefused::TooMany);
            }
            Ask::AddIncoming(more) if receiver.streams().checked_add(*more).is_none() => {
                return Err(AskRefused::TooMany);
            }
            _ => (&[][..], 0),
        };
        if list.iter().any(|stream| *stream >= streams) {
            return Err(AskRefused::BadStream);
        }
        if list.len() <= MOST_STREAMS {
            self.push(ask, None);
            return Ok(());
        }
        let part_of = match ask {
            Ask::Outgoing(_) => Ask::Outgoing,
            _ => Ask::Incoming,
        };
        for part in list.chunks(MOST_STREAMS) {
            self.push(part_of(part.to_vec()), None);
        }
        Ok(())
    }

    /// Is a request without its answer? Then the timer runs.
    pub fn is_outstanding(&self) -> bool {
        self.outstanding.is_some()
    }

    /// The peer may have begun anew with all its TSNs, and we don't know yet: DATA and SACKs that come now can't be understood,
    /// and are to be dropped. They come again.
    pub fn is_restarting(&self) -> bool {
        self.outstanding
            .as_ref()
            .is_some_and(|one| one.open && one.request.ask == Ask::Association)
    }

    /// Is there something to be sent now?
    pub fn wants(&self, sender: &Sender) -> bool {
        let ready = || {
            self.queue
                .front()
                .is_some_and(|front| !front.held || front.is_ready(sender))
        };
        !self.unsent.is_empty() || self.outstanding.as_ref().map_or_else(ready, |one| one.due)
    }

    /// Writes what is to be sent now, as RE-CONFIG chunks. `true`: a request is among it, and the timer is to be started.
    pub fn write(&mut self, sender: &mut Sender, packet: &mut PacketBuilder) -> bool {
        self.write_answers(packet);
        if self.outstanding.is_none() {
            self.begin(sender);
        }
        let Some(outstanding) = self.outstanding.as_mut().filter(|one| one.due) else {
            return false;
        };
        let again = outstanding.number.filter(|_| outstanding.open);
        let number = again.unwrap_or(self.number);
        let mut body = Vec::new();
        outstanding.write(number, sender, &mut ParamBuilder::new(&mut body));
        if packet.room() < HEAD + body.len() {
            return false;
        }
        if again.is_none() {
            self.number = number.next();
            outstanding.number = Some(number);
        }
        (outstanding.due, outstanding.open) = (false, true);
        packet.bytes(kind::RE_CONFIG, 0, &body);
        true
    }

    /// The timer has expired: the same request again, under a new number if the peer has answered that it is in progress.
    pub fn on_timeout(&mut self) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.due = true;
        }
    }

    /// A RE-CONFIG has come. The timer is to be stopped when no request is outstanding afterwards.
    pub fn on_re_config(
        &mut self,
        params: Params,
        sender: &mut Sender,
        receiver: &mut Receiver,
    ) -> Vec<Event> {
        let mut work = Work {
            sender,
            receiver,
            events: Vec::new(),
        };
        for param in params.map_while(Result::ok).take(2 * MOST_REQUESTS) {
            match param {
                Param::Response {
                    request,
                    result,
                    next,
                } => {
                    self.on_response(Tsn(request), result, next, &mut work);
                }
                Param::OutgoingReset { request, .. }
                | Param::IncomingReset { request, .. }
                | Param::TsnReset { request }
                | Param::AddOutgoing { request, .. }
                | Param::AddIncoming { request, .. } => {
                    self.on_request(Tsn(request), &param, &mut work);
                }
                _ => {}
            }
        }
        work.events
    }

    fn push(&mut self, ask: Ask, answers: Option<Tsn>) {
        self.queue.push_back(Request {
            ask,
            answers,
            held: false,
        });
    }

    /// Holds what the first request waits for, and makes it outstanding when that has come.
    fn begin(&mut self, sender: &mut Sender) {
        let Some(front) = self.queue.front_mut() else {
            return;
        };
        if !front.held {
            front.held = true;
            front.hold(sender);
        }
        if !front.is_ready(sender) {
            return;
        }
        let mut request = self.queue.pop_front().expect("it was there");
        request.answers.get_or_insert(self.expected.previous());
        let outstanding = Outstanding {
            request,
            number: None,
            due: true,
            open: false,
        };
        self.outstanding = Some(Box::new(outstanding));
    }

    fn write_answers(&mut self, packet: &mut PacketBuilder) {
        let fit = packet.room().saturating_sub(HEAD) / 20;
        let fit = fit.min(self.unsent.len());
        if fit == 0 {
            return;
        }
        packet.re_config(|params| {
            for answer in self.unsent.drain(..fit) {
                params.put(&Param::Response {
                    request: answer.number.0,
                    result: answer.result,
                    next: answer.next,
                });
            }
        });
    }

    fn on_response(
        &mut self,
        number: Tsn,
        result: u32,
        next: Option<(Tsn, Tsn)>,
        work: &mut Work<'_>,
    ) {
        let Some(mut outstanding) = self.outstanding.take_if(|one| one.number == Some(number))
        else {
            return;
        };
        let outcome = match result {
            // It is going to be done by a request of the peer's own.
            result::IN_PROGRESS if matches!(outstanding.request.ask, Ask::Incoming(_)) => return,
            result::IN_PROGRESS => {
                (outstanding.due, outstanding.open) = (false, false);
                self.outstanding = Some(outstanding);
                return;
            }
            result::NOTHING_TO_DO | result::PERFORMED => Outcome::Done,
            result::DENIED => Outcome::Denied,
            _ => Outcome::Failed,
        };
        let performed = result == result::PERFORMED;
        let told = outstanding.request.finish(outcome, performed, next, work);
        work.events.extend(told);
    }

    fn on_request(&mut self, number: Tsn, param: &Param, work: &mut Work<'_>) {
        let given = self.given.iter().position(|answer| answer.number == number);
        let again = given.and_then(|at| self.given.get(at)).copied();
        // Peers differ in whether they ask for what was in progress under a new number. A reset of everything has to have one:
        // an answer that it is in progress, on its way still, would make the peer believe what is not so any more.
        let anew = |answer: &Answer| {
            answer.result == result::IN_PROGRESS && !matches!(param, Param::TsnReset { .. })
        };
        if let Some(answer) = again.filter(|answer| !anew(answer)) {
            self.answer(answer);
            return;
        }
        if again.is_none() && number != self.expected {
            self.answer(Answer {
                number,
                result: result::BAD_NUMBER,
                next: None,
            });
            return;
        }
        let mut next = None;
        let result = match param {
            Param::OutgoingReset {
                response,
                last,
                streams,
                ..
            } => {
                let result = self.reset_incoming(*last, streams, work);
                if result == result::PERFORMED {
                    self.answered_by_reset(Tsn(*response), streams);
                }
                result
            }
            Param::IncomingReset { streams, .. } => {
                self.reset_outgoing(number, streams, work.sender)
            }
            Param::TsnReset { .. } => self.reset_all(&mut next, work),
            Param::AddOutgoing { streams, .. } => self.add_incoming(*streams, work),
            Param::AddIncoming { streams, .. } => self.add_outgoing(*streams, work.sender),
            _ => return,
        };
        let answer = Answer {
            number,
            result,
            next,
        };
        match given {
            Some(at) => self.given[at] = answer,
            None => {
                self.expected = number.next();
                self.given.push_back(answer);
                if self.given.len() > MOST_REQUESTS {
                    self.given.pop_front();
                }
            }
        }
        self.answer(answer);
    }

    fn answer(&mut self, answer: Answer) {
        self.unsent.retain(|one| one.number != answer.number);
        if self.unsent.len() < 2 * MOST_REQUESTS {
            self.unsent.push(answer);
        }
    }

    fn reset_incoming(&mut self, last: Tsn, streams: &List, work: &mut Work<'_>) -> u32 {
        let receiver = &mut *work.receiver;
        if !self.allowed.has(Allowed::STREAMS) {
            return result::DENIED;
        }
        if streams.iter().any(|stream| stream >= receiver.streams()) {
            return result::WRONG_STREAM;
        }
        if !receiver.has_all_to(last) {
            return result::IN_PROGRESS;
        }
        let streams: Vec<u16> = streams.iter().collect();
        receiver.reset_streams(&streams);
        work.events.push(Event::StreamsReset {
            incoming: true,
            streams,
            outcome: Outcome::Done,
        });
        result::PERFORMED
    }

    /// The peer has reset its streams because we asked it to: that is an answer too.
    fn answered_by_reset(&mut self, number: Tsn, streams: &List) {
        let asked = |list: &[u16]| list.iter().copied().eq(streams.iter());
        self.outstanding.take_if(|one| {
            let incoming = matches!(&one.request.ask, Ask::Incoming(list) if asked(list));
            incoming && one.number == Some(number)
        });
    }

    /// The peer wants us to reset streams of ours. That it is done, our own request says.
    fn reset_outgoing(&mut self, number: Tsn, streams: &List, sender: &Sender) -> u32 {
        if !self.allowed.has(Allowed::STREAMS) {
            return result::DENIED;
        }
        if streams.iter().any(|stream| stream >= sender.streams()) {
            return result::WRONG_STREAM;
        }
        let ask = Ask::Outgoing(streams.iter().collect());
        let outstanding = self.outstanding.iter().any(|one| one.request.ask == ask);
        let full = self.queue.len() >= MOST_QUEUED || streams.iter().count() > MOST_STREAMS;
        match self.queue.iter_mut().find(|one| one.ask == ask) {
            Some(queued) => queued.answers = Some(number),
            None if outstanding => {}
            None if full => return result::DENIED,
            None => self.push(ask, Some(number)),
        }
        result::IN_PROGRESS
    }

    fn reset_all(&mut self, next: &mut Option<(Tsn, Tsn)>, work: &mut Work<'_>) -> u32 {
        let (sender, receiver) = (&mut *work.sender, &mut *work.receiver);
        if !self.allowed.has(Allowed::ASSOCIATION) {
            return result::DENIED;
        }
        // Both at once would end with two ideas of which TSNs are next.
        let asked = self.outstanding.as_ref().map(|one| &one.request.ask);
        if asked == Some(&Ask::Association) {
            return result::ALREADY;
        }
        // Streams whose reset the peer may have done already must not go on before its answer.
        let own = matches!(asked, Some(Ask::Outgoing(_)));
        let halfway = !sender.all_acknowledged() || sender.is_within_a_message();
        if own || halfway || receiver.has_gaps() {
            // Or it would never be, with a user who goes on sending.
            sender.hold_streams(&[]);
            return result::IN_PROGRESS;
        }
        let (ours, theirs) = (sender.next_tsn(), receiver.next_tsn_for_reset());
        *next = Some((ours, theirs));
        receiver.restart(theirs);
        sender.reset_tsn(ours);
        sender.reset_streams(&[]);
        // What our own next request waits for stays held.
        let waiting = self.queue.iter().filter(|request| request.held);
        waiting.for_each(|request| request.hold(sender));
        work.events.push(Event::Reset {
            outcome: Outcome::Done,
        });
        result::PERFORMED
    }

    fn add_incoming(&mut self, more: u16, work: &mut Work<'_>) -> u32 {
        if !self.allowed.has(Allowed::MORE_STREAMS) || !work.receiver.add_streams(more) {
            return result::DENIED;
        }
        work.events.push(Event::StreamsAdded {
            incoming: more,
            outgoing: 0,
            outcome: Outcome::Done,
        });
        result::PERFORMED
    }

    fn add_outgoing(&mut self, more: u16, sender: &Sender) -> u32 {
        let possible =
            self.queue.len() < MOST_QUEUED && sender.streams().checked_add(more).is_some();
        if !possible || !self.allowed.has(Allowed::MORE_STREAMS) {
            return result::DENIED;
        }
        self.push(Ask::AddOutgoing(more), None);
        result::PERFORMED
    }
}

impl Request {
    fn hold(&self, sender: &mut Sender) {
        match &self.ask {
            Ask::Outgoing(streams) => sender.hold_streams(streams),
            Ask::Association => sender.hold_streams(&[]),
            _ => {}
        }
    }

    /// Nothing that it has to wait for is on its way.
    fn is_ready(&self, sender: &Sender) -> bool {
        match &self.ask {
            Ask::Outgoing(streams) if streams.is_empty() => sender.all_streams_are_idle(),
            Ask::Outgoing(streams) => streams.iter().all(|stream| sender.stream_is_idle(*stream)),
            Ask::Association => sender.all_streams_are_idle(),
            _ => true,
        }
    }

    /// The answer is there. `performed`, and not only nothing to do.
    fn finish(
        self,
        outcome: Outcome,
        performed: bool,
        next: Option<(Tsn, Tsn)>,
        work: &mut Work<'_>,
    ) -> Option<Event> {
        let sender = &mut *work.sender;
        let done = outcome == Outcome::Done;
        let reset = |incoming, streams| Event::StreamsReset {
            incoming,
            streams,
            outcome,
        };
        let added = |incoming, outgoing| Event::StreamsAdded {
            incoming,
            outgoing,
            outcome,
        };
        match self.ask {
            Ask::Outgoing(streams) => {
                if done {
                    sender.reset_streams(&streams);
                } else {
                    sender.release_streams(&streams);
                }
                Some(reset(false, streams))
            }
            // The peer's own request reports what it did.
            Ask::Incoming(streams) => (!performed).then(|| reset(true, streams)),
            Ask::Association => {
                let outcome = match next {
                    Some((theirs, ours)) if performed => {
                        work.receiver.restart(theirs);
                        sender.reset_tsn(ours);
                        sender.reset_streams(&[]);
                        Outcome::Done
                    }
                    _ => {
                        sender.release_streams(&[]);
                        if done { Outcome::Failed } else { outcome }
                    }
                };
                Some(Event::Reset { outcome })
            }
            Ask::AddOutgoing(outgoing) => {
                if done {
                    sender.add_streams(outgoing);
                }
                Some(added(0, outgoing))
            }
            Ask::AddIncoming(incoming) => (!done).then(|| added(incoming, 0)),
        }
    }
}

impl Outstanding {
    fn write(&self, number: Tsn, sender: &Sender, params: &mut ParamBuilder) {
        let request = number.0;
        match &self.request.ask {
            Ask::Outgoing(streams) => {
                let answers = self.request.answers.unwrap_or_default();
                params.outgoing_reset(request, answers.0, sender.next_tsn().previous(), streams)
            }
            Ask::Incoming(streams) => params.incoming_reset(request, streams),
            Ask::Association => params.put(&Param::TsnReset { request }),
            Ask::AddOutgoing(streams) => params.put(&Param::AddOutgoing {
                request,
                streams: *streams,
            }),
            Ask::AddIncoming(streams) => params.put(&Param::AddIncoming {
                request,
                streams: *streams,
            }),
        };
    }
}
