//! The engine alone over a plain UDP socket (RFC 6951): what its user has to do, and nothing else.
//!
//! ```text
//! udp_peer --udp 127.0.0.1:9900 --port 7 echo                       answers each message with itself
//! udp_peer --udp 127.0.0.1:9900 --port 9 discard                    counts
//! udp_peer --udp 127.0.0.1:9900 --port 19 source 1000 64            sends 1000 messages of 64 bytes to who connects
//! udp_peer --udp 127.0.0.1:9901 --port 5000 --to 127.0.0.1:9900/7 ping 100 3000
//!                                                                   sends, and wants the same back
//! udp_peer --udp 127.0.0.1:9901 --port 5000 --to 127.0.0.1:9900/9 source 1000 64
//! ```
//!
//! `--streams N` spreads the messages, `--interleave` offers RFC 8260, `--stay` serves more than one association, `--abort` ends by ABORT,
//! `--unordered` and `--mtu N` do as they say. `--address A` (more than once: several paths) is told to the peer, `--quick` gives paths up
//! within a second or two, `--pace MS` waits between messages. `--linger MS` answers so long after the end, as a kernel does: where the last
//! packet was lost, the peer asks again. The last line tells what went through.

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use headwater_sctp::association::SendError;
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::Peer;
use headwater_sctp::{
    Arrived, AssocConfig, AssocId, Config, Down, Endpoint, Event, Outgoing, Time,
};

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut driver = Driver::new(&options)?;
    match options.to {
        Some((address, port)) => driver.connect(address, port)?,
        None => driver.endpoint.listen(16),
    }
    println!("ready");
    driver.run()?;
    println!(
        "sent {} messages {} bytes, received {} messages {} bytes, {:.6} s: {}",
        driver.sent.0,
        driver.sent.1,
        driver.received.0,
        driver.received.1,
        driver
            .begun
            .map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
        driver.end
    );
    match driver.failed {
        true => Err(driver.end.into()),
        false => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Echo,
    Discard,
    Source { count: u64, len: usize },
    Ping { count: u64, len: usize },
}

struct Options {
    udp: SocketAddr,
    port: u16,
    to: Option<(SocketAddr, u16)>,
    work: Work,
    streams: u16,
    stay: bool,
    abort: bool,
    unordered: bool,
    addresses: Vec<IpAddr>,
    pace: Duration,
    linger: Duration,
    config: AssocConfig,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
        let mut options = Options {
            udp: "127.0.0.1:9899".parse()?,
            port: 5000,
            to: None,
            work: Work::Echo,
            streams: 1,
            stay: false,
            abort: false,
            unordered: false,
            addresses: Vec::new(),
            pace: Duration::ZERO,
            linger: Duration::ZERO,
            config: AssocConfig {
                nagle: false,
                ..AssocConfig::default()
            },
        };
        while let Some(word) = words.next() {
            let mut next = || words.next().ok_or(format!("{word} needs more"));
            match word.as_str() {
                "--udp" => options.udp = next()?.parse()?,
                "--port" => options.port = next()?.parse()?,
                "--to" => {
                    let to = next()?;
                    let (address, port) = to
                        .rsplit_once('/')
                        .ok_or("--to ADDRESS:UDP-PORT/SCTP-PORT")?;
                    options.to = Some((address.parse()?, port.parse()?));
                }
                "--streams" => options.streams = next()?.parse()?,
                "--mtu" => {
                    options.config.mtu = next()?.parse()?;
                    options.config.most_mtu = options.config.mtu;
                }
                "--interleave" => options.config.interleave = true,
                "--stay" => options.stay = true,
                "--abort" => options.abort = true,
                "--address" => options.addresses.push(next()?.parse()?),
                "--pace" => options.pace = Duration::from_millis(next()?.parse()?),
                "--linger" => options.linger = Duration::from_millis(next()?.parse()?),
                "--quick" => quick(&mut options.config),
                "--unordered" => options.unordered = true,
                "echo" => options.work = Work::Echo,
                "discard" => options.work = Work::Discard,
                "source" | "ping" => {
                    let (count, len) = (next()?.parse()?, next()?.parse()?);
                    options.work = match word.as_str() {
                        "source" => Work::Source { count, len },
                        _ => Work::Ping { count, len },
                    };
                }
                _ => return Err(format!("what is {word}?").into()),
            }
        }
        options.config.outbound = options.config.outbound.max(options.streams);
        Ok(options)
    }
}

/// Where a path that fails is to be noticed within a second or two.
fn quick(config: &mut AssocConfig) {
    config.rto.min = Duration::from_millis(100);
    config.rto.initial = Duration::from_millis(200);
    config.path_retransmissions = 2;
    config.heartbeat_interval = Duration::from_millis(500);
}

struct Driver<'a> {
    options: &'a Options,
    endpoint: Endpoint,
    socket: UdpSocket,
    origin: Instant,
    active: Option<AssocId>,
    /// What is to be echoed: parts of messages by stream and order.
    parts: HashMap<(u16, bool), Vec<u8>>,
    echoes: Vec<(Outgoing, Vec<u8>)>,
    sent: (u64, u64),
    received: (u64, u64),
    begun: Option<Instant>,
    next: Instant,
    end: String,
    failed: bool,
}

impl<'a> Driver<'a> {
    fn new(options: &'a Options) -> Result<Driver<'a>, Box<dyn Error>> {
        let config = Config {
            association: options.config.clone(),
            ..Config::new(Box::new(RotatingKeys::new(random()?)))
        };
        Ok(Driver {
            options,
            endpoint: Endpoint::new(config, options.port, options.addresses.clone(), random()?),
            socket: UdpSocket::bind(options.udp)?,
            origin: Instant::now(),
            active: None,
            parts: HashMap::new(),
            echoes: Vec::new(),
            sent: (0, 0),
            received: (0, 0),
            begun: None,
            next: Instant::now(),
            end: String::new(),
            failed: false,
        })
    }

    fn connect(&mut self, to: SocketAddr, port: u16) -> Result<(), Box<dyn Error>> {
        let peer = Peer {
            addresses: &[to.ip()],
            port,
            encap: Some(to.port()),
        };
        let (now, config) = (self.now(), &self.options.config);
        let begun = self.endpoint.connect(now, &peer, config);
        self.active = Some(begun.map_err(|error| format!("{error:?}"))?);
        Ok(())
    }

    fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    /// Until the association is over, and as long behind it as was asked for.
    fn run(&mut self) -> Result<(), Box<dyn Error>> {
        let mut packet = vec![0; 1 << 16];
        let mut ended = None;
        loop {
            self.work();
            self.transmit()?;
            if !self.end.is_empty()
                && ended.get_or_insert_with(Instant::now).elapsed() >= self.options.linger
            {
                return Ok(());
            }
            if let Some((len, from)) = self.wait(&mut packet)? {
                let arrived = Arrived {
                    from: from.ip(),
                    to: self.options.udp.ip(),
                    encap: Some(from.port()),
                    packet: &packet[..len],
                };
                self.endpoint.handle(self.now(), &arrived);
            }
            let now = self.now();
            if self.endpoint.timeout().is_some_and(|at| at <= now) {
                self.endpoint.on_timeout(now);
            }
        }
    }

    /// The next datagram, or none until the next deadline.
    ///
    /// The kernel chooses our address by the route; which one a packet came to is not asked.
    fn wait(&self, packet: &mut [u8]) -> Result<Option<(usize, SocketAddr)>, Box<dyn Error>> {
        let deadline = self.endpoint.timeout().map(|at| at.since(self.now()));
        let pace = match self.next.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Duration::from_secs(1),
            left => left,
        };
        let wait = deadline.map_or(pace, |deadline| deadline.min(pace));
        let wait = wait.max(Duration::from_micros(50));
        self.socket.set_read_timeout(Some(wait))?;
        // A peer that is gone makes ICMP errors; timers take care of it.
        Ok(self.socket.recv_from(packet).ok())
    }

    fn transmit(&mut self) -> Result<(), Box<dyn Error>> {
        let mut out = Vec::new();
        while let Some(transmit) = self.endpoint.transmit(self.now(), &mut out, 1) {
            let to = SocketAddr::new(
                transmit.to,
                transmit.encap.ok_or("a packet that is not encapsulated")?,
            );
            for segment in out.chunks(transmit.segment) {
                let _ = self.socket.send_to(segment, to);
            }
            out.clear();
        }
        Ok(())
    }

    fn work(&mut self) {
        while let Some((id, event)) = self.endpoint.event() {
            self.told(id, event);
        }
        if let Some(id) = self.active {
            self.receive(id);
            self.send(id);
        }
    }

    fn told(&mut self, id: AssocId, event: Event) {
        match event {
            Event::Up { by_peer } => {
                self.begun = Some(Instant::now());
                if by_peer && self.endpoint.accept() == Some(id) {
                    self.active = Some(id);
                }
            }
            Event::Down(down) => {
                self.receive(id);
                self.endpoint.release(self.now(), id);
                self.active = None;
                let aborted = self.options.abort && matches!(down, Down::Aborted { .. });
                self.failed = down != Down::Shutdown && !aborted;
                if !self.options.stay {
                    self.end = format!("{down:?}");
                }
            }
            _ => {}
        }
    }

    fn receive(&mut self, id: AssocId) {
        let mut buffer = vec![0; 1 << 16];
        while let Some(piece) = self.endpoint.receive(id, &mut buffer) {
            self.received.1 += piece.len as u64;
            self.received.0 += u64::from(piece.end);
            if matches!(self.options.work, Work::Discard | Work::Source { .. }) {
                continue;
            }
            let message = (piece.stream, piece.unordered);
            let part = self.parts.entry(message).or_default();
            part.extend_from_slice(&buffer[..piece.len]);
            if piece.end {
                let whole = std::mem::take(part);
                self.take(piece.stream, piece.unordered, piece.ppid, whole);
            }
        }
    }

    fn take(&mut self, stream: u16, unordered: bool, ppid: u32, whole: Vec<u8>) {
        match self.options.work {
            Work::Echo => self.echoes.push((outgoing(stream, unordered, ppid), whole)),
            Work::Ping { len, .. } => assert!(
                whole == content(u64::from(ppid), len),
                "message {ppid} came back damaged"
            ),
            _ => {}
        }
    }

    fn send(&mut self, id: AssocId) {
        while let Some((message, bytes)) = self.echoes.first() {
            let association = self.endpoint.association(id);
            let streams = association.map_or(1, |a| a.sender().streams());
            let message = Outgoing {
                stream: message.stream % streams.max(1),
                ..*message
            };
            let sent = self.endpoint.send(self.now(), id, &message, bytes, false);
            if sent == Err(SendError::NoRoom) {
                return;
            }
            self.sent = (self.sent.0 + 1, self.sent.1 + bytes.len() as u64);
            self.echoes.remove(0);
        }
        let (count, len) = match self.options.work {
            Work::Source { count, len } | Work::Ping { count, len } => (count, len),
            _ => return,
        };
        while self.sent.0 < count && self.next <= Instant::now() {
            let n = self.sent.0;
            let stream = (n % u64::from(self.options.streams)) as u16;
            let message = outgoing(stream, self.options.unordered, n as u32);
            let data = content(n, len);
            let sent = self.endpoint.send(self.now(), id, &message, &data, false);
            if sent.is_err() {
                return;
            }
            self.sent = (n + 1, self.sent.1 + len as u64);
            if !self.options.pace.is_zero() {
                self.next = Instant::now() + self.options.pace;
            }
        }
        if self.sent.0 < count {
            return;
        }
        let answered = !matches!(self.options.work, Work::Ping { .. }) || self.received.0 == count;
        if answered && self.options.to.is_some() || matches!(self.options.work, Work::Source { .. })
        {
            match self.options.abort {
                true => self.endpoint.abort(self.now(), id, b"enough"),
                false => self.endpoint.shutdown(self.now(), id),
            }
        }
    }
}

fn outgoing(stream: u16, unordered: bool, ppid: u32) -> Outgoing {
    Outgoing {
        stream,
        ppid,
        unordered,
        ..Outgoing::default()
    }
}

fn content(n: u64, len: usize) -> Vec<u8> {
    let byte = |at: usize| (n.wrapping_mul(31) as usize + at * 7 + at / 251) as u8;
    (0..len).map(byte).collect()
}

fn random() -> std::io::Result<[u8; 32]> {
    use std::io::Read;
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
