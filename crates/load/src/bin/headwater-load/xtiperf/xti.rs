//! The calls of <xti.h>, found by their names, and endpoints on them.

mod calls;

use std::ffi::{CStr, c_void};
use std::io;
use std::mem;
use std::net::SocketAddrV4;
use std::ptr;

use calls::{Bind, Buffer, Call, Calls, OptMgmt, UnitData};

use crate::xtiperf::buffers::Buffers;
use crate::xtiperf::options::{Carrier, Options};

/// Largest address of any of the providers.
const ADDRESS: usize = 1024;

pub struct Endpoint {
    fd: i32,
    calls: &'static Calls,
    device: Box<CStr>,
    /// Of every t_snd.
    flags: i32,
}

impl Endpoint {
    pub fn open(device: &CStr) -> io::Result<Endpoint> {
        let calls = Calls::find()?;
        // SAFETY: the name ends in NUL; no information is asked for.
        let fd = unsafe { (calls.t_open)(device.as_ptr(), libc::O_RDWR, ptr::null_mut()) };
        let fd = calls.check("t_open", fd)?;
        Ok(Endpoint {
            fd,
            calls,
            device: device.into(),
            flags: 0,
        })
    }

    /// The address that it got.
    pub fn bind(&self, address: Option<&[u8]>, queue: u32) -> io::Result<Vec<u8>> {
        let mut bound = vec![0; ADDRESS];
        let mut asked = Bind {
            addr: address.map_or(Buffer::EMPTY, Buffer::of),
            qlen: queue,
        };
        let mut given = Bind {
            addr: Buffer::room(&mut bound),
            qlen: 0,
        };
        let asked = match address {
            Some(_) => &raw mut asked,
            None => ptr::null_mut(),
        };
        // SAFETY: both structures and their buffers outlive the call.
        let rc = unsafe { (self.calls.t_bind)(self.fd, asked, &mut given) };
        self.calls.check("t_bind", rc)?;
        bound.truncate(given.addr.len as usize);
        Ok(bound)
    }

    pub fn connect(&self, to: &[u8]) -> io::Result<()> {
        let call = Call {
            addr: Buffer::of(to),
            ..Call::default()
        };
        // SAFETY: the structure and its buffer outlive the call.
        let rc = unsafe { (self.calls.t_connect)(self.fd, &call, ptr::null_mut()) };
        self.calls.check("t_connect", rc).map(drop)
    }

    /// Takes one connect indication, on a fresh endpoint.
    pub fn accept(&self) -> io::Result<Endpoint> {
        let mut address = [0; ADDRESS];
        let mut call = Call {
            addr: Buffer::room(&mut address),
            ..Call::default()
        };
        let fresh = Endpoint::open(&self.device)?;
        // SAFETY: the structure and its buffer outlive both calls.
        unsafe {
            let rc = (self.calls.t_listen)(self.fd, &mut call);
            self.calls.check("t_listen", rc)?;
            call.addr = Buffer::EMPTY;
            let rc = (self.calls.t_accept)(self.fd, fresh.fd, &call);
            self.calls.check("t_accept", rc)?;
        }
        Ok(fresh)
    }

    /// Where it is to be used by messages: any call of STREAMS makes a stream of it.
    pub fn become_stream(&self, options: &Options) -> io::Result<()> {
        const I_PUSH: libc::c_ulong = 0x5302;
        const I_LIST: libc::c_ulong = 0x5315;
        if !options.messages {
            return Ok(());
        }
        for module in &options.push {
            // SAFETY: a name that ends in NUL.
            if unsafe { libc::ioctl(self.fd, I_PUSH, module.as_ptr()) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // SAFETY: without a list the number of modules is told, the driver among them.
        let there = unsafe { libc::ioctl(self.fd, I_LIST, ptr::null_mut::<c_void>()) };
        // timod comes by itself.
        match there - 2 == options.push.len() as i32 {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "{there} modules and drivers, which is no such stream"
            ))),
        }
    }

    pub fn set_nodelay(&self) -> io::Result<()> {
        const INET_TCP: u32 = 6;
        const NODELAY: u32 = 1;
        const T_YES: u32 = 1;
        match self.negotiate(INET_TCP, NODELAY, T_YES)? {
            T_YES => Ok(()),
            _ => Err(io::Error::other("T_TCP_NODELAY was not set")),
        }
    }

    /// Asks for so many bytes each way; tells what there is.
    pub fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        const GENERIC: u32 = 0xffff;
        const SNDBUF: u32 = 0x1001;
        const RCVBUF: u32 = 0x1002;
        Ok(Buffers {
            send: self.negotiate(GENERIC, SNDBUF, bytes)?.into(),
            receive: self.negotiate(GENERIC, RCVBUF, bytes)?.into(),
        })
    }

    /// One option with a number for its value; gives the number that it has then.
    fn negotiate(&self, level: u32, name: u32, value: u32) -> io::Result<u32> {
        // struct t_opthdr and the value: length, level, name, status.
        let option = [20u32, level, name, 0, value];
        let mut answer = [0u32; 32];
        let request = OptMgmt::negotiate(Buffer::of(&option));
        let mut result = OptMgmt::negotiate(Buffer::room(&mut answer));
        // SAFETY: both structures and their buffers outlive the call.
        let rc = unsafe { (self.calls.t_optmgmt)(self.fd, &request, &mut result) };
        self.calls.check("t_optmgmt", rc)?;
        Ok(answer[4])
    }

    /// Whether every send says that its data unit goes on.
    pub fn set_more(&mut self, more: bool) {
        const T_MORE: i32 = 1;
        self.flags = if more { T_MORE } else { 0 };
    }

    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: pointer and length describe the slice.
        let count = unsafe {
            (self.calls.t_snd)(
                self.fd,
                bytes.as_ptr().cast(),
                bytes.len() as u32,
                self.flags,
            )
        };
        match count {
            0.. => Ok(count as usize),
            _ => Err(self.calls.error("t_snd")),
        }
    }

    /// 0 where the other end has released or broken the connection.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut flags = 0;
        // SAFETY: pointer and length describe the slice.
        let count = unsafe {
            (self.calls.t_rcv)(
                self.fd,
                buffer.as_mut_ptr().cast(),
                buffer.len() as u32,
                &mut flags,
            )
        };
        match count {
            0.. => Ok(count as usize),
            _ => self.ended(),
        }
    }

    #[cold]
    fn ended(&self) -> io::Result<usize> {
        const T_DISCONNECT: i32 = 0x10;
        const T_ORDREL: i32 = 0x80;
        let failed = self.calls.error("t_rcv");
        // SAFETY: no pointers but one that may be null.
        let rc = unsafe {
            match (self.calls.t_look)(self.fd) {
                T_ORDREL => (self.calls.t_rcvrel)(self.fd),
                T_DISCONNECT => (self.calls.t_rcvdis)(self.fd, ptr::null_mut()),
                _ => return Err(failed),
            }
        };
        self.calls.check("t_rcvrel or t_rcvdis", rc)?;
        Ok(0)
    }

    pub fn release(&self) -> io::Result<()> {
        // SAFETY: no pointers are passed.
        let rc = unsafe { (self.calls.t_sndrel)(self.fd) };
        self.calls.check("t_sndrel", rc).map(drop)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and nobody uses it afterwards.
        unsafe { (self.calls.t_close)(self.fd) };
    }
}

/// An endpoint for datagrams, with a structure that is used over and over.
pub struct Datagrams {
    endpoint: Endpoint,
    unit: UnitData,
    from: Box<[u8; ADDRESS]>,
}

// SAFETY: the structure points to what this value itself owns, or to nothing that outlives a call.
unsafe impl Send for Datagrams {}

impl Datagrams {
    pub fn set_buffers(&self, bytes: u32) -> io::Result<Buffers> {
        self.endpoint.set_buffers(bytes)
    }

    pub fn of(endpoint: Endpoint) -> Datagrams {
        Datagrams {
            endpoint,
            unit: UnitData::default(),
            from: Box::new([0; ADDRESS]),
        }
    }

    #[inline]
    pub fn send(&mut self, to: &[u8], bytes: &[u8]) -> io::Result<()> {
        self.unit.addr = Buffer::of(to);
        self.unit.udata = Buffer::of(bytes);
        // SAFETY: the structure and its buffers outlive the call.
        let rc = unsafe { (self.endpoint.calls.t_sndudata)(self.endpoint.fd, &self.unit) };
        match rc {
            0 => Ok(()),
            _ => Err(self.endpoint.calls.error("t_sndudata")),
        }
    }

    #[inline]
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unit.addr = Buffer::room(&mut self.from[..]);
        self.unit.udata = Buffer::room(buffer);
        let mut flags = 0;
        // SAFETY: the structure and its buffers outlive the call.
        let rc = unsafe {
            (self.endpoint.calls.t_rcvudata)(self.endpoint.fd, &mut self.unit, &mut flags)
        };
        match rc {
            0 => Ok(self.unit.udata.len as usize),
            _ => Err(self.endpoint.calls.error("t_rcvudata")),
        }
    }
}

/// The bytes of an address: struct sockaddr_in, or the name itself.
pub fn encode(carrier: &Carrier, at: &str) -> io::Result<Vec<u8>> {
    if !carrier.is_inet() {
        return Ok(at.as_bytes().to_vec());
    }
    let at: SocketAddrV4 = at.parse().map_err(io::Error::other)?;
    let mut bytes = (libc::AF_INET as u16).to_ne_bytes().to_vec();
    bytes.extend(at.port().to_be_bytes());
    bytes.extend(at.ip().octets());
    bytes.resize(mem::size_of::<libc::sockaddr_in>(), 0);
    Ok(bytes)
}

pub fn decode(carrier: &Carrier, address: &[u8]) -> String {
    match *address {
        [_, _, high, low, a, b, c, d, ..] if carrier.is_inet() => {
            SocketAddrV4::new([a, b, c, d].into(), u16::from_be_bytes([high, low])).to_string()
        }
        _ => String::from_utf8_lossy(address).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_internet_or_names() {
        let tcp = Carrier::Device(c"/dev/tcp".into());
        let bytes = encode(&tcp, "127.0.0.1:258").unwrap();
        assert_eq!((bytes.len(), &bytes[2..8]), (16, &[1, 2, 127, 0, 0, 1][..]));
        assert_eq!(decode(&tcp, &bytes), "127.0.0.1:258");
        let local = Carrier::Device(c"/dev/ticots".into());
        assert_eq!(decode(&local, &encode(&local, "a name").unwrap()), "a name");
    }
}
