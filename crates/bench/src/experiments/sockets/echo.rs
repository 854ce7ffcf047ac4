//! The tree's own echo pair: round trips, one-way writes, a connection per request, many connections.

use super::super::printed::both_ends;
use super::super::work::boxed;
use super::{Work, raw};
use crate::carriage::Proof;
use crate::exchange::Exchange;
use crate::experiment::{
    ACCELERATED, ACCELERATED_NODELAY, CACHE_LINE, Carrier, Cell, Job, RAW_CHANNEL, Sample, TCP,
    TCP_NODELAY, UNIX, Unit,
};
use crate::failure::Result;
use crate::process::Running;

pub fn works() -> Vec<Box<dyn Work>> {
    let round_trips = [1, 70, 512, 1000, 4096, 16384, 65536].map(|size| (Kind::RoundTrip, size));
    let streams = [1, 64, 1024, 16384, 65536, 262144, 1048576].map(|size| (Kind::OneWay, size));
    let fans = [1, 10, 100, 1000].map(|connections| (Kind::Fan(connections), 64));
    let works = round_trips
        .into_iter()
        .chain(streams)
        .chain([(Kind::Connect, 64)])
        .chain(fans);
    boxed(works.map(|(kind, size)| Echo { kind, size })).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    RoundTrip,
    OneWay,
    Connect,
    Fan(usize),
}

struct Echo {
    kind: Kind,
    size: usize,
}

impl Work for Echo {
    fn cell(&self) -> Cell {
        let mut arms = vec![TCP, ACCELERATED, UNIX];
        let nodelay = [TCP_NODELAY, ACCELERATED_NODELAY];
        let size = self.size;
        let (name, unit) = match self.kind {
            Kind::RoundTrip => {
                arms.extend(nodelay);
                arms.push(RAW_CHANNEL);
                if size <= 70 {
                    arms.push(CACHE_LINE);
                }
                (format!("rtt-{size}"), Unit::RoundTrip)
            }
            Kind::OneWay => {
                arms.extend(nodelay);
                arms.push(RAW_CHANNEL);
                (format!("oneway-{size}"), Unit::Stream)
            }
            Kind::Connect => ("connect".to_string(), Unit::Rate),
            Kind::Fan(connections) => (format!("epoll-{connections}"), Unit::Rate),
        };
        let proof = match self.kind {
            // A connection without a message ends before it is taken over.
            Kind::Connect => Proof::Loaded,
            _ => Proof::Carried { ends: 1 },
        };
        // A thousand connections take their time to be made.
        let stretch = match self.kind {
            Kind::Fan(1000) => 5.0,
            _ => 1.0,
        };
        Cell {
            proof,
            stretch,
            size: (self.kind != Kind::Connect).then_some(size),
            ..Cell::new(name, unit, arms)
        }
    }

    fn sample(&self, job: &Job<'_>) -> Result<Sample> {
        if job.arm.carrier == Carrier::Raw {
            return raw::sample(job, self.kind == Kind::OneWay, self.size);
        }
        let mode = match self.kind {
            Kind::RoundTrip => "echo",
            Kind::OneWay => "sink",
            Kind::Connect | Kind::Fan(_) => "epoll",
        };
        let fan = match self.kind {
            Kind::Fan(connections) => Some(connections),
            _ => None,
        };
        let (exchange, address) = serve(job, mode, fan)?;
        let mut client = job.site.tools.load("echo");
        client.args(["client", self.client(), &address]);
        client.args(["--size", &self.size.to_string()]);
        client.args(["--seconds", &job.time.as_secs_f64().to_string()]);
        if let Some(connections) = fan {
            client.args(["--connections", &connections.to_string()]);
        }
        client.args(options(job));
        both_ends(exchange.run("headwater-load echo client", client, None)?)
    }
}

impl Echo {
    fn client(&self) -> &'static str {
        match self.kind {
            Kind::RoundTrip => "rtt",
            Kind::OneWay => "stream",
            Kind::Connect => "connect",
            Kind::Fan(_) => "fan",
        }
    }
}

/// Starts our own server, for so many connections or for one after the other; also gives its address.
pub fn serve<'a>(
    job: &'a Job<'a>,
    mode: &str,
    connections: Option<usize>,
) -> Result<(Exchange<'a>, String)> {
    let mut server = job.site.tools.load("echo");
    let path = job.site.scratch.join("echo.sock");
    let address = match job.arm.carrier {
        Carrier::Unix => format!("unix:{}", path.display()),
        _ => "127.0.0.1:0".to_string(),
    };
    let _ = std::fs::remove_file(&path);
    server.args(["server", mode, &address, "--until-eof"]);
    if let Some(connections) = connections {
        server.args(["--connections", &connections.to_string()]);
    }
    server.args(options(job));
    let is_up = |server: &Running| server.said().ends_with('\n');
    let exchange = Exchange::serve(job, "headwater-load echo server", server, is_up)?;
    let address = exchange.address();
    Ok((exchange, address))
}

/// Cubic is what bulk is compared with; it is asked for everywhere, and the result names what was in use.
fn options(job: &Job<'_>) -> impl Iterator<Item = &'static str> {
    ["--cubic"]
        .into_iter()
        .chain(job.arm.nodelay.then_some("--nodelay"))
}
