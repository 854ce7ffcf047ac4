//! Single-purpose tools: iperf3, socat, netcat, memcached, sockperf.

use headwater_e2e::lab::digest;
use headwater_e2e::{Lab, both, carried, network, program};
use headwater_testkit::needs;

/// iperf3 moves a fixed number of bytes, and both ends say how many.
fn iperf(extra: &[&str]) {
    const BYTES: u64 = 200 << 20;
    carried(BYTES, |lab| {
        let port = network::free_port();
        let mut c = lab.command("iperf3");
        c.args(["-s", "-1", "-J", "-p", &port.to_string()]);
        let server = lab.serve(c, port);
        let mut c = lab.command("iperf3");
        c.args([
            "-c",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-J",
            "-n",
            &BYTES.to_string(),
        ]);
        c.args(extra);
        let said = lab.run(c).text();
        server.finish().ok();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let count = |end: &str| said["end"][end]["bytes"].as_u64().unwrap_or(0);
        assert!(count("sum_received") <= count("sum_sent"), "{said}");
        // With --bidir the test ends when either direction has had its bytes.
        count("sum_sent").max(count("sum_received_bidir_reverse")) >= BYTES
    });
}

#[test]
fn iperf_sends() {
    needs!("iperf3");
    iperf(&[]);
}

#[test]
fn iperf_receives() {
    needs!("iperf3");
    iperf(&["-R"]);
}

#[test]
fn iperf_in_parallel_and_small_writes() {
    needs!("iperf3");
    iperf(&["-P", "4", "-l", "4K"]);
}

#[test]
fn iperf_both_ways() {
    needs!("iperf3");
    iperf(&["--bidir", "-l", "64K"]);
}

const PAYLOAD: usize = 20 << 20;

/// A file through a pair of relays, each way.
fn relayed(lab: &Lab, server: &[&str], client: &[&str]) -> (usize, u64) {
    let port = network::free_port().to_string();
    let fill =
        |args: &[&str]| -> Vec<String> { args.iter().map(|a| a.replace("PORT", &port)).collect() };
    let payload = lab.payload("payload", PAYLOAD);
    let mut c = lab.command(server[0]);
    c.args(fill(&server[1..]));
    let server = lab.serve(c, port.parse().unwrap());
    let mut c = lab.command(client[0]);
    c.args(fill(&client[1..])).stdin(program::input(&payload));
    lab.run(c).ok();
    digest(&server.finish().ok())
}

#[test]
fn socat_relays_a_file() {
    needs!("socat");
    let server = [
        "socat",
        "-u",
        "TCP-LISTEN:PORT,bind=127.0.0.1,reuseaddr",
        "STDOUT",
    ];
    let client = ["socat", "-u", "STDIN", "TCP:127.0.0.1:PORT"];
    carried(PAYLOAD as u64, |lab| relayed(lab, &server, &client));
}

#[test]
fn netcat_relays_a_file() {
    needs!("netcat-openbsd");
    let server = ["nc", "-l", "127.0.0.1", "PORT"];
    let client = ["nc", "-N", "127.0.0.1", "PORT"];
    carried(PAYLOAD as u64, |lab| relayed(lab, &server, &client));
}

#[test]
fn netcat_to_socat_over_ipv6() {
    needs!("netcat-openbsd", "socat");
    let server = [
        "socat",
        "-u",
        "TCP6-LISTEN:PORT,bind=[::1],reuseaddr",
        "STDOUT",
    ];
    let client = ["nc", "-N", "::1", "PORT"];
    carried(PAYLOAD as u64, |lab| relayed(lab, &server, &client));
}

/// A forking server whose children run programs on the connection: echo by cat, natively and with the library inside.
#[test]
fn socat_forks_and_runs_programs() {
    needs!("socat");
    let lab = both(|lab| {
        let port = network::free_port();
        let payload = lab.payload("payload", 32 << 20);
        let mut c = lab.command("socat");
        c.arg(format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"));
        c.arg("EXEC:cat");
        let server = lab.serve(c, port);
        let mut results = Vec::new();
        for _ in 0..3 {
            let mut c = lab.command("socat");
            c.args(["-t", "20", "STDIO", &format!("TCP:127.0.0.1:{port}")]);
            c.stdin(program::input(&payload));
            results.push(digest(&lab.run(c).ok()));
        }
        server.stop(libc::SIGTERM);
        results
    });
    assert!(
        lab.lines().iter().any(|l| l.accelerated > 0),
        "{}",
        lab.lines_text()
    );
}

/// The program gets the connection itself as its input and output.
#[test]
fn socat_hands_the_connection_to_a_program() {
    needs!("socat");
    both(|lab| {
        let port = network::free_port();
        let payload = lab.payload("payload", 2 << 20);
        let mut c = lab.command("socat");
        c.arg(format!("TCP-LISTEN:{port},bind=127.0.0.1,reuseaddr,fork"));
        c.arg("EXEC:cat,nofork");
        let server = lab.serve(c, port);
        let mut c = lab.command("socat");
        c.args(["-t", "20", "STDIO", &format!("TCP:127.0.0.1:{port}")]);
        c.stdin(program::input(&payload));
        let result = digest(&lab.run(c).ok());
        drop(server);
        result
    });
}

#[test]
fn memcached_keeps_what_it_is_given() {
    needs!("memcached", "python3");
    let lab = both(|lab| {
        let port = network::free_port();
        let mut c = lab.command("memcached");
        c.args([
            "-u",
            "root",
            "-l",
            "127.0.0.1",
            "-t",
            "4",
            "-m",
            "64",
            "-p",
            &port.to_string(),
        ]);
        let server = lab.serve(c, port);
        let mut c = lab.command("/usr/bin/python3");
        c.arg(headwater_e2e::lab::source("py/memcached.py"))
            .arg(port.to_string());
        let said = lab.run(c).text();
        server.stop(libc::SIGTERM);
        said
    });
    lab.assert_carried(4 << 20);
}

#[test]
fn sockperf_plays_ping_pong() {
    needs!("sockperf");
    let lab = both(|lab| {
        let port = network::free_port();
        let mut c = lab.command("sockperf");
        c.args([
            "server",
            "--tcp",
            "-i",
            "127.0.0.1",
            "-p",
            &port.to_string(),
        ]);
        let server = lab.serve(c, port);
        for test in [
            // Its default of 600,000 messages a second at most is an error when there are more.
            &["ping-pong", "--mps", "10000000"][..],
            &["under-load", "--mps", "20000"],
            &["throughput"],
        ] {
            let mut c = lab.command("sockperf");
            c.args(test)
                .args(["--tcp", "-i", "127.0.0.1", "-p", &port.to_string()]);
            c.args(["-t", "1", "-m", "64"]);
            let said = lab.run(c).text();
            let good = said.contains("dropped messages = 0") || test[0] == "throughput";
            assert!(good && !said.contains("ERROR"), "{said}");
        }
        server.stop(libc::SIGINT);
    });
    lab.assert_carried(64 * 2000);
}
