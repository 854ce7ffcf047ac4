//! Data units, expedited data, and a ring that is full.

use headwater_providers::provider::{Arrived, Event, Provider, Received, Sending};
use headwater_tpi::error::{TFLOW, TLOOK, TNODATA};

use crate::processes::alone;
use crate::sockets::io;
use crate::{pair, receive, receive_now, send, send_how, unit};

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
    let iov = [io(&long[..50_000])[0], io(&long[50_000..])[0]];
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
