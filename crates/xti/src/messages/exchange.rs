//! Messages to the provider and from it: requests and their acknowledgements, ioctls of timod, and what waits at the head.

use headwater_endpoints::stream::{self, TI_GETADDRS};
use headwater_host::signal::begin_wait;
use headwater_host::sys::{self, Errno};
use headwater_providers::provider::Outcome;
use headwater_streams::ddi::M_PCPROTO;
use headwater_streams::head::arming::Want;
use headwater_streams::head::inlet::{Front, Inlet, Sink};
use headwater_streams::head::local::{self, Local};
use headwater_streams::head::message::Priority;
use headwater_streams::head::requests::StrIoctl;
use headwater_streams::head::write::Source;
use headwater_streams::head::{self, control};
use headwater_tpi::error::{TBADF, TFLOW, TLOOK, TOUTSTATE, TPROTO, TSYSERR};
use headwater_tpi::prim::T_CONN_IND;
use headwater_tpi::{Indication, Refusal, Request, refuse};

use super::{Messages, Midway};

/// Longest control part, and longest answer of an ioctl.
const PART: usize = 4096;
/// Control part of data, without options.
const DATA_PART: usize = 64;

impl Messages {
    /// An ioctl of timod. The answer's primitive, or what it was refused for.
    pub(super) fn ask(&self, cmd: i32, request: &[u8]) -> Outcome<Vec<u8>> {
        let mut buffer = request.to_vec();
        buffer.resize(PART.max(request.len()), 0);
        let mut ioctl = StrIoctl {
            cmd,
            timeout: -1,
            len: request.len() as i32,
            data: buffer.as_mut_ptr().cast(),
        };
        let at = (&raw mut ioctl).expose_provenance();
        // SAFETY: the request and its buffer, which is as large as any answer.
        let result = unsafe { control::ioctl(self.head, control::I_STR as u32, at) }
            .map_err(Refusal::system)?;
        match result & 0xff {
            0 => {
                buffer.truncate(ioctl.len.max(0) as usize);
                Ok(buffer)
            }
            TSYSERR => Err(Refusal::system(result >> 8 & 0xff)),
            tli => refuse(tli),
        }
    }

    /// Sends a message down; TFLOW while there is no room.
    pub(super) fn put(
        &self,
        request: &Request<'_>,
        data: Option<&[u8]>,
        at: Priority,
    ) -> Outcome<()> {
        let bytes = data.unwrap_or(&[]);
        let all = [sys::buffer(bytes.as_ptr(), bytes.len())];
        let request = request.encode();
        let n = data.map(<[u8]>::len);
        let make = |_: &Local| Ok((&request, n));
        self.put_by(at, &mut Source::new(&all), make).map(drop)
    }

    /// Sends a message down. Inside the stream's perimeter `make` gives its primitive, and how many bytes of the source are its data; so
    /// many were sent. TFLOW while there is no room. TLOOK, or TOUTSTATE where the user knows: the connection is over, and it was dropped.
    pub(super) fn put_by<P: AsRef<[u8]>>(
        &self,
        at: Priority,
        source: &mut Source<'_>,
        make: impl FnOnce(&Local) -> Outcome<(P, Option<usize>)>,
    ) -> Outcome<usize> {
        self.head.check_writable().map_err(Refusal::system)?;
        let put = local::call(self.head, |local| {
            let (request, n) = make(local)?;
            if let Priority::Band(band) = at
                && !local.down().bcanputnext(band)
            {
                return refuse(TFLOW);
            }
            let data = n.map(|n| (source, n));
            local
                .put(self.head, Some(request.as_ref()), data, at)
                .map_err(Refusal::system)?;
            match stream::has_dropped(local) {
                false => Ok(n.unwrap_or(0)),
                true if local.rq.first().is_some() => refuse(TLOOK),
                true => refuse(TOUTSTATE),
            }
        });
        put.unwrap_or(refuse(TFLOW))
    }

    /// Sends a request and waits for its acknowledgement.
    pub(super) fn request(&self, request: &Request<'_>, data: &[u8]) -> Outcome<()> {
        let data = (!data.is_empty()).then_some(data);
        // The end of a connection does not wait for room behind its data.
        let at = match request {
            Request::Discon { .. } => Priority::High,
            _ => Priority::Band(0),
        };
        begin_wait();
        loop {
            match self.put(request, data, at) {
                Err(Refusal { tli: TFLOW, .. }) => self
                    .wait_for(libc::POLLOUT as u32)
                    .map_err(Refusal::system)?,
                done => break done?,
            }
        }
        loop {
            self.head.check_readable().map_err(Refusal::system)?;
            let ack = self.look(|inlet, front| match front.is_high() {
                true => take_all(inlet, front).map(Some),
                false => Ok(None),
            })?;
            let Some((ack, _)) = ack else {
                self.wait_for(libc::POLLPRI as u32)
                    .map_err(Refusal::system)?;
                continue;
            };
            match Indication::decode(&ack) {
                Ok(Indication::OkAck { prim }) if prim == request.prim() => return Ok(()),
                Ok(Indication::ErrorAck { prim, tli, unix }) if prim == request.prim() => {
                    return Err(Refusal { tli, unix });
                }
                // Of a request that was interrupted.
                _ => {}
            }
        }
    }

    /// See [`Port::wait`](crate::port::Port::wait).
    pub(super) fn wait_for(&self, events: u32) -> Result<(), Errno> {
        let always = (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) as u32;
        let seen = self.head.version();
        if self.head.events(events) & (events | always) != 0 {
            return Ok(());
        }
        let has = |event: i16| events & event as u32 != 0;
        let want = match (has(libc::POLLIN), has(libc::POLLOUT)) {
            (true, false) => Want::DATA,
            (false, true) => Want::ROOM,
            _ => Want::EITHER,
        };
        local::wait_for_change(self.head, want, seen, None, &mut [])
    }

    /// Runs `f` on the message in front, if there is one.
    pub(super) fn look<T>(
        &self,
        mut f: impl FnMut(&mut dyn Inlet, Front) -> Result<Option<T>, head::inlet::Trouble>,
    ) -> Outcome<Option<T>> {
        self.look_in(|_, inlet, front| f(inlet, front))
    }

    /// The same, with what may be used inside the stream's perimeter.
    pub(super) fn look_in<T>(
        &self,
        mut f: impl FnMut(&Local, &mut dyn Inlet, Front) -> Result<Option<T>, head::inlet::Trouble>,
    ) -> Outcome<Option<T>> {
        let found = local::with_inlet_in(self.head, &mut |local, inlet| match inlet.front()? {
            Some(front) => f(local, inlet, front),
            None => Ok(None),
        });
        match found {
            Ok(found) => Ok(found),
            Err(head::inlet::Trouble::Fails(e)) => Err(Refusal::system(e)),
            // It has no queues any more, and so no driver.
            Err(head::inlet::Trouble::NeedsQueue) => refuse(TBADF),
        }
    }

    /// The message in front and its primitive, acknowledgements aside.
    pub(super) fn front(&self) -> Option<(Front, Option<i32>)> {
        let seen = self.look(|inlet, front| {
            let mut prim = [0; 4];
            let has = front.control.is_some_and(|len| len >= prim.len());
            if has {
                inlet.copy(0, &mut prim);
            }
            Ok(Some((front, has.then_some(i32::from_ne_bytes(prim)))))
        });
        seen.ok()
            .flatten()
            .filter(|(front, _)| front.kind != M_PCPROTO)
    }

    /// Drops what the head still has of a connection that is over for the provider.
    pub(super) fn drop_connection(&self) -> Outcome<()> {
        while self
            .front()
            .is_some_and(|(_, prim)| prim != Some(T_CONN_IND))
        {
            self.look(|inlet, front| take_all(inlet, front).map(Some))?;
        }
        Ok(())
    }

    pub(super) fn addresses(&self) -> Outcome<[Option<Vec<u8>>; 2]> {
        let ack = self.ask(TI_GETADDRS, &Request::Addr.encode())?;
        let some = |part: &[u8]| (!part.is_empty()).then(|| part.to_vec());
        match Indication::decode(&ack) {
            Ok(Indication::AddrAck { local, remote }) => Ok([some(local), some(remote)]),
            _ => refuse(TPROTO),
        }
    }
}

/// Takes a message, both parts.
pub(super) fn take_all(
    inlet: &mut dyn Inlet,
    front: Front,
) -> Result<(Vec<u8>, Vec<u8>), head::inlet::Trouble> {
    let mut control = vec![0; front.control.unwrap_or(0)];
    let mut data = vec![0; front.data.unwrap_or(0)];
    inlet.copy(0, &mut control);
    inlet.copy(control.len(), &mut data);
    inlet.take(front.control, front.data)?;
    Ok((control, data))
}

/// Takes the control part, and as much of the data as there is room for; how much that is.
pub(super) fn take_into(
    inlet: &mut dyn Inlet,
    front: Front,
    mut sink: Sink<'_>,
) -> Result<usize, head::inlet::Trouble> {
    let n = front.data.unwrap_or(0).min(sink.left());
    sink.fill_by(front.control.unwrap_or(0), n, |skip, to| {
        inlet.copy(skip, to)
    });
    inlet.take(front.control, front.data.map(|_| n))?;
    Ok(n)
}

/// T_DATA_IND or T_EXDATA_IND in front.
pub(super) fn data_ind(inlet: &mut dyn Inlet, front: &Front) -> Option<Midway> {
    let mut short = [0; DATA_PART];
    let mut long = Vec::new();
    let control = match front.control.unwrap_or(0) {
        n @ ..=DATA_PART => &mut short[..n],
        n => {
            long.resize(n, 0);
            &mut long[..]
        }
    };
    inlet.copy(0, control);
    match Indication::decode(control) {
        Ok(Indication::DataInd { more }) => Some(Midway {
            more,
            expedited: false,
        }),
        Ok(Indication::ExdataInd { more }) => Some(Midway {
            more,
            expedited: true,
        }),
        Ok(Indication::OptdataInd {
            more, expedited, ..
        }) => Some(Midway { more, expedited }),
        _ => None,
    }
}

/// How many bytes of `part` were wanted.
pub(super) fn fill(into: &mut [u8], part: &[u8]) -> usize {
    let n = part.len().min(into.len());
    into[..n].copy_from_slice(&part[..n]);
    n
}
