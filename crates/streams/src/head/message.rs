//! putmsg, putpmsg, getmsg and getpmsg.

use core::time::Duration;

use headwater_channel::lock::Taken;
use headwater_channel::ring::{Meta, Ring};
use headwater_host::sys::Errno;
use headwater_host::{process, signal, stand_in, sys};
use libc::iovec;

use super::arming::Want;
use super::inlet::{self, Front, Inlet, Sink, Trouble, flag};
pub use super::outgoing::Priority;
use super::write::with_signal;
use super::{Head, local, opening, parcels};
use crate::ddi as kind;
use crate::pipe::section::{self, Section};
use crate::pipe::words::state;
use crate::pipe::{INLINE, RING};
use crate::tunables;

/// putmsg, getmsg: a high-priority message.
pub const RS_HIPRI: i32 = 1;
/// putpmsg, getpmsg.
pub const MSG_HIPRI: i32 = 1;
pub const MSG_ANY: i32 = 2;
pub const MSG_BAND: i32 = 4;
/// What getmsg returns when parts of the message stay behind.
pub const MORECTL: i32 = 1;
pub const MOREDATA: i32 = 2;

/// Which message getmsg waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Choice {
    Any,
    High,
    /// High priority, or this band or one above.
    AtLeast(u8),
}

/// What getmsg found. Lengths are -1 where the message has no such part, or it was not asked for. By default as after a hangup: two
/// parts of no bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Got {
    pub control: i32,
    pub data: i32,
    pub band: u8,
    pub high: bool,
    /// MORECTL, MOREDATA.
    pub more: i32,
}

impl Head {
    /// Sends a message of the given parts. Blocks while its band is full, unless O_NONBLOCK or high priority.
    /// Errors: EAGAIN, EINTR, EINVAL, ENOSR, EPIPE (with SIGPIPE), ERANGE, the errno of an M_ERROR.
    pub fn put_message(
        &self,
        control: Option<&[u8]>,
        data: Option<&[u8]>,
        priority: Priority,
        deadline: Option<u64>,
    ) -> Result<(), Errno> {
        signal::begin_wait();
        if priority == Priority::High && control.is_none() {
            return Err(libc::EINVAL);
        }
        self.check_writable().map_err(with_signal)?;
        if control.is_none() && data.is_none() {
            return Ok(());
        }
        if control.is_some_and(|c| c.len() > tunables::get().strctlsz) {
            return Err(libc::ERANGE);
        }
        if let Some(data) = data {
            self.check_size(data.len(), control.is_some())?;
        }
        if let Priority::Band(1..) = priority {
            self.words().set(state::BANDED);
        }
        let (_, band) = priority.of_message(true);
        let need = control.map_or(0, <[u8]>::len) + data.map_or(0, <[u8]>::len);
        let sent = self.send_patiently(band, need, deadline, || {
            if self.is_queued() {
                return local::put(self, control, data, priority);
            }
            let sent = self.push_message(control, data, priority)?;
            self.tell_local_peer();
            Ok(sent)
        });
        sent.map_err(with_signal)
    }

    /// Sends so many bytes in this band by `send`, which says whether there was room. Blocks until then, unless O_NONBLOCK without a
    /// `deadline`, or something keeps from writing.
    pub(super) fn send_patiently(
        &self,
        band: u8,
        need: usize,
        deadline: Option<u64>,
        mut send: impl FnMut() -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        // As it is when the call first would wait: what is set meanwhile is for later ones.
        let mut nonblocking = None;
        while !send()? {
            self.words().full_count.fetch_add(1, Relaxed);
            if deadline.is_none()
                && *nonblocking.get_or_insert_with(|| opening::is_nonblocking(self))
            {
                stand_in::glance();
                return Err(libc::EAGAIN);
            }
            if self.is_queued() {
                local::wait_for_room(self, band, deadline)?;
            } else if need > INLINE && self.may_put(band, need) {
                // The shadow is full of long parts, and nobody rings when it is not.
                self.pause(deadline)?;
            } else {
                let mut beside = [opening::watched(self)];
                self.wait(Want::room_in(band), deadline, &mut beside, || {
                    self.may_put(band, need) || self.is_upset() || self.is_queued()
                })?;
            }
            self.check_writable()?;
        }
        Ok(())
    }

    /// A moment's sleep, unless something is to be told.
    fn pause(&self, deadline: Option<u64>) -> Result<(), Errno> {
        let until = sys::now() + MOMENT;
        match self.wait(
            Want::ROOM,
            Some(deadline.unwrap_or(u64::MAX).min(until)),
            &mut [],
            || self.is_upset(),
        ) {
            Err(libc::ETIME) if deadline.is_none_or(|d| sys::now() < d) => Ok(()),
            waited => waited,
        }
    }

    fn check_size(&self, len: usize, with_control: bool) -> Result<(), Errno> {
        let (least, most) = self.packet_sizes();
        // Above what lies in the ring a message travels in a memfd: the pipe itself has no such limit.
        let most = if most >= INLINE && self.words().max_packet.load(Relaxed) == u32::MAX {
            tunables::get().strmsgsz
        } else {
            most
        };
        if len > most || len < least && !(with_control && len == 0) {
            return Err(libc::ERANGE);
        }
        Ok(())
    }

    /// Puts a message into the ring; false when there is no room for one of its band.
    pub fn push_message(
        &self,
        control: Option<&[u8]>,
        data: Option<&[u8]>,
        priority: Priority,
    ) -> Result<bool, Errno> {
        let (k, band) = priority.of_message(control.is_some());
        let flags = if data.is_none() { flag::NO_DATA } else { 0 };
        self.push_frame(
            control.unwrap_or(&[]),
            data.unwrap_or(&[]),
            Meta {
                kind: k,
                band,
                flags,
                control: 0,
            },
        )
    }

    /// Puts a frame into the ring, its data in a memfd if it is long.
    pub fn push_frame(&self, control: &[u8], data: &[u8], meta: Meta) -> Result<bool, Errno> {
        self.enter();
        let _quiet = process::Quiet::new();
        let ring = self.outgoing();
        let section = self.begin_writing(&ring)?;
        let high = meta.kind == kind::M_PCPROTO;
        if high && self.peer_has_high_message() {
            // One waits at a head at a time; a second one is discarded.
            return Ok(true);
        }
        let external = control.len() + data.len() > INLINE;
        let inline = control.len() + if external { 16 } else { data.len() };
        if !self.may_put_locked(meta, inline) {
            return Ok(false);
        }
        let plain = meta == Meta::default() && !external;
        let len = control.len() + data.len();
        let for_head = !inlet::is_readable(meta.kind);
        if for_head && let Some(peer) = self.peer_words() {
            // Who is killed once it is published has said so; who lives says it again, to a reader that has looked too early.
            peer.set(state::FOR_HEAD);
        }
        let band = (meta.band > 0).then(|| &self.band_bytes(true)[meta.band as usize]);
        if let Some(band) = band {
            inlet::enter_band(band, len);
        }
        let sent = if plain && data.is_empty() {
            ring.push_empty(meta).map_err(|_| self.spoiled())
        } else if plain {
            let pushed = ring.push(data, meta);
            pushed.map(|n| n > 0).map_err(|_| self.spoiled())
        } else if external {
            match parcels::send_body(self, data) {
                Ok(Some(ticket)) => {
                    let meta = Meta {
                        flags: meta.flags | flag::EXTERNAL,
                        ..meta
                    };
                    ring.push_special(control, &ticket, meta)
                        .map_err(|_| self.spoiled())
                }
                Ok(None) => Ok(false),
                Err(e) => Err(e),
            }
        } else {
            ring.push_special(control, data, meta)
                .map_err(|_| self.spoiled())
        };
        if let Some(band) = band
            && sent != Ok(true)
        {
            // Not published: whoever else waits for the band looks again by the clock.
            let _ = inlet::leave_band(band, len);
        }
        let sent = sent?;
        drop(section);
        self.ring_peer_for_data(&ring);
        if sent && for_head {
            self.call_peer();
        }
        Ok(sent)
    }

    /// The other end's head is to act on a frame, whatever its next call is, and whoever sleeps there.
    #[cold]
    fn call_peer(&self) {
        if let Some(peer) = self.peer_words() {
            peer.set(state::FOR_HEAD);
            self.ring_peer();
        }
    }

    /// Enters the section of who puts something into the outgoing ring. EPROTO.
    #[inline(always)]
    pub(super) fn begin_writing<'a>(&self, ring: &Ring<'a>) -> Result<Section<'a>, Errno> {
        let section = section::enter(&ring.state.writer.lock).ok_or_else(|| self.spoiled())?;
        if section.taken == Taken::Stolen {
            self.recover_writing()?;
        }
        Ok(section)
    }

    /// After the death of a writer inside its section. It may have counted a message in a band that it never published, so the
    /// bands count nothing from here on: what lies there yet is counted out of nothing.
    #[cold]
    pub(super) fn recover_writing(&self) -> Result<(), Errno> {
        self.outgoing()
            .recover_producer()
            .map_err(|_| self.spoiled())?;
        for band in self.band_bytes(true) {
            band.store(0, Relaxed);
        }
        Ok(())
    }

    /// Under the writer lock: room for a frame of this kind?
    fn may_put_locked(&self, meta: Meta, inline: usize) -> bool {
        let ring = self.outgoing();
        if meta.kind & kind::QPCTL != 0 || meta.kind == kind::M_PASSFP {
            return true;
        }
        if meta.band > 0 {
            return !self.is_band_full(meta.band);
        }
        let (limit, low) = self.marks();
        ring.may_send(inline, limit, low)
    }

    /// A hint, without the lock.
    pub fn may_put(&self, band: u8, need: usize) -> bool {
        if band > 0 {
            return !self.is_band_full(band);
        }
        self.has_room(if need > INLINE { 16 } else { need })
    }

    /// Is a band of what we write full? Bands have the default marks in a ring.
    pub fn is_band_full(&self, band: u8) -> bool {
        let word = &self.band_bytes(true)[band as usize];
        inlet::is_full(word) || self.outgoing().fill() as usize > RING - RESERVE
    }

    /// Does a high-priority message wait at the other end? Under the writer lock, so that none is added meanwhile.
    fn peer_has_high_message(&self) -> bool {
        let ring = self.outgoing();
        if ring.specials() == 0 {
            return false;
        }
        let Some(section) = section::reading(&ring) else {
            return false;
        };
        let found = ring.find(|f| f.meta.kind == kind::M_PCPROTO);
        drop(section);
        matches!(found, Ok(Some(_)))
    }

    /// Receives a message. Blocks while there is none of the choice, unless O_NONBLOCK.
    /// Errors: EAGAIN, EBADMSG, EINTR, EINVAL, the errno of an M_ERROR.
    pub fn get_message(
        &self,
        control: Option<&mut [u8]>,
        data: Option<&mut [u8]>,
        choice: Choice,
        deadline: Option<u64>,
    ) -> Result<Got, Errno> {
        signal::begin_wait();
        let control = control.map(part);
        let data = data.map(part);
        self.receive(deadline, |inlet| match choice.first_of(inlet)? {
            Some(front) => get_from(inlet, front, control, data).map(Some),
            None => Ok(None),
        })
    }
}

/// How long a writer of long messages waits for the shadow to take more, in nanoseconds.
const MOMENT: u64 = Duration::from_millis(1).as_nanos() as u64;
/// Room that bands leave to high-priority messages.
const RESERVE: usize = 16 << 10;

fn part(buf: &mut [u8]) -> iovec {
    sys::buffer(buf.as_mut_ptr(), buf.len())
}

impl Choice {
    pub fn takes(self, front: &Front) -> bool {
        match self {
            Choice::Any => true,
            Choice::High => front.is_high(),
            Choice::AtLeast(band) => front.is_high() || front.band >= band,
        }
    }

    /// The message in front, if it is of the choice. EBADMSG of a passed descriptor.
    pub fn first_of(self, inlet: &mut dyn Inlet) -> Result<Option<Front>, Trouble> {
        match inlet.front()?.filter(|front| self.takes(front)) {
            Some(front) if front.kind == kind::M_PASSFP => Err(Trouble::Fails(libc::EBADMSG)),
            front => Ok(front),
        }
    }
}

fn get_from(
    inlet: &mut dyn Inlet,
    front: Front,
    control: Option<iovec>,
    data: Option<iovec>,
) -> Result<Got, Trouble> {
    let mut taken = [None; 2];
    let (mut skip, mut left) = (0, 0);
    let wanted = [
        (front.control, control, MORECTL),
        (front.data, data, MOREDATA),
    ];
    for (taken, (have, room, more)) in taken.iter_mut().zip(wanted) {
        let Some(have) = have else { continue };
        *taken = room.map(|room| have.min(room.iov_len));
        if let (Some(room), Some(n @ 1..)) = (room, *taken) {
            Sink::new(&[room]).fill_by(skip, n, |skip, to| inlet.copy(skip, to));
        }
        if *taken != Some(have) {
            left |= more;
        }
        skip += have;
    }
    inlet.take(taken[0], taken[1])?;
    let [control, data] = taken.map(|n| n.map_or(-1, |n| n as i32));
    Ok(Got {
        control,
        data,
        band: front.band,
        high: front.is_high(),
        more: left,
    })
}

use headwater_host::sync::Ordering::Relaxed;
