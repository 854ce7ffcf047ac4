//! The command line.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::{Words, seconds, size};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    Serve,
    Drive,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Work {
    Flow,
    Lone,
    Trips,
    Connects,
    Datagrams,
}

#[derive(Clone, PartialEq, Eq)]
pub enum Carrier {
    Tcp,
    Udp,
    /// UDP by a program that uses segmentation and receive offload itself.
    UdpBatched,
    /// UDP by a program that sends and receives many datagrams in a call.
    UdpMany,
    Unix,
    /// Sockets of IPPROTO_SCTP.
    Sctp,
    Device(CString),
}

#[derive(Parser)]
#[command(name = "headwater-load xtiperf", no_binary_name = true)]
pub struct Options {
    pub side: Side,
    pub work: Work,
    /// tcp, unix, sctp, udp, udp-batched, udp-mmsg or a device
    #[arg(value_parser = carrier)]
    pub carrier: Carrier,
    #[arg(long)]
    pub board: PathBuf,
    /// Where to listen, which means nothing for the internet's; where to go
    #[arg(long, default_value = "127.0.0.1:0")]
    pub at: String,
    /// Bytes of a message
    #[arg(long, default_value = "1", value_parser = size)]
    pub size: usize,
    #[arg(long = "seconds", default_value = "0", value_parser = seconds)]
    pub time: Duration,
    #[arg(long, allow_negative_numbers = true)]
    pub nice: Option<i32>,
    #[arg(long)]
    pub nodelay: bool,
    /// Datagrams of two sizes, to two receivers in turn
    #[arg(long)]
    pub mixed: bool,
    /// A lost datagram is an error
    #[arg(long)]
    pub lossless: bool,
    /// The sender of a lone message computes on, instead of waiting
    #[arg(long)]
    pub computing: bool,
    /// A byte is sent over each connection
    #[arg(long)]
    pub greeting: bool,
    /// Every send says that its data unit goes on (T_MORE)
    #[arg(long)]
    pub more: bool,
    /// The endpoint is a stream, and used by messages of TPI
    #[arg(long)]
    pub messages: bool,
    /// A module pushed onto that stream
    #[arg(long, requires = "messages")]
    pub push: Vec<CString>,
    /// Socket buffers of so many bytes [default: as the kernel sets them]
    #[arg(long)]
    pub buffers: Option<u32>,
}

fn carrier(word: &str) -> Result<Carrier, String> {
    Ok(match word {
        "tcp" => Carrier::Tcp,
        "udp" => Carrier::Udp,
        "udp-batched" => Carrier::UdpBatched,
        "udp-mmsg" => Carrier::UdpMany,
        "unix" => Carrier::Unix,
        "sctp" => Carrier::Sctp,
        device => Carrier::Device(CString::new(device).map_err(|error| error.to_string())?),
    })
}

impl Words for Options {}

impl Carrier {
    /// Its addresses are those of the internet.
    pub fn is_inet(&self) -> bool {
        match self {
            Carrier::Tcp
            | Carrier::Sctp
            | Carrier::Udp
            | Carrier::UdpBatched
            | Carrier::UdpMany => true,
            Carrier::Unix => false,
            Carrier::Device(name) => !name.to_bytes().starts_with(b"/dev/tic"),
        }
    }
}

impl Options {
    /// How long to run before measuring.
    pub fn warm_up(&self) -> Duration {
        (self.time / 5).min(Duration::from_millis(100))
    }

    /// Messages between two looks at the clock, which cost as much as a small message.
    pub fn batch(&self) -> u64 {
        (64 * 1024 / self.size).clamp(1, 64) as u64
    }

    pub fn receivers(&self) -> usize {
        if self.mixed { 2 } else { 1 }
    }
}
