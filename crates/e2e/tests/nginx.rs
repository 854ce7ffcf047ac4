//! nginx with four workers, with and without `reuseport`, as a file server and as a proxy to itself; curl and wrk.

use std::process::Command;

use headwater_e2e::lab::digest;
use headwater_e2e::{Lab, Running, both, carried, network};
use headwater_testkit::needs;

struct Nginx<'a> {
    lab: &'a Lab,
    port: u16,
    server: Running,
}

const LARGE: usize = 9 << 20;
const SMALL: usize = 777;

impl<'a> Nginx<'a> {
    fn start(lab: &'a Lab, listen: &str, http: &str) -> Nginx<'a> {
        let port = network::free_port();
        let root = lab.path("www");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("large"), headwater_e2e::lab::noise(LARGE)).unwrap();
        for i in 0..200 {
            let text = format!("{i}:").repeat(SMALL / 4);
            std::fs::write(root.join(format!("small{i}")), text).unwrap();
        }
        // SAFETY: reads a number.
        let user = if unsafe { libc::getuid() } == 0 {
            "user root;"
        } else {
            ""
        };
        let conf = format!(
            "{user} worker_processes 4; daemon off; pid nginx.pid; error_log error.log info;
             events {{ worker_connections 256; }}
             http {{
                access_log off; keepalive_requests 1000000; root www; {http}
                client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
                upstream itself {{ server 127.0.0.1:{port}; keepalive 16; }}
                server {{
                    listen 127.0.0.1:{port} {listen};
                    location /proxy/ {{
                        proxy_pass http://itself/; proxy_http_version 1.1; proxy_set_header Connection \"\";
                    }}
                }}
             }}"
        );
        std::fs::write(lab.path("nginx.conf"), conf).unwrap();
        let mut c = lab.command("nginx");
        c.arg("-p")
            .arg(lab.path(""))
            .args(["-c", "nginx.conf", "-e", "error.log"]);
        Nginx {
            lab,
            port,
            server: lab.serve(c, port),
        }
    }

    fn curl(&self, args: &[&str], paths: &[&str]) -> Command {
        let mut c = self.lab.command("curl");
        c.args(["-sS", "--fail", "--globoff", "-q"]).args(args);
        for path in paths {
            c.arg(format!("http://127.0.0.1:{}/{path}", self.port));
        }
        c
    }

    /// One connection with many requests, and a batch of parallel ones.
    fn fetch(&self, prefix: &str) -> Vec<(usize, u64)> {
        let mut paths: Vec<String> = (0..200).map(|i| format!("{prefix}small{i}")).collect();
        paths.extend([
            format!("{prefix}large"),
            format!("{prefix}small7"),
            format!("{prefix}large"),
        ]);
        let paths: Vec<&str> = paths.iter().map(|p| &**p).collect();
        let serial = self.lab.run(self.curl(&[], &paths)).ok();
        let mut results = vec![digest(&serial)];
        let mut parallel = self.curl(&["--parallel", "--parallel-max", "8"], &[]);
        for i in 0..24 {
            parallel.args(["-o", &format!("got{i}")]);
            parallel.arg(format!("http://127.0.0.1:{}/{prefix}small{i}", self.port));
            parallel.args(["-o", &format!("also{i}")]);
            let second = if i % 8 == 0 { "large" } else { "small1" };
            parallel.arg(format!("http://127.0.0.1:{}/{prefix}{second}", self.port));
        }
        self.lab.run(parallel).ok();
        for i in 0..24 {
            for name in ["got", "also"] {
                results.push(digest(
                    &std::fs::read(self.lab.path(&format!("{name}{i}"))).unwrap(),
                ));
            }
        }
        results
    }

    /// wrk saw no error of any kind.
    fn load(&self, path: &str, connections: &str) {
        let mut c = self.lab.command("wrk");
        c.args(["-t", "2", "-d", "1", "-c", connections]);
        c.arg(format!("http://127.0.0.1:{}/{path}", self.port));
        let said = self.lab.run(c).text();
        assert!(said.contains("requests in"), "{said}");
        assert!(
            !said.contains("Socket errors") && !said.contains("Non-2xx"),
            "{said}"
        );
    }

    fn stop(self) {
        // wrk goes with requests under way, and so does the end of one worker before that of another that still asks it.
        let left = |l: &str| l.contains("upstream prematurely closed connection");
        let read = || std::fs::read_to_string(self.lab.path("error.log")).unwrap();
        let before = read().lines().count();
        self.server.stop(libc::SIGQUIT).ok();
        let log = read();
        let alert = |(at, l): &(usize, &str)| {
            let grave = ["[alert]", "[crit]", "[emerg]", "[error]"];
            grave.iter().any(|k| l.contains(k)) && !(*at >= before && left(l))
        };
        assert_eq!(log.lines().enumerate().find(alert), None);
    }
}

fn serves(listen: &str, http: &str, prefix: &str) {
    // Large files on fresh connections are partly sent before these are taken over.
    let lab = carried(6 * LARGE as u64, |lab| {
        let nginx = Nginx::start(lab, listen, http);
        let results = nginx.fetch(prefix);
        for connections in ["2", "16"] {
            nginx.load(&format!("{prefix}small3"), connections);
        }
        nginx.stop();
        results
    });
    let workers = lab
        .lines()
        .iter()
        .filter(|l| l.comm == "nginx" && l.accelerated > 0)
        .count();
    assert!(workers >= 1, "{}", lab.lines_text());
}

#[test]
fn workers_share_a_listener() {
    needs!("nginx", "wrk", "curl");
    serves("", "sendfile on;", "");
}

#[test]
fn workers_have_listeners_of_their_own() {
    needs!("nginx", "wrk", "curl");
    serves("reuseport", "sendfile off;", "");
}

#[test]
fn a_proxy_with_connections_kept_open() {
    needs!("nginx", "wrk", "curl");
    serves("", "sendfile on; tcp_nopush on;", "proxy/");
}

#[test]
fn workers_are_replaced_under_load() {
    needs!("nginx", "wrk", "curl");
    let lab = both(|lab| {
        let nginx = Nginx::start(lab, "reuseport", "");
        std::thread::scope(|scope| {
            let port = nginx.port;
            let mut c = lab.command("wrk");
            c.args(["-t", "1", "-d", "2", "-c", "8"])
                .arg(format!("http://127.0.0.1:{port}/small3"));
            let load = lab.start(c);
            let pid = nginx.server.pid() as i32;
            scope.spawn(move || {
                for _ in 0..3 {
                    std::thread::sleep(std::time::Duration::from_millis(400));
                    // SAFETY: our own child's process.
                    unsafe { libc::kill(pid, libc::SIGHUP) };
                }
            });
            let said = load.finish().text();
            assert!(said.contains("requests in"), "{said}");
        });
        let after = digest(
            &lab.run(nginx.curl(&[], &["large", "small1", "small2", "large"]))
                .ok(),
        );
        nginx.stop();
        after
    });
    assert!(
        lab.lines().iter().any(|l| l.accelerated > 0),
        "{}",
        lab.lines_text()
    );
}
