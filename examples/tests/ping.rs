//! The XTI ping of docs/rawip.md, in a network of its own: with CAP_NET_RAW, and with nothing but a group that may ping.

mod programs;

use std::path::Path;
use std::process::Output;

use headwater_testkit::needs;
use programs::{build, command, folder, said};

/// With an ordinary program's privileges.
const ORDINARY: &str = "setpriv --bounding-set=-all --inh-caps=-all --no-new-privs";

/// Runs `line` as root of a network namespace with loop-back.
fn in_network(folder: &Path, line: &str) -> Output {
    // SAFETY: no arguments.
    let root = unsafe { libc::geteuid() } == 0;
    let how: &[&str] = if root {
        &["--net"]
    } else {
        &["--net", "--map-root-user"]
    };
    let mut command = command(Path::new("unshare"), folder);
    let prepared = format!("ip link set lo up && {line}");
    command.args(how).args(["sh", "-c", &prepared]);
    command.output().expect("timeout, of coreutils")
}

/// Round-trip times as T.
fn without_times(text: &str) -> String {
    let mut plain = String::new();
    for line in text.lines() {
        let line = match line.split_once("time") {
            Some((before, _)) => format!("{before}T"),
            None if line.starts_with("rtt min/avg/max/mdev = ") => "rtt T".into(),
            None => line.into(),
        };
        plain += &line;
        plain.push('\n');
    }
    plain
}

const THREE: &str = "PING 127.0.0.1 (127.0.0.1) 100(128) bytes of data.
108 bytes from 127.0.0.1: icmp_seq=1 ttl=64 T
108 bytes from 127.0.0.1: icmp_seq=2 ttl=64 T
108 bytes from 127.0.0.1: icmp_seq=3 ttl=64 T

--- 127.0.0.1 ping statistics ---
3 packets transmitted, 3 received, 0% packet loss, T
rtt T
";

#[test]
fn with_and_without_privilege_it_says_the_same() {
    needs!("namespaces", "iproute2");
    let folder = folder();
    let ping = build("xti_ping", folder.path());
    let ping = ping.display();
    let allow = "echo 0 0 >/proc/sys/net/ipv4/ping_group_range";
    for line in [
        format!("{ping} -c 3 -s 100 -i 0.01 127.0.0.1"),
        format!("{allow} && {ORDINARY} {ping} -c 3 -s 100 -i 0.01 127.0.0.1"),
    ] {
        let output = in_network(folder.path(), &line);
        assert_eq!(without_times(&said(&output)), THREE);
    }
    for prefix in [String::new(), format!("{allow} && {ORDINARY} ")] {
        let line = format!("{prefix}{ping} -c 1 ::1");
        let output = in_network(folder.path(), &line);
        assert!(said(&output).contains("64 bytes from ::1: icmp_seq=1 time="));
    }
}

#[test]
fn what_is_missing_is_said() {
    needs!("namespaces", "iproute2");
    let folder = folder();
    let ping = build("xti_ping", folder.path());
    // Into a file or a pipe the library says only what was asked for.
    let line = format!(
        "HEADWATER_LOG=warn {ORDINARY} {} -c 1 127.0.0.1",
        ping.display()
    );
    let output = in_network(folder.path(), &line);
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    for part in ["CAP_NET_RAW", "ping_group_range", "AmbientCapabilities"] {
        assert!(stderr.contains(part), "{stderr}");
    }
    assert!(stderr.contains("xti_ping: "), "{stderr}");
    let mut nonsense = command(&ping, folder.path());
    let nonsense = nonsense
        .args(["-c", "0", "localhost"])
        .output()
        .expect("it runs");
    assert_eq!(nonsense.status.code(), Some(2));
}

#[test]
fn nobody_answers() {
    needs!("namespaces", "iproute2");
    let folder = folder();
    let ping = build("xti_ping", folder.path());
    let line = format!(
        "ip route add unreachable 192.0.2.0/24 && {} -c 1 192.0.2.1",
        ping.display()
    );
    let output = in_network(folder.path(), &line);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("To 192.0.2.1: No route to host"), "{text}");
    assert!(
        text.contains("1 packets transmitted, 0 received, +1 errors, 100% packet loss"),
        "{text}"
    );
}
