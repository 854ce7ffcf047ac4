//! Endpoints as streams and in direct mode, by their descriptors.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::sync::Once;
use std::time::{Duration, Instant};

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_host::table;
use headwater_providers::provider::Event;
use headwater_streams::head::life;
use headwater_streams::open;
use headwater_tpi::state::{T_DATAXFER, T_IDLE, T_INCON, T_OUTCON};
use headwater_xti::{Outcome, Port, calls, syncing, with};
use libc::iovec;

pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        headwater_streams::api::start();
        headwater_endpoints::start();
    });
}

/// A descriptor of open(2), synchronized, or of t_open.
pub struct Fd(pub i32);

impl Fd {
    pub fn stream(device: &str) -> Fd {
        start();
        let path = std::ffi::CString::new(format!("/dev/{device}")).unwrap();
        let fd = open::open(&path, libc::O_RDWR)
            .expect("a device of ours")
            .unwrap();
        syncing(fd, |port| calls::sync(port)).unwrap();
        Fd(fd)
    }

    pub fn direct(device: &str) -> Fd {
        start();
        let device = Device::find(format!("/dev/{device}").as_bytes()).unwrap();
        Fd(endpoint::open(device, libc::O_RDWR).unwrap())
    }

    pub fn call<T>(&self, f: impl FnOnce(&dyn Port) -> Outcome<T>) -> Outcome<T> {
        with(self.0, f)
    }

    pub fn state(&self) -> i32 {
        self.call(|port| port.state()).unwrap()
    }

    pub fn bind(&self, qlen: u32) -> Vec<u8> {
        self.call(|port| calls::bind(port, None, qlen)).unwrap().0
    }

    pub fn accept(&self, on: &Fd, seq: i32) -> Outcome<()> {
        self.call(|port| {
            with(on.0, |other| {
                calls::accept(port, other, self.0 == on.0, seq, &[], &[])
            })
        })
    }

    pub fn send(&self, bytes: &[u8], flags: i32) -> Outcome<usize> {
        self.call(|port| calls::snd(port, &[part(bytes)], flags))
    }

    pub fn receive(&self, most: usize) -> Outcome<(Vec<u8>, i32)> {
        let mut buf = vec![0; most];
        let (n, flags) = self.call(|port| calls::rcv(port, &[part(&buf)]))?;
        buf.truncate(n);
        Ok((buf, flags))
    }

    /// Waits for an event.
    pub fn look(&self) -> Event {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            if let Ok(Some(event)) = self.call(|port| Ok(port.peek())) {
                return event;
            }
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        if let Some(h) = table::stream(self.0) {
            life::close(self.0, h);
        } else if let Some(e) = endpoint::at(self.0) {
            e.forget(self.0);
            // SAFETY: a descriptor of ours.
            unsafe { libc::close(self.0) };
            e.let_go();
        }
    }
}

pub fn part(bytes: &[u8]) -> iovec {
    iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

pub type Open = fn(&str) -> Fd;

/// How listener, acceptor and client are used.
pub const MIXTURES: [[Open; 3]; 4] = [
    [Fd::stream, Fd::stream, Fd::stream],
    [Fd::stream, Fd::direct, Fd::direct],
    [Fd::direct, Fd::stream, Fd::stream],
    [Fd::stream, Fd::stream, Fd::direct],
];
pub const DIRECT: [Open; 3] = [Fd::direct; 3];

pub fn connected(device: &str, [listener, acceptor, client]: [Open; 3]) -> (Fd, Fd) {
    let (listener, acceptor, client) = (listener(device), acceptor(device), client(device));
    let address = listener.bind(1);
    client.bind(0);
    client
        .call(|port| port.connect(&address, &[], &[]))
        .unwrap();
    assert_eq!(client.state(), T_OUTCON);
    let heard = listener.call(calls::listen).unwrap();
    assert_eq!(listener.state(), T_INCON);
    listener.accept(&acceptor, heard.seq).unwrap();
    client.call(calls::rcvconnect).unwrap();
    let states = [&listener, &acceptor, &client].map(Fd::state);
    assert_eq!(states, [T_IDLE, T_DATAXFER, T_DATAXFER]);
    (client, acceptor)
}
