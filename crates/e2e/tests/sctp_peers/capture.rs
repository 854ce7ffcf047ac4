//! Captures of a device, dissected by tshark with the CRC32c of every packet checked.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, PATIENCE, Running};

/// A capture that runs.
pub struct Capture {
    running: Running,
    file: PathBuf,
    udp_ports: Vec<u16>,
}

/// What an expert may say of a capture without being right about us.
pub struct Tolerated(pub &'static [&'static str]);

impl Capture {
    /// Of `device`, in the test's own network; packets of `udp_ports` carry SCTP.
    pub fn start(lab: &Lab, device: &str, udp_ports: &[u16]) -> Capture {
        let file = lab.path("capture.pcap");
        let mut command = lab.plain("dumpcap");
        command
            .args([
                "-q",
                "-P",
                "-B",
                "64",
                "-i",
                device,
                "-f",
                "udp or sctp",
                "-w",
            ])
            .arg(&file);
        let running = lab.start(command);
        let begun = Instant::now();
        // It writes the file's header when it listens.
        while std::fs::metadata(&file).map_or(0, |found| found.len()) < 24 {
            assert!(
                running.alive() && begun.elapsed() < PATIENCE,
                "dumpcap does not begin"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Capture {
            running,
            file,
            udp_ports: udp_ports.to_vec(),
        }
    }

    /// Ends it, and lets tshark judge every packet; returns how many there were.
    pub fn judge(self, lab: &Lab, tolerated: &Tolerated) -> usize {
        // What was sent last is still on its way to the capture.
        std::thread::sleep(Duration::from_millis(300));
        self.running.stop(libc::SIGINT);
        let mut command = lab.plain("tshark");
        command
            .arg("-r")
            .arg(&self.file)
            .args(["-Y", JUDGED, "-o", "sctp.checksum:CRC 32c"]);
        // Our payload protocols are but numbers.
        command.args(["-o", "sctp.ulp_dissection:FALSE"]);
        for port in &self.udp_ports {
            command.args(["-d", &format!("udp.port=={port},sctp")]);
        }
        command.args(["-T", "fields", "-E", "separator=|", "-E", "occurrence=a"]);
        for field in [
            "frame.number",
            "sctp.checksum.status",
            "_ws.expert.severity",
            "_ws.expert.message",
            "_ws.col.Info",
        ] {
            command.args(["-e", field]);
        }
        let text = lab.run(command).text();
        text.lines().for_each(|line| check(line, tolerated));
        let count = text.lines().count();
        assert!(count > 0, "no packet was captured");
        count
    }

    pub fn file(&self) -> &PathBuf {
        &self.file
    }
}

/// All that is SCTP, but for a peer's HEARTBEAT without the information that RFC 9260 3.3.5 wants: pion sends one now and then.
const JUDGED: &str =
    "sctp && !icmp && !(udp.srcport == 9901 && sctp.chunk_type == 4 && sctp.chunk_length == 4)";
/// Severities of the dissector's experts.
const WARNING: u32 = 0x0060_0000;

fn check(line: &str, tolerated: &Tolerated) {
    let fields: Vec<&str> = line.split('|').collect();
    let [_, status, severities, messages, ..] = fields[..] else {
        panic!("{line}");
    };
    assert!(
        status
            .split(',')
            .all(|status| status == "1" || status == "Good"),
        "a bad checksum: {line}"
    );
    let severe = severities
        .split(',')
        .filter_map(|text| text.parse::<u32>().ok())
        .any(|severity| severity >= WARNING);
    let known = LARGE_GAPS
        .iter()
        .chain(tolerated.0)
        .any(|part| messages.contains(part));
    assert!(!severe || known, "{line}");
}

/// A window of a megabyte has room for more chunks beyond a gap than the expert finds usual.
const LARGE_GAPS: &[&str] = &["More than 100 TSNs were gap-acknowledged"];
/// The expert's words for what a lossy line must bring about.
pub const RETRANSMISSIONS: Tolerated = Tolerated(&["retransmitted", "Duplicate TSN", "duplicate"]);
/// usrsctp's reader is slow, and it says so.
pub const SLOW_READER: Tolerated = Tolerated(&[
    "Zero Advertised Receiver Window Credit",
    "retransmitted",
    "Retransmitted",
]);
pub const NOTHING: Tolerated = Tolerated(&[]);

/// Is there a tshark?
pub fn is_there() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
}
