//! The loop-back providers, by threads and by real processes.

#[path = "common/processes.rs"]
mod processes;

fn start() {
    headwater_streams::start();
    headwater_endpoints::start();
}

use std::time::{Duration, Instant};

use headwater_providers::loopback::connection::Circuit;
use headwater_providers::loopback::connectionless::Mailbox;
use headwater_providers::provider::{
    Arrived, Datagram, Event, Provider, Received, Sending, Waiter,
};
use headwater_streams::head::wait::Want;
use headwater_tpi::error::{TADDRBUSY, TFLOW, TLOOK, TNODATA};
use libc::iovec;
use processes::{Child, alone};

const PATIENCE: u64 = 20;

fn sleep_at(p: &dyn Provider, want: Want) {
    let deadline = Some(headwater_host::sys::now() + 100_000_000);
    match p.waiter() {
        Waiter::Head(head) => {
            let bits = if want == Want::ROOM {
                libc::POLLOUT
            } else {
                libc::POLLIN
            } as u32;
            let _ = head.wait(want, deadline, || head.events(bits) != 0);
        }
        Waiter::Poll(fd) => {
            let mut fds = [libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            }];
            let _ = headwater_host::sys::ppoll(&mut fds, Some(100_000_000));
        }
        Waiter::Both { .. } => unreachable!("these have a ring or a descriptor"),
    }
}

fn event(p: &mut dyn Provider) -> Event {
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    loop {
        if let Some(event) = p.peek() {
            return event;
        }
        assert!(Instant::now() < until, "no event");
        sleep_at(p, Want::DATA);
    }
}

fn arrived(p: &mut dyn Provider) -> Arrived {
    event(p);
    p.take().expect("an event other than data")
}

fn iov(data: &[u8]) -> [iovec; 1] {
    [iovec {
        iov_base: data.as_ptr() as *mut _,
        iov_len: data.len(),
    }]
}

fn send_how(p: &mut dyn Provider, data: &[u8], how: Sending) -> Result<usize, i32> {
    p.send(&iov(data), how).map_err(|e| e.tli)
}

fn send(p: &mut dyn Provider, data: &[u8]) {
    let mut done = 0;
    loop {
        match send_how(p, &data[done..], Sending::default()) {
            Ok(n) => done += n,
            Err(e) => assert_eq!(e, TFLOW),
        }
        if done == data.len() {
            return;
        }
        sleep_at(p, Want::ROOM);
    }
}

fn receive_now(p: &mut dyn Provider, most: usize) -> Result<(Vec<u8>, Received), i32> {
    let mut buf = vec![0; most];
    let got = p
        .receive(&[iovec {
            iov_base: buf.as_mut_ptr() as *mut _,
            iov_len: most,
        }])
        .map_err(|e| e.tli)?;
    buf.truncate(got.len);
    Ok((buf, got))
}

fn receive(p: &mut dyn Provider, most: usize) -> (Vec<u8>, Received) {
    loop {
        match receive_now(p, most) {
            Err(TNODATA) => sleep_at(p, Want::DATA),
            got => return got.expect("data"),
        }
    }
}

fn unit(p: &mut dyn Provider) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let (bytes, got) = receive(p, 100_000);
        all.extend(bytes);
        if !got.more {
            return all;
        }
    }
}

fn bound(orderly: bool, qlen: u32) -> (Circuit, Vec<u8>) {
    let mut c = Circuit::open(orderly).unwrap();
    let (addr, granted) = c.bind(None, qlen).unwrap();
    assert_eq!(granted, qlen);
    (c, addr)
}

fn accept(listener: &mut Circuit, on: &mut Circuit, opts: &[u8], data: &[u8]) {
    let Arrived::Request { seq, .. } = arrived(listener) else {
        panic!("no request")
    };
    let request = listener.take_request(seq).unwrap();
    on.adopt(request, opts, data).map_err(|(e, _)| e).unwrap();
}

/// Two ends of a connection in this process, the caller's first.
fn pair(orderly: bool) -> (Circuit, Circuit) {
    let (mut listener, addr) = bound(orderly, 1);
    let (mut here, _) = bound(orderly, 0);
    here.connect(&addr, &[], &[]).unwrap();
    let mut there = Circuit::open(orderly).unwrap();
    accept(&mut listener, &mut there, &[], &[]);
    assert!(matches!(arrived(&mut here), Arrived::Confirmed { by, .. } if by == addr));
    (here, there)
}

#[test]
fn a_connection_is_made_with_data_and_addresses() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 2);
    let (mut here, own) = bound(true, 0);
    here.connect(&addr, &[], b"knock").unwrap();
    assert_eq!(event(&mut listener), Event::Listen);
    let Some(Arrived::Request {
        seq, from, data, ..
    }) = listener.take()
    else {
        panic!()
    };
    assert_eq!((&from, &data[..]), (&own, &b"knock"[..]));
    let request = listener.take_request(seq).unwrap();
    let mut there = Circuit::open(true).unwrap();
    there
        .adopt(request, &[], b"come in")
        .map_err(|(e, _)| e)
        .unwrap();
    assert_eq!(event(&mut here), Event::Connect);
    let confirmed = here.take().unwrap();
    assert_eq!(
        confirmed,
        Arrived::Confirmed {
            by: addr.clone(),
            opts: vec![],
            data: b"come in".to_vec()
        }
    );
    assert_eq!(
        (here.remote(), there.remote(), there.local()),
        (Some(addr.clone()), Some(own), Some(addr))
    );
}

#[test]
fn data_units_keep_their_bounds() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    send(&mut here, b"one");
    send(&mut here, b"");
    assert_eq!(
        send_how(
            &mut here,
            b"tw",
            Sending {
                more: true,
                ..Default::default()
            }
        ),
        Ok(2)
    );
    send(&mut here, b"o");
    let long: Vec<u8> = (0..90_000u32).map(|i| i as u8).collect();
    let iov = [iov(&long[..50_000])[0], iov(&long[50_000..])[0]];
    assert_eq!(
        receive(&mut there, 2).1,
        Received {
            len: 2,
            more: true,
            expedited: false
        }
    );
    assert_eq!(unit(&mut there), b"e");
    assert_eq!(unit(&mut there), b"");
    assert_eq!(unit(&mut there), b"two");
    assert_eq!(receive_now(&mut there, 10), Err(TNODATA));
    let sent = here.send(&iov, Sending::default()).unwrap();
    let mut all = unit_of(&mut there, sent);
    send(&mut here, &long[sent..]);
    if sent < long.len() {
        all.extend(unit(&mut there));
    }
    assert!(all == long);
}

fn unit_of(p: &mut dyn Provider, len: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < len {
        all.extend(receive(p, len - all.len()).0);
    }
    all
}

#[test]
fn expedited_data_overtakes_data_and_nothing_else() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    let expedited = Sending {
        expedited: true,
        ..Default::default()
    };
    send(&mut here, b"slow");
    send_how(&mut here, b"fast", expedited).unwrap();
    send_how(
        &mut here,
        b"faster",
        Sending {
            more: true,
            ..expedited
        },
    )
    .unwrap();
    here.release().unwrap();
    assert_eq!(there.peek(), Some(Event::ExData));
    assert_eq!(
        receive(&mut there, 2),
        (
            b"fa".to_vec(),
            Received {
                len: 2,
                more: true,
                expedited: true
            }
        )
    );
    assert_eq!(
        receive(&mut there, 9),
        (
            b"st".to_vec(),
            Received {
                len: 2,
                more: false,
                expedited: true
            }
        )
    );
    assert_eq!(
        receive(&mut there, 9),
        (
            b"faster".to_vec(),
            Received {
                len: 6,
                more: true,
                expedited: true
            }
        )
    );
    assert_eq!(there.peek(), Some(Event::Data));
    assert_eq!(unit(&mut there), b"slow");
    assert_eq!(receive_now(&mut there, 9), Err(TLOOK));
    assert_eq!(there.take(), Some(Arrived::Released { data: vec![] }));
    assert_eq!(there.peek(), None);
}

#[test]
fn a_refusal_brings_its_data() {
    let _alone = alone();
    let (mut listener, addr) = bound(false, 3);
    let (mut here, _) = bound(false, 0);
    here.connect(&addr, &[], &[]).unwrap();
    let Arrived::Request { seq, .. } = arrived(&mut listener) else {
        panic!()
    };
    listener.reject(seq, b"no").unwrap();
    assert!(listener.reject(seq, b"no").is_err());
    let refused = Arrived::Disconnected {
        reason: libc::ECONNREFUSED,
        seq: -1,
        data: b"no".to_vec(),
    };
    assert_eq!(arrived(&mut here), refused);
    here.connection_over();

    // A request that is dropped is refused too.
    here.connect(&addr, &[], &[]).unwrap();
    let Arrived::Request { seq, .. } = arrived(&mut listener) else {
        panic!()
    };
    drop(listener.take_request(seq).unwrap());
    assert!(matches!(
        arrived(&mut here),
        Arrived::Disconnected {
            reason: libc::ECONNREFUSED,
            ..
        }
    ));
    here.connection_over();

    // And nobody is there at all.
    here.connect(b"nowhere", &[], &[]).unwrap();
    assert!(matches!(
        arrived(&mut here),
        Arrived::Disconnected {
            reason: libc::ECONNREFUSED,
            ..
        }
    ));
}

#[test]
fn a_request_can_be_taken_back() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 1);
    let (mut here, _) = bound(true, 0);
    here.connect(&addr, &[], &[]).unwrap();
    let Arrived::Request { seq, .. } = arrived(&mut listener) else {
        panic!()
    };
    here.disconnect(b"sorry").unwrap();
    assert_eq!(
        arrived(&mut listener),
        Arrived::Disconnected {
            reason: libc::ECONNRESET,
            seq,
            data: b"sorry".to_vec()
        }
    );
}

#[test]
fn no_more_requests_are_told_than_the_queue_is_long() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 2);
    let mut callers: Vec<Circuit> = (0..4).map(|_| bound(true, 0).0).collect();
    for (i, caller) in callers.iter_mut().enumerate() {
        caller.connect(&addr, &[], &[i as u8]).unwrap();
    }
    let mut seqs = Vec::new();
    for i in 0..2 {
        let Arrived::Request { seq, data, .. } = arrived(&mut listener) else {
            panic!()
        };
        assert_eq!(data, [i]);
        seqs.push(seq);
    }
    assert_eq!(listener.peek(), None);
    // On the listener itself, which listens again afterwards.
    let first = listener.take_request(seqs[0]).unwrap();
    listener.adopt(first, &[], &[]).map_err(|(e, _)| e).unwrap();
    assert!(matches!(
        arrived(&mut callers[0]),
        Arrived::Confirmed { .. }
    ));
    send(&mut callers[0], b"x");
    assert_eq!(unit(&mut listener), b"x");
    callers[0].disconnect(b"").unwrap();
    assert!(matches!(
        arrived(&mut listener),
        Arrived::Disconnected { seq: -1, .. }
    ));
    listener.connection_over();
    let Arrived::Request { data, .. } = arrived(&mut listener) else {
        panic!()
    };
    assert_eq!(data, [2]);
}

#[test]
fn an_address_has_one_owner() {
    let _alone = alone();
    let long = [9u8; 1024];
    for addr in [&b"\0one"[..], &long] {
        let mut first = Circuit::open(true).unwrap();
        first.bind(Some(addr), 0).unwrap();
        let mut second = Circuit::open(true).unwrap();
        assert_eq!(
            second.bind(Some(addr), 1).map_err(|e| e.tli),
            Err(TADDRBUSY)
        );
        let mut elsewhere = Circuit::open(false).unwrap();
        elsewhere.bind(Some(addr), 1).unwrap();
        first.unbind().unwrap();
        second.bind(Some(addr), 1).unwrap();
    }
}

#[test]
fn a_full_ring_takes_no_more_until_it_is_half_empty() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    let text = [5; 1000];
    let mut sent = 0;
    while send_how(&mut here, &text, Sending::default()).is_ok() {
        sent += 1;
    }
    assert_eq!(send_how(&mut here, &text, Sending::default()), Err(TFLOW));
    // What is urgent goes all the same.
    send_how(
        &mut here,
        b"!",
        Sending {
            expedited: true,
            ..Default::default()
        },
    )
    .unwrap();
    assert!(receive(&mut there, 2000).1.expedited);
    assert_eq!(unit(&mut there), text);
    assert_eq!(send_how(&mut here, &text, Sending::default()), Err(TFLOW));
    for _ in 1..sent {
        assert_eq!(unit(&mut there), text);
    }
    assert_eq!(send_how(&mut here, &text, Sending::default()), Ok(1000));
}

#[test]
fn an_orderly_release_ends_in_peace_on_both_sides() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    send(&mut here, b"last");
    here.release().unwrap();
    here.close();
    assert_eq!(unit(&mut there), b"last");
    assert_eq!(arrived(&mut there), Arrived::Released { data: vec![] });
    assert_eq!(there.peek(), None);
    there.release().unwrap();
    assert_eq!(there.peek(), None);
    there.connection_over();

    // Who goes on sending learns that nobody listens.
    let (mut here, mut there) = pair(true);
    here.close();
    assert_eq!(arrived(&mut there), Arrived::Released { data: vec![] });
    assert_eq!(send_how(&mut there, b"x", Sending::default()), Err(TLOOK));
    assert!(matches!(
        arrived(&mut there),
        Arrived::Disconnected {
            reason: libc::ECONNRESET,
            ..
        }
    ));

    // Without it, a close is a disconnection.
    let (mut here, mut there) = pair(false);
    send(&mut here, b"last");
    here.close();
    assert_eq!(unit(&mut there), b"last");
    assert!(matches!(arrived(&mut there), Arrived::Disconnected { .. }));
}

#[test]
fn data_of_a_killed_peer_comes_before_the_news() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 1);
    let child = Child::run(|| {
        let (mut c, _) = bound(true, 0);
        c.connect(&addr, &[], &[]).unwrap();
        assert!(matches!(arrived(&mut c), Arrived::Confirmed { .. }));
        for i in 0..100u8 {
            send(&mut c, &[i; 100]);
        }
        // SAFETY: ends this child.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    });
    let mut there = Circuit::open(true).unwrap();
    accept(&mut listener, &mut there, &[], &[]);
    for i in 0..100u8 {
        assert_eq!(unit(&mut there), [i; 100]);
    }
    assert_eq!(
        arrived(&mut there),
        Arrived::Disconnected {
            reason: libc::ECONNRESET,
            seq: -1,
            data: vec![]
        }
    );
    assert_eq!(there.peek(), None);
    drop(child);
}

#[test]
fn a_child_serves_what_its_parent_accepted() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 1);
    let (mut here, _) = bound(true, 0);
    let caller = Child::run(move || {
        here.connect(&addr, &[], &[]).unwrap();
        assert!(matches!(arrived(&mut here), Arrived::Confirmed { .. }));
        for i in 0..1000u32 {
            send(&mut here, &i.to_ne_bytes());
            assert_eq!(unit(&mut here), i.to_ne_bytes());
        }
        here.release().unwrap();
        assert!(matches!(arrived(&mut here), Arrived::Released { .. }));
        here.connection_over();
    });
    let mut there = Circuit::open(true).unwrap();
    accept(&mut listener, &mut there, &[], &[]);
    let server = Child::run(|| {
        loop {
            if event(&mut there) == Event::OrdRel {
                there.take();
                there.release().unwrap();
                return there.connection_over();
            }
            let text = unit(&mut there);
            send(&mut there, &text);
        }
    });
    there.close();
    assert!(caller.succeeded());
    assert!(server.succeeded());
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn connections_leave_nothing_behind() {
    let _alone = alone();
    let (mut listener, addr) = bound(true, 5);
    let mut once = || {
        let (mut here, _) = bound(true, 0);
        here.connect(&addr, &[], &[]).unwrap();
        let mut there = Circuit::open(true).unwrap();
        accept(&mut listener, &mut there, &[], &[]);
        assert!(matches!(arrived(&mut here), Arrived::Confirmed { .. }));
        here.disconnect(&[]).unwrap();
        assert!(matches!(arrived(&mut there), Arrived::Disconnected { .. }));
        there.connection_over();
    };
    for _ in 0..2000 {
        once();
    }
    std::thread::sleep(Duration::from_millis(200));
    once();
    // Closed pipes stay for a moment: up to 64 of them, with three descriptors each.
    assert!(descriptors() < 300, "{} descriptors", descriptors());
}

fn mailbox() -> (Mailbox, Vec<u8>) {
    let mut m = Mailbox::open().unwrap();
    let (addr, _) = m.bind(None, 0).unwrap();
    (m, addr)
}

fn send_to(m: &mut Mailbox, to: &[u8], data: &[u8]) {
    while let Err(e) = m.send_to(to, &[], &iov(data)) {
        assert_eq!(e.tli, TFLOW);
        sleep_at(m, Want::ROOM);
    }
}

fn take_datagram(m: &mut Mailbox, most: usize) -> Result<(Vec<u8>, Vec<u8>, bool), i32> {
    let (mut addr, mut data) = ([0; 1024], vec![0; most]);
    let into = [iovec {
        iov_base: data.as_mut_ptr() as *mut _,
        iov_len: most,
    }];
    let mut d = Datagram {
        addr: &mut addr,
        opts: &mut [],
        data: &into,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    };
    m.receive_from(&mut d).map_err(|e| e.tli)?;
    let (addr_len, len, more) = (d.addr_len, d.data_len, d.more);
    data.truncate(len);
    Ok((addr[..addr_len].to_vec(), data, more))
}

fn datagram(m: &mut Mailbox, most: usize) -> (Vec<u8>, Vec<u8>, bool) {
    loop {
        match take_datagram(m, most) {
            Err(TNODATA) => sleep_at(m, Want::DATA),
            got => return got.expect("a datagram"),
        }
    }
}

#[test]
fn datagrams_come_whole_with_their_senders_address() {
    let _alone = alone();
    let (mut here, from) = mailbox();
    let (mut there, to) = mailbox();
    send_to(&mut here, &to, b"hello");
    send_to(&mut here, &to, b"");
    let long = vec![3; 65000];
    send_to(&mut here, &to, &long);
    assert_eq!(
        datagram(&mut there, 3),
        (from.clone(), b"hel".to_vec(), true)
    );
    assert_eq!(datagram(&mut there, 3), (vec![], b"lo".to_vec(), false));
    assert_eq!(datagram(&mut there, 3), (from.clone(), vec![], false));
    assert_eq!(datagram(&mut there, 70000), (from.clone(), long, false));
    assert_eq!(take_datagram(&mut there, 3), Err(TNODATA));
    assert!(here.send_to(&to, &[], &iov(&[0; 65001])).is_err());
    // To itself, and back.
    send_to(&mut here, &from, b"me");
    assert_eq!(
        datagram(&mut here, 9),
        (from.clone(), b"me".to_vec(), false)
    );
    send_to(&mut there, &from, b"you");
    assert_eq!(datagram(&mut here, 9), (to, b"you".to_vec(), false));
}

#[test]
fn a_datagram_to_nobody_comes_back_as_an_error() {
    let _alone = alone();
    let (mut here, _) = mailbox();
    let (mut there, to) = mailbox();
    here.send_to(b"nobody", &[], &iov(b"x")).unwrap();
    let undelivered = |to: &[u8]| Arrived::Undelivered {
        to: to.to_vec(),
        opts: vec![],
        error: libc::ECONNREFUSED,
    };
    assert_eq!(here.peek(), Some(Event::UdErr));
    assert_eq!(here.take(), Some(undelivered(b"nobody")));
    send_to(&mut here, &to, b"x");
    assert_eq!(datagram(&mut there, 9).1, b"x");
    there.unbind().unwrap();
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    while here.peek().is_none() {
        assert!(Instant::now() < until);
        let _ = here.send_to(&to, &[], &iov(b"y"));
    }
    assert_eq!(here.take(), Some(undelivered(&to)));
    // Somebody else has it now.
    let mut again = Mailbox::open().unwrap();
    again.bind(Some(&to), 0).unwrap();
    send_to(&mut here, &to, b"z");
    assert_eq!(datagram(&mut again, 9).1, b"z");
}

#[test]
fn nothing_of_many_senders_is_lost() {
    const EACH: u32 = 50_000;
    let _alone = alone();
    let (mut there, to) = mailbox();
    let senders: Vec<Child> = (0..4u32)
        .map(|who| {
            let to = to.clone();
            Child::run(move || {
                let (mut m, _) = mailbox();
                for i in 0..EACH {
                    let mut text = [0; 64];
                    text[..4].copy_from_slice(&who.to_ne_bytes());
                    text[4..8].copy_from_slice(&i.to_ne_bytes());
                    send_to(&mut m, &to, &text[..8 + (i % 57) as usize]);
                }
            })
        })
        .collect();
    let mut next = [0; 4];
    for _ in 0..4 * EACH {
        let (_, data, _) = datagram(&mut there, 100);
        let word = |at: usize| u32::from_ne_bytes(data[at..at + 4].try_into().unwrap());
        assert_eq!(word(4), next[word(0) as usize]);
        assert_eq!(data.len(), 8 + (word(4) % 57) as usize);
        next[word(0) as usize] += 1;
    }
    assert!(senders.into_iter().all(Child::succeeded));
    assert_eq!(take_datagram(&mut there, 9), Err(TNODATA));
}

#[test]
fn a_sender_learns_that_the_owner_of_a_full_mailbox_was_killed() {
    let _alone = alone();
    let owner = Child::run(|| {
        let mut m = Mailbox::open().unwrap();
        m.bind(Some(b"doomed"), 0).unwrap();
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    let (mut here, _) = mailbox();
    let text = [0; 1000];
    loop {
        match here.send_to(b"doomed", &[], &iov(&text)) {
            Err(e) => {
                assert_eq!(e.tli, TFLOW);
                break;
            }
            // Not there yet.
            Ok(()) => drop(here.take()),
        }
    }
    drop(owner);
    let until = Instant::now() + Duration::from_secs(2);
    while here.peek() != Some(Event::UdErr) {
        assert!(Instant::now() < until);
        let _ = here.send_to(b"doomed", &[], &iov(&text));
        sleep_at(&here, Want::ROOM);
    }
}

const LEFT: &str = "HEADWATER_LOOPBACK_LEFT";

/// A number that stays open over exec, and what the provider says of itself.
fn leave(p: &mut dyn Provider) -> String {
    // SAFETY: a copy of a descriptor of ours.
    let fd = unsafe { libc::dup(p.descriptor()) };
    format!("{fd}={}", p.save().unwrap())
}

#[test]
fn endpoints_go_on_after_exec() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    let (mut listener, address) = bound(true, 1);
    let (mut mailbox, to) = mailbox();
    send(&mut here, b"before");
    let child = Child::run(|| {
        let left = [leave(&mut there), leave(&mut listener), leave(&mut mailbox)].join(",");
        let path = std::ffi::CString::new("/proc/self/exe").unwrap();
        let args = ["x", "--ignored", "--exact", "image_after_exec"]
            .map(|a| std::ffi::CString::new(a).unwrap());
        let mut argv: Vec<_> = args.iter().map(|a| a.as_ptr()).collect();
        argv.push(std::ptr::null());
        // SAFETY: the only thread; the arrays end with null.
        unsafe {
            std::env::set_var(LEFT, left);
            libc::execv(path.as_ptr(), argv.as_ptr());
        }
    });
    drop((there, listener, mailbox));
    send(&mut here, b"after");
    assert_eq!(
        (unit(&mut here), unit(&mut here)),
        (b"before".to_vec(), b"after".to_vec())
    );
    here.release().unwrap();
    assert_eq!(arrived(&mut here), Arrived::Released { data: vec![] });
    here.connection_over();
    here.connect(&address, &[], &[]).unwrap();
    assert!(matches!(arrived(&mut here), Arrived::Confirmed { .. }));
    let (mut m, _) = self::mailbox();
    send_to(&mut m, &to, b"ping");
    assert_eq!(datagram(&mut m, 9).1, b"ping");
    here.disconnect(&[]).unwrap();
    assert!(child.succeeded());
}

#[test]
#[ignore = "the second half of endpoints_go_on_after_exec"]
fn image_after_exec() {
    let Ok(left) = std::env::var(LEFT) else {
        return;
    };
    let _alone = alone();
    let left: Vec<(i32, &str)> = left
        .split(',')
        .map(|one| {
            one.split_once('=')
                .map(|(fd, saved)| (fd.parse().unwrap(), saved))
                .unwrap()
        })
        .collect();
    let mut there = Circuit::restore(true, left[0].0, left[0].1).unwrap();
    let mut listener = Circuit::restore(true, left[1].0, left[1].1).unwrap();
    let mut mailbox = Mailbox::restore(left[2].0, left[2].1).unwrap();
    while event(&mut there) == Event::Data {
        let text = unit(&mut there);
        send(&mut there, &text);
    }
    assert_eq!(there.take(), Some(Arrived::Released { data: vec![] }));
    there.release().unwrap();
    there.connection_over();
    let mut on = Circuit::open(true).unwrap();
    accept(&mut listener, &mut on, &[], &[]);
    let (from, text, _) = datagram(&mut mailbox, 9);
    send_to(&mut mailbox, &from, &text);
    // The other side closes when it has that.
    event(&mut on);
}

/// Not a check: what a message costs, for who works on it. Run with --ignored --nocapture in release mode.
#[test]
#[ignore = "prints figures"]
fn figures() {
    let _alone = alone();
    const ROUND: usize = 500;
    const ROUNDS: usize = 4000;
    let text = [1; 64];
    let mut buf = [0; 200];
    let into = [iovec {
        iov_base: buf.as_mut_ptr() as *mut _,
        iov_len: buf.len(),
    }];
    let (mut here, mut there) = pair(true);
    let mut spent = [Duration::ZERO; 2];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..ROUND {
            here.send(&iov(&text), Sending::default()).unwrap();
        }
        spent[0] += begun.elapsed();
        let begun = Instant::now();
        for _ in 0..ROUND {
            there.receive(&into).unwrap();
        }
        spent[1] += begun.elapsed();
    }
    let each = |d: Duration, n: usize| d.as_nanos() as f64 / n as f64;
    println!(
        "circuit, one thread: send {:.1} ns, receive {:.1} ns",
        each(spent[0], ROUND * ROUNDS),
        each(spent[1], ROUND * ROUNDS)
    );

    let (mut from, _) = mailbox();
    let (mut box_, to) = mailbox();
    let mut spent = [Duration::ZERO; 2];
    let mut addr = [0; 64];
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..ROUND {
            from.send_to(&to, &[], &iov(&text)).unwrap();
        }
        spent[0] += begun.elapsed();
        let begun = Instant::now();
        for _ in 0..ROUND {
            let mut d = Datagram {
                addr: &mut addr,
                opts: &mut [],
                data: &into,
                addr_len: 0,
                opts_len: 0,
                data_len: 0,
                more: false,
            };
            box_.receive_from(&mut d).unwrap();
        }
        spent[1] += begun.elapsed();
    }
    println!(
        "mailbox, one thread: send {:.1} ns, receive {:.1} ns",
        each(spent[0], ROUND * ROUNDS),
        each(spent[1], ROUND * ROUNDS)
    );

    const MANY: usize = 4_000_000;
    for size in [64, 1024, 16384] {
        let (mut listener, name) = bound(true, 1);
        let many = MANY * 64 / size.max(64);
        let child = Child::run(|| {
            let (mut c, _) = bound(true, 0);
            c.connect(&name, &[], &[]).unwrap();
            assert!(matches!(arrived(&mut c), Arrived::Confirmed { .. }));
            let text = vec![1; size];
            for _ in 0..many {
                send(&mut c, &text);
            }
            c.release().unwrap();
            event(&mut c);
        });
        let mut c = Circuit::open(true).unwrap();
        accept(&mut listener, &mut c, &[], &[]);
        let mut buf = vec![0; size];
        let into = [iovec {
            iov_base: buf.as_mut_ptr() as *mut _,
            iov_len: size,
        }];
        let begun = Instant::now();
        for _ in 0..many {
            while c.receive(&into).is_err() {
                sleep_at(&c, Want::DATA);
            }
        }
        println!(
            "circuit, two processes, {size} bytes: {:.1} ns a message",
            each(begun.elapsed(), many)
        );
        c.release().unwrap();
        assert!(child.succeeded());
    }
    for size in [64, 1024] {
        let (mut owner, name) = mailbox();
        let many = MANY * 64 / size;
        let child = Child::run(|| {
            let (mut m, _) = mailbox();
            let text = vec![1; size];
            for _ in 0..many {
                send_to(&mut m, &name, &text);
            }
        });
        let mut buf = vec![0; size];
        let into = [iovec {
            iov_base: buf.as_mut_ptr() as *mut _,
            iov_len: size,
        }];
        let mut addr = [0; 64];
        let begun = Instant::now();
        for _ in 0..many {
            loop {
                let mut d = Datagram {
                    addr: &mut addr,
                    opts: &mut [],
                    data: &into,
                    addr_len: 0,
                    opts_len: 0,
                    data_len: 0,
                    more: false,
                };
                if owner.receive_from(&mut d).is_ok() {
                    break;
                }
                sleep_at(&owner, Want::DATA);
            }
        }
        println!(
            "mailbox, two processes, {size} bytes: {:.1} ns a datagram",
            each(begun.elapsed(), many)
        );
        assert!(child.succeeded());
    }

    let (mut listener, name) = bound(true, 1);
    let child = Child::run(|| {
        let (mut c, _) = bound(true, 0);
        c.connect(&name, &[], &[]).unwrap();
        arrived(&mut c);
        for _ in 0..200_000 {
            send(&mut c, b"?");
            unit(&mut c);
        }
    });
    let mut c = Circuit::open(true).unwrap();
    accept(&mut listener, &mut c, &[], &[]);
    let begun = Instant::now();
    for _ in 0..200_000 {
        unit(&mut c);
        send(&mut c, b"!");
    }
    println!(
        "circuit, request and response: {:.1} ns",
        each(begun.elapsed(), 200_000)
    );
    assert!(child.succeeded());
    drop(c);

    let child = Child::run(|| {
        let mut c = Circuit::open(true).unwrap();
        c.bind(None, 0).unwrap();
        for _ in 0..5000 {
            c.connect(&name, &[], &[]).unwrap();
            arrived(&mut c);
            c.disconnect(&[]).unwrap();
        }
    });
    let begun = Instant::now();
    for _ in 0..5000 {
        let mut c = Circuit::open(true).unwrap();
        accept(&mut listener, &mut c, &[], &[]);
        event(&mut c);
    }
    println!(
        "connect and accept: {:.2} us",
        each(begun.elapsed(), 5000) / 1000.0
    );
    assert!(child.succeeded());
}
