//! pysctp, compiled here from its source distribution: its own tests, and its classes one by one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use headwater_e2e::{Running, lab};
use headwater_testkit::needs;

use crate::ground::{Ground, await_said};
use crate::lksctp;
use crate::sctp_peers::{serve_usrsctp, usrsctp};

const PYTHON: &str = "/usr/bin/python3";

/// The unpacked and compiled distribution. To be had before a test leaves the machine's network.
fn pysctp() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = std::env::current_exe().expect("a test has a path").with_extension("pysctp");
        std::fs::create_dir_all(&folder).expect("the build's folder is writable");
        let requirements = lab::source("py/pysctp.requirements");
        let script = format!(
            "ls pysctp-*.tar.gz 2>/dev/null >&2 || \
             {PYTHON} -m pip download -q --require-hashes --no-deps --no-build-isolation --no-binary :all: -d . -r '{}'\n\
             tar xzf pysctp-*.tar.gz --strip-components=1\n\
             gcc -shared -fPIC -O1 -w $(/usr/bin/python3-config --includes) _sctp.c -lsctp \
               -o _sctp$(/usr/bin/python3-config --extension-suffix)",
            requirements.display()
        );
        let output = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(&folder)
            .output()
            .expect("a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

/// A script of the distribution (or another), where clients are.
fn python(ground: &Ground, script: &Path, words: &[&str]) -> Command {
    let mut command = ground.client(PYTHON, &["-u"]);
    command
        .arg(script)
        .args(words)
        .env("PYTHONPATH", pysctp())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Each with the data of its test; they wait for answers for ever, so that they are ended by us.
const TEXT: &str = "TEST SUCCEEDED";

#[test]
fn its_loopback_test() {
    needs!(
        "python3-dev",
        "python3-pip",
        "gcc",
        "libsctp-dev",
        "lksctp-tools"
    );
    let script = pysctp().join("test_loopback.py");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        let said = ground.lab.run(python(&ground, &script, &[])).text();
        assert!(
            said.contains("server sctp_recv, buf: b'ABCDEF: TEST SUCCEEDED"),
            "{said}"
        );
    }
}

/// As it says itself: against sctp_test.
#[test]
fn its_local_test() {
    needs!(
        "python3-dev",
        "python3-pip",
        "gcc",
        "libsctp-dev",
        "lksctp-tools"
    );
    let script = pysctp().join("test_local_cnx.py");
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        let words = ["-H", "127.0.0.1", "-P", "10000", "-l"];
        let server = ground.serve(ground.server("sctp_test", &words), lksctp::SERVES);
        let client = ground.lab.start(python(&ground, &script, &[]));
        await_said(&server, "Data 72 bytes");
        client.stop(libc::SIGKILL);
        await_said(&server, "SCTP_ASSOC_CHANGE");
    }
}

#[test]
fn its_remote_test() {
    needs!(
        "python3-dev",
        "python3-pip",
        "gcc",
        "libsctp-dev",
        "lksctp-tools",
        "root",
        "iproute2",
        "nftables",
        "ethtool",
        "util-linux",
        "libusrsctp-examples"
    );
    let script = pysctp().join("test_remote_cnx.py");
    let ground = Ground::lossy();
    let server = lksctp::serve_sctp_test(&ground, &[]);
    let _client = remote(&ground, &script, "5000");
    await_said(&server, "Data 72 bytes");

    for (port, words) in [(None, &[][..]), (Some(9901), &["9901", "9899"])] {
        let ground = Ground::towards(port);
        let server = usrsctp(&ground.lab, "echo_server", words);
        let _server = serve_usrsctp(&ground.lab, ground.there(server));
        let client = remote(&ground, &script, "7");
        await_said(&client, TEXT);
    }
}

fn remote(ground: &Ground, script: &Path, port: &str) -> Running {
    let words = ["-H", "10.0.0.2", "-P", port, "-p", "5555"];
    ground.lab.start(python(ground, script, &words))
}

#[test]
fn its_classes() {
    needs!(
        "python3-dev",
        "python3-pip",
        "gcc",
        "libsctp-dev",
        "lksctp-tools"
    );
    pysctp();
    for ground in [Ground::shared_memory, Ground::udp] {
        let ground = ground();
        let script = lab::source("py/pysctp_talk.py");
        let said = ground.lab.run(python(&ground, &script, &["7100"])).text();
        assert!(said.ends_with("all well\n"), "{said}");
    }
}
