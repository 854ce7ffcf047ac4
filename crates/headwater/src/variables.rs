//! HEADWATER_ variables in this process's environment: what is wrong with them. docs/configuration.md is their page.

use std::env;
use std::path::Path;

use headwater_host::config::Config;
use headwater_host::env::HANDED_OVER;
use headwater_providers::udp2::link::Link;
use headwater_sctp_stack::choice::Rules;
use headwater_sctp_stack::environment;
use headwater_streams::exec::registry;
use headwater_streams::tunables::Tunables;

const PREFIX: &str = "HEADWATER_";

/// Those that there are, without the prefix.
const KNOWN: &[&str] = &[
    "BENCH_ARMS",
    "BENCH_NETNS",
    "BENCH_PAIRS",
    "BENCH_PTRACE",
    "BENCH_SECONDS",
    "DENY_PORTS",
    "DENY_PROGRAMS",
    "DIR",
    "LIBRARY",
    "LOG",
    "LOG_FILE",
    "MODULES",
    "NAMES",
    "PEERS",
    "PIPE",
    "PORTS",
    "PROGRAMS",
    "RING",
    "SCTP",
    "SCTP_BESIDE_KERNEL",
    "SCTP_BYTE_STREAM",
    "SCTP_LINK",
    "SCTP_MTU",
    "SCTP_UDP_PORT",
    "SOCKETS",
    "SPIN",
    "STATS_FILE",
    "STREAMS",
    "STREAMS_FILE",
    "UDP2_LINK",
    "URING",
];

/// Values that are not understood, of the variables that a program started from here would find.
pub fn wrong(found: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let var = |name: &str| found(name).filter(|v| !v.is_empty());
    let mut wrong = Config::from(var).complaints;
    for (name, judge) in JUDGES {
        if let Some(value) = var(name)
            && let Some(why) = judge(&value)
        {
            wrong.push(format!("{name}={value}: {why}; ignored"));
        }
    }
    wrong
}

/// What is wrong with a value, of those variables that the configuration does not read itself.
type Judge = fn(&str) -> Option<String>;

const JUDGES: [(&str, Judge); 7] = [
    ("HEADWATER_SCTP_LINK", |text| {
        let bad = Rules::parse(text).err();
        bad.map(|_| "want [DESTINATION=]auto, shm, udp[:PORT] or raw".to_string())
    }),
    ("HEADWATER_SCTP_UDP_PORT", |text| {
        environment::parse_port(text).err()
    }),
    ("HEADWATER_SCTP_MTU", |text| {
        environment::parse_packet(text).err()
    }),
    ("HEADWATER_SCTP_BYTE_STREAM", |text| {
        environment::parse_switch(text).err()
    }),
    ("HEADWATER_UDP2_LINK", |text| Link::parse(text).err()),
    (registry::FOLDERS, |text| {
        let bad = registry::folders(text).find(|folder| !Path::new(folder).is_dir())?;
        Some(format!(
            "{bad} is no folder; want folders of modules in C, with : between"
        ))
    }),
    ("HEADWATER_STREAMS", |text| {
        let complaint = Tunables::parse(text).1.into_iter().next()?;
        let why = complaint.trim_start_matches("text: ");
        Some(why.trim_end_matches("; ignored").to_string())
    }),
];

/// Variables with our prefix that nothing reads, each with the one that may be meant.
pub fn unknown() -> Vec<String> {
    let mut names: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| Some(name.to_str()?.strip_prefix(PREFIX)?.to_string()))
        .filter(|name| !is_known(name))
        .collect();
    names.sort();
    names.iter().map(|name| explain(name)).collect()
}

fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || HANDED_OVER.contains(&&*format!("{PREFIX}{name}"))
}

fn explain(name: &str) -> String {
    match nearest(name) {
        Some(near) => format!("{PREFIX}{name}: there is no such variable; {PREFIX}{near}?"),
        None => format!("{PREFIX}{name}: there is no such variable"),
    }
}

/// The known one that is not much further than a slip of the pen.
fn nearest(name: &str) -> Option<&'static str> {
    let most = 1 + name.len() / 3;
    let (far, known) = KNOWN
        .iter()
        .map(|k| (strsim::levenshtein(name, k), *k))
        .min()?;
    (far <= most).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_leads_to_the_variable_that_is_meant() {
        for (slip, meant) in [
            ("RINGS", "RING"),
            ("SOCKET", "SOCKETS"),
            ("STATFILE", "STATS_FILE"),
            ("DENY_PORT", "DENY_PORTS"),
        ] {
            assert_eq!(nearest(slip), Some(meant));
        }
        assert_eq!(nearest("COLOUR_OF_THE_SKY"), None);
    }

    #[test]
    fn all_that_is_documented_is_known() {
        let page = include_str!("../../../docs/configuration.md");
        let rows = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `HEADWATER_"));
        let names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert!(names.len() > 20);
        for name in names {
            assert!(is_known(name), "{name}");
        }
    }
}
