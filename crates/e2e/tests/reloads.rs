//! One server and one client for a very long time: connections without end through an nginx that is told to reload again and
//! again, most of them short, some kept and carried. Nobody holds more in the end than in the beginning.
//!
//! HEADWATER_CONNECTIONS says how many connections.

use std::time::{Duration, Instant};

use headwater_e2e::census::{self, Holds, Series};
use headwater_e2e::chance::variable;
use headwater_e2e::{Lab, Mode, PATIENCE, Running, compile, network};
use headwater_testkit::needs;

/// Connections of an ordinary run of the tests.
const CONNECTIONS: u64 = 20_000;
/// Reloads of a run of any length; more if there would be more than so many connections between two.
const RELOADS: u64 = 10;
const BETWEEN: u64 = 10_000;
const WORKERS: usize = 2;
/// As in c/http.c.
const SIZES: [(&str, u64); 2] = [("small", 300), ("large", 200_000)];

/// Ups and downs of the client's: what was shared with workers that have gone is kept for up to a second, in which a fast machine
/// is told to reload ten times.
const UNDER_WAY: Holds = Holds {
    descriptors: 650,
    segments: 200,
    attached: 0,
    mappings: 620,
    memory: 40 << 10,
};
/// And of the server's, where workers are as old as the last reload.
const SERVING: Holds = Holds {
    descriptors: 60,
    segments: 16,
    attached: 0,
    mappings: 60,
    memory: 4 << 10,
};
/// What the client has at most when it rests: a few segments for each worker, with their descriptors, and the program itself.
const AT_REST: Holds = Holds {
    descriptors: 50,
    segments: 12,
    attached: 1,
    mappings: 80,
    memory: 5 << 10,
};

/// The stream that c/common.h calls noise.
fn noise(n: u64) -> Vec<u8> {
    let byte = |at: u64| {
        let x = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((x >> 56) ^ (x >> 31) ^ at) as u8
    };
    (0..n).map(byte).collect()
}

/// nginx by its own folder, as it is told on each of its command lines.
fn nginx(lab: &Lab) -> std::process::Command {
    let mut c = lab.command("nginx");
    c.arg("-p").arg(lab.path(""));
    c.args(["-c", "nginx.conf", "-e", "error.log"]);
    c
}

/// One port whose listener the workers share, and one where each has its own.
fn serve(lab: &Lab, ports: [u16; 2]) -> Running {
    let root = lab.path("www");
    std::fs::create_dir_all(&root).expect("the lab's folder is writable");
    for (name, size) in SIZES {
        std::fs::write(root.join(name), noise(size)).expect("the lab's folder is writable");
    }
    // SAFETY: reads a number.
    let user = match unsafe { libc::getuid() } {
        0 => "user root;",
        _ => "",
    };
    let [shared, own] = ports;
    let conf = format!(
        "{user} worker_processes {WORKERS}; daemon off; pid nginx.pid; error_log error.log notice;
         events {{ worker_connections 256; }}
         http {{
            access_log off; keepalive_requests 1000000; root www; sendfile on;
            client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
            server {{ listen 127.0.0.1:{shared}; listen 127.0.0.1:{own} reuseport; }}
         }}"
    );
    std::fs::write(lab.path("nginx.conf"), conf).expect("the lab's folder is writable");
    lab.serve(nginx(lab), shared)
}

/// The workers of an nginx, but for those that shut down.
fn workers(master: u32) -> Vec<u32> {
    let children = format!("/proc/{master}/task/{master}/children");
    let children = std::fs::read_to_string(children).expect("it runs");
    let works = |pid: &u32| {
        let title = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        title.starts_with(b"nginx: worker process\0")
            || title.starts_with(b"nginx: worker process ")
                && !title.windows(8).any(|w| w == b"shutting")
    };
    let pids = children
        .split_whitespace()
        .map(|pid| pid.parse().expect("a number"));
    pids.filter(works).collect()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not within the bound: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The number of connections in the last line of the client.
fn made(said: &str) -> u64 {
    let last = said.lines().rfind(|l| l.starts_with("connections "));
    let number = last.and_then(|l| l.split(' ').nth(1)?.parse().ok());
    number.unwrap_or_default()
}

#[test]
fn connections_without_end_through_a_server_that_reloads() {
    needs!("nginx");
    let count = variable("HEADWATER_CONNECTIONS").unwrap_or(CONNECTIONS);
    let own_memory = network::isolate_memory();
    let lab = Lab::new(Mode::Accelerated);
    let ports = network::free_ports();
    let server = serve(&lab, ports);
    let step = (count / RELOADS).clamp(1, BETWEEN);
    let mut c = lab.command(compile::program("http", &[]));
    c.args([count, step, 1].map(|n| n.to_string()));
    c.args(ports.map(|p| p.to_string()));
    let client = lab.start(c);
    let [mut of_master, mut of_client] = ["the master", "the client"].map(Series::new);
    let mut of_workers = Series::new("a worker");
    let (begun, mut told) = (Instant::now(), Instant::now());
    let mut files = None;
    let rests = || client.said().contains("rests\n");
    while !rests() {
        let before = made(&client.said());
        until("some connections", || {
            assert!(client.alive(), "{}", client.said());
            rests() || made(&client.said()) > before
        });
        // Workers as old as the last reload.
        until("the workers are there", || {
            workers(server.pid()).len() == WORKERS
        });
        workers(server.pid())
            .into_iter()
            .for_each(|w| of_workers.look(w));
        of_master.look(server.pid());
        of_client.look(client.pid());
        let found = census::files(&lab.path("run"));
        assert_eq!(*files.get_or_insert(found), found, "the runtime folder");
        let mut reload = nginx(&lab);
        reload.args(["-s", "reload"]);
        lab.run(reload).ok();
        if told.elapsed() > Duration::from_secs(2) {
            told = Instant::now();
            let (n, seconds) = (made(&client.said()), begun.elapsed().as_secs());
            println!(
                "{n} connections, {seconds} s: the client has {}, a worker {}",
                of_client.last(),
                of_workers.last()
            );
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{count} connections took {seconds:.1} s");
    let holds = || Holds::of(client.pid()).expect("it rests");
    until("the client gives up what it kept", || {
        holds().is_within(AT_REST)
    });
    println!("the client rests with {}", holds());
    client.stop(libc::SIGTERM).ok();
    of_client.assert_flat(UNDER_WAY);
    of_master.assert_flat(SERVING);
    of_workers.assert_flat(SERVING);
    until("old workers go", || {
        network::processes().len() <= 1 + WORKERS || !lab.isolated()
    });
    server.stop(libc::SIGQUIT).ok();
    until("everybody goes", || {
        network::processes().is_empty() || !lab.isolated()
    });
    if own_memory {
        assert_eq!(network::memory_segments(), 0, "System V memory is left");
    }
    let lines = lab.lines();
    let line = lines.iter().find(|l| l.comm == "http").expect("its line");
    let (n, carried, kernel) = (line.accelerated, line.shm_rx, line.kernel_rx);
    println!("the client carried {n} connections, {carried} bytes; {kernel} by TCP");
    assert!(n > count / 100, "not carried: {}", line.text);
    assert!(
        line.shm_rx > line.kernel_rx / 4,
        "not carried: {}",
        line.text
    );
    assert!(
        !lines.iter().any(|l| l.text.contains("board-full")),
        "{}",
        lab.lines_text()
    );
    let log = std::fs::read_to_string(lab.path("error.log")).expect("nginx writes it");
    let bad = ["[alert]", "[crit]", "[emerg]", "[error]"];
    assert_eq!(
        log.lines().find(|l| bad.iter().any(|b| l.contains(b))),
        None
    );
}
