//! Frames as they are: how an endpoint of XTI uses an association. Its end can be shared with other processes after a fork, and
//! goes on after exec; so nothing is put together or kept here. What has no room is refused, and an event is taken out of the
//! ring when the user takes it.

use core::net::IpAddr;

use headwater_host::sync::{Ordering, fence};
use headwater_ipnet::Address;
use headwater_providers::loopback::buffers;
use headwater_providers::loopback::link::{Label, Link, from_hex, to_hex};
use headwater_providers::provider::{Arrived, Event, Outcome, Received, Sending};
use headwater_sctp::association::State;
use headwater_sctp::{Allowed, recv};
use headwater_tpi::Refusal;
use headwater_tpi::error::{TLOOK, TNODATA, TOUTSTATE};
use libc::iovec;

use super::ByMemory;
use super::greeting::Greeting;
use crate::{Order, Status};

impl ByMemory {
    pub fn link(&self) -> Option<&Link> {
        self.link.as_ref()
    }

    // ---- events ----

    /// The event in front, data too.
    #[inline]
    pub fn front(&mut self) -> Option<Event> {
        let link = self.link.as_mut()?;
        let event = link.event();
        if link.has_notes() {
            self.take_notes();
        }
        if self.is_answered() {
            return Some(Event::OrdRel);
        }
        match event {
            // The peer's own word may have come since, by which it counts as answered no more.
            None if self.released && !self.peer_released => self.link.as_mut()?.event(),
            event => event,
        }
    }

    /// What notes tell changes what is known here, and is nothing to be told.
    #[cold]
    fn take_notes(&mut self) {
        self.attend_to_notes();
        self.events.clear();
    }

    /// A SHUTDOWN is answered whether the peer's program looks at it or not: it begins no message any more, and has none left.
    pub fn is_answered(&self) -> bool {
        let Some(link) = self
            .link
            .as_ref()
            .filter(|_| self.released && !self.peer_released)
        else {
            return false;
        };
        // In this order: what it holds is in the ring before it is held no more.
        let holds = link.peer_holds();
        fence(Ordering::SeqCst);
        !holds && self.head.incoming().is_empty()
    }

    /// Takes the event in front, unless it is data.
    pub fn take(&mut self) -> Option<Arrived> {
        self.front()?;
        let answered = self.is_answered();
        let link = self.link.as_mut()?;
        let arrived = match answered {
            true => {
                link.note_peer_released();
                Arrived::Released { data: Vec::new() }
            }
            false => link.take()?,
        };
        self.take_notes();
        match &arrived {
            Arrived::Confirmed { opts, .. } => self.confirmed(opts),
            Arrived::Released { .. } => {
                // A SHUTDOWN is answered as soon as nothing more is under way: there is no half-closed association.
                self.peer_released = true;
                self.released = self.released || self.link.as_mut()?.release().is_ok();
            }
            _ => {}
        }
        self.events.clear();
        Some(arrived)
    }

    // ---- data ----

    #[inline]
    pub fn send_direct(
        &mut self,
        data: &[iovec],
        how: Sending,
        stream: u16,
        ppid: u32,
    ) -> Outcome<usize> {
        let link = self.link.as_mut().ok_or(Refusal::new(TOUTSTATE))?;
        if self.peer_released {
            return Err(Refusal::new(TOUTSTATE));
        }
        if link.is_hushed() {
            return Err(Refusal::new(TLOOK));
        }
        let unordered = how.expedited as usize;
        let label = self.sending[unordered].unwrap_or(Label {
            stream,
            ppid,
            kind: 0,
        });
        if label.stream >= self.out {
            return Err(Refusal::system(libc::EINVAL));
        }
        // By packets who has closed has shut down: what is not sent then breaks nothing.
        let sent = link
            .send_labelled(data, how, label)
            .inspect_err(|_| link.mend())?;
        let goes_on = how.more || sent < buffers::len(data);
        self.sending[unordered] = goes_on.then_some(label);
        Ok(sent)
    }

    /// With the label of the message, if this is its beginning.
    #[inline]
    pub fn receive_direct(&mut self, into: &[iovec], label: &mut Label) -> Outcome<Received> {
        let link = self.link.as_mut().ok_or(Refusal::new(TOUTSTATE))?;
        let mut received = link.receive_labelled(into, label);
        if let Err(Refusal { tli: TNODATA, .. }) = received
            && link.has_notes()
        {
            self.take_notes();
            let link = self.link.as_mut().ok_or(Refusal::new(TOUTSTATE))?;
            received = link.receive_labelled(into, label);
        }
        if let Err(Refusal { tli: TNODATA, .. }) = received
            && self.released
            && self.front() == Some(Event::OrdRel)
        {
            return Err(Refusal::new(TLOOK));
        }
        received
    }

    /// The numbers of a message that begins.
    #[inline]
    pub fn number(&mut self, label: Label) -> recv::Received {
        self.inbox.number(label)
    }

    // ---- what is known of it ----

    /// There is one path, and nothing that it waits for.
    pub fn status_direct(&self) -> Status {
        let mut status = self.status();
        if !self.confirmed {
            status.state = State::CookieWait;
        }
        status.istreams = self.inbound.into();
        status.paths.truncate(1);
        for path in &mut status.paths {
            (path.rto, path.srtt) = (0, 0);
        }
        status
    }

    pub fn obey_direct(&mut self, order: &Order) -> Result<(), i32> {
        self.front();
        let done = match order {
            Order::Primary(_) => Ok(()),
            Order::ResetOutgoing(_)
            | Order::ResetIncoming(_)
            | Order::ResetAssociation
            | Order::AddStreams { .. }
                if self.released || !self.confirmed =>
            {
                Err(libc::ENOTCONN)
            }
            order => self.take_order(order),
        };
        self.events.clear();
        done
    }

    // ---- the end ----

    pub fn release_direct(&mut self) -> Outcome<()> {
        if let Some(link) = self.link.as_mut().filter(|_| !self.released) {
            // As by packets: whoever shuts down is sent nothing new.
            link.hush_peer();
            link.release()?;
            self.released = true;
            // Its answer may be here by that.
            self.head.notify();
            self.head.ring_own();
        }
        Ok(())
    }

    pub fn disconnect(self) {
        if let Some(link) = self.leave_in_peace() {
            link.disconnect(&[]);
        }
    }

    /// A SHUTDOWN that was answered leaves nothing to be aborted, as by packets; ours is as soon as the peer has nothing more under
    /// way, whatever of that was not taken here. Gives back the link if there is something.
    fn leave_in_peace(mut self) -> Option<Link> {
        let is_answered = self.is_answered();
        let link = self.link.take()?;
        let is_emptied = self.released && !link.peer_holds();
        match link.is_hushed() {
            _ if is_answered => link.part(),
            true => link.leave(),
            false if is_emptied => link.part(),
            false => return Some(link),
        }
        None
    }

    pub fn part(mut self) {
        if let Some(link) = self.link.take() {
            link.part();
        }
    }

    pub fn close(self) {
        if let Some(link) = self.leave_in_peace() {
            link.close(true);
        }
    }

    // ---- exec ----

    pub fn save(&self) -> Option<String> {
        let (local, remote) = (
            to_hex(first(&self.local).bytes()),
            to_hex(first(&self.peer).bytes()),
        );
        let flags = self.released as u8 | (self.peer_released as u8) << 1;
        let (out, inbound, tsn) = (self.out, self.inbound, self.cumtsn());
        let allows = self.allows.map_or(-1, |allows| allows.0.into());
        let link = self.link.as_ref()?.save()?;
        Some(format!(
            "{local},{remote},{out},{inbound},{tsn},{flags},{allows},{link}"
        ))
    }

    pub fn restore(fd: i32, saved: &str) -> Option<ByMemory> {
        let fields: Vec<&str> = saved.splitn(8, ',').collect();
        let [local, remote, out, inbound, tsn, flags, allows, link] = fields[..] else {
            return None;
        };
        let address = |text| Address::read(&from_hex(text)?).ok();
        let (local, remote) = (address(local)?, address(remote)?);
        let greeting = Greeting {
            out: out.parse().ok()?,
            inbound: inbound.parse().ok()?,
            adaptation: 0,
            called: remote.ip(),
            port: 0,
        };
        let link = Link::restore(fd, link)?;
        let is_open = link.is_open();
        let mut by_memory = ByMemory::new(link, &greeting, 0);
        by_memory.local = (vec![local.ip()], local.port());
        by_memory.peer = (vec![remote.ip()], remote.port());
        by_memory.inbox.go_on_behind(tsn.parse().ok()?);
        let flags: u8 = flags.parse().ok()?;
        by_memory.confirmed = is_open;
        (by_memory.released, by_memory.peer_released) = (flags & 1 != 0, flags & 2 != 0);
        let allows = u8::try_from(allows.parse::<i16>().ok()?);
        by_memory.allows = allows.ok().map(Allowed);
        Some(by_memory)
    }
}

/// The first of the addresses of an end.
pub fn first((hosts, port): &(Vec<IpAddr>, u16)) -> Address {
    let host = hosts.first().copied();
    Address::of_ip(
        host.unwrap_or(core::net::Ipv4Addr::UNSPECIFIED.into()),
        *port,
    )
}
