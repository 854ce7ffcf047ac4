//! Configuration from HEADWATER_* variables, read once when the library is loaded. docs/configuration.md is its page.

use std::sync::OnceLock;

use crate::env;

/// HEADWATER_LOG: what is less severe is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    Error,
    #[default]
    Warn,
    Info,
    Debug,
}

impl Level {
    pub fn parse(text: &str) -> Option<Level> {
        Some(match text {
            "error" => Level::Error,
            "warn" => Level::Warn,
            "info" => Level::Info,
            "debug" => Level::Debug,
            _ => return None,
        })
    }
}

#[derive(Debug, Default, Clone)]
pub struct Config {
    pub sockets: bool,
    /// Not even those of transport endpoints: HEADWATER_SOCKETS=0.
    pub sockets_denied: bool,
    /// Which SCTP sockets are ours.
    pub sctp: Sctp,
    /// pipe(2) makes STREAMS pipes.
    pub stream_pipes: bool,
    pub stats_file: Option<String>,
    pub dir: Option<String>,
    /// Bytes per ring, a power of two.
    pub ring: usize,
    pub spin_ns: u32,
    pub ports: Option<Vec<(u16, u16)>>,
    pub deny_ports: Vec<(u16, u16)>,
    pub programs: Option<Vec<String>>,
    pub deny_programs: Vec<String>,
    pub peers: Vec<Peer>,
    /// io_uring is not to be had: HEADWATER_URING=refuse.
    pub uring_refused: bool,
    pub log: Level,
    pub log_file: Option<String>,
    /// What could not be understood, to be said once in the log.
    pub complaints: Vec<String>,
}

/// HEADWATER_SCTP.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Sctp {
    /// Those for which the kernel has nothing.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Uid(u32),
    Group(u32),
}

pub const DEFAULT_RING: usize = 256 << 10;
const MIN_RING: usize = 64 << 10;
const MAX_RING: usize = 16 << 20;

static CONFIG: OnceLock<Config> = OnceLock::new();

/// The process's configuration; the environment is read at the first call.
pub fn get() -> &'static Config {
    CONFIG.get_or_init(|| {
        let mut config = Config::from(env::var);
        if env::was_too_long() {
            let told = "HEADWATER_ variables of more than 16 KiB together: some are ignored";
            config.complaints.push(told.to_string());
        }
        config
    })
}

/// The name of the program's file.
pub fn program() -> String {
    std::fs::read_link("/proc/self/exe")
        .ok()
        .and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_default()
}

impl Config {
    /// Reads the variables through `var`.
    pub fn from(var: impl Fn(&str) -> Option<String>) -> Config {
        let set = |name: &str| var(name).filter(|v| !v.is_empty());
        let mut c = Config {
            sockets: set("HEADWATER_SOCKETS").is_some_and(|v| v != "0"),
            sockets_denied: set("HEADWATER_SOCKETS").is_some_and(|v| v == "0"),
            stream_pipes: set("HEADWATER_PIPE").is_some_and(|v| v == "streams"),
            stats_file: set("HEADWATER_STATS_FILE"),
            dir: set("HEADWATER_DIR"),
            ring: DEFAULT_RING,
            spin_ns: headwater_channel::wait::DEFAULT_BUDGET,
            log_file: set("HEADWATER_LOG_FILE"),
            ..Config::default()
        };
        let mut complaints = Vec::new();
        let mut complain = |name: &str, value: &str, want: &str| {
            complaints.push(format!("{name}={value}: {want}; ignored"));
        };
        if let Some(v) = set("HEADWATER_RING") {
            match size(&v) {
                Some(n) if n.is_power_of_two() && (MIN_RING..=MAX_RING).contains(&n) => c.ring = n,
                _ => complain("HEADWATER_RING", &v, "want a power of two from 64K to 16M"),
            }
        }
        if let Some(v) = set("HEADWATER_SPIN") {
            match v.parse::<u32>() {
                Ok(us) if us <= 10_000 => c.spin_ns = us * 1000,
                _ => complain("HEADWATER_SPIN", &v, "want microseconds, 0 to 10000"),
            }
        }
        let mut list = |name: &str| {
            let v = set(name)?;
            let list = ports(&v);
            if list.is_none() {
                complain(name, &v, "want ports and ranges, as in 6379,8000-8100");
            }
            list
        };
        let (allow, deny) = (list("HEADWATER_PORTS"), list("HEADWATER_DENY_PORTS"));
        c.programs = set("HEADWATER_PROGRAMS").map(|v| words(&v));
        c.deny_programs = set("HEADWATER_DENY_PROGRAMS").map_or(Vec::new(), |v| words(&v));
        if let Some(v) = set("HEADWATER_PEERS") {
            match v.split(',').map(peer).collect() {
                Some(list) => c.peers = list,
                None => complain("HEADWATER_PEERS", &v, "want uid:N and group:N"),
            }
        }
        if let Some(v) = set("HEADWATER_LOG") {
            match Level::parse(&v) {
                Some(level) => c.log = level,
                None => complain("HEADWATER_LOG", &v, "want error, warn, info or debug"),
            }
        }
        if let Some(v) = set("HEADWATER_SCTP") {
            match v.as_str() {
                "auto" => c.sctp = Sctp::Auto,
                "always" => c.sctp = Sctp::Always,
                "never" => c.sctp = Sctp::Never,
                _ => complain("HEADWATER_SCTP", &v, "want auto, always or never"),
            }
        }
        if let Some(v) = set("HEADWATER_URING") {
            match v.as_str() {
                "refuse" => c.uring_refused = true,
                "allow" => {}
                _ => complain("HEADWATER_URING", &v, "want allow or refuse"),
            }
        }
        if let Some(v) = set("HEADWATER_PIPE")
            && !matches!(v.as_str(), "streams" | "kernel")
        {
            complain("HEADWATER_PIPE", &v, "want streams or kernel");
        }
        c.ports = allow;
        c.deny_ports = deny.unwrap_or_default();
        c.complaints = complaints;
        c
    }

    /// May connections to (or from a listener on) this port be carried?
    pub fn port_allowed(&self, port: u16) -> bool {
        let within = |list: &[(u16, u16)]| list.iter().any(|&(a, b)| (a..=b).contains(&port));
        self.ports.as_deref().is_none_or(within) && !within(&self.deny_ports)
    }

    pub fn program_allowed(&self, name: &str) -> bool {
        let within = |list: &[String]| {
            list.iter().any(|p| match p.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == p,
            })
        };
        self.programs.as_deref().is_none_or(within) && !within(&self.deny_programs)
    }

    /// May this program's connections be carried?
    pub fn this_program_allowed(&self) -> bool {
        let any = self.programs.is_none() && self.deny_programs.is_empty();
        any || self.program_allowed(&program())
    }

    /// Does HEADWATER_PEERS name this user, or this group? Asked by [`peer`](crate::peer).
    pub fn names_peer(&self, uid: u32, gid: u32) -> bool {
        let mut peers = self.peers.iter();
        peers.any(|p| *p == Peer::Uid(uid) || *p == Peer::Group(gid))
    }
}

/// A number of bytes with an optional suffix K or M.
fn size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

fn ports(text: &str) -> Option<Vec<(u16, u16)>> {
    text.split(',')
        .map(|part| {
            let (a, b) = part
                .trim()
                .split_once('-')
                .unwrap_or((part.trim(), part.trim()));
            Some((a.parse().ok()?, b.parse().ok()?))
        })
        .collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(|w| w.trim().to_string()).collect()
}

fn peer(text: &str) -> Option<Peer> {
    match text.trim().split_once(':')? {
        ("uid", n) => n.parse().ok().map(Peer::Uid),
        ("group", n) => n.parse().ok().map(Peer::Group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Config {
        Config::from(|name| {
            pairs
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.to_string())
        })
    }

    #[test]
    fn ports_take_lists_and_ranges() {
        let c = config(&[
            ("HEADWATER_PORTS", "6379,8000-8100"),
            ("HEADWATER_DENY_PORTS", "8080"),
        ]);
        assert!(c.port_allowed(6379) && c.port_allowed(8000));
        assert!(!c.port_allowed(8080) && !c.port_allowed(22));
        assert!(c.complaints.is_empty());
    }

    #[test]
    fn a_bad_value_is_named_and_ignored() {
        let c = config(&[("HEADWATER_RING", "100000"), ("HEADWATER_PORTS", "http")]);
        assert_eq!(c.ring, DEFAULT_RING);
        assert!(c.ports.is_none() && c.complaints.len() == 2);
        assert!(c.complaints[0].contains("HEADWATER_RING=100000"));
    }

    #[test]
    fn sctp_sockets_are_ours_where_the_kernel_has_none() {
        assert_eq!(config(&[]).sctp, Sctp::Auto);
        assert_eq!(config(&[("HEADWATER_SCTP", "never")]).sctp, Sctp::Never);
        let c = config(&[("HEADWATER_SCTP", "yes")]);
        assert!(c.sctp == Sctp::Auto && c.complaints.len() == 1);
    }

    #[test]
    fn programs_match_by_name_or_prefix() {
        let c = config(&[("HEADWATER_DENY_PROGRAMS", "ssh*,curl")]);
        assert!(c.program_allowed("redis-server") && c.program_allowed("curlew"));
        assert!(!c.program_allowed("sshd") && !c.program_allowed("curl"));
    }
}
