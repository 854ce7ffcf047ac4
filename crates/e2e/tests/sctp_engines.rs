//! The engine against two other engines in this process, in both directions, over clean and lossy lines.
//!
//! Each message carries its number, its stream's number and bytes that follow from them; all come, once, in order.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dcsctp::api as dc;
use headwater_sctp::Time;
use headwater_sctp::config::{AssocConfig, Config};
use headwater_sctp::cookie::RotatingKeys;
use headwater_sctp::endpoint::{Arrived, AssocId, Endpoint, Peer};
use headwater_sctp::event::{Down, Event};
use headwater_sctp::send::{Outgoing, Reliability};
use rtc_shared::TransportProtocol;

const PORT: u16 = 5000;
const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const THEIRS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const LIMIT: Duration = Duration::from_secs(4000);
const DELAY: Duration = Duration::from_millis(3);
const SEEDS: u64 = 12;

/// What both kinds of engine can do.
trait Engine {
    /// Its own shutdown can be relied on.
    const SHUTS_DOWN: bool = true;

    fn connect(&mut self);
    fn packet(&mut self, now: Duration, bytes: &[u8]);
    fn packets(&mut self, now: Duration) -> Vec<Vec<u8>>;
    fn deadline(&self, now: Duration) -> Option<Duration>;
    fn pass(&mut self, now: Duration);
    fn is_up(&mut self) -> bool;
    fn is_over(&mut self) -> bool;
    /// False where there is no room.
    fn send(&mut self, now: Duration, stream: u16, unordered: bool, bytes: &[u8]) -> bool;
    fn receive(&mut self, now: Duration) -> Option<(u16, Vec<u8>)>;
    fn shutdown(&mut self, now: Duration);
}

struct Ours {
    endpoint: Endpoint,
    config: AssocConfig,
    id: Option<AssocId>,
    up: bool,
    down: Option<Down>,
    parts: BTreeMap<(u16, bool), Vec<u8>>,
}

impl Ours {
    fn new(config: AssocConfig, seed: u8) -> Ours {
        let whole = Config {
            association: config.clone(),
            ..Config::new(Box::new(RotatingKeys::new([seed; 32])))
        };
        let mut endpoint = Endpoint::new(whole, PORT, Vec::new(), [seed ^ 99; 32]);
        endpoint.listen(1);
        Ours {
            endpoint,
            config,
            id: None,
            up: false,
            down: None,
            parts: BTreeMap::new(),
        }
    }

    fn look(&mut self) {
        while let Some((id, event)) = self.endpoint.event() {
            match event {
                Event::Up { by_peer } => {
                    self.up = true;
                    if by_peer {
                        self.id = self.endpoint.accept();
                    }
                    assert_eq!(self.id, Some(id));
                }
                Event::Down(down) => self.down = Some(down),
                _ => {}
            }
        }
    }
}

fn at(now: Duration) -> Time {
    Time(now.as_nanos() as u64)
}

impl Engine for Ours {
    fn connect(&mut self) {
        let peer = Peer {
            addresses: &[THEIRS],
            port: PORT,
            encap: None,
        };
        self.id = Some(
            self.endpoint
                .connect(Time(0), &peer, &self.config)
                .expect("connect"),
        );
    }

    fn packet(&mut self, now: Duration, bytes: &[u8]) {
        self.endpoint.handle(
            at(now),
            &Arrived {
                from: THEIRS,
                to: OURS,
                encap: None,
                packet: bytes,
            },
        );
    }

    fn packets(&mut self, now: Duration) -> Vec<Vec<u8>> {
        let (mut packets, mut out) = (Vec::new(), Vec::new());
        while let Some(transmit) = self.endpoint.transmit(at(now), &mut out, 16) {
            packets.extend(out.chunks(transmit.segment).map(<[u8]>::to_vec));
            out.clear();
        }
        packets
    }

    fn deadline(&self, _now: Duration) -> Option<Duration> {
        self.endpoint.timeout().map(|at| Duration::from_nanos(at.0))
    }

    fn pass(&mut self, now: Duration) {
        self.endpoint.on_timeout(at(now));
    }

    fn is_up(&mut self) -> bool {
        self.look();
        self.up
    }

    fn is_over(&mut self) -> bool {
        self.look();
        assert!(
            self.down
                .as_ref()
                .is_none_or(|down| *down == Down::Shutdown),
            "{:?}",
            self.down
        );
        self.down.is_some()
    }

    fn send(&mut self, now: Duration, stream: u16, unordered: bool, bytes: &[u8]) -> bool {
        let message = Outgoing {
            stream,
            ppid: 53,
            unordered,
            sack_now: false,
            reliability: Reliability::Full,
            context: 0,
            ..Outgoing::default()
        };
        let id = self.id.expect("an association");
        self.endpoint
            .send(at(now), id, &message, bytes, false)
            .is_ok()
    }

    fn receive(&mut self, _now: Duration) -> Option<(u16, Vec<u8>)> {
        let mut buffer = [0; 3000];
        while let Some(piece) = self.endpoint.receive(self.id?, &mut buffer) {
            let part = self
                .parts
                .entry((piece.stream, piece.unordered))
                .or_default();
            part.extend_from_slice(&buffer[..piece.len]);
            if piece.end {
                return Some((piece.stream, std::mem::take(part)));
            }
        }
        None
    }

    fn shutdown(&mut self, now: Duration) {
        self.endpoint
            .shutdown(at(now), self.id.expect("an association"));
    }
}

struct Dcsctp {
    socket: Box<dyn dc::DcSctpSocket>,
    out: Vec<Vec<u8>>,
    up: bool,
    over: bool,
}

impl Dcsctp {
    fn new(interleave: bool) -> Dcsctp {
        let options = dc::Options {
            local_port: PORT,
            remote_port: PORT,
            enable_message_interleaving: interleave,
            max_retransmissions: None,
            max_init_retransmits: None,
            ..dc::Options::default()
        };
        Dcsctp {
            socket: dcsctp::new_socket("peer", &options),
            out: Vec::new(),
            up: false,
            over: false,
        }
    }

    fn look(&mut self) {
        while let Some(event) = self.socket.poll_event() {
            match event {
                dc::SocketEvent::SendPacket(packet) => self.out.push(packet),
                dc::SocketEvent::OnConnected() => self.up = true,
                dc::SocketEvent::OnClosed() => self.over = true,
                dc::SocketEvent::OnAborted(kind, why) => panic!("dcsctp aborts: {kind:?} {why}"),
                dc::SocketEvent::OnError(kind, why) => panic!("dcsctp says: {kind:?} {why}"),
                _ => {}
            }
        }
    }

    fn time(now: Duration) -> dc::SocketTime {
        dc::SocketTime::zero() + now
    }
}

impl Engine for Dcsctp {
    fn connect(&mut self) {
        self.socket.connect();
    }

    fn packet(&mut self, now: Duration, bytes: &[u8]) {
        self.socket.advance_time(Dcsctp::time(now));
        self.socket.handle_input(bytes);
    }

    fn packets(&mut self, _now: Duration) -> Vec<Vec<u8>> {
        self.look();
        std::mem::take(&mut self.out)
    }

    fn deadline(&self, _now: Duration) -> Option<Duration> {
        let next = self.socket.poll_timeout();
        (next < dc::SocketTime::infinite_future()).then(|| next - dc::SocketTime::zero())
    }

    fn pass(&mut self, now: Duration) {
        self.socket.advance_time(Dcsctp::time(now));
    }

    fn is_up(&mut self) -> bool {
        self.look();
        self.up
    }

    fn is_over(&mut self) -> bool {
        self.look();
        self.over
    }

    fn send(&mut self, now: Duration, stream: u16, unordered: bool, bytes: &[u8]) -> bool {
        self.socket.advance_time(Dcsctp::time(now));
        let options = dc::SendOptions {
            unordered,
            lifetime: None,
            max_retransmissions: None,
            lifecycle_id: None,
        };
        self.socket
            .send(
                dc::Message::new(dc::StreamId(stream), dc::PpId(53), bytes.to_vec()),
                &options,
            )
            .is_ok()
    }

    fn receive(&mut self, _now: Duration) -> Option<(u16, Vec<u8>)> {
        let message = self.socket.get_next_message()?;
        assert_eq!(message.ppid, dc::PpId(53));
        Some((message.stream_id.0, message.payload))
    }

    fn shutdown(&mut self, _now: Duration) {
        self.socket.shutdown();
    }
}

struct Rtc {
    endpoint: rtc_sctp::Endpoint,
    config: rtc_sctp::TransportConfig,
    association: Option<(rtc_sctp::AssociationHandle, rtc_sctp::Association)>,
    origin: Instant,
    up: bool,
    over: bool,
}

impl Rtc {
    fn new() -> Rtc {
        let timers = rtc_sctp::TimerConfig {
            max_t1_init_retrans: 100,
            max_t1_cookie_retrans: 100,
            max_t2_shutdown_retrans: 100,
            ..Default::default()
        };
        let config = rtc_sctp::TransportConfig::default()
            .with_timer_config(timers)
            .with_max_message_size(1 << 20);
        let server = Arc::new(rtc_sctp::ServerConfig::new(config.clone()));
        let local = SocketAddr::new(THEIRS, PORT);
        let endpoint = Arc::new(rtc_sctp::EndpointConfig::new());
        Rtc {
            endpoint: rtc_sctp::Endpoint::new(
                local,
                TransportProtocol::UDP,
                endpoint,
                Some(server),
            ),
            config,
            association: None,
            origin: Instant::now(),
            up: false,
            over: false,
        }
    }

    fn look(&mut self) {
        let Some((handle, association)) = &mut self.association else {
            return;
        };
        while let Some(event) = association.poll_endpoint_event() {
            self.endpoint.handle_event(*handle, event);
        }
        while let Some(event) = association.poll() {
            match event {
                rtc_sctp::Event::Connected => self.up = true,
                rtc_sctp::Event::HandshakeFailed { reason } => panic!("rtc-sctp says: {reason:?}"),
                rtc_sctp::Event::AssociationLost { .. } => self.over = true,
                _ => {}
            }
        }
        self.over |= association.is_closed();
    }
}

impl Engine for Rtc {
    /// Version 0.21 puts a TSN of its own into SHUTDOWN, where the peer's belongs, and is deaf to SHUTDOWN ACK.
    const SHUTS_DOWN: bool = false;

    fn connect(&mut self) {
        let config = rtc_sctp::ClientConfig::new(self.config.clone());
        let to = SocketAddr::new(OURS, PORT);
        self.association = Some(
            self.endpoint
                .connect(self.origin, config, to)
                .expect("connect"),
        );
    }

    fn packet(&mut self, now: Duration, bytes: &[u8]) {
        let from = SocketAddr::new(OURS, PORT);
        let data = Bytes::copy_from_slice(bytes);
        match self.endpoint.handle(self.origin + now, from, None, data) {
            Some((handle, rtc_sctp::DatagramEvent::NewAssociation(association))) => {
                self.association = Some((handle, association));
            }
            Some((_, rtc_sctp::DatagramEvent::AssociationEvent(event))) => {
                self.association
                    .as_mut()
                    .expect("an association")
                    .1
                    .handle_event(event);
            }
            _ => {}
        }
    }

    fn packets(&mut self, now: Duration) -> Vec<Vec<u8>> {
        self.look();
        let mut packets = Vec::new();
        let Some((_, association)) = &mut self.association else {
            return packets;
        };
        while let Some(transmit) = association.poll_transmit(self.origin + now) {
            if let rtc_sctp::Payload::RawEncode(raw) = transmit.message {
                packets.extend(raw.iter().map(|bytes| bytes.to_vec()));
            }
        }
        packets
    }

    fn deadline(&self, _now: Duration) -> Option<Duration> {
        let next = self.association.as_ref()?.1.poll_timeout()?;
        Some(next.saturating_duration_since(self.origin))
    }

    fn pass(&mut self, now: Duration) {
        if let Some((_, association)) = &mut self.association {
            association.handle_timeout(self.origin + now);
        }
    }

    fn is_up(&mut self) -> bool {
        self.look();
        self.up
    }

    fn is_over(&mut self) -> bool {
        self.look();
        self.over
    }

    fn send(&mut self, now: Duration, stream: u16, unordered: bool, bytes: &[u8]) -> bool {
        use rtc_sctp::PayloadProtocolIdentifier::Binary;
        let now = self.origin + now;
        let association = &mut self.association.as_mut().expect("an association").1;
        if association.stream(stream).is_err() {
            association.open_stream(stream, Binary).expect("a stream");
        }
        let mut stream = association.stream(stream).expect("just opened");
        stream
            .set_reliability_params(unordered, rtc_sctp::ReliabilityType::Reliable, 0)
            .expect("parameters");
        stream.write_with_ppi(now, bytes, Binary).is_ok()
    }

    fn receive(&mut self, _now: Duration) -> Option<(u16, Vec<u8>)> {
        let association = &mut self.association.as_mut()?.1;
        while association.accept_stream().is_some() {}
        association.stream_ids().into_iter().find_map(|id| {
            let chunks = association.stream(id).ok()?.read_sctp().ok()??;
            Some((id, chunks.to_payload(1 << 20).expect("a message").to_vec()))
        })
    }

    fn shutdown(&mut self, _now: Duration) {
        self.association
            .as_mut()
            .expect("an association")
            .1
            .shutdown()
            .expect("shutdown");
    }
}

/// Unordered? And its bytes.
type Message = (bool, Vec<u8>);

/// Both engines, virtual time, and a line that may lose, exchange and double.
struct Line<E> {
    ours: Ours,
    theirs: E,
    now: Duration,
    flights: BTreeMap<(Duration, u64), (bool, Vec<u8>)>,
    count: u64,
    chance: u64,
    loss: u64,
    /// By direction (0: ours to theirs): what was sent and not yet received, by stream.
    sent: [BTreeMap<u16, Vec<Message>>; 2],
    missing: usize,
}

impl<E: Engine> Line<E> {
    fn new(ours: Ours, theirs: E, seed: u64, loss: u64) -> Line<E> {
        Line {
            ours,
            theirs,
            now: Duration::ZERO,
            flights: BTreeMap::new(),
            count: 0,
            chance: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            loss,
            sent: Default::default(),
            missing: 0,
        }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance % end
    }

    fn flush(&mut self) {
        let ours = self
            .ours
            .packets(self.now)
            .into_iter()
            .map(|bytes| (true, bytes));
        let theirs = self
            .theirs
            .packets(self.now)
            .into_iter()
            .map(|bytes| (false, bytes));
        for flight in ours.chain(theirs).collect::<Vec<_>>() {
            if self.below(1000) < self.loss {
                continue;
            }
            self.count += 1;
            let jitter = match self.loss {
                0 => 0,
                _ => self.below(2000),
            };
            self.flights.insert(
                (self.now + DELAY + Duration::from_micros(jitter), self.count),
                flight,
            );
        }
    }

    fn step(&mut self) {
        self.flush();
        let deadlines = [self.ours.deadline(self.now), self.theirs.deadline(self.now)];
        let arrival = self.flights.first_key_value().map(|((at, _), _)| *at);
        let next = deadlines
            .into_iter()
            .flatten()
            .chain(arrival)
            .min()
            .expect("something happens");
        self.now = next.max(self.now);
        assert!(
            self.now < LIMIT,
            "it takes for ever; missing {}",
            self.missing
        );
        self.ours.pass(self.now);
        self.theirs.pass(self.now);
        while let Some(entry) = self.flights.first_entry()
            && entry.key().0 <= self.now
        {
            let (to_theirs, bytes) = entry.remove();
            match to_theirs {
                true => self.theirs.packet(self.now, &bytes),
                false => self.ours.packet(self.now, &bytes),
            }
        }
        self.receive();
        self.flush();
    }

    fn receive(&mut self) {
        while let Some((stream, bytes)) = self.ours.receive(self.now) {
            self.came(1, stream, &bytes);
        }
        while let Some((stream, bytes)) = self.theirs.receive(self.now) {
            self.came(0, stream, &bytes);
        }
    }

    fn came(&mut self, direction: usize, stream: u16, bytes: &[u8]) {
        let waiting = self.sent[direction]
            .get_mut(&stream)
            .expect("a stream that was used");
        let position = waiting.iter().position(|(_, sent)| sent == bytes);
        let position =
            position.unwrap_or_else(|| panic!("{} bytes that nobody sent, or twice", bytes.len()));
        let (unordered, _) = waiting.remove(position);
        let overtaken = waiting[..position]
            .iter()
            .filter(|(other, _)| !other && !unordered)
            .count();
        assert_eq!(overtaken, 0, "a message overtook others on stream {stream}");
        self.missing -= 1;
    }

    fn exchange(&mut self, messages: u64, largest: u64) {
        for n in 0..messages {
            let direction = self.below(2) as usize;
            let (stream, unordered) = (self.below(4) as u16, self.below(5) == 0);
            let len = 16 + self.below(largest);
            let bytes: Vec<u8> = (0..len)
                .map(|at| (at * 7 + n * 13 + at / 251) as u8)
                .collect();
            let bytes = [&n.to_be_bytes()[..], &[direction as u8], &bytes].concat();
            loop {
                let accepted = match direction {
                    0 => self.ours.send(self.now, stream, unordered, &bytes),
                    _ => self.theirs.send(self.now, stream, unordered, &bytes),
                };
                if accepted {
                    break;
                }
                self.step();
            }
            self.sent[direction]
                .entry(stream)
                .or_default()
                .push((unordered, bytes));
            self.missing += 1;
        }
        while self.missing > 0 {
            self.step();
        }
    }
}

fn run<E: Engine>(make: impl Fn() -> E, config: AssocConfig) {
    for seed in 0..SEEDS {
        for (we_connect, loss) in [(true, 0), (false, 0), (true, 30), (false, 30)] {
            eprintln!("seed {seed}, we connect: {we_connect}, loss {loss}");
            let config = AssocConfig {
                init_retransmissions: 100,
                association_retransmissions: 100,
                path_retransmissions: 100,
                ..config.clone()
            };
            let mut line = Line::new(Ours::new(config, seed as u8), make(), seed + 1, loss);
            match we_connect {
                true => line.ours.connect(),
                false => line.theirs.connect(),
            }
            while !(line.ours.is_up() && line.theirs.is_up()) {
                line.step();
            }
            line.exchange(60, 6000);
            match seed % 2 == 0 || !E::SHUTS_DOWN {
                true => line.ours.shutdown(line.now),
                false => line.theirs.shutdown(line.now),
            }
            while !(line.ours.is_over() && line.theirs.is_over()) {
                line.step();
            }
        }
    }
}

fn plain() -> AssocConfig {
    AssocConfig {
        mtu: 1191,
        most_mtu: 1191,
        ..AssocConfig::default()
    }
}

#[test]
fn dcsctp_exchanges_messages_with_us() {
    run(|| Dcsctp::new(false), plain());
}

#[test]
fn dcsctp_interleaves_with_us() {
    run(
        || Dcsctp::new(true),
        AssocConfig {
            interleave: true,
            ..plain()
        },
    );
}

#[test]
fn rtc_sctp_exchanges_messages_with_us() {
    run(Rtc::new, plain());
}

#[test]
fn rtc_sctp_exchanges_messages_with_us_though_we_offer_more() {
    let config = AssocConfig {
        interleave: true,
        authentication: true,
        address_reconfiguration: true,
        ..plain()
    };
    run(Rtc::new, config);
}
