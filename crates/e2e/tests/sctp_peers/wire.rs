//! A second network, with one or more wires to the test's own; they vanish with the process that holds it.

use std::process::Command;
use std::time::{Duration, Instant};

use headwater_e2e::{Lab, PATIENCE, Running};

/// The other end: programs run there through [`Far::command`].
pub struct Far {
    holder: Running,
}

/// Wire `n` joins 10.`n`.0.1 here and 10.`n`.0.2 there, on devices near`n` and far`n`.
pub fn wires(lab: &Lab, count: u8) -> Far {
    let mut command = lab.plain("unshare");
    command.args(["--net", "sleep", "600"]);
    let holder = lab.start(command);
    let far = Far { holder };
    far.await_own_network();
    sh(lab, "ip link set lo up");
    far.sh(lab, "ip link set lo up");
    for n in 0..count {
        let pid = far.holder.pid();
        sh(
            lab,
            &format!("ip link add near{n} type veth peer name far{n} netns {pid}"),
        );
        sh(
            lab,
            &format!("ip addr add 10.{n}.0.1/24 dev near{n} && ip link set near{n} up"),
        );
        far.sh(
            lab,
            &format!("ip addr add 10.{n}.0.2/24 dev far{n} && ip link set far{n} up"),
        );
        // Packets travel, are lost and are captured one by one.
        let alone = "tx-udp-segmentation off gso off gro off tx off";
        sh(lab, &format!("ethtool -K near{n} {alone}"));
        far.sh(lab, &format!("ethtool -K far{n} {alone}"));
    }
    far
}

impl Far {
    /// `command`, over there.
    pub fn command(&self, lab: &Lab, command: &Command) -> Command {
        let mut entered = lab.plain("nsenter");
        entered.args(["-t", &self.holder.pid().to_string(), "-n"]);
        entered.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => entered.env(name, value),
                None => entered.env_remove(name),
            };
        }
        entered
    }

    pub fn sh(&self, lab: &Lab, script: &str) {
        let mut command = lab.plain("sh");
        command.args(["-ec", script]);
        lab.run(self.command(lab, &command)).ok();
    }

    /// Loses so many packets of a thousand that arrive there.
    pub fn lose(&self, lab: &Lab, per_mille: u32) {
        self.sh(lab, &loss(per_mille));
    }

    /// Loses each packet over UDP that arrives there and begins with a chunk of this kind.
    pub fn lose_kind(&self, lab: &Lab, kind: u8) {
        let chunk = format!("udp sport 9899 @th,160,8 {kind}");
        self.sh(lab, &rule(&chunk));
    }

    fn await_own_network(&self) {
        let begun = Instant::now();
        let network = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        while network(&self.holder.pid().to_string()) == network("thread-self") {
            assert!(begun.elapsed() < PATIENCE, "no second network");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

pub fn sh(lab: &Lab, script: &str) {
    let mut command = lab.plain("sh");
    command.args(["-ec", script]);
    lab.run(command).ok();
}

/// Loses so many packets of a thousand that arrive here.
pub fn lose(lab: &Lab, per_mille: u32) {
    sh(lab, &loss(per_mille));
}

const ABORT: u8 = 6;

/// Spares an ABORT over UDP: it is sent once (RFC 9260, 9.1), and its loss would be noticed by a heartbeat, after 30 s.
fn loss(per_mille: u32) -> String {
    rule(&format!(
        "meta l4proto udp @th,160,8 {ABORT} accept; \
         nft add rule inet lossy in meta l4proto '{{ udp, 132 }}' numgen random mod 1000 '<' {per_mille}"
    ))
}

/// What drops those that match.
fn rule(these: &str) -> String {
    format!(
        "nft add table inet lossy; nft add chain inet lossy in '{{ type filter hook input priority -400; }}'; \
         nft add rule inet lossy in {these} drop"
    )
}
