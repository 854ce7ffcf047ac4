//! What an association's user sends and receives, by the engine's messages and pieces of them.

use core::time::Duration;

use headwater_host::sys;
use headwater_providers::loopback::buffers::{self, Source};
use headwater_providers::provider::{Event, Outcome, Received, Sending};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TBADDATA, TFLOW, TLOOK, TNODATA, TOUTSTATE};
use libc::iovec;

use super::{Net, Phase};
use crate::option::message::{self, Incoming, Policy};
use crate::{Outgoing, Received as Message, Reliability};

/// Most data given to the engine at once; what is always given at once.
const PIECE: usize = 64 << 10;
const SHORT: usize = 4 << 10;

impl Net {
    pub fn send(
        &mut self,
        data: &[iovec],
        how: Sending,
        message: &message::Outgoing,
    ) -> Outcome<usize> {
        if self.told_end || self.released {
            return Err(Refusal::new(TOUTSTATE));
        }
        let kind = how.expedited as usize;
        let message = self.sending[kind].unwrap_or_else(|| outgoing(message, how.expedited));
        if self.sending[1 - kind].is_some_and(|other| other.stream == message.stream) {
            // The engine joins pieces by their stream.
            return Err(Refusal::system(libc::EBUSY));
        }
        let total = buffers::len(data);
        if total == 0 {
            return if how.more {
                Ok(0)
            } else {
                Err(Refusal::new(TBADDATA))
            };
        }
        let sent = self.send_pieces(data, total, &message, how.more);
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
            self.association.flush();
        }
        Ok(sent)
    }

    /// Messages that are not long go whole or not at all; of others as much as there is room for, and what is cut off comes as
    /// the rest of the message.
    fn send_pieces(
        &self,
        data: &[iovec],
        total: usize,
        message: &Outgoing,
        more: bool,
    ) -> sys::Result<usize> {
        if total <= SHORT {
            // SAFETY: what a user sends is readable, see `buffers`.
            return match unsafe { self.association.send_parts(message, data, more) } {
                Ok(()) => Ok(total),
                Err(libc::EAGAIN) => Ok(0),
                Err(errno) => Err(errno),
            };
        }
        // No more than what there is room for when the stack says that there is room.
        let most = self.look(|a| a.config().send_buffer / 4).unwrap_or(PIECE);
        let mut piece = vec![0; most.clamp(SHORT, PIECE)];
        let mut source = Source::new(data);
        let mut done = 0;
        while done < total {
            let n = (total - done).min(piece.len());
            source.take(&mut piece[..n]);
            let goes_on = more || done + n < total;
            match self.association.send(message, &piece[..n], goes_on) {
                Ok(()) => done += n,
                Err(libc::EAGAIN) => break,
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        if self.phase != Phase::Open || self.over {
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
        self.last = Incoming {
            stream: received.stream,
            ssn: received.ssn.0,
            ppid: received.ppid,
            tsn: received.tsn.0,
            unordered: received.unordered,
        };
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
    fn take_message(&self, into: &[iovec]) -> Outcome<Option<Message>> {
        // SAFETY: what a user receives into is writable, see `buffers`.
        match unsafe { self.association.receive_parts(into) } {
            Ok(received) => Ok(received),
            Err(libc::EBADF) => Err(Refusal::system(libc::EBADF)),
            Err(_) => Ok(None),
        }
    }
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
