//! SCTP: whose sockets programs get, and how packets leave.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

use headwater_host::config::{self, Sctp};
use headwater_host::sys;
use headwater_ipnet::RawSocket;
use headwater_sctp_stack::choice::{self, Link};
use headwater_sctp_stack::environment;

use super::Check;

const KERNELS: &str = "/proc/thread-self/net/sctp";

pub fn checks() -> Vec<Check> {
    let loaded = std::path::Path::new(KERNELS).exists();
    let raw = raw(loaded);
    let possible = raw.status == super::Status::Ok;
    vec![sockets(), raw, udp_port(), link(possible)]
}

/// As a program would ask for one.
fn sockets() -> Check {
    const NAME: &str = "sctp-sockets";
    let kernels = sys::socket(
        libc::AF_INET,
        libc::SOCK_STREAM | libc::SOCK_CLOEXEC,
        libc::IPPROTO_SCTP,
    );
    if let Ok(fd) = kernels {
        let _ = sys::close(fd);
    }
    let whose = match (config::get().sctp, kernels) {
        (Sctp::Always, _) => "Headwater's, HEADWATER_SCTP=always",
        (Sctp::Never, Ok(_)) => "the kernel's, HEADWATER_SCTP=never",
        (Sctp::Never, Err(_)) => {
            let detail = "none: the kernel has no SCTP, and HEADWATER_SCTP=never";
            return Check::warn(
                NAME,
                detail,
                "HEADWATER_SCTP=auto gives programs Headwater's",
            );
        }
        (Sctp::Auto, Ok(_)) => {
            "the kernel's, which come first; HEADWATER_SCTP=always gives programs Headwater's"
        }
        (Sctp::Auto, Err(_)) => "Headwater's, under headwater run: the kernel has no SCTP",
    };
    Check::ok(NAME, whose)
}

fn raw(kernel_has_sctp: bool) -> Check {
    const NAME: &str = "sctp-raw";
    let beside = std::env::var_os("HEADWATER_SCTP_BESIDE_KERNEL").is_some_and(|v| v == "1");
    if kernel_has_sctp && !beside {
        return Check::warn(
            NAME,
            "the kernel's own SCTP is loaded, and would abort associations by raw packets: they go by UDP",
            "modprobe -r sctp, and blacklist it; docs/rawip.md has another way",
        );
    }
    if RawSocket::is_permitted() {
        return Check::ok(NAME, "raw packets are possible");
    }
    Check::warn(
        NAME,
        "no CAP_NET_RAW: packets go by UDP (RFC 6951), which peers must speak too",
        "run as root, or with AmbientCapabilities=CAP_NET_RAW in the unit, --cap-add=NET_RAW for a container",
    )
}

fn udp_port() -> Check {
    const NAME: &str = "sctp-udp";
    let port = environment::udp_port();
    let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port);
    let bound = UdpSocket::bind(any).or_else(|e| match e.raw_os_error() {
        Some(libc::EADDRINUSE | libc::EACCES) => Err(e),
        _ => UdpSocket::bind(("0.0.0.0", port)),
    });
    match bound {
        Ok(_) => Check::ok(NAME, format!("UDP port {port} is free")),
        Err(e) => Check::warn(
            NAME,
            format!(
                "UDP port {port}: {e}; a program under Headwater that has it forwards what is for others, any other keeps peers' \
                 associations away"
            ),
            format!(
                "ss -ulnp sport = :{port} shows who; else name another in HEADWATER_SCTP_UDP_PORT"
            ),
        ),
    }
}

/// What destinations get.
fn link(raw: bool) -> Check {
    const NAME: &str = "sctp-link";
    let rules = std::env::var("HEADWATER_SCTP_LINK").unwrap_or_default();
    let rules = rules.trim();
    let automatic = format!(
        "auto: shared memory to programs of this host under Headwater, UDP to others of this host, {} beyond it",
        if raw { "raw packets" } else { "UDP" }
    );
    if rules.is_empty() {
        return Check::ok(NAME, automatic);
    }
    if let Err(bad) = choice::Rules::parse(rules) {
        return Check::warn(
            NAME,
            format!("HEADWATER_SCTP_LINK: {bad} is not understood; {automatic}"),
            "want [DESTINATION=]auto, shm, udp[:PORT] or raw, separated by commas",
        );
    }
    let detail = match choice::rules().any(|link| link == Link::Auto) {
        true => format!("HEADWATER_SCTP_LINK={rules}; {automatic}"),
        false => format!("HEADWATER_SCTP_LINK={rules}"),
    };
    if !raw && choice::rules().any(|link| link == Link::Raw) {
        return Check::warn(
            NAME,
            format!("{detail}: raw packets, where they are asked for, are not possible"),
            "see sctp-raw",
        );
    }
    Check::ok(NAME, detail)
}
