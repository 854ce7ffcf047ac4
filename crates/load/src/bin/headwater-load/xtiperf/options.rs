//! The command line.

use std::ffi::CString;
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str =
    "usage: headwater-load xtiperf serve|drive flow|lone|trips|connects|datagrams tcp|unix|sctp|udp|udp-batched|udp-mmsg|/dev/DEVICE
         --board FILE [--at ADDRESS] [--size N] [--seconds S] [--nice N] [--nodelay] [--mixed] [--lossless] [--computing] [--greeting]
         [--more] [--buffers N]";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Serve,
    Drive,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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

pub struct Options {
    pub side: Side,
    pub work: Work,
    pub carrier: Carrier,
    pub board: PathBuf,
    /// Where to listen, which means nothing for the internet's; where to go.
    pub at: String,
    /// Bytes of a message.
    pub size: usize,
    pub time: Duration,
    pub nice: Option<i32>,
    pub nodelay: bool,
    /// Datagrams of two sizes, to two receivers in turn.
    pub mixed: bool,
    /// A lost datagram is an error.
    pub lossless: bool,
    /// The sender of a lone message computes on, instead of waiting.
    pub computing: bool,
    /// A byte is sent over each connection.
    pub greeting: bool,
    /// Every send says that its data unit goes on (T_MORE).
    pub more: bool,
    /// Socket buffers of so many bytes; without it they are as the kernel sets them.
    pub buffers: Option<u32>,
}

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
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut next = |what: &str| words.next().ok_or_else(|| format!("which {what}?"));
        let side = match next("side")?.as_str() {
            "serve" => Side::Serve,
            "drive" => Side::Drive,
            _ => return Err("serve or drive?".to_string()),
        };
        let work = match next("work")?.as_str() {
            "flow" => Work::Flow,
            "lone" => Work::Lone,
            "trips" => Work::Trips,
            "connects" => Work::Connects,
            "datagrams" => Work::Datagrams,
            word => return Err(format!("what work is {word}?")),
        };
        let carrier = match next("carrier")?.as_str() {
            "tcp" => Carrier::Tcp,
            "udp" => Carrier::Udp,
            "udp-batched" => Carrier::UdpBatched,
            "udp-mmsg" => Carrier::UdpMany,
            "unix" => Carrier::Unix,
            "sctp" => Carrier::Sctp,
            device => Carrier::Device(CString::new(device).map_err(|error| error.to_string())?),
        };
        let mut options = Options {
            side,
            work,
            carrier,
            board: PathBuf::new(),
            at: "127.0.0.1:0".to_string(),
            size: 1,
            time: Duration::ZERO,
            nice: None,
            nodelay: false,
            mixed: false,
            lossless: false,
            computing: false,
            greeting: false,
            more: false,
            buffers: None,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} wants a value"));
            match word.as_str() {
                "--board" => options.board = value()?.into(),
                "--at" => options.at = value()?,
                "--size" => options.size = parse::<usize>(&value()?)?.max(1),
                "--seconds" => {
                    options.time = Duration::try_from_secs_f64(parse(&value()?)?)
                        .map_err(|error| error.to_string())?
                }
                "--nice" => options.nice = Some(parse(&value()?)?),
                "--nodelay" => options.nodelay = true,
                "--mixed" => options.mixed = true,
                "--lossless" => options.lossless = true,
                "--computing" => options.computing = true,
                "--greeting" => options.greeting = true,
                "--more" => options.more = true,
                "--buffers" => options.buffers = Some(parse(&value()?)?),
                _ => return Err(format!("what is {word}?")),
            }
        }
        Ok(options)
    }

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

fn parse<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}
