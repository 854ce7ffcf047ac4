//! /dev/udp2 by threads and by real processes, with plain sockets as peers too. Raw packets are tried where CAP_NET_RAW is.

#[path = "common/processes.rs"]
mod processes;
#[path = "common/sockets.rs"]
mod sockets;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_providers::provider::{Arrived, Event, Provider, Waiter};
use headwater_providers::udp2::Udp2;
use headwater_providers::udp2::link::Link;
use headwater_streams::head::arming::Want;
use headwater_tpi::error::*;
use headwater_tpi::option::{
    INET_IP, INET_UDP, List, Options, T_CURRENT, T_IP_REUSEADDR, T_IP_TTL, T_NEGOTIATE,
    T_UDP_CHECKSUM,
};
use processes::{Child, alone, execute_again};
use sockets::{bytes, datagram, io, port_of};

const PATIENCE: Duration = Duration::from_secs(20);
const LARGEST: usize = 65_507;

fn at(host: &str, port: u16) -> Vec<u8> {
    bytes(SocketAddr::new(host.parse().unwrap(), port))
}

fn bound_by(link: Link, host: &str) -> (Udp2, Vec<u8>) {
    let mut p = Udp2::open_by(false, link).unwrap();
    let (address, _) = p.bind(Some(&at(host, 0)), 0).unwrap();
    (p, address)
}

fn bound(host: &str) -> (Udp2, Vec<u8>) {
    bound_by(Link::Auto, host)
}

fn plain(host: &str) -> (UdpSocket, Vec<u8>) {
    let socket = UdpSocket::bind((host, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = bytes(socket.local_addr().unwrap());
    (socket, address)
}

fn sleep_at(p: &dyn Provider, want: Want) {
    const MOMENT: u64 = 100_000_000;
    let deadline = Some(headwater_host::sys::now() + MOMENT);
    let poll = |fd, events| libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    match (p.waiter(), want) {
        (
            Waiter::Both {
                full: Some(head), ..
            }
            | Waiter::Head(head),
            Want::ROOM,
        ) => {
            let _ = head.wait(want, deadline, &mut [], || {
                head.events(libc::POLLOUT as u32) != 0
            });
        }
        (Waiter::Both { ring, fd, .. }, Want::DATA) => {
            let mut beside = [poll(fd, libc::POLLIN)];
            let holds = || ring.events(libc::POLLIN as u32) != 0;
            let _ = ring.wait(want, deadline, &mut beside, holds);
        }
        (Waiter::Poll(fd) | Waiter::Both { fd, .. }, want) => {
            let events = if want == Want::ROOM {
                libc::POLLOUT
            } else {
                libc::POLLIN
            };
            let _ = headwater_host::sys::ppoll(&mut [poll(fd, events)], Some(MOMENT));
        }
        (Waiter::Head(_), _) => unreachable!("what can receive has a descriptor"),
    }
}

fn send(p: &mut Udp2, to: &[u8], data: &[u8]) {
    while let Err(e) = p.send_to(to, &[], &io(data)) {
        assert_eq!(e.tli, TFLOW);
        sleep_at(p, Want::ROOM);
    }
}

/// Data, where from, and whether there is more of it.
type Got = (Vec<u8>, Vec<u8>, bool);

fn take(p: &mut Udp2, most: usize) -> Result<Got, i32> {
    let (mut addr, mut data) = ([0; 28], vec![0; most]);
    let into = io(&data);
    let mut d = datagram(&mut addr, &into);
    p.receive_from(&mut d).map_err(|e| e.tli)?;
    let (addr_len, len, more) = (d.addr_len, d.data_len, d.more);
    data.truncate(len);
    Ok((data, addr[..addr_len].to_vec(), more))
}

fn receive(p: &mut Udp2, most: usize) -> Got {
    let end = Instant::now() + PATIENCE;
    loop {
        match take(p, most) {
            Err(TNODATA) => {
                assert!(Instant::now() < end, "no datagram");
                sleep_at(p, Want::DATA);
            }
            got => return got.expect("a datagram"),
        }
    }
}

fn undelivered(p: &mut Udp2) -> (Vec<u8>, i32) {
    let end = Instant::now() + PATIENCE;
    while p.peek() != Some(Event::UdErr) {
        assert!(Instant::now() < end, "no error");
        p.flush();
        std::thread::sleep(Duration::from_millis(1));
    }
    match p.take() {
        Some(Arrived::Undelivered { to, error, .. }) => (to, error),
        other => panic!("{other:?}"),
    }
}

/// Sends until there is no room, which only a ring lacks; how many went in.
fn fill(p: &mut Udp2, to: &[u8], data: &[u8]) -> usize {
    for sent in 0..100_000 {
        match p.send_to(to, &[], &io(data)) {
            Ok(()) => {}
            Err(e) => {
                assert_eq!(e.tli, TFLOW);
                return sent;
            }
        }
    }
    panic!("this never gets full");
}

#[test]
fn datagrams_of_all_sizes_come_whole_and_from_their_sender() {
    let _alone = alone();
    let ((mut a, from), (mut b, to)) = (bound("127.0.0.1"), bound("127.0.0.1"));
    for len in [0, 1, 64, 1024, 1473, 20_000, LARGEST] {
        send(&mut a, &to, &vec![len as u8; len]);
        let (data, sender, more) = receive(&mut b, LARGEST);
        assert_eq!(
            (data, sender, more),
            (vec![len as u8; len], from.clone(), false)
        );
    }
    send(&mut b, &from, b"back");
    assert_eq!(receive(&mut a, 9).1, to);
    send(&mut a, &from, b"self");
    assert_eq!(receive(&mut a, 9), (b"self".to_vec(), from, false));
    assert_eq!(take(&mut a, 9), Err(TNODATA));
}

#[test]
fn a_full_receiver_stops_the_sender_and_nothing_is_lost() {
    let _alone = alone();
    let ((mut a, _), (mut b, to)) = (bound("127.0.0.1"), bound("0.0.0.0"));
    let to = at("127.0.0.1", port_of(&to));
    let sent = fill(&mut a, &to, &[7; 1000]);
    assert!(sent > 50);
    assert_eq!(a.ready(libc::POLLOUT as u32), 0);
    for _ in 0..sent {
        assert_eq!(take(&mut b, 2000).unwrap().0, [7; 1000]);
    }
    assert_eq!(take(&mut b, 2000), Err(TNODATA));
    assert_ne!(a.ready(libc::POLLOUT as u32), 0);
    send(&mut a, &to, b"again");
    assert_eq!(receive(&mut b, 9).0, b"again");
}

#[test]
fn nothing_of_many_senders_to_a_slow_receiver_is_lost() {
    const EACH: u32 = 20_000;
    let _alone = alone();
    let (mut there, to) = bound("127.0.0.1");
    let senders: Vec<Child> = (0..3u32)
        .map(|who| {
            let to = to.clone();
            Child::run(move || {
                let (mut p, _) = bound("127.0.0.1");
                for i in 0..EACH {
                    let text = [who.to_ne_bytes(), i.to_ne_bytes()].concat();
                    send(&mut p, &to, &text);
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    for n in 0..3 * EACH {
        let (data, ..) = receive(&mut there, 100);
        let word = |at: usize| u32::from_ne_bytes(data[at..at + 4].try_into().unwrap());
        assert_eq!(word(4), next[word(0) as usize]);
        next[word(0) as usize] += 1;
        if n % 5000 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    assert!(senders.into_iter().all(Child::succeeded));
    assert_eq!(take(&mut there, 9), Err(TNODATA));
}

#[test]
fn plain_programs_are_peers_both_ways() {
    let _alone = alone();
    let ((mut ours, address), (theirs, to)) = (bound("127.0.0.1"), plain("127.0.0.1"));
    let mut room = vec![0; LARGEST];
    for len in [0, 1, 100, 100, 100, 9000, LARGEST] {
        send(&mut ours, &to, &vec![5; len]);
        ours.flush();
        let (n, from) = theirs.recv_from(&mut room).unwrap();
        assert_eq!((n, bytes(from)), (len, address.clone()));
        theirs.send_to(&room[..n], from).unwrap();
        let (data, sender, _) = receive(&mut ours, LARGEST);
        assert_eq!((data.len(), sender), (len, to.clone()));
    }
}

#[test]
fn ring_and_kernel_are_both_heard_and_their_pieces_not_mixed() {
    let _alone = alone();
    let ((mut a, from), (mut b, to)) = (bound("127.0.0.1"), bound("127.0.0.1"));
    let (c, other) = plain("127.0.0.1");
    for i in 0..200u8 {
        send(&mut a, &to, &[b'r', i, i, i]);
        c.send_to(&[b'k', i, i, i], ("127.0.0.1", port_of(&to)))
            .unwrap();
    }
    let mut seen = [0u8; 2];
    for n in 0..400 {
        let (front, sender, more) = receive(&mut b, 2);
        let which = usize::from(front[0] == b'k');
        assert_eq!((front[1], more), (seen[which], true));
        assert_eq!(sender, [&from, &other][which][..]);
        assert_eq!(receive(&mut b, 2), (vec![front[1]; 2], Vec::new(), false));
        seen[which] += 1;
        if n == 300 {
            assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
        }
    }
}

#[test]
fn a_port_is_taken_for_everybody() {
    let _alone = alone();
    let (mut ours, address) = bound("127.0.0.1");
    let port = port_of(&address);
    let taken = UdpSocket::bind(("127.0.0.1", port)).unwrap_err();
    assert_eq!(taken.raw_os_error(), Some(libc::EADDRINUSE));
    let mut other = Udp2::open(false).unwrap();
    for host in ["127.0.0.1", "0.0.0.0"] {
        let refused = other.bind(Some(&at(host, port)), 0).unwrap_err();
        assert_eq!(refused.tli, TADDRBUSY);
    }
    ours.unbind().unwrap();
    assert_eq!(ours.local(), None);
    other.bind(Some(&address), 0).unwrap();
    let (_theirs, busy) = plain("127.0.0.1");
    assert_eq!(ours.bind(Some(&busy), 0).unwrap_err().tli, TADDRBUSY);
}

#[test]
fn the_most_special_owner_gets_a_datagram_and_sees_who_sent_it() {
    let _alone = alone();
    let (mut special, address) = bound("127.0.0.1");
    let port = port_of(&address);
    let mut other = Udp2::open(false).unwrap();
    other.bind(Some(&at("127.0.0.2", port)), 0).unwrap();
    let (mut sender, from) = bound("0.0.0.0");
    let from = at("127.0.0.1", port_of(&from));
    for (host, owner) in [("127.0.0.1", &mut special), ("127.0.0.2", &mut other)] {
        send(&mut sender, &at(host, port), host.as_bytes());
        assert_eq!(receive(owner, 99), (host.into(), from.clone(), false));
    }
    let (mut any, address) = bound("0.0.0.0");
    for host in ["127.0.0.1", "127.0.0.3", "0.0.0.0"] {
        fill(&mut sender, &at(host, port_of(&address)), host.as_bytes());
        while let Ok((data, sender, _)) = take(&mut any, 99) {
            assert_eq!((&data[..], sender), (host.as_bytes(), from.clone()));
        }
    }
    // A sender that is bound to an address keeps it.
    let (mut sender, from) = bound("127.0.0.9");
    send(&mut sender, &at("127.0.0.1", port), b"x");
    assert_eq!(receive(&mut special, 9).1, from);
}

#[test]
fn version_6_knows_version_4_in_itself() {
    let _alone = alone();
    if UdpSocket::bind("[::1]:0").is_err() {
        return;
    }
    let ((mut six, address), (mut other, loopback)) = (bound("::"), bound("::1"));
    let port = port_of(&address);
    fill(&mut other, &at("::1", port), b"six");
    assert_eq!(receive(&mut six, 9).1, loopback);
    while take(&mut six, 9).is_ok() {}
    let (mut four, from) = bound("127.0.0.1");
    fill(&mut four, &at("127.0.0.1", port), b"four");
    let mapped = at("::ffff:127.0.0.1", port_of(&from));
    assert_eq!(
        receive(&mut six, 9),
        (b"four".to_vec(), mapped.clone(), false)
    );
    while take(&mut six, 9).is_ok() {}
    fill(&mut six, &mapped, b"back");
    assert_eq!(receive(&mut four, 9).1, at("127.0.0.1", port));
    while take(&mut four, 9).is_ok() {}
    send(&mut six, &from, b"either form");
    assert_eq!(receive(&mut four, 11).0, b"either form");
    // What is not of its version is no address for an endpoint with one of its own.
    let wrong = other.send_to(&from, &[], &io(b"x")).unwrap_err();
    assert_eq!(wrong.tli, TBADADDR);
    let (theirs, to) = plain("::1");
    send(&mut six, &to, b"plain");
    six.flush();
    assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 5);
}

#[test]
fn nobody_there_is_an_error_with_the_address() {
    let _alone = alone();
    let (mut ours, _) = bound("127.0.0.1");
    let deserted = plain("127.0.0.1").1;
    send(&mut ours, &deserted, b"lost");
    assert_eq!(undelivered(&mut ours), (deserted, libc::ECONNREFUSED));
    assert_eq!(take(&mut ours, 9), Err(TNODATA));
}

#[test]
fn an_error_comes_before_datagrams_that_wait() {
    let _alone = alone();
    for link in [Link::Auto, Link::Udp, Link::Raw] {
        let ((mut own, to), (mut other, _)) = (bound_by(link, "127.0.0.1"), bound("127.0.0.1"));
        let theirs = plain("127.0.0.1").0;
        for len in 1..9 {
            send(&mut other, &to, &[0; 9][..len]);
            theirs
                .send_to(
                    &[0; 9][..len],
                    SocketAddr::new([127, 0, 0, 1].into(), port_of(&to)),
                )
                .unwrap();
        }
        other.flush();
        for left in (0..16).rev() {
            receive(&mut own, 9);
            let deserted = plain("127.0.0.1").1;
            send(&mut own, &deserted, b"lost");
            own.flush();
            assert_eq!(undelivered(&mut own), (deserted, libc::ECONNREFUSED));
            let next = own.peek();
            assert_eq!(next == Some(Event::Data), left > 0, "{link:?}, {left} left");
        }
    }
}

#[test]
fn a_sender_learns_that_its_receiver_was_killed() {
    let _alone = alone();
    let (spare, to) = plain("127.0.0.1");
    drop(spare);
    let given = to.clone();
    let owner = Child::run(move || {
        let mut p = Udp2::open(false).unwrap();
        p.bind(Some(&given), 0).unwrap();
        std::thread::sleep(Duration::from_secs(50));
    });
    let (mut here, _) = bound("127.0.0.1");
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < end);
        match here.send_to(&to, &[], &io(&[0; 1000])) {
            Err(e) if e.tli == TFLOW => break,
            // Not there yet.
            _ => drop(here.take()),
        }
    }
    drop(owner);
    let end = Instant::now() + PATIENCE;
    while here.send_to(&to, &[], &io(b"x")).is_err() {
        assert!(Instant::now() < end, "it waits for room for ever");
        sleep_at(&here, Want::ROOM);
    }
    assert_eq!(undelivered(&mut here), (to.clone(), libc::ECONNREFUSED));
    // A plain program has the port now.
    let theirs = UdpSocket::bind(("127.0.0.1", port_of(&to))).unwrap();
    theirs.set_read_timeout(Some(PATIENCE)).unwrap();
    send(&mut here, &to, b"plain");
    here.flush();
    assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 5);
}

#[test]
fn who_comes_later_is_found_later() {
    let _alone = alone();
    let (mut sender, _) = bound("127.0.0.1");
    let (theirs, to) = plain("127.0.0.1");
    send(&mut sender, &to, b"to a plain program");
    sender.flush();
    assert_eq!(theirs.recv(&mut [0; 99]).unwrap(), 18);
    drop(theirs);
    let mut ours = Udp2::open(false).unwrap();
    ours.bind(Some(&to), 0).unwrap();
    let end = Instant::now() + PATIENCE;
    // By the kernel at first, which never has no room.
    while sender.send_to(&to, &[], &io(&[0; 4000])).is_ok() {
        assert!(Instant::now() < end, "the ring was never found");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn endpoints_that_share_a_port_are_the_kernels_to_choose_from() {
    let _alone = alone();
    let share = |p: &mut Udp2| {
        let mut list = List::new();
        list.push_number(INET_IP, T_IP_REUSEADDR, 0, 1);
        p.negotiate(T_NEGOTIATE as u32, list.bytes()).unwrap();
    };
    let (mut a, mut b) = (Udp2::open(false).unwrap(), Udp2::open(false).unwrap());
    share(&mut a);
    share(&mut b);
    let (to, _) = a.bind(Some(&at("127.0.0.1", 0)), 0).unwrap();
    b.bind(Some(&to), 0).unwrap();
    let (mut sender, _) = bound("127.0.0.1");
    send(&mut sender, &to, b"x");
    sender.flush();
    let end = Instant::now() + PATIENCE;
    while take(&mut a, 9).is_err() && take(&mut b, 9).is_err() {
        assert!(Instant::now() < end);
    }
}

#[test]
fn options_are_checked_and_kept_whatever_the_way() {
    let _alone = alone();
    let ((mut a, _), (mut b, to)) = (bound("127.0.0.1"), bound("127.0.0.1"));
    let mut list = List::new();
    list.push_number(INET_IP, T_IP_TTL, 0, 9);
    list.push_number(INET_UDP, T_UDP_CHECKSUM, 0, 0);
    a.send_to(&to, list.bytes(), &io(b"with options")).unwrap();
    assert_eq!(receive(&mut b, 99).0, b"with options");
    let mut asked = List::new();
    asked.push(INET_UDP, T_UDP_CHECKSUM, 0, &[]);
    let (_, answer) = a.negotiate(T_CURRENT as u32, asked.bytes()).unwrap();
    assert_eq!(Options::all(&answer).unwrap()[0].number(), Some(0));
    let refused = a.send_to(&to, &[1, 2, 3], &io(b"x")).unwrap_err();
    assert_eq!(refused.tli, TBADOPT);
    let refused = a.send_to(&to, &[], &io(&vec![0; LARGEST + 1])).unwrap_err();
    assert_eq!(refused.tli, TBADDATA);
    for bad in [&to[..8], &at("127.0.0.1", 0)] {
        assert_eq!(a.send_to(bad, &[], &io(b"x")).unwrap_err().tli, TBADADDR);
    }
}

#[test]
fn a_child_goes_on_with_its_parents_endpoint() {
    let _alone = alone();
    let ((mut here, from), (mut there, to)) = (bound("127.0.0.1"), bound("127.0.0.1"));
    send(&mut here, &to, b"before");
    let child = Child::run(|| {
        for expected in [&b"before"[..], b"after"] {
            let (data, sender, _) = receive(&mut there, 99);
            assert_eq!(data, expected);
            send(&mut there, &sender, b"by the child");
        }
    });
    drop(there);
    send(&mut here, &to, b"after");
    for _ in 0..2 {
        assert_eq!(
            receive(&mut here, 99),
            (b"by the child".to_vec(), to.clone(), false)
        );
    }
    assert!(child.succeeded());
    // Now it has gone, which takes a moment to be known.
    let end = Instant::now() + PATIENCE;
    while here.peek() != Some(Event::UdErr) {
        assert!(Instant::now() < end);
        send(&mut here, &to, b"x");
        here.flush();
    }
    assert_eq!(undelivered(&mut here).0, to);
    while here.peek() == Some(Event::UdErr) {
        here.take();
    }
    send(&mut here, &from, b"self");
    assert_eq!(receive(&mut here, 9).0, b"self");
}

const LEFT: &str = "HEADWATER_UDP2_LEFT";

#[test]
fn an_endpoint_goes_on_after_exec() {
    let _alone = alone();
    for link in [Link::Auto, Link::Udp, Link::Raw] {
        let ((mut here, _), (mut there, to)) = (bound("127.0.0.1"), bound_by(link, "127.0.0.1"));
        let child = Child::run(|| {
            // SAFETY: a copy of a descriptor of ours.
            let fd = unsafe { libc::dup(there.descriptor()) };
            let left = format!("{fd}={}", there.save().unwrap());
            execute_again("image_after_exec", LEFT, &left);
        });
        drop(there);
        send(&mut here, &to, b"ping");
        here.flush();
        assert_eq!(
            receive(&mut here, 9),
            (b"ping".to_vec(), to, false),
            "{link:?}"
        );
        assert!(child.succeeded());
    }
}

#[test]
#[ignore = "the second half of an_endpoint_goes_on_after_exec"]
fn image_after_exec() {
    let Ok(left) = std::env::var(LEFT) else {
        return;
    };
    let _alone = alone();
    let (fd, saved) = left.split_once('=').unwrap();
    let mut p = Udp2::restore(fd.parse().unwrap(), saved).unwrap();
    let (data, from, _) = receive(&mut p, 9);
    send(&mut p, &from, &data);
    p.flush();
}

#[test]
fn a_blocked_reader_wakes_up_for_either() {
    const IN: u32 = libc::POLLIN as u32;
    let _alone = alone();
    let e = endpoint::detached(Device::Udp2).unwrap();
    let (to, _) = e.bind(Some(&at("127.0.0.1", 0)), 0).unwrap();
    let soon = || Some(headwater_host::sys::now() + PATIENCE.as_nanos() as u64);
    let mut room = [0; 99];
    let mut drain = || {
        let into = io(&room);
        let mut d = datagram(&mut [], &into);
        let _ = &mut room;
        e.receive_from(&mut d)
    };
    let shortly = Some(headwater_host::sys::now() + 1_000_000);
    while e.wait(e.handle(), IN, shortly) != Err(libc::ETIME) {}
    for _ in 0..20 {
        let given = to.clone();
        let _child = Child::run(move || {
            let (mut p, _) = bound("127.0.0.1");
            std::thread::sleep(Duration::from_millis(3));
            send(&mut p, &given, b"by the ring");
        });
        e.wait(e.handle(), IN, soon()).unwrap();
        while drain().is_err() {}
        let port = port_of(&to);
        let _child = Child::run(move || {
            std::thread::sleep(Duration::from_millis(3));
            plain("127.0.0.1")
                .0
                .send_to(b"by the kernel", ("127.0.0.1", port))
                .unwrap();
        });
        e.wait(e.handle(), IN, soon()).unwrap();
        while drain().is_err() {}
    }
    e.let_go();
}

// ---- packets of our own ----

/// Endpoints that make their packets; `None` where that is not permitted.
fn raw(host: &str) -> Option<(Udp2, Vec<u8>)> {
    let made = bound_by(Link::Raw, host);
    made.0.is_raw().then_some(made)
}

#[test]
fn packets_made_here_are_understood_by_the_kernel_and_the_other_way_round() {
    let _alone = alone();
    for (host, any) in [("127.0.0.1", "0.0.0.0"), ("::1", "::")] {
        let (Some((mut own, from)), (theirs, to)) = (raw(host), plain(host)) else {
            return;
        };
        let mut room = vec![0; LARGEST];
        for len in [0, 1, 2, 63, 1000, 1001, 20_001, LARGEST - 40] {
            let data: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            send(&mut own, &to, &data);
            let (n, sender) = theirs.recv_from(&mut room).unwrap();
            assert_eq!((&room[..n], bytes(sender)), (&data[..], from.clone()));
            theirs.send_to(&data, sender).unwrap();
            assert_eq!(receive(&mut own, LARGEST), (data, to.clone(), false));
        }
        let (mut wild, address) = raw(any).unwrap();
        send(&mut wild, &to, b"from anywhere");
        assert_eq!(
            bytes(theirs.recv_from(&mut room).unwrap().1),
            at(host, port_of(&address))
        );
        send(&mut own, &at(host, port_of(&address)), b"both made here");
        assert_eq!(receive(&mut wild, 5), (b"both ".to_vec(), from, true));
        assert_eq!(
            receive(&mut wild, 99),
            (b"made here".to_vec(), Vec::new(), false)
        );
        assert_eq!(take(&mut wild, 9), Err(TNODATA));
    }
}

#[test]
fn nobody_answers_for_a_port_of_packets_made_here() {
    let _alone = alone();
    let Some((mut own, address)) = raw("127.0.0.1") else {
        return;
    };
    let (mut sender, _) = bound_by(Link::Udp, "127.0.0.1");
    send(&mut sender, &address, b"x");
    sender.flush();
    assert_eq!(receive(&mut own, 9).0, b"x");
    assert_eq!(sender.peek(), None);
    let taken = UdpSocket::bind(("127.0.0.1", port_of(&address))).unwrap_err();
    assert_eq!(taken.raw_os_error(), Some(libc::EADDRINUSE));
}

#[test]
fn the_network_says_what_it_could_not_deliver_of_packets_made_here() {
    let _alone = alone();
    for host in ["127.0.0.1", "::1"] {
        let Some((mut own, _)) = raw(host) else {
            return;
        };
        let (mut other, _) = raw(host).unwrap();
        let deserted = plain(host).1;
        send(&mut own, &deserted, b"lost");
        assert_eq!(undelivered(&mut own), (deserted, libc::ECONNREFUSED));
        assert_eq!(other.peek(), None, "it was not the other's");
    }
}

#[test]
fn a_checksum_can_be_left_out_in_version_4() {
    let _alone = alone();
    let Some((mut own, _)) = raw("127.0.0.1") else {
        return;
    };
    let (theirs, to) = plain("127.0.0.1");
    let mut list = List::new();
    list.push_number(INET_UDP, T_UDP_CHECKSUM, 0, 0);
    own.send_to(&to, list.bytes(), &io(b"bare")).unwrap();
    assert_eq!(theirs.recv(&mut [0; 9]).unwrap(), 4);
}
