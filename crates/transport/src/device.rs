//! The devices that can be opened, by name.

use crate::inet::{tcp, udp};
use crate::loopback::{connection, connectionless};
use crate::provider::{Outcome, Provider};

/// A transport device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Device {
    Ticlts,
    Ticots,
    Ticotsord,
    Tcp,
    Udp,
    Tcp6,
    Udp6,
}

use Device::*;

/// All of them, with their names in /dev.
pub const ALL: [(&str, Device); 7] = [
    ("ticlts", Ticlts),
    ("ticots", Ticots),
    ("ticotsord", Ticotsord),
    ("tcp", Tcp),
    ("udp", Udp),
    ("tcp6", Tcp6),
    ("udp6", Udp6),
];

impl Device {
    /// By the path that a program opens: /dev/X, /dev/inet/X, /dev/streams/X, /dev/streams/inet/X.
    pub fn find(path: &[u8]) -> Option<Device> {
        let name = path.strip_prefix(b"/dev/")?;
        let name = name.strip_prefix(b"streams/").unwrap_or(name);
        let name = name.strip_prefix(b"inet/").unwrap_or(name);
        ALL.iter()
            .find(|(n, _)| n.as_bytes() == name)
            .map(|&(_, d)| d)
    }

    pub fn name(self) -> &'static str {
        ALL.iter()
            .find(|(_, d)| *d == self)
            .expect("it is in the list")
            .0
    }

    /// A new endpoint's provider. TSYSERR with the errno where no descriptor is to be had.
    pub fn open(self) -> Outcome<Box<dyn Provider>> {
        Ok(match self {
            Ticlts => Box::new(connectionless::Mailbox::open()?),
            Ticots => Box::new(connection::Circuit::open(false)?),
            Ticotsord => Box::new(connection::Circuit::open(true)?),
            Tcp => Box::new(tcp::Tcp::open(false)?),
            Tcp6 => Box::new(tcp::Tcp::open(true)?),
            Udp => Box::new(udp::Udp::open(false)?),
            Udp6 => Box::new(udp::Udp::open(true)?),
        })
    }

    /// The endpoint that an earlier image of this process left: `fd` is a descriptor of it (to be duplicated, not kept),
    /// `saved` what [`Provider::save`] gave.
    pub fn restore(self, fd: i32, saved: &str) -> Option<Box<dyn Provider>> {
        Some(match self {
            Ticlts => Box::new(connectionless::Mailbox::restore(fd, saved)?),
            Ticots => Box::new(connection::Circuit::restore(false, fd, saved)?),
            Ticotsord => Box::new(connection::Circuit::restore(true, fd, saved)?),
            Tcp | Tcp6 => Box::new(tcp::Tcp::restore(fd, saved)?),
            Udp | Udp6 => Box::new(udp::Udp::restore(fd, saved)?),
        })
    }
}
