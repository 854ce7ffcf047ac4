//! Servers over liburing and libuv.

use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_e2e::{Lab, both, compile, network};
use headwater_testkit::needs;

/// Connections that a server over liburing has answered: some at a time, of a program whose own end is seen.
#[test]
fn liburing_echoes() {
    needs!("liburing-dev", "python3");
    let server = compile::program("uring_echo", &["-O1", "-luring"]);
    let lab = both(|lab: &Lab| {
        let port = network::free_port();
        let mut command = lab.command(&server);
        command.args([&port.to_string(), "5"]);
        let server = lab.serve(command, port);
        let mut client = lab.command("/usr/bin/python3");
        client.args(["-c", CLIENT, &port.to_string()]);
        let said = lab.run(client).text();
        server.finish().ok();
        said
    });
    lab.assert_not_carried();
    let text = lab.lines_text();
    assert!(text.contains("\"io-uring\":1"), "{text}");
}

/// Five connections, a piece after the other on each.
const CLIENT: &str = "
import socket, sys, zlib
ends = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(5)]
sums = [0] * 5
for i in range(200):
    for n, end in enumerate(ends):
        piece = bytes([(n + i) % 256]) * 3000
        end.sendall(piece)
        back = b''
        while len(back) < len(piece):
            back += end.recv(len(piece) - len(back))
        sums[n] = zlib.crc32(back, sums[n])
for end in ends:
    end.shutdown(socket.SHUT_WR)
    assert end.recv(1) == b''
print(sums)
";

/// liburing's own example for TCP: it sends for a second, with and without copies.
#[test]
fn liburings_own_example_sends() {
    needs!("liburing-dev", "python3");
    for zero_copy in ["-z0", "-z1"] {
        let lab = both(|lab: &Lab| {
            let program = lab.path("send-zerocopy");
            compile::cc(["-O1"], &example(lab), &program, ["-luring", "-pthread"]);
            let port = network::free_port();
            let mut server = lab.command("/usr/bin/python3");
            server.args(["-c", COUNT, &port.to_string()]);
            let server = lab.serve(server, port);
            let mut client = lab.command(&program);
            client.args(["-4", "-D127.0.0.1", "-t1", "-n4", "-s4000", zero_copy]);
            client.arg(format!("-p{port}")).arg("tcp");
            let client = lab.run(client);
            // tx=PACKETS (MB=..), ...
            let said = client.err.trim().to_string();
            let sent: u64 = said
                .split_once("MB=")
                .and_then(|(_, rest)| rest.split_once(')')?.0.parse().ok())
                .expect(&said);
            let heard = server.finish().text();
            let (count, letters) = heard.trim().split_once(' ').expect(&heard);
            let count: u64 = count.parse().expect("a number");
            assert_eq!(count >> 20, sent, "{said}: {heard}");
            assert!(sent > 0);
            letters.to_string()
        });
        lab.assert_not_carried();
        let text = lab.lines_text();
        assert!(text.contains("\"io-uring\":"), "{text}");
    }
}

/// As the package brings it; where documents are not installed with packages, out of the package.
fn example(lab: &Lab) -> PathBuf {
    let name = "usr/share/doc/liburing-dev/examples/send-zerocopy.c";
    let installed = Path::new("/").join(name);
    if installed.exists() {
        return installed;
    }
    let folder = lab.path("package");
    std::fs::create_dir(&folder).expect("the lab's folder is writable");
    let mut fetch = Command::new("sh");
    fetch.args(["-c", "apt-get download liburing-dev && dpkg -x *.deb ."]);
    let fetched = fetch.current_dir(&folder).status();
    assert!(
        fetched.expect("a shell").success(),
        "the package's examples"
    );
    folder.join(name)
}

/// Counts what one connection brings, and says which letters there were.
const COUNT: &str = "
import socket, sys
end, _ = socket.create_server(('127.0.0.1', int(sys.argv[1]))).accept()
count, letters = 0, set()
while piece := end.recv(1 << 16):
    count += len(piece)
    letters.update(piece)
print(count, bytes(sorted(letters)))
";

/// libuv as the distribution has it. Debian 12's is 1.44, which waits by epoll alone; later ones have a ring for their changes of
/// epoll sets: `connections_of_a_current_one` of Node, and `sets` of `c/uring.c`.
#[test]
fn libuv_echoes() {
    needs!("libuv1-dev");
    let program = compile::program("uv_echo", &["-O1", "-luv"]);
    let lab = both(|lab: &Lab| {
        let port = network::free_port();
        let command = |role: &str| {
            let mut c = lab.command(&program);
            c.args([role, &port.to_string()]);
            c
        };
        let server = lab.serve(command("serve"), port);
        let said = lab.run(command("call")).text();
        server.stop(libc::SIGTERM);
        // A line as a connection ends, in any order.
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    });
    lab.assert_carried(2 * 8 * 200 * 10000);
}
