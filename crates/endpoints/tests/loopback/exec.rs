//! Endpoints go on in the next image of their process.

use headwater_providers::loopback::connection::Circuit;
use headwater_providers::loopback::connectionless::Mailbox;
use headwater_providers::provider::{Arrived, Event, Provider};

use crate::datagrams::{datagram, mailbox, send_to};
use crate::processes::{Child, alone, execute_again};
use crate::{accept, arrived, bound, event, pair, send, unit};

const LEFT: &str = "HEADWATER_LOOPBACK_LEFT";

#[test]
fn endpoints_go_on_after_exec() {
    let _alone = alone();
    let (mut here, mut there) = pair(true);
    let (mut listener, address) = bound(true, 1);
    let (mut mailbox, to) = mailbox();
    send(&mut here, b"before");
    let child = Child::run(|| {
        let left = [leave(&mut there), leave(&mut listener), leave(&mut mailbox)].join(",");
        execute_again("exec::image_after_exec", LEFT, &left);
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
    let (mut m, _) = crate::datagrams::mailbox();
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

/// A number that stays open over exec, and what the provider says of itself.
fn leave(p: &mut dyn Provider) -> String {
    // SAFETY: a copy of a descriptor of ours.
    let fd = unsafe { libc::dup(p.descriptor()) };
    format!("{fd}={}", p.save().unwrap())
}
