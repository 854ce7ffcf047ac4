//! redis: one client, many, pipelines, large values, publish/subscribe, blocking commands.

use std::io::Write;

use headwater_e2e::{Lab, Running, both, judged, lab, network};
use headwater_testkit::needs;

struct Redis<'a> {
    lab: &'a Lab,
    port: u16,
    server: Option<Running>,
}

impl<'a> Redis<'a> {
    fn start(lab: &'a Lab) -> Redis<'a> {
        let port = network::free_port();
        let mut c = lab.command("redis-server");
        c.args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
            "-::1",
        ])
        .arg("--port")
        .arg(port.to_string());
        Redis {
            lab,
            port,
            server: Some(lab.serve(c, port)),
        }
    }

    fn tool(&self, name: &str, args: &[&str]) -> std::process::Command {
        let mut c = self.lab.command(name);
        c.arg("-p").arg(self.port.to_string()).args(args);
        c
    }

    /// The answers of the server to a script of commands, one connection.
    fn script(&self, text: &str) -> Vec<u8> {
        let path = self.lab.path("script");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut c = self.tool("redis-cli", &[]);
        c.stdin(headwater_e2e::program::input(&path));
        self.lab.run(c).ok()
    }

    fn stop(mut self) {
        self.server.take().unwrap().stop(libc::SIGTERM).ok();
    }
}

#[test]
fn commands_of_one_client() {
    needs!("redis-server", "redis-tools");
    let lab = both(|lab| {
        let redis = Redis::start(lab);
        let mut script = String::new();
        for i in 0..5000 {
            script += &format!(
                "SET key:{i} value-{}\nGET key:{}\nINCR n\n",
                i * 7919,
                i / 2
            );
            script += &format!("APPEND log entry-{i}-of-a-growing-text\n");
        }
        script += "DBSIZE\nSTRLEN key:199\n";
        let answers = redis.script(&script);
        redis.stop();
        answers
    });
    // The client asks for the list of commands first, before anything is carried.
    lab.assert_carried(800_000);
}

#[test]
fn large_values_keep_their_bytes() {
    needs!("redis-server", "redis-tools");
    const SIZE: usize = 12 << 20;
    let large = |lab: &Lab| {
        let redis = Redis::start(lab);
        let value = lab.payload("value", SIZE);
        for _ in 0..2 {
            let mut set = redis.tool("redis-cli", &["-x", "SET", "large"]);
            set.stdin(headwater_e2e::program::input(&value));
            assert_eq!(lab.run(set).text().trim(), "OK");
        }
        let warm = "PING\n".repeat(20) + "GET large\n";
        let answers = redis.script(&warm);
        redis.stop();
        assert!(answers.len() > SIZE / 2);
        answers
    };
    // What is set goes partly by the kernel, on fresh connections; what one gets that is carried does not.
    let right = |lab: &Lab| {
        lab.kernel_saw_less_than(3 * SIZE as u64 + (2 << 20))?;
        let carried = lab.lines().iter().map(|l| l.shm_rx).max();
        match carried >= Some(SIZE as u64) {
            true => Ok(()),
            false => Err(lab.lines_text()),
        }
    };
    judged(|| both(large), right);
}

#[test]
fn benchmark_with_many_clients() {
    needs!("redis-server", "redis-tools");
    let lab = both(|lab| {
        let redis = Redis::start(lab);
        let tests = [
            "-q",
            "-t",
            "set,get,incr,lpush,lpop,lrange_100",
            "-n",
            "4000",
            "-d",
            "100",
        ];
        for extra in [
            &["-c", "50"][..],
            &["-c", "20", "-P", "16"],
            &["-c", "1"],
            &["-c", "30", "--threads", "2"],
        ] {
            let out = lab
                .run(redis.tool("redis-benchmark", &[&tests[..], extra].concat()))
                .text();
            assert!(out.contains("LRANGE_100"), "{out}");
        }
        // Every request was executed once: the list has what was pushed and not popped.
        let answers = redis
            .script("LLEN mylist\nGET counter:__rand_int__\nSTRLEN key:__rand_int__\nDBSIZE\n");
        redis.stop();
        answers
    });
    lab.assert_carried(150 << 20);
}

#[test]
fn subscribers_and_blocked_clients_are_woken() {
    needs!("redis-server", "redis-tools", "python3");
    let lab = both(|lab| {
        let redis = Redis::start(lab);
        let code = lab::source("py/redis_wait.py");
        let mut c = lab.command("/usr/bin/python3");
        c.arg(code).arg(redis.port.to_string());
        let said = lab.run(c).text();
        redis.stop();
        said
    });
    assert!(
        lab.lines().iter().any(|l| l.accelerated >= 4),
        "{}",
        lab.lines_text()
    );
}
