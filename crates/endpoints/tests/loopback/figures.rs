//! What a message costs, by hand.

use std::time::{Duration, Instant};

use headwater_providers::loopback::connection::Circuit;
use headwater_providers::provider::{Arrived, Provider, Sending};
use headwater_streams::head::arming::Want;
use libc::iovec;

use crate::datagrams::{mailbox, send_to};
use crate::processes::{Child, alone};
use crate::sockets::{datagram as room_for, io};
use crate::{accept, arrived, bound, event, pair, send, sleep_at, unit};

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
            here.send(&io(&text), Sending::default()).unwrap();
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
            from.send_to(&to, &[], &io(&text)).unwrap();
        }
        spent[0] += begun.elapsed();
        let begun = Instant::now();
        for _ in 0..ROUND {
            let mut d = room_for(&mut addr, &into);
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
                let mut d = room_for(&mut addr, &into);
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
