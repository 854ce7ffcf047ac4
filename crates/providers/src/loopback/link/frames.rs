//! What the frames of a connection say, and which comes first.

use headwater_channel::ring::{Corrupt, Frame, Ring};
use headwater_streams::ddi::M_PROTO;
use libc::iovec;

use crate::loopback::buffers::Sink;
use crate::provider::Received;

/// In a frame's flags: the data unit goes on.
pub const MORE: u8 = 1;
/// The band of expedited data.
pub const EXPEDITED: u8 = 1;

/// What a frame with a control part says.
pub mod word {
    /// The request was accepted.
    pub const CONFIRM: u32 = 1;
    pub const DISCONNECT: u32 = 2;
    pub const RELEASE: u32 = 3;
    /// The end is closed, with nothing left to say: no failure.
    pub const CLOSED: u32 = 4;
    /// From here on: for the two users of the connection among themselves, see [`Link::note`](super::Link::note).
    pub const NOTE: u32 = 16;
}

/// What goes with every data unit of an association: the control part of its frames, which there is only where it says
/// anything.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Label {
    pub ppid: u32,
    pub stream: u16,
    /// The frames of one message have the same kind, and no other message's frames with that kind are between them:
    /// [`Label::UNORDERED`], and a number that tells processes apart that send by the same end.
    pub kind: u16,
}

impl Label {
    pub const NONE: Label = Label {
        stream: 0,
        ppid: 0,
        kind: 0,
    };
    pub const LEN: usize = 8;
    pub const UNORDERED: u16 = 1;

    pub fn to_bytes(self) -> [u8; Label::LEN] {
        let (stream, kind) = (u64::from(self.stream), u64::from(self.kind));
        (kind << 48 | stream << 32 | u64::from(self.ppid)).to_ne_bytes()
    }

    pub fn is_unordered(self) -> bool {
        self.kind & Label::UNORDERED != 0
    }

    fn of_bytes(bytes: [u8; Label::LEN]) -> Label {
        let word = u64::from_ne_bytes(bytes);
        Label {
            stream: (word >> 32) as u16,
            ppid: word as u32,
            kind: (word >> 48) as u16,
        }
    }
}

const CONTROL: usize = 16;

/// The control part of a frame whose data are `parts`.
pub fn control(what: u32, reason: i32, parts: [&[u8]; 3]) -> [u8; CONTROL] {
    let words = [
        what,
        reason as u32,
        parts[0].len() as u32,
        parts[1].len() as u32,
    ];
    let mut control = [0; CONTROL];
    for (to, from) in control.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    control
}

/// The frame in front.
pub enum Front {
    Data,
    Expedited(Frame),
    Control(Frame, u32),
}

/// The frame that is to be read first. Expedited data overtakes data, nothing else.
pub fn front(ring: &Ring<'_>) -> Result<Option<Front>, Corrupt> {
    let Some(first) = ring.peek()? else {
        return Ok(None);
    };
    if first.special && first.meta.kind == M_PROTO {
        let mut what = [0; 4];
        if first.meta.control as usize != CONTROL || first.taken > 0 || first.len < CONTROL {
            return Err(Corrupt);
        }
        ring.copy_frame(&first, 0, &mut what);
        return Ok(Some(Front::Control(first, u32::from_ne_bytes(what))));
    }
    let expedited = ring.find(|frame| frame.special && frame.meta.band == EXPEDITED)?;
    Ok(Some(expedited.map_or(Front::Data, Front::Expedited)))
}

/// Does a frame in the ring say that the other end was closed in peace?
pub fn says_closed(ring: &Ring<'_>) -> Result<bool, Corrupt> {
    let closed = ring.find(|frame| {
        let mut what = [0; 4];
        if frame.special && frame.meta.kind == M_PROTO && frame.meta.control as usize == CONTROL {
            ring.copy_frame(frame, 0, &mut what);
        }
        u32::from_ne_bytes(what) == word::CLOSED
    })?;
    Ok(closed.is_some())
}

/// The label of a frame of which nothing was taken yet; how many bytes of it stand before the unread data.
#[inline(always)]
pub fn read_label(ring: &Ring<'_>, frame: &Frame, label: &mut Label) -> usize {
    if frame.meta.control == 0 {
        if frame.taken == 0 {
            *label = Label::NONE;
        }
        return 0;
    }
    let left = frame.control_left();
    if left == Label::LEN {
        let mut bytes = [0; Label::LEN];
        ring.copy_frame(frame, 0, &mut bytes);
        *label = Label::of_bytes(bytes);
    }
    left
}

/// Data while there is nothing else in the ring.
#[inline(always)]
pub fn take_plain(
    ring: &Ring<'_>,
    into: &[iovec],
    label: &mut Label,
) -> Result<Option<Received>, Corrupt> {
    let mut sink = Sink::new(into);
    let mut got = None;
    loop {
        let Some(frame) = ring.peek()?.filter(|frame| !frame.special) else {
            return Ok(got);
        };
        let control = read_label(ring, &frame, label);
        let n = (frame.len - control).min(sink.left());
        sink.fill(ring, &frame, control, n);
        ring.consume(&frame, control + n);
        let more = control + n < frame.len || frame.meta.flags & MORE != 0;
        let len = got.map_or(0, |got: Received| got.len) + n;
        got = Some(Received {
            len,
            more,
            expedited: false,
        });
        if !more || sink.left() == 0 {
            return Ok(got);
        }
    }
}

#[cold]
pub fn take_by_rank(
    ring: &Ring<'_>,
    into: &[iovec],
    label: &mut Label,
) -> Result<Option<Received>, Corrupt> {
    match front(ring)? {
        None | Some(Front::Control(..)) => Ok(None),
        Some(Front::Data) => take_plain(ring, into, label),
        Some(Front::Expedited(frame)) => {
            let mut sink = Sink::new(into);
            let control = read_label(ring, &frame, label);
            let n = (frame.len - control).min(sink.left());
            sink.fill(ring, &frame, control, n);
            ring.take_part(&frame, control + n);
            let more = control + n < frame.len || frame.meta.flags & MORE != 0;
            Ok(Some(Received {
                len: n,
                more,
                expedited: true,
            }))
        }
    }
}

/// What a frame with a control part tells.
#[derive(Default)]
pub struct Told {
    pub reason: i32,
    pub addr: Vec<u8>,
    pub opts: Vec<u8>,
    pub data: Vec<u8>,
}

impl Told {
    pub fn read(bytes: &[u8]) -> Told {
        let word = |i: usize| {
            u32::from_ne_bytes(core::array::from_fn(|k| {
                bytes.get(i * 4 + k).copied().unwrap_or(0)
            }))
        };
        let rest = bytes.get(CONTROL..).unwrap_or(&[]);
        let (addr, rest) = rest.split_at(rest.len().min(word(2) as usize));
        let (opts, data) = rest.split_at(rest.len().min(word(3) as usize));
        Told {
            reason: word(1) as i32,
            addr: addr.to_vec(),
            opts: opts.to_vec(),
            data: data.to_vec(),
        }
    }
}
