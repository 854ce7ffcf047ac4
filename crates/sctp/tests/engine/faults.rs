//! Enemies: packets that are forged, out of place, damaged or meant to exhaust. None is trusted, none does harm.

mod damaged;
mod forged;
mod misplaced;

use std::time::Duration;

use headwater_sctp::association::State;
use headwater_sctp::config::AssocConfig;
use headwater_sctp::endpoint::AssocId;
use headwater_sctp::event::{Down, Event};
use headwater_sctp::path::PathState;
use headwater_sctp::send::{Outgoing, Reliability};

use crate::sim;
use crate::sim::chance::{Chance, for_seeds};
use crate::sim::craft::{self, Opening, Puppet};
use crate::sim::{Pair, Setup};

const LONG: Duration = Duration::from_secs(4 * 3600);
const FORWARD_SUPPORTED: u16 = 0xc000;
const SUPPORTED_EXTENSIONS: u16 = 0x8008;

/// A puppet whose association is open.
fn opened(opening: Opening, change: impl FnOnce(&mut AssocConfig)) -> (Puppet, AssocId) {
    let mut config = AssocConfig::default();
    change(&mut config);
    let (here, there) = (sim::address(0, 0), sim::address(1, 0));
    let mut endpoint = sim::endpoint(1, &config, &[there], [7; 32]);
    endpoint.listen(16);
    let mut puppet = Puppet::new(endpoint, there, here, opening);
    puppet.open();
    let id = puppet.endpoint.accept().expect("an association");
    while puppet.endpoint.event().is_some() {}
    puppet.pass(Duration::from_millis(300));
    puppet.hear();
    (puppet, id)
}

fn events(puppet: &mut Puppet) -> Vec<Event> {
    std::iter::from_fn(|| puppet.endpoint.event())
        .map(|(_, event)| event)
        .collect()
}

fn state(puppet: &Puppet, id: AssocId) -> Option<State> {
    puppet
        .endpoint
        .association(id)
        .map(|association| association.state())
}

fn is_open(puppet: &mut Puppet, id: AssocId) -> bool {
    puppet.pass(Duration::from_millis(1));
    state(puppet, id) == Some(State::Established)
}

/// Queues a message on the engine's side.
fn queue(puppet: &mut Puppet, id: AssocId, bytes: &[u8]) {
    let message = Outgoing {
        stream: 0,
        ppid: 0,
        unordered: false,
        sack_now: true,
        reliability: Reliability::Full,
        context: 0,
        to: None,
        key: None,
    };
    puppet
        .endpoint
        .send(puppet.now, id, &message, bytes, false)
        .expect("room");
}

/// One chunk of each kind, as well-formed as can be.
fn every_chunk(puppet: &Puppet) -> Vec<Vec<u8>> {
    use craft::*;
    let (mine, theirs) = (puppet.opening.tsn, puppet.their_tsn);
    let re_config = param(13, &[[0, 0, 0, 1], [0; 4], [0; 4]].concat());
    vec![
        data(mine, 0, 0, 3, b"forged"),
        sack(theirs.wrapping_add(5), 0, &[]),
        sack(theirs, 0, &[(2, 3)]),
        chunk(HEARTBEAT, 0, &param(1, b"12345678")),
        chunk(HEARTBEAT_ACK, 0, &param(1, b"12345678")),
        chunk(ABORT, 0, &[]),
        chunk(ABORT, 1, &[]),
        chunk(SHUTDOWN, 0, &theirs.wrapping_sub(1).to_be_bytes()),
        chunk(SHUTDOWN_ACK, 0, &[]),
        chunk(SHUTDOWN_COMPLETE, 0, &[]),
        chunk(SHUTDOWN_COMPLETE, 1, &[]),
        chunk(ERROR, 0, &param(3, &[0; 4])),
        chunk(ERROR, 0, &param(12, b"bye")),
        chunk(COOKIE_ECHO, 0, &[5; 200]),
        chunk(COOKIE_ACK, 0, &[]),
        forward(mine.wrapping_add(100)),
        chunk(RE_CONFIG, 0, &re_config),
        chunk(ASCONF, 0, &[0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 1]),
        chunk(ASCONF_ACK, 0, &[0, 0, 0, 1]),
        chunk(AUTH, 0, &[[0, 0, 0, 1].as_slice(), &[0; 20]].concat()),
        puppet.opening.chunk(INIT_ACK),
        puppet.opening.chunk(INIT),
        chunk(PAD, 0, &[0; 8]),
        chunk(0x3f, 0, b"what?"),
        chunk(0x7f, 0, b"what?"),
        chunk(0xbf, 0, b"what?"),
        chunk(0xff, 0, b"what?"),
    ]
}
