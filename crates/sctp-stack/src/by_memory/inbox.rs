//! What has come in the ring, as messages.
//!
//! A message whose frames are all there, or come while it is read, is copied straight to the program. Of others the frames
//! are put together here, so that the ring is free for the rest, until they are whole or longer than the partial delivery
//! point.

use core::hint;
use core::time::Duration;

use headwater_channel::ring::{Corrupt, Ring};
use headwater_host::sys;
use headwater_providers::loopback::buffers::{self, Sink, Source};
use headwater_providers::loopback::link::{Front, Label, MORE, front, read_label};
use headwater_sctp::{Received, Ssn, Tsn};
use headwater_streams::head::Head;
use libc::iovec;

/// As much as a receive buffer of Linux holds by default.
const PARTIAL_POINT: usize = 212_992;
/// Unordered messages of peers that use XTI, whose frames overtake others.
const EXPEDITED: u16 = u16::MAX;
/// Messages put together at a time.
const MOST: usize = 4096;
const FEW: usize = 8;
const MOST_BYTES: usize = 64 << 20;
/// What is worth looking for on a peer that is just sending, in nanoseconds.
const SOON: u64 = Duration::from_micros(20).as_nanos() as u64;
/// In the middle of a message: so often, unless somebody else keeps the CPU for so long.
const YIELDS: u32 = 4;
const DISTURBED: u64 = Duration::from_micros(150).as_nanos() as u64;

pub struct Inbox {
    open: Vec<Open>,
    numbers: Numbers,
    pub partial_point: usize,
}

/// A message of which something is here, or was delivered.
struct Open {
    kind: u16,
    of: Received,
    bytes: Vec<u8>,
    taken: usize,
    /// The last frame has come.
    ended: bool,
    /// A part of it was delivered.
    begun: bool,
}

impl Open {
    fn left(&self) -> usize {
        self.bytes.len() - self.taken
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// Of the message.
    Ended,
    /// The caller's buffers are.
    Full,
    /// The ring is.
    Empty,
    /// Something else is in front.
    Other,
}

impl Inbox {
    pub fn new() -> Inbox {
        Inbox {
            open: Vec::new(),
            numbers: Numbers::default(),
            partial_point: PARTIAL_POINT,
        }
    }

    /// Is nothing put together, or delivered in part?
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Bytes of messages that are put together here.
    pub fn unread(&self) -> usize {
        self.open.iter().map(Open::left).sum()
    }

    /// The last TSN.
    pub fn cumtsn(&self) -> u32 {
        self.numbers.tsn.wrapping_sub(1)
    }

    /// The numbers of a message that begins, which is received elsewhere.
    #[inline]
    pub fn number(&mut self, label: Label) -> Received {
        self.numbers.begin(label)
    }

    /// That was the last TSN.
    pub fn go_on_behind(&mut self, tsn: u32) {
        self.numbers.tsn = tsn.wrapping_add(1);
    }

    /// `None`: nothing, as far as the ring tells.
    #[inline]
    pub fn receive(&mut self, head: &Head, into: &[iovec]) -> Option<Received> {
        if !self.open.is_empty() {
            return self.receive_slowly(head, into);
        }
        if head.incoming().is_empty() {
            return None;
        }
        self.receive_straight(head, into, None)
    }

    /// The message in front of the ring, if it is there in one frame and fits; its number is counted.
    #[inline]
    pub fn receive_whole(&mut self, head: &Head, into: &[iovec]) -> Option<usize> {
        let ring = head.incoming();
        if !self.open.is_empty() || ring.is_empty() || ring.specials() > 0 {
            return None;
        }
        let numbers = &mut self.numbers;
        head.enter();
        let taken = head.take_frames(|ring| {
            let Some(frame) = ring.peek()? else {
                return Ok(None);
            };
            if frame.special || frame.taken > 0 || frame.meta.flags & MORE != 0 {
                return Ok(None);
            }
            let mut sink = Sink::new(into);
            let mut label = Label::NONE;
            let control = read_label(ring, &frame, &mut label);
            let n = frame.len - control;
            if n == 0 || n > sink.left() {
                return Ok(None);
            }
            sink.fill(ring, &frame, control, n);
            ring.consume(&frame, frame.len);
            numbers.pass(label);
            Ok(Some(n))
        });
        taken.ok().flatten()
    }

    /// What is in front of the ring of any messages, as much as fits; `None`: nothing, or something is to be looked at first.
    #[inline]
    pub fn receive_joined(&mut self, head: &Head, into: &[iovec]) -> Option<usize> {
        let ring = head.incoming();
        if !self.open.is_empty() || ring.is_empty() || ring.specials() > 0 {
            return None;
        }
        let numbers = &mut self.numbers;
        let mut sink = Sink::new(into);
        let room = sink.left();
        head.enter();
        let taken = head.take_frames(|ring| {
            while sink.left() > 0
                && let Some(frame) = ring.peek()?.filter(|frame| !frame.special)
            {
                let mut label = Label::NONE;
                let control = read_label(ring, &frame, &mut label);
                if frame.taken == 0 {
                    numbers.pass(label);
                }
                let n = (frame.len - control).min(sink.left());
                sink.fill(ring, &frame, control, n);
                ring.consume(&frame, control + n);
            }
            Ok(())
        });
        let len = room - sink.left();
        taken.ok().filter(|()| len > 0).map(|()| len)
    }

    fn receive_slowly(&mut self, head: &Head, into: &[iovec]) -> Option<Received> {
        loop {
            if let Some(at) = self.deliverable() {
                return Some(self.deliver(at, into));
            }
            if matches!(&self.open[..], [only] if only.begun) {
                let begun = self.open.pop();
                return self.receive_straight(head, into, begun);
            }
            let came = self.pull(head) || head.incoming().is_empty() && comes_soon(head);
            if !came {
                return None;
            }
        }
    }

    /// From the ring to the caller. `begun`: the message whose rest is in front, or will be.
    #[inline]
    fn receive_straight(
        &mut self,
        head: &Head,
        into: &[iovec],
        begun: Option<Open>,
    ) -> Option<Received> {
        let mut sink = Sink::new(into);
        let room = sink.left();
        let is_begun = begun.is_some();
        let mut message = begun.map(|open| (open.kind, open.of));
        head.enter();
        let stop = loop {
            let numbers = &mut self.numbers;
            let taken = head.take_frames(|ring| copy(ring, &mut sink, &mut message, numbers));
            let stop = taken.unwrap_or(Stop::Other);
            if stop != Stop::Empty || message.is_none() || !comes_soon(head) {
                break stop;
            }
        };
        let len = room - sink.left();
        if let Some((_, of)) = message
            && stop == Stop::Ended
        {
            let end = true;
            return Some(Received { len, end, ..of });
        }
        self.receive_part(head, into, stop, message, is_begun, len)
    }

    /// The message was not whole, or there was none.
    #[cold]
    fn receive_part(
        &mut self,
        head: &Head,
        into: &[iovec],
        stop: Stop,
        message: Option<(u16, Received)>,
        is_begun: bool,
        len: usize,
    ) -> Option<Received> {
        if let Some((kind, of)) = message {
            let is_part = stop == Stop::Full || is_begun && len > 0 || len >= self.partial_point;
            self.open.push(Open {
                kind,
                of,
                bytes: if is_part {
                    Vec::new()
                } else {
                    taken_back(into, len)
                },
                taken: 0,
                ended: false,
                begun: is_begun || is_part,
            });
            if is_part {
                return Some(Received { len, ..of });
            }
        }
        if stop == Stop::Other && self.pull(head) {
            return self.receive_slowly(head, into);
        }
        None
    }

    /// Can a message or a part of one be received?
    #[inline]
    pub fn readable(&mut self, head: &Head) -> bool {
        if self.open.is_empty() && head.incoming().is_empty() {
            return false;
        }
        self.readable_slowly(head)
    }

    fn readable_slowly(&mut self, head: &Head) -> bool {
        loop {
            if self.deliverable().is_some() || self.is_in_front(head) {
                return true;
            }
            let tail = head.incoming().tail();
            if self.open.is_empty() && is_soon(head, || head.incoming().tail() != tail) {
                continue;
            }
            if !self.pull(head) {
                return false;
            }
        }
    }

    /// What [`receive`](Inbox::receive) would give, as far as it is here.
    pub fn peek(&mut self, head: &Head) -> Option<Received> {
        if !self.readable(head) {
            return None;
        }
        if let Some(open) = self.deliverable().map(|at| &self.open[at]) {
            return Some(Received {
                len: open.left(),
                end: open.ended,
                ..open.of
            });
        }
        let seen = survey(&head.incoming())?;
        let of = match &self.open[..] {
            [begun] => begun.of,
            _ => self.numbers.of_next(seen.label),
        };
        Some(Received {
            len: seen.len,
            end: seen.ended,
            ..of
        })
    }

    /// Is what can be received in front of the ring?
    fn is_in_front(&self, head: &Head) -> bool {
        let ring = head.incoming();
        if ring.specials() > 0 && !matches!(ring.find(|_| true), Ok(Some(f)) if !f.special) {
            return false;
        }
        let Some(seen) = survey(&ring) else {
            return false;
        };
        match &self.open[..] {
            [] => seen.ended || seen.len >= self.partial_point,
            [only] => only.begun && (seen.rest || seen.label.kind == only.kind),
            _ => false,
        }
    }

    pub fn deliverable(&self) -> Option<usize> {
        if let Some(at) = self.open.iter().position(|open| open.begun) {
            let open = &self.open[at];
            return (open.ended || open.left() > 0).then_some(at);
        }
        let whole = |open: &Open| open.ended || open.left() >= self.partial_point;
        self.open.iter().position(whole)
    }

    fn deliver(&mut self, at: usize, into: &[iovec]) -> Received {
        let open = &mut self.open[at];
        let len = buffers::scatter(into, &open.bytes[open.taken..]);
        open.taken += len;
        let end = open.ended && open.left() == 0;
        let received = Received {
            len,
            end,
            ..open.of
        };
        if end {
            self.open.remove(at);
            return received;
        }
        open.begun = true;
        if open.left() == 0 {
            open.bytes.clear();
            open.taken = 0;
        }
        received
    }

    /// Takes a frame of data out of the ring; false: there is none.
    fn pull(&mut self, head: &Head) -> bool {
        if head.incoming().is_empty() {
            return false;
        }
        // Each process that sends by the peer's end has two messages under way at most: this is none of ours.
        let too_many =
            self.open.len() >= MOST || self.open.len() > FEW && self.unread() > MOST_BYTES;
        let pulled = head.take_frames(|ring| {
            if too_many {
                return Err(Corrupt);
            }
            let frame = match front(ring)? {
                Some(Front::Expedited(frame)) => Some(frame),
                Some(Front::Data) => ring.peek()?,
                None | Some(Front::Control(..)) => None,
            };
            let Some(frame) = frame else { return Ok(false) };
            let mut label = Label::NONE;
            let control = read_label(ring, &frame, &mut label);
            if frame.special {
                label.kind = EXPEDITED;
            }
            let is_same = |open: &Open| match frame.taken > 0 && !frame.special {
                true => open.begun,
                false => open.kind == label.kind && !open.ended,
            };
            let at = self.open.iter().position(is_same).unwrap_or_else(|| {
                self.open.push(Open::new(label, &mut self.numbers));
                self.open.len() - 1
            });
            let open = &mut self.open[at];
            let from = open.bytes.len();
            open.bytes.resize(from + frame.len - control, 0);
            ring.copy_frame(&frame, control, &mut open.bytes[from..]);
            open.ended = frame.meta.flags & MORE == 0;
            match frame.special {
                true => ring.take(&frame),
                false => ring.consume(&frame, frame.len),
            }
            Ok(true)
        });
        pulled.unwrap_or(false)
    }

    // ---- streams ----

    /// These streams begin anew; empty: all.
    pub fn begin_anew(&mut self, streams: &[u16]) {
        let ssns = &mut self.numbers.ssns;
        if streams.is_empty() {
            ssns.fill(0);
        }
        for &stream in streams {
            if let Some(ssn) = ssns.get_mut(usize::from(stream)) {
                *ssn = 0;
            }
        }
    }

    /// All numbers do.
    pub fn begin_all_anew(&mut self) {
        self.numbers = Numbers::default();
    }
}

impl Open {
    fn new(label: Label, numbers: &mut Numbers) -> Open {
        Open {
            kind: label.kind,
            of: numbers.begin(label),
            bytes: Vec::new(),
            taken: 0,
            ended: false,
            begun: false,
        }
    }
}

#[inline(always)]
fn copy(
    ring: &Ring<'_>,
    sink: &mut Sink<'_>,
    message: &mut Option<(u16, Received)>,
    numbers: &mut Numbers,
) -> Result<Stop, Corrupt> {
    loop {
        let Some(frame) = ring.peek()? else {
            return Ok(Stop::Empty);
        };
        if frame.special {
            return Ok(Stop::Other);
        }
        let mut label = Label::NONE;
        let control = read_label(ring, &frame, &mut label);
        match message {
            Some((kind, _)) if frame.taken == 0 && *kind != label.kind => return Ok(Stop::Other),
            Some(_) => {}
            None => *message = Some((label.kind, numbers.begin(label))),
        }
        let n = (frame.len - control).min(sink.left());
        sink.fill(ring, &frame, control, n);
        ring.consume(&frame, control + n);
        if control + n < frame.len {
            return Ok(Stop::Full);
        }
        if frame.meta.flags & MORE == 0 {
            return Ok(Stop::Ended);
        }
        if sink.left() == 0 {
            return Ok(Stop::Full);
        }
    }
}

/// What was copied to the caller, and is not to be delivered yet.
fn taken_back(from: &[iovec], len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Source::new(from).take(&mut bytes);
    bytes
}

/// The message in front of the ring, as far as it is there.
struct Seen {
    label: Label,
    len: usize,
    ended: bool,
    /// Its beginning was taken.
    rest: bool,
}

fn survey(ring: &Ring<'_>) -> Option<Seen> {
    let mut seen: Option<Seen> = None;
    let walked = ring.find(|frame| {
        if frame.special {
            return true;
        }
        let mut label = Label::NONE;
        let control = read_label(ring, frame, &mut label);
        let seen = seen.get_or_insert(Seen {
            label,
            len: 0,
            ended: false,
            rest: frame.taken > 0,
        });
        if seen.label.kind != label.kind && !seen.rest {
            return true;
        }
        seen.len += frame.len - control;
        seen.ended = frame.meta.flags & MORE == 0;
        seen.ended
    });
    walked.ok()?;
    seen
}

/// Does the peer put something there this moment?
fn comes_soon(head: &Head) -> bool {
    is_soon_enough(head, || !head.incoming().is_empty())
}

/// Looks for a moment, if the peer runs on another CPU.
pub fn is_soon(head: &Head, holds: impl Fn() -> bool) -> bool {
    let peer = head.peer_cpu();
    if holds() {
        return true;
    }
    if peer == u32::MAX || peer == sys::cpu() {
        return false;
    }
    let until = sys::now() + SOON;
    loop {
        for _ in 0..64 {
            if holds() {
                return true;
            }
            hint::spin_loop();
        }
        if sys::now() > until {
            return false;
        }
    }
}

/// As [`is_soon`], for who is in the middle of a message: the peer may need this CPU.
pub fn is_soon_enough(head: &Head, holds: impl Fn() -> bool) -> bool {
    for _ in 0..YIELDS {
        if is_soon(head, &holds) {
            return true;
        }
        let before = sys::now();
        sys::sched_yield();
        if sys::now() - before > DISTURBED {
            break;
        }
    }
    holds()
}

#[inline]
fn numbered(label: Label, tsn: u32, ssn: u16) -> Received {
    Received {
        stream: label.stream,
        ssn: Ssn(ssn),
        ppid: label.ppid,
        tsn: Tsn(tsn),
        unordered: label.is_unordered(),
        ..Received::default()
    }
}

/// As a sender of packets would have numbered what comes.
#[derive(Default)]
struct Numbers {
    tsn: u32,
    /// Of each stream the next.
    ssns: Vec<u16>,
}

impl Numbers {
    #[inline]
    fn of_next(&self, label: Label) -> Received {
        let ssn = self.ssns.get(usize::from(label.stream));
        let ssn = ssn.filter(|_| !label.is_unordered());
        numbered(label, self.tsn, ssn.copied().unwrap_or(0))
    }

    #[inline]
    fn begin(&mut self, label: Label) -> Received {
        let tsn = self.tsn;
        numbered(label, tsn, self.pass(label))
    }

    /// Counts a message; its SSN, if it has one.
    #[inline]
    fn pass(&mut self, label: Label) -> u16 {
        self.tsn = self.tsn.wrapping_add(1);
        if label.is_unordered() {
            return 0;
        }
        let at = usize::from(label.stream);
        if at >= self.ssns.len() {
            self.ssns.resize(at + 1, 0);
        }
        let next = &mut self.ssns[at];
        let ssn = *next;
        *next = ssn.wrapping_add(1);
        ssn
    }
}
