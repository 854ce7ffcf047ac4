//! Messages to the provider and from it: requests and their acknowledgements, ioctls of timod, and what waits at the head.

use headwater_endpoints::stream::TI_GETADDRS;
use headwater_host::signal::begin_wait;
use headwater_host::sys::Errno;
use headwater_providers::provider::Outcome;
use headwater_streams::ddi::M_PCPROTO;
use headwater_streams::head::inlet::{Front, Inlet, Sink};
use headwater_streams::head::message::Priority;
use headwater_streams::head::requests::StrIoctl;
use headwater_streams::head::write::Source;
use headwater_streams::head::{self, control, local};
use headwater_tpi::error::{TFLOW, TPROTO, TSYSERR};
use headwater_tpi::prim::T_CONN_IND;
use headwater_tpi::{Indication, Refusal, Request, refuse};

use super::{Messages, Midway};

/// Longest control part, and longest answer of an ioctl.
const PART: usize = 4096;

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
        self.head.check_writable().map_err(Refusal::system)?;
        match local::put(self.head, Some(&request.encode()), data, at) {
            Ok(true) => Ok(()),
            Ok(false) => refuse(TFLOW),
            Err(e) => Err(Refusal::system(e)),
        }
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
        local::wait_for_change(self.head, seen, None, &mut [])
    }

    /// Runs `f` on the message in front, if there is one.
    pub(super) fn look<T>(
        &self,
        mut f: impl FnMut(&mut dyn Inlet, Front) -> Result<Option<T>, head::inlet::Trouble>,
    ) -> Outcome<Option<T>> {
        let found = control::look(self.head, |inlet| match inlet.front()? {
            Some(front) => f(inlet, front),
            None => Ok(None),
        });
        found.map_err(Refusal::system)
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

/// So many bytes of the program's that come next.
pub(super) fn gather(source: &mut Source<'_>, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    source.append(&mut all, len);
    all
}

/// T_DATA_IND or T_EXDATA_IND in front.
pub(super) fn data_ind(inlet: &mut dyn Inlet, front: &Front) -> Option<Midway> {
    let mut control = vec![0; front.control.unwrap_or(0)];
    inlet.copy(0, &mut control);
    match Indication::decode(&control) {
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
