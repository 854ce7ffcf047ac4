//! OpenSSH: a server that runs itself again, whose child before the log-in is chrooted, another user, and confined by seccomp.

use std::path::PathBuf;

use headwater_e2e::lab::digest;
use headwater_e2e::{Lab, Running, both, network, program};
use headwater_testkit::needs;

use super::{configure, shown};

const CONFIGURATION: &str = "
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
";

struct Server<'a> {
    lab: &'a Lab,
    port: String,
    _running: Running,
}

impl Server<'_> {
    fn start<'a>(lab: &'a Lab, words: &[&str]) -> Server<'a> {
        // Where its confined child is locked up.
        std::fs::create_dir_all("/run/sshd").expect("root may");
        for key in ["host", "key"] {
            let mut c = lab.plain("ssh-keygen");
            c.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            c.arg(lab.path(key));
            lab.run(c).ok();
        }
        let port = network::free_port();
        let folder = shown(&lab.path(""));
        let values = [("port", &*port.to_string()), ("folder", &folder)];
        configure(lab, "sshd_config", CONFIGURATION, &values);
        // It insists on a path from the root, to run itself again.
        let mut c = lab.command("/usr/sbin/sshd");
        c.args(["-D", "-e", "-f"])
            .arg(lab.path("sshd_config"))
            .args(words);
        Server {
            lab,
            port: port.to_string(),
            _running: lab.serve(c, port),
        }
    }

    fn client(&self, program: &str, port_flag: &str, words: &[&str]) -> std::process::Command {
        let mut c = self.lab.command(program);
        c.args([port_flag, &self.port, "-q", "-F", "none", "-i"]);
        c.arg(self.lab.path("key"));
        c.args(["-o", "StrictHostKeyChecking=no"]);
        c.args(["-o", "UserKnownHostsFile=/dev/null"]);
        c.args(words);
        c
    }
}

#[test]
fn commands_run_and_files_are_copied() {
    needs!("root", "openssh-server", "openssh-client");
    log_in_and_copy(&[]);
}

/// With -r each connection's process is a fork of the server that listens, and confines itself as such.
#[test]
fn a_server_that_does_not_run_itself_again_serves_the_same() {
    needs!("root", "openssh-server", "openssh-client");
    log_in_and_copy(&["-r"]);
}

fn log_in_and_copy(words: &[&str]) {
    let lab = both(|lab| {
        let server = Server::start(lab, words);
        let payload = lab.payload("payload", 5 << 20);
        let mut results = Vec::new();
        for round in 0..3 {
            let mut c = server.client("ssh", "-p", &["root@127.0.0.1", "cat; echo $0 >&2; exit 7"]);
            c.stdin(program::input(&payload));
            let output = lab.run(c);
            assert_eq!(
                output.status.code(),
                Some(7),
                "round {round}: {}",
                output.err
            );
            results.push(digest(&output.out));
        }
        let copy = |from: String, to: PathBuf| {
            lab.run(server.client("scp", "-P", &[&from, &shown(&to)]))
                .ok();
            digest(&std::fs::read(to).expect("it was copied"))
        };
        let remote = |name: &str| format!("root@127.0.0.1:{}", shown(&lab.path(name)));
        results.push(copy(remote("payload"), lab.path("fetched")));
        lab.run(server.client("scp", "-P", &[&shown(&payload), &remote("stored")]))
            .ok();
        results.push(digest(
            &std::fs::read(lab.path("stored")).expect("it was copied"),
        ));
        results
    });
    // The one that is confined leaves its line like everybody else.
    let servers = lab.lines().iter().filter(|l| l.comm == "sshd").count();
    assert!(servers >= 5, "{}", lab.lines_text());
}
