//! What the user of a connection sends and receives: frames, or the engine's messages, and pieces of them.

use core::time::Duration;

use headwater_host::sys;
use headwater_providers::loopback::buffers::{self, Source};
use headwater_providers::loopback::link::Label;
use headwater_providers::provider::{Event, Outcome, Received, Sending};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TBADDATA, TFLOW, TLOOK, TNODATA, TOUTSTATE};
use libc::iovec;

use super::{Connection, Phase};
use crate::option::message::{self, Policy};
use crate::{Body, ByPackets, Outgoing, Received as Message, Reliability};

/// Most data given to the engine at once; what is always given at once.
const PIECE: usize = 64 << 10;
const SHORT: usize = 4 << 10;

impl Connection {
    #[inline]
    pub fn send(
        &mut self,
        data: &[iovec],
        how: Sending,
        message: &message::Outgoing,
    ) -> Outcome<usize> {
        match &mut self.body {
            Body::ByMemory(by_memory) => {
                by_memory.send_direct(data, how, message.stream, message.ppid)
            }
            Body::ByPackets(_) => self.send_by_packets(data, how, message),
        }
    }

    fn send_by_packets(
        &mut self,
        data: &[iovec],
        how: Sending,
        message: &message::Outgoing,
    ) -> Outcome<usize> {
        let Body::ByPackets(by_packets) = &mut self.body else {
            return Err(Refusal::new(TOUTSTATE));
        };
        if self.progress.told_end || self.progress.released {
            return Err(Refusal::new(TOUTSTATE));
        }
        let kind = how.expedited as usize;
        let message = self.sending[kind].unwrap_or_else(|| outgoing(message, how.expedited));
        let total = buffers::len(data);
        if total == 0 {
            return if how.more {
                Ok(0)
            } else {
                Err(Refusal::new(TBADDATA))
            };
        }
        let sent = send_pieces(by_packets, data, total, &message, how.more);
        let sent = sent.map_err(|errno| match errno {
            libc::EPIPE | libc::ECONNRESET | libc::ECONNABORTED | libc::ETIMEDOUT => {
                Refusal::new(TLOOK)
            }
            errno => Refusal::system(errno),
        })?;
        if sent == 0 {
            return Err(Refusal::new(TFLOW));
        }
        let goes_on = how.more || sent < total;
        self.sending[kind] = goes_on.then_some(message);
        if how.push {
            by_packets.flush();
        }
        Ok(sent)
    }

    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        let Body::ByMemory(by_memory) = &mut self.body else {
            return self.receive_by_packets(into);
        };
        let mut label = Label::NONE;
        let received = by_memory.receive_direct(into, &mut label)?;
        self.last = received.expedited as usize;
        let (message, goes_on) = &mut self.received[self.last];
        if !*goes_on {
            label.kind |= received.expedited as u16 * Label::UNORDERED;
            *message = by_memory.number(label);
        }
        *goes_on = received.more;
        Ok(received)
    }

    fn receive_by_packets(&mut self, into: &[iovec]) -> Outcome<Received> {
        if self.progress.phase != Phase::Open || self.progress.over {
            return Err(Refusal::new(TLOOK));
        }
        if buffers::len(into) == 0 {
            return self.receive_nothing();
        }
        let received = match self.take_message(into)? {
            Some(received) => received,
            None => match self.event() {
                None => return Err(Refusal::new(TNODATA)),
                // It came this moment.
                Some(Event::Data | Event::ExData) => {
                    self.take_message(into)?.ok_or(Refusal::new(TNODATA))?
                }
                Some(_) => return Err(Refusal::new(TLOOK)),
            },
        };
        self.received[self.last].0 = received;
        Ok(Received {
            len: received.len,
            more: !received.end && !received.aborted,
            expedited: received.unordered,
        })
    }

    /// Without room: is there a message?
    fn receive_nothing(&mut self) -> Outcome<Received> {
        match self.event() {
            Some(event @ (Event::Data | Event::ExData)) => Ok(Received {
                len: 0,
                more: true,
                expedited: event == Event::ExData,
            }),
            None => Err(Refusal::new(TNODATA)),
            Some(_) => Err(Refusal::new(TLOOK)),
        }
    }

    /// `None`: there is none, whatever the reason. EBADF in a child of fork.
    fn take_message(&mut self, into: &[iovec]) -> Outcome<Option<Message>> {
        match self.body.receive(into) {
            Ok(received) => Ok(received),
            Err(libc::EBADF) => Err(Refusal::system(libc::EBADF)),
            Err(_) => Ok(None),
        }
    }
}

/// Messages that are not long go whole or not at all; of others as much as there is room for, and what is cut off comes as
/// the rest of the message.
fn send_pieces(
    by_packets: &mut ByPackets,
    data: &[iovec],
    total: usize,
    message: &Outgoing,
    more: bool,
) -> sys::Result<usize> {
    if total <= SHORT {
        return match by_packets.send(message, data, more) {
            Ok(()) => Ok(total),
            Err(libc::EAGAIN) => Ok(0),
            Err(errno) => Err(errno),
        };
    }
    // No more than what there is room for when the stack says that there is room.
    let most = by_packets
        .look(|a| a.config().send_buffer / 4)
        .unwrap_or(PIECE);
    let mut piece = vec![0; most.clamp(SHORT, PIECE)];
    let mut source = Source::new(data);
    let mut done = 0;
    while done < total {
        let n = (total - done).min(piece.len());
        source.take(&mut piece[..n]);
        let goes_on = more || done + n < total;
        let sent = by_packets.association().send(message, &piece[..n], goes_on);
        match sent {
            Ok(()) => done += n,
            Err(libc::EAGAIN) => break,
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn outgoing(message: &message::Outgoing, unordered: bool) -> Outgoing {
    let limit = message.limit;
    Outgoing {
        stream: message.stream,
        ppid: message.ppid,
        unordered,
        reliability: match message.policy {
            Policy::Never => Reliability::Full,
            Policy::Lifetime => Reliability::Ttl(Duration::from_millis(limit.into())),
            Policy::Retransmissions => Reliability::Rtx(limit),
            Policy::Priority => Reliability::Prio(limit),
        },
        ..Default::default()
    }
}
