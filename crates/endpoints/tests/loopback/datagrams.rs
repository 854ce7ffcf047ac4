//! Datagrams, from many senders and to owners that go.

use std::time::{Duration, Instant};

use headwater_providers::loopback::connectionless::Mailbox;
use headwater_providers::provider::{Arrived, Event, Provider};
use headwater_streams::head::arming::Want;
use headwater_tpi::error::{TFLOW, TNODATA};
use libc::iovec;

use crate::processes::{Child, alone};
use crate::sockets::{datagram as room_for, io};
use crate::{PATIENCE, sleep_at};

pub fn mailbox() -> (Mailbox, Vec<u8>) {
    let mut m = Mailbox::open().unwrap();
    let (addr, _) = m.bind(None, 0).unwrap();
    (m, addr)
}

pub fn send_to(m: &mut Mailbox, to: &[u8], data: &[u8]) {
    while let Err(e) = m.send_to(to, &[], &io(data)) {
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
    let mut d = room_for(&mut addr, &into);
    m.receive_from(&mut d).map_err(|e| e.tli)?;
    let (addr_len, len, more) = (d.addr_len, d.data_len, d.more);
    data.truncate(len);
    Ok((addr[..addr_len].to_vec(), data, more))
}

pub fn datagram(m: &mut Mailbox, most: usize) -> (Vec<u8>, Vec<u8>, bool) {
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
    assert!(here.send_to(&to, &[], &io(&[0; 65001])).is_err());
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
    here.send_to(b"nobody", &[], &io(b"x")).unwrap();
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
        let _ = here.send_to(&to, &[], &io(b"y"));
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
        match here.send_to(b"doomed", &[], &io(&text)) {
            Err(e) => {
                assert_eq!(e.tli, TFLOW);
                break;
            }
            // Not there yet.
            Ok(()) => drop(here.take()),
        }
    }
    drop(owner);
    let until = Instant::now() + Duration::from_secs(PATIENCE);
    while here.peek() != Some(Event::UdErr) {
        assert!(Instant::now() < until);
        let _ = here.send_to(b"doomed", &[], &io(&text));
        sleep_at(&here, Want::ROOM);
    }
}
