//! What options ask of an association's engine, and what it says of itself.

use core::time::Duration;

use headwater_sctp::association::ChangeRefused;
use headwater_sctp::reset::Ask;
use headwater_sctp::{AssocConfig, Association as Engine};

use crate::option::status::{By, Path};
use crate::{Order, Status};

/// The stack has chosen a shorter delay than this where the peer is on this host.
const ON_HOST: Duration = Duration::from_millis(1);

/// What may change while an association goes on.
pub fn adjust(config: &mut AssocConfig, wanted: &AssocConfig) {
    config.rto = wanted.rto;
    config.init_retransmissions = wanted.init_retransmissions;
    config.association_retransmissions = wanted.association_retransmissions;
    config.path_retransmissions = wanted.path_retransmissions;
    config.potentially_failed = wanted.potentially_failed;
    config.heartbeats = wanted.heartbeats;
    config.heartbeat_interval = wanted.heartbeat_interval;
    config.sack_delay = match config.sack_delay {
        delay if delay <= ON_HOST => delay.min(wanted.sack_delay),
        _ => wanted.sack_delay,
    };
    config.sack_every = wanted.sack_every;
    config.nagle = wanted.nagle;
    config.max_burst = wanted.max_burst;
    config.autoclose = wanted.autoclose;
    config.scheduler = wanted.scheduler;
    config.partial_delivery_point = wanted.partial_delivery_point;
    config.joins = wanted.joins;
    config.interleaved_delivery = wanted.interleaved_delivery;
    config.most_fragment = wanted.most_fragment;
    config.allowed = wanted.allowed;
    config.init_timeout = wanted.init_timeout;
}

pub fn follow(a: &mut Engine, order: &Order) -> Result<(), i32> {
    let known = |done: bool| done.then_some(()).ok_or(libc::EINVAL);
    match order {
        Order::Primary(host) => known(a.set_primary(*host)),
        Order::StreamValue { stream, value } => known(a.set_stream_value(*stream, *value)),
        Order::ResetOutgoing(streams) => begun(a.change_streams(Ask::Outgoing(streams.clone()))),
        Order::ResetIncoming(streams) => begun(a.change_streams(Ask::Incoming(streams.clone()))),
        Order::ResetAssociation => begun(a.change_streams(Ask::Association)),
        Order::AddStreams { out, inbound } => {
            if *out > 0 {
                begun(a.change_streams(Ask::AddOutgoing(*out)))?;
            }
            if *inbound > 0 {
                begun(a.change_streams(Ask::AddIncoming(*inbound)))?;
            }
            Ok(())
        }
        Order::Addresses(change) => begun(a.change_addresses(*change)),
        Order::SetKey { number, secret } => {
            a.set_key(*number, secret);
            Ok(())
        }
        Order::ActivateKey(number) => a.activate_key(*number).map_err(|_| libc::EINVAL),
        Order::RemoveKey(number) => a.remove_key(*number).map_err(|_| libc::EINVAL),
    }
}

/// A request to the peer has begun, or why not.
fn begun(asked: Result<(), ChangeRefused>) -> Result<(), i32> {
    asked.map_err(|refused| match refused {
        ChangeRefused::NotOpen => libc::ENOTCONN,
        ChangeRefused::Unsupported => libc::EOPNOTSUPP,
        ChangeRefused::Streams(_) | ChangeRefused::Addresses(_) => libc::EINVAL,
    })
}

pub fn read_status(a: &Engine) -> Status {
    let (sender, receiver) = (a.sender(), a.receiver());
    let primary = a.primary();
    let by_udp = a.paths().get(primary).is_some_and(|p| p.encap.is_some());
    let mut retransmissions = 0;
    let mut paths = Vec::new();
    for (id, path) in a.paths().iter() {
        retransmissions += path.retransmissions;
        paths.push(Path {
            host: path.addr,
            port: a.peer_port(),
            state: path.state,
            primary: id == primary,
            rto: path.rto.current().as_millis() as u32,
            srtt: path.rto.smoothed().map_or(0, |d| d.as_micros() as u32),
            cwnd: path.window.window() as u32,
            flight: path.flight as u32,
            mtu: path.mtu as u32,
            errors: path.errors,
            encap: path.encap.map_or(0, u32::from),
        });
    }
    let outstanding = sender.outstanding();
    Status {
        state: a.state(),
        by: if by_udp { By::Udp } else { By::Raw },
        ostreams: sender.streams().into(),
        istreams: receiver.streams().into(),
        peer_window: sender.peer_window() as u32,
        unsent: sender.buffered().saturating_sub(outstanding) as u32,
        unacked: outstanding as u32,
        unread: receiver.buffered() as u32,
        retransmissions: retransmissions as u32,
        paths,
        ..Default::default()
    }
}
