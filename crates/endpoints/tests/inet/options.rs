//! Options: marks below which there is neither room nor data, and what a connection takes from its endpoint.

use std::io::{Read, Write};
use std::net::TcpStream;

use headwater_host::sys;
use headwater_providers::inet::tcp::Tcp;
use headwater_providers::provider::{Event, Provider, Sending};
use headwater_tpi::error::*;
use headwater_tpi::option::{
    INET_IP, List, T_CURRENT, T_IP_TOS, T_NEGOTIATE, T_SUCCESS, XTI_RCVLOWAT, XTI_SNDLOWAT,
};

use crate::sockets::io;
use crate::waiting::until;
use crate::{PLAIN, connected, event, listener, negotiate, request};

#[test]
fn there_is_no_room_before_there_is_as_much_as_the_user_wants() {
    let (mut tcp, mut peer) = connected();
    negotiate(&mut tcp, XTI_SNDLOWAT, 64 << 20);
    let block = vec![5; 20_000];
    let mut sent = 0;
    let refusal = loop {
        match tcp.send(&io(&block), Sending::default()) {
            Ok(n) => sent += n,
            Err(refusal) => break refusal.tli,
        }
    };
    assert_eq!(refusal, TFLOW);
    assert!(unsent(&tcp) > 0);
    // More than there ever is: everything has to leave.
    let mut room = vec![0; 1 << 16];
    let mut read = 0;
    until("room", || {
        let ready = polled(&tcp, libc::POLLOUT);
        if ready {
            assert_eq!(unsent(&tcp), 0);
            return Some(());
        }
        assert_eq!(
            tcp.send(&io(b"x"), Sending::default()).unwrap_err().tli,
            TFLOW
        );
        assert_eq!(tcp.ready(libc::POLLOUT as u32), 0);
        read += peer.read(&mut room).unwrap();
        None
    });
    let more = tcp.send(
        &io(b"x"),
        Sending {
            push: true,
            ..PLAIN
        },
    );
    assert_eq!(more, Ok(1));
    let rest = sent + 1 - read;
    peer.read_exact(&mut vec![0; rest]).unwrap();
}

#[test]
fn data_below_the_mark_is_not_there_yet() {
    let (mut tcp, mut peer) = connected();
    negotiate(&mut tcp, XTI_RCVLOWAT, 1000);
    let mut room = [0; 2000];
    peer.write_all(&[1; 600]).unwrap();
    until("600 bytes", || {
        let there = sys::ioctl_int(tcp.descriptor(), libc::FIONREAD).unwrap();
        (there == 600).then_some(())
    });
    for _ in 0..2 {
        assert_eq!(tcp.peek(), None);
        assert_eq!(tcp.receive(&io(&room)).unwrap_err().tli, TNODATA);
        assert!(!polled(&tcp, libc::POLLIN));
    }
    peer.write_all(&[2; 400]).unwrap();
    event(&mut tcp, Event::Data);
    assert_eq!(tcp.receive(&io(&room)).unwrap().len, 1000);
    // The end does not wait.
    peer.write_all(&[3; 10]).unwrap();
    drop(peer);
    event(&mut tcp, Event::Data);
    assert_eq!(tcp.receive(&io(&room)).unwrap().len, 10);
    event(&mut tcp, Event::OrdRel);
    let _ = &mut room;
}

#[test]
fn options_of_an_endpoint_are_those_of_the_connection_that_it_accepts() {
    let (mut tcp, port) = listener(1);
    let _peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let seq = request(&mut tcp);
    let mut on = Tcp::open(false).unwrap();
    negotiate(&mut on, XTI_RCVLOWAT, 1000);
    let request = tcp.take_request(seq).unwrap();
    assert!(on.adopt(request, &[], &[]).is_ok());
    let low = sys::sockopt::<i32>(on.descriptor(), libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    assert_eq!(low, Ok(1000));
}

#[test]
fn options_outlive_a_connection_and_a_binding() {
    let (mut tcp, peer) = connected();
    let mut list = List::new();
    list.push_number(INET_IP, T_IP_TOS, 0, 0x10);
    let set = tcp.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    assert_eq!(set.0 as i32, T_SUCCESS);
    let mut ask = List::new();
    ask.push(INET_IP, T_IP_TOS, 0, &[]);
    let tos = |tcp: &mut Tcp| tcp.negotiate(T_CURRENT as u32, ask.bytes()).unwrap().1;
    let before = tos(&mut tcp);
    drop(peer);
    event(&mut tcp, Event::OrdRel);
    tcp.take();
    tcp.release().unwrap();
    tcp.connection_over();
    assert_eq!(tos(&mut tcp), before);
    tcp.unbind().unwrap();
    assert_eq!(tos(&mut tcp), before);
}

fn polled(tcp: &Tcp, events: i16) -> bool {
    let mut set = [libc::pollfd {
        fd: tcp.descriptor(),
        events,
        revents: 0,
    }];
    sys::ppoll(&mut set, Some(0)).unwrap() > 0
}

/// What of it the kernel has not sent.
fn unsent(tcp: &Tcp) -> i32 {
    const SIOCOUTQNSD: u64 = 0x894b;
    sys::ioctl_int(tcp.descriptor(), SIOCOUTQNSD).unwrap()
}
