//! The devices that can be opened, by name.

use std::ffi::CStr;

use headwater_providers::inet::{tcp, udp};
use headwater_providers::loopback::connection::Circuit;
use headwater_providers::loopback::connectionless::Mailbox;
use headwater_providers::provider::{Outcome, Provider};
use headwater_providers::{rawip, udp2};
use headwater_sctp_stack::provider as sctp;

type Made = Box<dyn Provider>;

/// Of each its name, and how an endpoint's provider is opened, and made again of what an earlier image left.
macro_rules! devices {
    ($($device:ident = $name:literal, $open:expr, $restore:expr;)*) => {
        /// A transport device.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Device {
            $($device,)*
        }

        /// All of them in their order, with their names in /dev.
        pub const ALL: [(&str, Device); 13] = [$((text($name), Device::$device),)*];

        /// The names alone, for tables of C.
        pub const NAMES: [&CStr; ALL.len()] = [$($name,)*];

        impl Device {
            /// A new endpoint's provider. TSYSERR with the errno where no descriptor is to be had.
            pub fn open(self) -> Outcome<Made> {
                Ok(match self {
                    $(Device::$device => Box::new($open?),)*
                })
            }

            /// The endpoint that an earlier image of this process left: `fd` is a descriptor of it (to be duplicated, not
            /// kept), `saved` what [`Provider::save`] gave.
            pub fn restore(self, fd: i32, saved: &str) -> Option<Made> {
                Some(match self {
                    $(Device::$device => Box::new($restore(fd, saved)?),)*
                })
            }
        }
    };
}

const fn text(name: &CStr) -> &str {
    match name.to_str() {
        Ok(text) => text,
        Err(_) => "",
    }
}

devices! {
    Ticlts = c"ticlts", Mailbox::open(), Mailbox::restore;
    Ticots = c"ticots", Circuit::open(false), |fd, saved| Circuit::restore(false, fd, saved);
    Ticotsord = c"ticotsord", Circuit::open(true), |fd, saved| Circuit::restore(true, fd, saved);
    Tcp = c"tcp", tcp::Tcp::open(false), tcp::Tcp::restore;
    Udp = c"udp", udp::Udp::open(false), udp::Udp::restore;
    Tcp6 = c"tcp6", tcp::Tcp::open(true), tcp::Tcp::restore;
    Udp6 = c"udp6", udp::Udp::open(true), udp::Udp::restore;
    Rawip = c"rawip", rawip::Rawip::open(false), rawip::Rawip::restore;
    Rawip6 = c"rawip6", rawip::Rawip::open(true), rawip::Rawip::restore;
    Udp2 = c"udp2", udp2::Udp2::open(false), udp2::Udp2::restore;
    Udp26 = c"udp26", udp2::Udp2::open(true), udp2::Udp2::restore;
    Sctp = c"sctp_t", sctp::Sctp::open(false), |fd, saved| sctp::Sctp::restore(false, fd, saved);
    Sctp6 = c"sctp6_t", sctp::Sctp::open(true), |fd, saved| sctp::Sctp::restore(true, fd, saved);
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
        let (_, device) = ALL.iter().find(|(n, _)| n.as_bytes() == name)?;
        Some(*device)
    }

    pub fn name(self) -> &'static str {
        ALL[self as usize].0
    }
}
