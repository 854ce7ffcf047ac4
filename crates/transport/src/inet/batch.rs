//! Datagrams on their way: consecutive ones of one size to one place leave in one call (UDP_SEGMENT), and many arrive in
//! one (UDP_GRO).

use headwater_host::{memory, sys};
use libc::{cmsghdr, iovec, msghdr};

use super::address::Address;
use super::brake::Brake;
use super::{again, length};
use crate::flusher::{self, Went};

/// What one call carries at most: the kernel takes 64 segments, 64 KiB less headers.
const SEGMENTS: usize = 64;
const CAPACITY: usize = 64_000;
/// Datagrams of this size cost more to copy than to send.
const LARGE: usize = 8 << 10;
/// As with TCP (see coalesce.rs).
const PAUSE: u64 = 100_000;
const SHORT: u64 = 20_000;
const LONG: u64 = 400_000;
const FEW: usize = 4;

#[repr(C, align(8))]
pub struct Control(pub [u8; 128]);

/// Datagrams held back: all of `size` bytes to one place, but for a shorter last one.
pub struct Outgoing {
    to: Address,
    size: usize,
    count: usize,
    buffer: Vec<u8>,
    /// The last one was shorter: nothing may follow.
    closed: bool,
    since: u64,
    seen: (u64, usize),
    last: u64,
    answering: bool,
    /// Sizes from here on don't fit the route in segments, or gain nothing.
    limit: usize,
    brake: Brake,
}

impl Outgoing {
    pub fn new() -> Outgoing {
        Outgoing {
            to: Address::any(false),
            size: 0,
            count: 0,
            buffer: Vec::new(),
            closed: false,
            since: 0,
            seen: (0, 0),
            last: 0,
            answering: false,
            limit: LARGE,
            brake: Brake::new(),
        }
    }

    #[inline]
    pub fn pending(&self) -> usize {
        self.count
    }

    pub fn destination(&self) -> Address {
        self.to
    }

    pub fn note_received(&mut self) {
        self.answering = true;
    }

    /// Adds a datagram to those pending, if it suits them.
    #[inline]
    pub fn join(&mut self, to: &Address, data: &[iovec], len: usize) -> bool {
        let suits = self.count > 0
            && !self.closed
            && len <= self.size
            && len > 0
            && self.count < SEGMENTS
            && self.buffer.len() + len <= CAPACITY
            && self.to == *to;
        if suits {
            self.push(data, len);
        }
        suits
    }

    /// Nothing is pending: may this one be [held](Outgoing::hold)? Then it is this time.
    #[inline]
    pub fn begins(&mut self, to: &Address, len: usize) -> Option<u64> {
        if len == 0 || len >= self.limit {
            return None;
        }
        // One like the last has come: more may follow.
        if len != self.size || self.to != *to {
            (self.to, self.size) = (*to, len);
            return None;
        }
        if core::mem::take(&mut self.answering) {
            return None;
        }
        let now = sys::now();
        if now.wrapping_sub(self.last) > PAUSE {
            self.last = now;
            return None;
        }
        flusher::is_there().then_some(now)
    }

    /// Begins to hold with this one.
    pub fn hold(&mut self, to: &Address, data: &[iovec], len: usize, now: u64) {
        self.since = now;
        self.to = *to;
        self.size = len;
        self.closed = false;
        self.buffer.reserve_exact(CAPACITY.max(len));
        flusher::hold();
        self.push(data, len);
    }

    #[inline]
    fn push(&mut self, data: &[iovec], len: usize) {
        for v in data {
            // SAFETY: the user's buffer; the caller has seen to the room.
            unsafe {
                let at = self.buffer.len();
                let to = self.buffer.as_mut_ptr().add(at);
                core::ptr::copy_nonoverlapping(v.iov_base as *const u8, to, v.iov_len);
                self.buffer.set_len(at + v.iov_len);
            }
        }
        self.count += 1;
        self.closed = len < self.size;
    }

    /// Can't take another of its kind?
    #[inline]
    pub fn is_full(&self) -> bool {
        self.closed || self.count >= SEGMENTS || self.buffer.len() + self.size > CAPACITY
    }

    /// Sends all. An error other than EAGAIN has cost the datagrams that are no longer pending.
    pub fn flush(&mut self, fd: i32) -> sys::Result<()> {
        if self.count == 0 {
            return Ok(());
        }
        self.last = sys::now();
        let all = [iovec {
            iov_base: self.buffer.as_ptr() as *mut _,
            iov_len: self.buffer.len(),
        }];
        if self.count == 1 {
            let sent = send(fd, &self.to, &all, &[]);
            if !matches!(sent, Err(libc::EAGAIN)) {
                self.clear();
            }
            return sent;
        }
        self.brake
            .before(&self.to, self.count, self.size, self.last);
        match send_segments(fd, &self.to, &all, self.size as u16) {
            Err(errno @ (libc::EINVAL | libc::EMSGSIZE | libc::EIO)) => {
                // The route has a smaller MTU; or there are no checksums, and so no segments.
                self.limit = if errno == libc::EIO {
                    0
                } else {
                    self.limit.min(self.size)
                };
                self.one_by_one(fd)
            }
            Err(libc::EAGAIN) => Err(libc::EAGAIN),
            result => {
                self.clear();
                result
            }
        }
    }

    fn one_by_one(&mut self, fd: i32) -> sys::Result<()> {
        while self.count > 0 {
            let len = self.size.min(self.buffer.len());
            let one = [iovec {
                iov_base: self.buffer.as_ptr() as *mut _,
                iov_len: len,
            }];
            let sent = send(fd, &self.to, &one, &[]);
            if matches!(sent, Err(libc::EAGAIN)) {
                return sent;
            }
            self.buffer.drain(..len);
            self.count -= 1;
            if self.count == 0 {
                flusher::drop_hold();
            }
            sent?;
        }
        Ok(())
    }

    pub fn clear(&mut self) {
        if self.count > 0 {
            self.count = 0;
            self.buffer.clear();
            flusher::drop_hold();
        }
    }

    /// In the child of a fork: what is held is the parent's.
    pub fn forked(&mut self) {
        self.clear();
        self.brake.close();
    }

    /// Asked by the flusher.
    pub fn is_due(&mut self, now: u64) -> bool {
        let age = now.saturating_sub(self.since);
        let state = (self.since, self.count);
        let rests = core::mem::replace(&mut self.seen, state) == state;
        let due = age >= LONG || age >= SHORT && (rests || self.count <= FEW);
        if !due {
            flusher::note(Went::Busy);
        }
        due
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.clear();
    }
}

fn message(to: &Address, data: &[iovec], control: &[u8]) -> msghdr {
    // SAFETY: zeroes are a valid msghdr.
    let mut message: msghdr = unsafe { core::mem::zeroed() };
    message.msg_name = to.pointer() as *mut _;
    message.msg_namelen = to.len();
    message.msg_iov = data.as_ptr() as *mut iovec;
    message.msg_iovlen = data.len() as _;
    if !control.is_empty() {
        message.msg_control = control.as_ptr() as *mut _;
        message.msg_controllen = control.len() as _;
    }
    message
}

const FLAGS: i32 = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends one datagram. ENOBUFS counts as EAGAIN.
#[inline]
pub fn send(fd: i32, to: &Address, data: &[iovec], control: &[u8]) -> sys::Result<()> {
    let sent = again(|| match data {
        [one] if control.is_empty() => send_one(fd, to, one),
        _ => {
            let message = message(to, data, control);
            // SAFETY: the message's parts are valid.
            unsafe { sys::sendmsg(fd, &message, FLAGS) }
        }
    });
    match sent {
        Err(libc::ENOBUFS | libc::ENOMEM) => Err(libc::EAGAIN),
        result => result.map(drop),
    }
}

#[inline]
fn send_one(fd: i32, to: &Address, data: &iovec) -> sys::Result<usize> {
    use syscalls::{Sysno, syscall};
    let (base, len) = (data.iov_base, data.iov_len);
    // SAFETY: the user's buffer, and an address with its length.
    unsafe { syscall!(Sysno::sendto, fd, base, len, FLAGS, to.pointer(), to.len()) }
        .map_err(|e| e.into_raw())
}

fn send_segments(fd: i32, to: &Address, data: &[iovec], size: u16) -> sys::Result<()> {
    debug_assert!(length(data) > size as usize);
    let mut control = Control([0; 128]);
    let n = put_control(
        &mut control,
        0,
        libc::SOL_UDP,
        libc::UDP_SEGMENT,
        &size.to_ne_bytes(),
    );
    send(fd, to, data, &control.0[..n])
}

/// Appends a control message; gives the new length.
pub fn put_control(control: &mut Control, at: usize, level: i32, name: i32, value: &[u8]) -> usize {
    // SAFETY: the caller puts at most four short ones into 128 aligned bytes.
    unsafe {
        let header = control.0.as_mut_ptr().add(at) as *mut cmsghdr;
        (*header).cmsg_level = level;
        (*header).cmsg_type = name;
        (*header).cmsg_len = libc::CMSG_LEN(value.len() as u32) as _;
        core::ptr::copy_nonoverlapping(value.as_ptr(), libc::CMSG_DATA(header), value.len());
        at + libc::CMSG_SPACE(value.len() as u32) as usize
    }
}

// ---- arriving ----

const BUFFER: usize = 64 << 10;
/// Messages taken in one call at most.
const MESSAGES: usize = 8;

struct Slot {
    bytes: Box<[u8]>,
    from: libc::sockaddr_storage,
    control: Control,
    control_len: usize,
}

/// Datagrams that have arrived and were not handed out yet.
pub struct Incoming {
    slots: Vec<Slot>,
    /// Of the slots: length and segment size.
    filled: [(usize, usize); MESSAGES],
    count: usize,
    /// The slot that is being handed out, from which byte on.
    slot: usize,
    at: usize,
    /// Messages to ask for next: as many as are likely to be there.
    ask: usize,
}

/// The datagram in front.
pub struct Front<'a> {
    pub data: &'a [u8],
    pub from: &'a libc::sockaddr_storage,
    /// The control messages that came with it: see [`controls`].
    pub control: &'a [u8],
}

impl Incoming {
    pub fn new() -> Incoming {
        Incoming {
            slots: Vec::new(),
            filled: [(0, 0); MESSAGES],
            count: 0,
            slot: 0,
            at: 0,
            ask: 1,
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slot >= self.count
    }

    /// The datagram in front, from the byte on up to which it was handed out.
    #[inline]
    pub fn front(&self, skip: usize) -> Option<Front<'_>> {
        if self.is_empty() {
            return None;
        }
        let slot = &self.slots[self.slot];
        let (len, size) = self.filled[self.slot];
        let end = (self.at + size).min(len);
        Some(Front {
            data: &slot.bytes[self.at + skip..end],
            from: &slot.from,
            control: &slot.control.0[..slot.control_len],
        })
    }

    /// The one in front is done with.
    #[inline]
    pub fn pop(&mut self) {
        let (len, size) = self.filled[self.slot];
        self.at += size;
        if size == 0 || self.at >= len {
            self.slot += 1;
            self.at = 0;
        }
    }

    /// Takes what the kernel has, when all has been handed out.
    pub fn fill(&mut self, fd: i32) -> sys::Result<()> {
        // The reserve is not for datagrams that can be taken one by one.
        while self.slots.len() < self.ask && (self.slots.is_empty() || !memory::is_scarce()) {
            // SAFETY: zeroes are a valid sockaddr_storage.
            let from = unsafe { core::mem::zeroed() };
            self.slots.push(Slot {
                bytes: vec![0; BUFFER].into_boxed_slice(),
                from,
                control: Control([0; 128]),
                control_len: 0,
            });
        }
        let ask = self.ask.min(self.slots.len());
        // SAFETY: zeroes are valid.
        let mut messages: [libc::mmsghdr; MESSAGES] = unsafe { core::mem::zeroed() };
        let mut parts = [iovec {
            iov_base: core::ptr::null_mut(),
            iov_len: 0,
        }; MESSAGES];
        for (i, slot) in self.slots[..ask].iter_mut().enumerate() {
            parts[i] = iovec {
                iov_base: slot.bytes.as_mut_ptr() as *mut _,
                iov_len: BUFFER,
            };
            let header = &mut messages[i].msg_hdr;
            header.msg_name = &raw mut slot.from as *mut _;
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            header.msg_iov = &mut parts[i];
            header.msg_iovlen = 1;
            header.msg_control = slot.control.0.as_mut_ptr() as *mut _;
            header.msg_controllen = size_of::<Control>() as _;
        }
        let got = again(|| receive(fd, &mut messages[..ask]))?;
        for (i, message) in messages[..got].iter().enumerate() {
            let len = message.msg_len as usize;
            let slot = &mut self.slots[i];
            slot.control_len = size_of::<Control>().min(message.msg_hdr.msg_controllen as _);
            let size = segment_size(&slot.control.0[..slot.control_len]);
            self.filled[i] = (len, size.unwrap_or(len));
        }
        (self.count, self.slot, self.at) = (got, 0, 0);
        self.ask = if got == ask {
            (ask * 2).min(MESSAGES)
        } else {
            got.max(1)
        };
        Ok(())
    }
}

fn receive(fd: i32, messages: &mut [libc::mmsghdr]) -> sys::Result<usize> {
    use syscalls::{Sysno, syscall};
    if let [one] = messages {
        // SAFETY: the caller's message has valid parts.
        let len = unsafe { sys::recvmsg(fd, &mut one.msg_hdr, libc::MSG_DONTWAIT) }?;
        one.msg_len = len as u32;
        return Ok(1);
    }
    // SAFETY: as above, for each.
    unsafe {
        syscall!(
            Sysno::recvmmsg,
            fd,
            messages.as_mut_ptr(),
            messages.len(),
            libc::MSG_DONTWAIT,
            0
        )
    }
    .map_err(|e| e.into_raw())
}

/// Of a message that the kernel has put together from several.
fn segment_size(control: &[u8]) -> Option<usize> {
    let (_, _, value) = controls(control).find(|c| (c.0, c.1) == (libc::SOL_UDP, libc::UDP_GRO))?;
    let size = i32::from_ne_bytes(value.get(..4)?.try_into().ok()?);
    usize::try_from(size).ok().filter(|&size| size > 0)
}

/// Level, type and value of each control message.
pub fn controls(mut left: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    core::iter::from_fn(move || {
        const HEADER: usize = size_of::<cmsghdr>();
        let header = left.get(..HEADER)?;
        // SAFETY: as many bytes as a cmsghdr has, which may be any; unaligned.
        let header = unsafe { (header.as_ptr() as *const cmsghdr).read_unaligned() };
        let len: usize = header.cmsg_len as _;
        let value = left.get(HEADER..len)?;
        left = left.get(len.next_multiple_of(8)..).unwrap_or(&[]);
        Some((header.cmsg_level, header.cmsg_type, value))
    })
}
