//! Connections: how they are made, refused, released and broken, and what is left of them.

use std::time::Duration;

use headwater_providers::loopback::connection::Circuit;
use headwater_providers::provider::{Arrived, Event, Provider, Sending};
use headwater_tpi::error::{TADDRBUSY, TLOOK};

use crate::processes::{Child, alone};
use crate::{accept, arrived, bound, event, pair, send, send_how, unit};

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

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
