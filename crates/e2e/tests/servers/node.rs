//! Node, whose libuv waits by epoll and, where it may, hands its changes to io_uring.

use headwater_e2e::{Lab, both, lab, network};
use headwater_testkit::needs;

/// `uring`: what UV_USE_IO_URING says, if anything.
fn talk(uring: Option<&str>) -> Lab {
    both(|lab| {
        let port = network::free_port();
        let command = |words: &[&str]| {
            let mut c = lab.command("node");
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
    let lab = talk(None);
    if lab.lines_text().contains("\"io-uring\":") {
        return;
    }
    lab.assert_carried(8 * (2 << 20));
}

#[test]
fn connections_by_epoll() {
    needs!("node");
    talk(Some("0")).assert_carried(8 * (2 << 20));
}

#[test]
fn connections_by_io_uring() {
    needs!("node");
    // Its ring for files has a thread of the kernel's (SQPOLL), whose requests nobody sees: sockets stay with the kernel.
    let lab = talk(Some("1"));
    assert!(
        lab.lines_text().contains("\"io-uring\":"),
        "{}",
        lab.lines_text()
    );
}
