//! Where two programs meet: one network or two, and how packets may leave.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, Mode, PATIENCE, Running, lab};

use crate::sctp_peers::wire::{self, Far};

pub struct Ground {
    pub lab: Lab,
    /// The server's network, where it has one of its own.
    far: Option<Far>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    SharedMemory,
    Packets,
    Lossy,
    Container,
}

/// Who has no right to anything.
const NOBODY: u32 = 65534;

impl Ground {
    /// Both on one host, where no packets are needed.
    pub fn shared_memory() -> Ground {
        Ground::new(Kind::SharedMemory, false, Some("auto"))
    }

    /// Both on one host, and yet every packet on the wire.
    pub fn udp() -> Ground {
        Ground::new(Kind::Packets, false, Some("udp"))
    }

    /// Two hosts, and one packet of a hundred is lost.
    pub fn lossy() -> Ground {
        let ground = Ground::new(Kind::Lossy, true, Some("udp"));
        wire::lose(&ground.lab, 10);
        ground.far().lose(&ground.lab, 10);
        ground
    }

    /// Two hosts; no packet that begins with a chunk of this kind comes to the server's.
    pub fn without(kind: u8) -> Ground {
        let ground = Ground::new(Kind::Packets, true, Some("udp"));
        ground.far().lose_kind(&ground.lab, kind);
        ground
    }

    /// Two hosts, packets straight on IP.
    pub fn raw() -> Ground {
        Ground::new(Kind::Packets, true, Some("raw"))
    }

    /// Two hosts; the other end is not ours, and takes packets at this UDP port, or straight on IP.
    pub fn towards(udp_port: Option<u16>) -> Ground {
        match udp_port {
            Some(port) => Ground::new(Kind::Packets, true, Some(&format!("udp:{port}"))),
            None => Ground::raw(),
        }
    }

    /// Two hosts, each with processes of no rights in a user namespace, and nothing configured at all.
    pub fn containers() -> Ground {
        let ground = Ground::new(Kind::Container, true, None);
        let folder = ground.lab.path("");
        std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).expect("root may");
        // The build's folder may be closed to others.
        std::fs::copy(lab::library(), ground.lab.path("libheadwater.so")).expect("room");
        let readable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(ground.lab.path("libheadwater.so"), readable).expect("our own");
        ground
    }

    fn new(kind: Kind, two_hosts: bool, link: Option<&str>) -> Ground {
        let lab = Lab::new(Mode::Accelerated);
        if let Some(link) = link {
            lab.set("HEADWATER_SCTP_LINK", link);
            lab.set("HEADWATER_SCTP", "always");
        }
        let far = two_hosts.then(|| wire::wires(&lab, 1));
        Ground { lab, far, kind }
    }

    pub fn far(&self) -> &Far {
        self.far.as_ref().expect("a ground of two hosts")
    }

    /// Less work where every lost packet costs its time.
    pub fn scaled(&self, much: usize) -> usize {
        match self.kind {
            Kind::SharedMemory => much,
            Kind::Packets | Kind::Container => much.div_ceil(2),
            Kind::Lossy => much.div_ceil(10),
        }
    }

    pub fn server_address(&self) -> &'static str {
        if self.far.is_some() {
            "10.0.0.2"
        } else {
            "127.0.0.1"
        }
    }

    pub fn client_address(&self) -> &'static str {
        if self.far.is_some() {
            "10.0.0.1"
        } else {
            "127.0.0.1"
        }
    }

    /// A command with the library, where clients are.
    pub fn client<S: AsRef<OsStr>>(&self, program: &str, words: &[S]) -> Command {
        // Into a file some programs would say little before their end.
        let mut command = self.lab.command("stdbuf");
        command.args(["-oL", program]).args(words);
        self.confined(command)
    }

    /// A command with the library, where servers are.
    pub fn server<S: AsRef<OsStr>>(&self, program: &str, words: &[S]) -> Command {
        let mut command = self.client(program, words);
        if self.far.is_some() {
            // The two hosts share a file system, and nothing else.
            command.env("HEADWATER_DIR", self.lab.path("far"));
        }
        self.there(command)
    }

    /// Any command, where servers are.
    pub fn there(&self, command: Command) -> Command {
        match &self.far {
            Some(far) => far.command(&self.lab, &command),
            None => command,
        }
    }

    fn confined(&self, command: Command) -> Command {
        if self.kind != Kind::Container {
            return command;
        }
        let mut confined = self.lab.plain("setpriv");
        let user = [format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")];
        confined
            .args(user)
            .args(["--clear-groups", "unshare", "--user", "--map-current-user"]);
        // The tools above stay without the library.
        confined.arg("env");
        for (name, value) in command.get_envs() {
            let (name, value) = (name.to_string_lossy(), value.map(|v| v.to_string_lossy()));
            match (name.as_ref(), value) {
                ("LD_PRELOAD", Some(_)) => {
                    let library = self.lab.path("libheadwater.so");
                    confined.arg(format!("LD_PRELOAD={}", library.display()));
                }
                (_, Some(value)) => {
                    confined.env(name.as_ref(), value.as_ref());
                }
                (_, None) => {
                    confined.env_remove(name.as_ref());
                }
            }
        }
        confined.arg(command.get_program()).args(command.get_args());
        confined
    }

    /// Starts a server and waits until it has said `ready`.
    pub fn serve(&self, command: Command, ready: &str) -> Running {
        let server = self.lab.start(command);
        await_said(&server, ready);
        server
    }

    /// Asserts that `payload` bytes went the way that this ground is for.
    pub fn assert_carried(&self, payload: usize) {
        let payload = payload as u64;
        match self.kind {
            Kind::SharedMemory => self.lab.assert_carried(payload),
            Kind::Packets | Kind::Lossy | Kind::Container => {
                let lines = self.lab.lines();
                let shared: u64 = lines.iter().map(|line| line.shm_tx).sum();
                assert!(
                    shared < payload / 2 + (64 << 10),
                    "{shared} bytes through shared memory\n{}",
                    self.lab.lines_text()
                );
            }
        }
    }
}

/// Waits until a program has said something.
pub fn await_said(program: &Running, wanted: &str) {
    await_that(program, wanted, |said| said.contains(wanted));
}

/// Waits until what a program has said is as wanted, or a test has failed.
pub fn await_that(program: &Running, what: &str, wanted: impl Fn(&str) -> bool) {
    let begun = Instant::now();
    loop {
        let alive = program.alive();
        let said = program.said();
        if wanted(&said) {
            return;
        }
        let tail: String = said
            .chars()
            .skip(said.chars().count().saturating_sub(2000))
            .collect();
        assert!(
            alive && begun.elapsed() < PATIENCE,
            "no {what:?}, {} after {:?}:\n{tail}",
            if alive { "still running" } else { "ended" },
            begun.elapsed()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
