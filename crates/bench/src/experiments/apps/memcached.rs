//! memcached, asked by threads of our own text-protocol client, which compares every answer.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use super::{Told, Work, ends};
use crate::exchange::Exchange;
use crate::experiment::{ACCELERATED, Arm, Carrier, Cell, Job, Sample, TCP, UNIX, Unit};
use crate::failure::Result;
use crate::tools;

/// Threads of the client, with a connection each.
const CONNECTIONS: u32 = 2;
const VALUE: &str = "100";

/// With `memcached-get` or `memcached-set`.
pub fn memcached(operation: &'static str) -> Box<dyn Work> {
    Box::new(Memcached { operation })
}

struct Memcached {
    operation: &'static str,
}

impl Work for Memcached {
    fn cell(&self) -> Cell {
        let arms: Vec<Arm> = vec![TCP, ACCELERATED, UNIX];
        Cell {
            proof: ends(CONNECTIONS),
            ..Cell::new(self.operation, Unit::Rate, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        let (exchange, address) = serve(job)?;
        let mut client = job.site.tools.load("echo");
        client
            .args(["client", self.operation, &address])
            .args(["--connections", &CONNECTIONS.to_string(), "--size", VALUE])
            .args(["--seconds", &job.time.as_secs_f64().to_string()]);
        let outcome = exchange.run("memcached client", client, Some(libc::SIGTERM))?;
        let own = Told::read("memcached client", &outcome.client_said)?.sample();
        let whole = outcome.sample(own.all_messages, own.rate);
        Ok(Sample {
            cpu_ns: whole.cpu_ns,
            switches: whole.switches,
            loopback_bytes: whole.loopback_bytes,
            counters: whole.counters,
            ..own
        })
    }
}

/// Also gives the address for the client. Without a new connection it would end with its next second.
fn serve<'a>(job: &'a Job<'a>) -> Result<(Exchange<'a>, String)> {
    let program = tools::installed("memcached")?;
    let command = || {
        let mut command = Command::new(&program);
        // It refuses to run as root unless told that root is meant.
        command.args(["-u", "root"]);
        command
    };
    if job.arm.carrier == Carrier::Unix {
        let socket = job.site.scratch.join("memcached.sock");
        let _ = std::fs::remove_file(&socket);
        let mut command = command();
        command.arg("-s").arg(&socket);
        let exchange = Exchange::serve(job, "memcached", command, |_| socket.exists())?;
        let address = format!("unix:{}", socket.display());
        let connect = move || drop(UnixStream::connect(socket));
        return Ok((exchange.nudged_by(connect), address));
    }
    let command = |port: u16| {
        let mut command = command();
        command.args(["-l", "127.0.0.1", "-U", "0", "-p", &port.to_string()]);
        Ok(command)
    };
    let (exchange, port) = Exchange::serve_on_port(None, job, "memcached", command, |_| true)?;
    let connect = move || drop(TcpStream::connect(("127.0.0.1", port)));
    Ok((exchange.nudged_by(connect), format!("127.0.0.1:{port}")))
}
