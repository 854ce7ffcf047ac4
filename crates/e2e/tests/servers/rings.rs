//! Servers over liburing and libuv.

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

/// libuv as the distribution has it. Debian 12's is 1.44, which waits by epoll alone; later ones have a ring for their changes of
/// epoll sets: `connections_by_io_uring` of Node, and `sets` of `c/uring.c`.
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
