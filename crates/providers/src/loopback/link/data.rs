//! Data of a connection, and of an association: how it is cut into frames, and taken out of them.

use headwater_channel::ring::Meta;
use headwater_host::sync::Ordering;
use headwater_host::sys;
use headwater_streams::ddi::M_DATA;
use headwater_streams::head::Head;
use headwater_streams::pipe::words::state;
use headwater_tpi::Refusal;
use headwater_tpi::error::{TFLOW, TLOOK, TNODATA};
use libc::iovec;

use super::frames::{EXPEDITED, Label, MORE, take_by_rank, take_plain};
use super::{Link, PIECE};
use crate::loopback::buffers::{self, Source};
use crate::provider::{Event, Outcome, Received, Sending};

/// The same for expedited data, for which there is room beside a ring full of other data.
const EXPEDITED_PIECE: usize = 8 << 10;
/// Room that expedited data leaves to what ends a connection.
const RESERVE: usize = 8 << 10;

impl Link {
    /// See [`Provider::send`](crate::provider::Provider::send).
    #[inline]
    pub fn send(&mut self, data: &[iovec], how: Sending) -> Outcome<usize> {
        self.send_labelled(data, how, Label::NONE)
    }

    /// Whether what is sent next goes on with a message, as far as that is known elsewhere.
    #[inline(always)]
    pub fn goes_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    #[inline(always)]
    pub fn send_labelled(&mut self, data: &[iovec], how: Sending, label: Label) -> Outcome<usize> {
        let head = self.head;
        if head.has_hung_up() {
            return Err(self.unheard());
        }
        let (limit, _) = head.transport_marks();
        if let [v] = data
            && v.iov_len.wrapping_sub(1) < PIECE.min(limit)
            && !how.expedited
        {
            head.enter();
            let sent = self.send_piece(buffers::bytes(v), how.more, label)?;
            head.note_sent();
            return if sent {
                Ok(v.iov_len)
            } else {
                Err(self.full())
            };
        }
        self.send_slowly(data, how, label)
    }

    /// See [`Provider::receive`](crate::provider::Provider::receive).
    #[inline]
    pub fn receive(&mut self, into: &[iovec]) -> Outcome<Received> {
        let mut none = Label::NONE;
        self.receive_labelled(into, &mut none)
    }

    /// The label stays as it was where the unit's earlier part was received already.
    #[inline(always)]
    pub fn receive_labelled(&mut self, into: &[iovec], label: &mut Label) -> Outcome<Received> {
        let head = self.head;
        if !head.has_visible() {
            return Err(self.nothing());
        }
        head.enter();
        let taken = head.take_frames(|ring| {
            if ring.specials() == 0 {
                take_plain(ring, into, label)
            } else {
                take_by_rank(ring, into, label)
            }
        });
        match taken {
            Ok(Some(received)) => Ok(received),
            _ => Err(self.nothing()),
        }
    }

    /// That data was to be sent to one who has parted ends nothing.
    #[cold]
    pub fn mend(&mut self) {
        self.broken = false;
    }

    /// One frame; false: no room.
    #[inline(always)]
    fn send_piece(&mut self, bytes: &[u8], more: bool, label: Label) -> Outcome<bool> {
        let begins = !self.goes_on;
        let sent = put_piece(self.head, bytes, more, label, begins);
        let sent = sent.map_err(|_| Refusal::new(TLOOK))?;
        self.goes_on ^= sent && self.goes_on != more;
        Ok(sent)
    }

    #[inline(never)]
    fn send_slowly(&mut self, data: &[iovec], how: Sending, label: Label) -> Outcome<usize> {
        let total = buffers::len(data);
        if total == 0 && how.more {
            return Ok(0);
        }
        self.head.enter();
        let most = if how.expedited {
            EXPEDITED_PIECE
        } else {
            PIECE.min(self.head.transport_marks().0)
        };
        let mut source = Source::new(data);
        let mut done = 0;
        loop {
            let n = (total - done).min(most);
            let more = how.more || done + n < total;
            let sent = match data {
                _ if how.expedited => self.send_expedited(&mut source, n, more, label)?,
                [v] if n > 0 => self.send_piece(&buffers::bytes(v)[done..done + n], more, label)?,
                _ if label != Label::NONE => {
                    let mut bytes = vec![0; n];
                    source.take(&mut bytes);
                    self.send_piece(&bytes, more, label)?
                }
                _ => self.send_gathered(&mut source, n, more)?,
            };
            if sent {
                done += n;
            }
            if sent && done < total {
                continue;
            }
            self.head.note_sent();
            return if sent || done > 0 {
                Ok(done)
            } else {
                Err(self.full())
            };
        }
    }

    fn send_gathered(&mut self, source: &mut Source<'_>, n: usize, more: bool) -> Outcome<bool> {
        let meta = Meta {
            flags: more as u8 * MORE,
            ..Meta::default()
        };
        let is_hushed = || !self.goes_on && self.head.words().has(state::HUSHED);
        let sent = self.head.put_frames(|ring| {
            if is_hushed() {
                return Ok(None);
            }
            let (limit, low) = self.head.transport_marks();
            if !ring.may_send(n, limit, low) {
                return Ok(Some(false));
            }
            if n == 0 {
                return ring.push_empty(meta).map(Some);
            }
            let Some(mut room) = ring.reserve(n, false)?.filter(|room| room.len >= n) else {
                return Ok(Some(false));
            };
            source.take(&mut buffers::room(&mut room)[..n]);
            ring.commit(n, meta);
            Ok(Some(true))
        });
        let sent = sent.ok().flatten().ok_or(Refusal::new(TLOOK))?;
        self.goes_on ^= sent && self.goes_on != more;
        Ok(sent)
    }

    fn send_expedited(
        &mut self,
        source: &mut Source<'_>,
        n: usize,
        more: bool,
        label: Label,
    ) -> Outcome<bool> {
        let meta = Meta {
            kind: M_DATA,
            band: EXPEDITED,
            flags: more as u8 * MORE,
            control: 0,
        };
        let sent = self.head.put_frames(|ring| {
            if self.is_hushed() {
                return Ok(None);
            }
            if ring.fill() as usize + n > ring.capacity() - RESERVE - 64 {
                return Ok(Some(false));
            }
            let mut bytes = vec![0; n];
            source.take(&mut bytes);
            match label {
                Label::NONE => ring.push_special(&[], &bytes, meta).map(Some),
                label => ring.push_special(&label.to_bytes(), &bytes, meta).map(Some),
            }
        });
        sent.ok().flatten().ok_or(Refusal::new(TLOOK))
    }

    #[cold]
    pub(super) fn full(&self) -> Refusal {
        self.head.words().full_count.fetch_add(1, Ordering::Relaxed);
        Refusal::new(TFLOW)
    }

    /// Nobody is there to take data.
    #[cold]
    fn unheard(&mut self) -> Refusal {
        // What the peer said last may not have been looked at yet.
        self.event_in_ring();
        self.broken |= self.has_parted();
        Refusal::new(TLOOK)
    }

    #[cold]
    fn nothing(&mut self) -> Refusal {
        match self.event() {
            // It came this moment; the caller looks again before it sleeps.
            None | Some(Event::Data | Event::ExData) => Refusal::new(TNODATA),
            Some(_) => Refusal::new(TLOOK),
        }
    }
}

/// One frame of data; false: no room. EPROTO; EPIPE: the other end takes no message that begins here.
#[inline(always)]
pub(super) fn put_piece(
    head: &Head,
    bytes: &[u8],
    more: bool,
    label: Label,
    begins: bool,
) -> sys::Result<bool> {
    let meta = Meta {
        flags: more as u8 * MORE,
        ..Meta::default()
    };
    let plan = head.plan_copy(bytes.len());
    let sent = head.put_frames(|ring| {
        if begins && head.words().has(state::HUSHED) {
            return Ok(None);
        }
        let (limit, low) = head.transport_marks();
        if !ring.may_send(bytes.len(), limit, low) {
            return Ok(Some(false));
        }
        let sent = match &plan {
            _ if label != Label::NONE => ring.push_message(&label.to_bytes(), bytes, meta)?,
            Some(plan) if plan.streaming => ring.push_streaming(bytes, meta)? > 0,
            _ if bytes.is_empty() => ring.push_empty(meta)?,
            _ => ring.push(bytes, meta)? > 0,
        };
        Ok(Some(sent))
    });
    if let Some(plan) = plan {
        head.copying.done(plan, bytes.len());
    }
    sent?.ok_or(libc::EPIPE)
}
