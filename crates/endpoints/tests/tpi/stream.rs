//! A stream with a transport at its bottom.

use std::net::Ipv4Addr;
use std::sync::Once;

use headwater_host::reclaim::enter;
use headwater_host::sys;
use headwater_host::table;
use headwater_streams::head::message::{Choice, Priority};
use headwater_streams::head::{self, Head, control, life};
use headwater_streams::open;
use headwater_tpi::prim::*;
use headwater_tpi::state::State;
use headwater_tpi::{Indication, Request};

/// Nothing takes longer, in nanoseconds.
const PATIENCE: u64 = 20_000_000_000;
const SID: u32 = (b'S' as u32) << 8;

pub struct Tpi {
    pub head: &'static Head,
    pub fd: i32,
}

/// struct strioctl
#[repr(C)]
struct StrIoctl {
    cmd: i32,
    timeout: i32,
    len: i32,
    data: *mut u8,
}

pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        headwater_host::process::identify();
        headwater_streams::start();
        headwater_endpoints::start();
    });
}

pub fn indication(control: &[u8]) -> Indication<'_> {
    Indication::decode(control).unwrap()
}

/// A client and a server with a connection between them.
pub fn connected(device: &str) -> (Tpi, Tpi) {
    let (listener, server, client) = (Tpi::open(device), Tpi::open(device), Tpi::open(device));
    let address = listener.bind_as(device, 1);
    client.bind(0);
    client.put(
        &Request::Conn {
            dest: &address,
            opts: &[],
        },
        None,
    );
    client.expect_ok(T_CONN_REQ);
    let (ind, _) = listener.get();
    let Indication::ConnInd { seq, .. } = indication(&ind) else {
        panic!("{device}: {:?}", indication(&ind))
    };
    let acceptor = server.acceptor();
    listener.put(
        &Request::ConnRes {
            acceptor,
            opts: &[],
            seq,
        },
        None,
    );
    listener.expect_ok(T_CONN_RES);
    let (con, _) = client.get();
    assert!(
        matches!(indication(&con), Indication::ConnCon { .. }),
        "{device}"
    );
    assert_eq!(
        (listener.state(), server.state()),
        (State::Idle, State::DataXfer)
    );
    (client, server)
}

impl Tpi {
    pub fn open(device: &str) -> Tpi {
        start();
        let path = std::ffi::CString::new(format!("/dev/{device}")).unwrap();
        let fd = open::open(&path, libc::O_RDWR)
            .expect("a device of ours")
            .unwrap();
        Tpi::at(fd)
    }

    pub fn at(fd: i32) -> Tpi {
        let h = table::stream(fd).expect("a stream");
        Tpi {
            head: head::get(h, &enter()).unwrap(),
            fd,
        }
    }

    pub fn raw(&self, control: &[u8], data: Option<&[u8]>, high: bool) {
        let priority = if high {
            Priority::High
        } else {
            Priority::Band(0)
        };
        let deadline = sys::now() + PATIENCE;
        self.head
            .put_message(Some(control), data, priority, Some(deadline))
            .unwrap();
    }

    pub fn put(&self, request: &Request<'_>, data: Option<&[u8]>) {
        self.raw(&request.encode(), data, request.is_high());
    }

    pub fn put_error(&self, request: &Request<'_>) -> i32 {
        self.head
            .put_message(Some(&request.encode()), None, Priority::High, None)
            .unwrap_err()
    }

    fn receive(&self, choice: Choice, deadline: u64) -> Result<(Vec<u8>, Vec<u8>), i32> {
        let (mut control, mut data) = (vec![0; 4096], vec![0; 70_000]);
        let got =
            self.head
                .get_message(Some(&mut control), Some(&mut data), choice, Some(deadline))?;
        assert_eq!(got.more, 0);
        control.truncate(got.control.max(0) as usize);
        data.truncate(got.data.max(0) as usize);
        Ok((control, data))
    }

    /// The next message, control and data.
    pub fn get(&self) -> (Vec<u8>, Vec<u8>) {
        self.receive(Choice::Any, sys::now() + PATIENCE).unwrap()
    }

    pub fn get_high(&self) -> (Vec<u8>, Vec<u8>) {
        self.receive(Choice::High, sys::now() + PATIENCE).unwrap()
    }

    /// What is there at once.
    pub fn try_get(&self) -> Option<Vec<u8>> {
        self.receive(Choice::Any, 1)
            .ok()
            .map(|(control, _)| control)
    }

    /// Until something can be read.
    pub fn wait(&self) {
        let deadline = sys::now() + PATIENCE;
        while self.head.events(libc::POLLIN as u32) & libc::POLLIN as u32 == 0 {
            assert!(sys::now() < deadline);
            std::thread::yield_now();
        }
    }

    /// `n` bytes of T_DATA_IND.
    pub fn data(&self, n: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < n {
            let (ind, data) = self.get();
            assert!(
                matches!(indication(&ind), Indication::DataInd { .. }),
                "{:?}",
                indication(&ind)
            );
            all.extend(data);
        }
        all
    }

    pub fn ask(&self, request: &Request<'_>) -> (Vec<u8>, Vec<u8>) {
        self.put(request, None);
        self.get_high()
    }

    pub fn expect_ok(&self, prim: i32) {
        let (ack, _) = self.get_high();
        assert_eq!(indication(&ack), Indication::OkAck { prim });
    }

    pub fn expect_error(&self, prim: i32, tli: i32) {
        let (ack, _) = self.get_high();
        assert_eq!(
            indication(&ack),
            Indication::ErrorAck { prim, tli, unix: 0 }
        );
    }

    pub fn state(&self) -> State {
        let (ack, _) = self.ask(&Request::Info);
        let Indication::InfoAck { info } = indication(&ack) else {
            panic!()
        };
        State::from_number(info.state).unwrap()
    }

    pub fn acceptor(&self) -> u32 {
        let (ack, _) = self.ask(&Request::Capability {
            bits: TC1_ACCEPTOR_ID,
        });
        let Indication::CapabilityAck { acceptor, .. } = indication(&ack) else {
            panic!()
        };
        acceptor
    }

    fn bind_to(&self, addr: &[u8], qlen: u32) -> Vec<u8> {
        let (ack, _) = self.ask(&Request::Bind { addr, qlen });
        match indication(&ack) {
            Indication::BindAck { addr, .. } => addr.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    /// Any address.
    pub fn bind(&self, qlen: u32) -> Vec<u8> {
        self.bind_to(&[], qlen)
    }

    /// Any address that can be connected to.
    pub fn bind_as(&self, device: &str, qlen: u32) -> Vec<u8> {
        match device {
            "tcp" | "udp" | "udp2" => self.bind_to(&loopback(), qlen),
            _ => self.bind(qlen),
        }
    }

    pub fn bind_local(&self, device: &str) -> Vec<u8> {
        self.bind_as(device, 0)
    }

    pub fn push(&self, module: &str) -> Result<i32, i32> {
        let name = std::ffi::CString::new(module).unwrap();
        // SAFETY: a C string.
        unsafe { control::ioctl(self.head, SID | 2, name.as_ptr().expose_provenance()) }
    }

    /// I_STR: result and answer.
    pub fn ioctl(&self, cmd: i32, data: &[u8]) -> Result<(i32, Vec<u8>), i32> {
        let mut buffer = data.to_vec();
        buffer.resize(4096, 0);
        let mut request = StrIoctl {
            cmd,
            timeout: 5,
            len: data.len() as i32,
            data: buffer.as_mut_ptr(),
        };
        let at = (&raw mut request).expose_provenance();
        // SAFETY: the request and its buffer are valid.
        let result = unsafe { control::ioctl(self.head, SID | 8, at) }?;
        buffer.truncate(request.len as usize);
        Ok((result, buffer))
    }
}

/// A struct sockaddr_in of 127.0.0.1 and any port.
fn loopback() -> Vec<u8> {
    let mut bytes = vec![0; 16];
    bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    bytes[4..8].copy_from_slice(&Ipv4Addr::LOCALHOST.octets());
    bytes
}

impl Drop for Tpi {
    fn drop(&mut self) {
        if let Some(h) = table::stream(self.fd) {
            life::close(self.fd, h);
        }
    }
}
