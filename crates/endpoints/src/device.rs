//! The devices that can be opened, by name.

use std::ffi::CStr;

use headwater_providers::inet::{tcp, udp};
use headwater_providers::loopback::{connection, connectionless};
use headwater_providers::provider::{Outcome, Provider};
use headwater_providers::{rawip, udp2};
use headwater_sctp_stack as sctp;

macro_rules! devices {
    ($($device:ident = $name:literal,)*) => {
        /// A transport device.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Device {
            $($device,)*
        }

        use Device::*;

        /// All of them in their order, with their names in /dev.
        pub const ALL: [(&str, Device); 13] = [$((text($name), $device),)*];

        /// The names alone, for tables of C.
        pub const NAMES: [&CStr; ALL.len()] = [$($name,)*];
    };
}

const fn text(name: &CStr) -> &str {
    match name.to_str() {
        Ok(text) => text,
        Err(_) => "",
    }
}

devices! {
    Ticlts = c"ticlts",
    Ticots = c"ticots",
    Ticotsord = c"ticotsord",
    Tcp = c"tcp",
    Udp = c"udp",
    Tcp6 = c"tcp6",
    Udp6 = c"udp6",
    Rawip = c"rawip",
    Rawip6 = c"rawip6",
    Udp2 = c"udp2",
    Udp26 = c"udp26",
    Sctp = c"sctp_t",
    Sctp6 = c"sctp6_t",
}

impl Device {
    /// By the path that a program opens: /dev/X, /dev/inet/X, /dev/streams/X, /dev/streams/inet/X. /dev/raw is /dev/rawip,
    /// /dev/sctp /dev/sctp_t.
    pub fn find(path: &[u8]) -> Option<Device> {
        let name = path.strip_prefix(b"/dev/")?;
        let name = name.strip_prefix(b"streams/").unwrap_or(name);
        let name = match name.strip_prefix(b"inet/").unwrap_or(name) {
            b"raw" => &b"rawip"[..],
            b"sctp" => &b"sctp_t"[..],
            b"sctp6" => &b"sctp6_t"[..],
            name => name,
        };
        ALL.iter()
            .find(|(n, _)| n.as_bytes() == name)
            .map(|&(_, d)| d)
    }

    pub fn name(self) -> &'static str {
        ALL[self as usize].0
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
            Rawip => Box::new(rawip::Rawip::open(false)?),
            Rawip6 => Box::new(rawip::Rawip::open(true)?),
            Udp2 => Box::new(udp2::Udp2::open(false)?),
            Udp26 => Box::new(udp2::Udp2::open(true)?),
            Sctp => Box::new(sctp::provider::Sctp::open(false)?),
            Sctp6 => Box::new(sctp::provider::Sctp::open(true)?),
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
            Rawip | Rawip6 => Box::new(rawip::Rawip::restore(fd, saved)?),
            Udp2 | Udp26 => Box::new(udp2::Udp2::restore(fd, saved)?),
            Sctp => Box::new(sctp::provider::Sctp::restore(false, fd, saved)?),
            Sctp6 => Box::new(sctp::provider::Sctp::restore(true, fd, saved)?),
        })
    }
}
