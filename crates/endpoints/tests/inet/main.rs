//! TCP and UDP providers, with plain sockets as their peers.

mod carried;
mod options;
#[path = "../common/sockets.rs"]
mod sockets;
mod speed;
mod tcp_connections;
mod tcp_data;
mod udp;
#[path = "../common/waiting.rs"]
mod waiting;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint::{self, Endpoint};
use headwater_providers::inet::tcp::Tcp;
use headwater_providers::provider::{Arrived, Event, Provider, Sending};
use headwater_tpi::error::TNODATA;
use headwater_tpi::option::{List, T_NEGOTIATE, T_SUCCESS, XTI_GENERIC};
use sockets::{bytes, io, port_of};
use waiting::until;

const PLAIN: Sending = Sending {
    more: false,
    expedited: false,
    push: false,
};
const PUSH: Sending = Sending {
    push: true,
    ..PLAIN
};
const EXPEDITED: Sending = Sending {
    expedited: true,
    ..PLAIN
};

fn loopback(port: u16) -> Vec<u8> {
    bytes(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn event(p: &mut dyn Provider, wanted: Event) {
    let mut last = None;
    until(&format!("{wanted:?}"), || {
        last = p.peek();
        assert!(
            last.is_none() || last == Some(wanted),
            "{last:?} instead of {wanted:?}"
        );
        last
    });
}

fn client(listener: &TcpListener) -> (Tcp, TcpStream) {
    let mut tcp = Tcp::open(false).unwrap();
    tcp.bind(None, 0).unwrap();
    tcp.connect(&bytes(listener.local_addr().unwrap()), &[], &[])
        .unwrap();
    event(&mut tcp, Event::Connect);
    assert!(matches!(tcp.take(), Some(Arrived::Confirmed { .. })));
    let (peer, _) = listener.accept().unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    (tcp, peer)
}

fn connected() -> (Tcp, TcpStream) {
    client(&TcpListener::bind("127.0.0.1:0").unwrap())
}

fn listener(qlen: u32) -> (Tcp, u16) {
    let mut tcp = Tcp::open(false).unwrap();
    let (address, granted) = tcp.bind(Some(&loopback(0)), qlen).unwrap();
    assert_eq!(granted, qlen);
    (tcp, port_of(&address))
}

fn request(tcp: &mut Tcp) -> i32 {
    event(tcp, Event::Listen);
    match tcp.take() {
        Some(Arrived::Request { seq, .. }) => seq,
        other => panic!("{other:?}"),
    }
}

fn receive(p: &mut dyn Provider, want: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut room = vec![0; 65536];
    until("data", || {
        match p.receive(&io(&room)) {
            Ok(r) => all.extend_from_slice(&room[..r.len]),
            Err(r) => assert_eq!(r.tli, TNODATA),
        }
        let _ = &mut room;
        (all.len() >= want).then_some(())
    });
    all
}

fn negotiate(tcp: &mut Tcp, name: u32, value: i32) {
    let mut list = List::new();
    list.push_number(XTI_GENERIC, name, 0, value);
    let set = tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    assert_eq!(set.0 as i32, T_SUCCESS);
}

/// A connected endpoint, as programs have them.
fn endpoint_to_plain() -> (&'static Endpoint, TcpStream) {
    headwater_host::process::identify();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let e = endpoint::detached(Device::Tcp).unwrap();
    e.bind(None, 0).unwrap();
    e.connect(&bytes(listener.local_addr().unwrap()), &[], &[])
        .unwrap();
    until("Connect", || e.peek());
    assert!(matches!(e.take(), Some(Arrived::Confirmed { .. })));
    (e, listener.accept().unwrap().0)
}
