//! Single-purpose tools: iperf3, socat, netcat, memcached, sockperf, PostgreSQL.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use headwater_e2e::lab::digest;
use headwater_e2e::{Lab, PATIENCE, both, network, program};
use headwater_testkit::needs;

/// iperf3 moves a fixed number of bytes, and both ends say how many.
fn iperf(extra: &[&str]) {
    const BYTES: u64 = 200 << 20;
    let lab = both(|lab| {
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
    lab.assert_carried(BYTES);
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

/// A file through a pair of relays, each way.
fn relayed(lab: &Lab, server: &[&str], client: &[&str]) -> (usize, u64) {
    let port = network::free_port().to_string();
    let fill =
        |args: &[&str]| -> Vec<String> { args.iter().map(|a| a.replace("PORT", &port)).collect() };
    let payload = lab.payload("payload", 20 << 20);
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
    let lab = both(|lab| relayed(lab, &server, &client));
    lab.assert_carried(20 << 20);
}

#[test]
fn netcat_relays_a_file() {
    needs!("netcat-openbsd");
    let lab = both(|lab| {
        relayed(
            lab,
            &["nc", "-l", "127.0.0.1", "PORT"],
            &["nc", "-N", "127.0.0.1", "PORT"],
        )
    });
    lab.assert_carried(20 << 20);
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
    let lab = both(|lab| relayed(lab, &server, &["nc", "-N", "::1", "PORT"]));
    lab.assert_carried(20 << 20);
}

/// A forking server whose children run programs on the connection: echo by cat, natively and with the library inside.
#[test]
fn socat_forks_and_runs_programs() {
    needs!("socat");
    let lab = both(|lab| {
        let port = network::free_port();
        let payload = lab.payload("payload", 2 << 20);
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

/// A database in a folder of its own: forking server, own processes talking by signals and latches, COPY in both directions.
#[test]
fn postgresql_answers_the_same() {
    needs!("postgresql");
    let bin = std::fs::read_dir("/usr/lib/postgresql")
        .expect("postgresql is installed")
        .flatten()
        .map(|e| e.path().join("bin"))
        .max()
        .expect("a version of postgresql");
    // SAFETY: reads a number.
    let root = unsafe { libc::getuid() } == 0;
    let lab = both(|lab| {
        let port = network::free_port().to_string();
        let data = lab.path("data");
        std::fs::create_dir(&data).unwrap();
        let own = |command: &mut std::process::Command| {
            if root {
                as_user(command, "postgres");
            }
        };
        if root {
            let (uid, gid) = ids("postgres");
            std::os::unix::fs::chown(&data, Some(uid), Some(gid)).unwrap();
            std::fs::write(lab.path("stats"), "").unwrap();
            std::os::unix::fs::chown(lab.path("stats"), Some(uid), Some(gid)).unwrap();
            lab.set("HEADWATER_DIR", data.join("run").to_str().unwrap());
        }
        let mut c = lab.plain(bin.join("initdb"));
        c.args(["-A", "trust", "--no-sync", "-D"]).arg(&data);
        own(&mut c);
        lab.run(c).ok();
        let mut c = lab.command(bin.join("postgres"));
        c.arg("-D").arg(&data);
        c.args([
            "-p",
            &port,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-c",
            "fsync=off",
        ]);
        own(&mut c);
        let server = lab.serve(c, port.parse().unwrap());
        await_database(lab, &bin.join("pg_isready"), &port);
        let mut c = lab.command(bin.join("psql"));
        c.args([
            "-X",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-d",
            "postgres",
            "-f",
        ]);
        c.arg(headwater_e2e::lab::source("py/database.sql"))
            .current_dir(&data);
        own(&mut c);
        let answers = lab.run(c).ok();
        let mut c = lab.command(bin.join("pgbench"));
        c.args(["-i", "-q", "-h", "127.0.0.1", "-p", &port, "postgres"]);
        own(&mut c);
        lab.run(c).ok();
        let mut c = lab.command(bin.join("pgbench"));
        c.args([
            "-n",
            "-c",
            "4",
            "-j",
            "2",
            "-t",
            "300",
            "-S",
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "postgres",
        ]);
        own(&mut c);
        let said = lab.run(c).text();
        assert!(said.contains("actually processed: 1200/1200"), "{said}");
        server.stop(libc::SIGINT).ok();
        digest(&answers)
    });
    lab.assert_carried(8 << 20);
}

fn await_database(lab: &Lab, isready: &std::path::Path, port: &str) {
    let begun = Instant::now();
    loop {
        let mut c = lab.plain(isready);
        c.args(["-q", "-h", "127.0.0.1", "-p", port]);
        if lab.run(c).status.success() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the database does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// User and group of a system account.
fn ids(name: &str) -> (u32, u32) {
    let text = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = text
        .lines()
        .find(|l| l.starts_with(&format!("{name}:")))
        .expect("the account exists");
    let mut fields = line.split(':').skip(2).map(|f| f.parse().unwrap());
    (fields.next().unwrap(), fields.next().unwrap())
}

fn as_user(command: &mut std::process::Command, name: &str) {
    use std::os::unix::process::CommandExt;
    let (uid, gid) = ids(name);
    command
        .uid(uid)
        .gid(gid)
        .stdin(Stdio::from(File::open("/dev/null").unwrap()));
}
