use proptest::prelude::*;

use super::*;
use crate::wire::Causes;

const LOCAL: Tsn = Tsn(u32::MAX);
const PEER: Tsn = Tsn(77);

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn wildcard() -> IpAddr {
    IpAddr::from([0, 0, 0, 0])
}

fn pair() -> (Asconf, Asconf) {
    (Asconf::new(LOCAL, PEER), Asconf::new(PEER, LOCAL))
}

fn parts(chunk: &[u8]) -> (u32, Params<'_>) {
    assert_eq!(
        usize::from(u16::from_be_bytes([chunk[2], chunk[3]])),
        chunk.len()
    );
    (
        u32::from_be_bytes(chunk[4..8].try_into().expect("four")),
        Params::new(&chunk[8..]),
    )
}

fn send(asconf: &mut Asconf, source: IpAddr) -> Vec<u8> {
    asconf
        .request(ip(1), Some(source), 1000)
        .expect("an ASCONF")
        .to_vec()
}

fn deliver(to: &mut Asconf, chunk: &[u8], from: IpAddr, peer: &[IpAddr]) -> Handled {
    let (serial, params) = parts(chunk);
    to.on_asconf(serial, params, from, peer)
}

fn acknowledge(to: &mut Asconf, handled: &Handled) -> Vec<(Change, Outcome)> {
    let (serial, params) = parts(handled.answer.as_ref().expect("an answer"));
    to.on_ack(serial, params).expect("a legal answer")
}

fn request(serial: Tsn, list: &[Param]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut params = ParamBuilder::new(&mut body);
    params.put(&ip(1).into());
    for param in list {
        params.put(param);
    }
    chunk(kind::ASCONF, serial, &body)
}

fn causes_of(answer: &[u8]) -> Vec<Option<u16>> {
    let (_, params) = parts(answer);
    let one = |param| match param {
        Ok(Param::ErrorCauseIndication { causes, .. }) => {
            let mut causes: Causes = causes;
            Some(causes.next().expect("a cause").expect("a right one").code())
        }
        Ok(Param::SuccessIndication { .. }) => None,
        other => panic!("{other:?}"),
    };
    params.map(one).collect()
}

#[test]
fn requests_go_together_and_are_answered_at_once() {
    let (mut us, mut peer) = pair();
    for change in [
        Change::Add(ip(2)),
        Change::SetPrimary(ip(2)),
        Change::Add(ip(3)),
    ] {
        us.ask(change, &[ip(1)]).expect("it is allowed");
    }
    let chunk = send(&mut us, ip(1));
    assert_eq!(us.request(ip(1), None, 1000), None, "one at a time");
    let handled = deliver(&mut peer, &chunk, ip(1), &[ip(1)]);
    assert_eq!(
        handled.actions,
        [
            Change::Add(ip(2)),
            Change::SetPrimary(ip(2)),
            Change::Add(ip(3))
        ]
    );
    let done = acknowledge(&mut us, &handled);
    assert!(done.len() == 3 && done.iter().all(|one| one.1 == Outcome::Done));
    assert!(!us.is_outstanding() && !us.wants());
}

#[test]
fn an_asconf_that_comes_again_is_answered_alike_and_not_done_again() {
    let (mut us, mut peer) = pair();
    us.ask(Change::Add(ip(2)), &[ip(1)]).expect("it is allowed");
    let chunk = send(&mut us, ip(1));
    let first = deliver(&mut peer, &chunk, ip(1), &[ip(1)]);
    us.on_timeout();
    assert_eq!(send(&mut us, ip(1)), chunk);
    let second = deliver(&mut peer, &chunk, ip(1), &[ip(1), ip(2)]);
    assert_eq!((second.actions.len(), &second.answer), (0, &first.answer));
    acknowledge(&mut us, &first);
    assert_eq!(
        acknowledge(&mut us, &second),
        [],
        "the second answer is late"
    );
    let ahead = request(LOCAL.plus(5), &[]);
    assert_eq!(
        deliver(&mut peer, &ahead, ip(1), &[ip(1)]),
        Handled::default()
    );
}

#[test]
fn an_answer_to_nothing_is_illegal() {
    let (mut us, _) = pair();
    assert_eq!(us.on_ack(LOCAL.0, Params::new(&[])), Err(IllegalAck));
    assert_eq!(
        us.on_ack(LOCAL.0.wrapping_sub(1), Params::new(&[])),
        Ok(vec![]),
        "an old one"
    );
}

#[test]
fn the_last_address_and_the_source_stay() {
    let (mut us, mut peer) = pair();
    assert_eq!(us.ask(Change::Delete(ip(1)), &[ip(1)]), Err(Refused::Last));
    assert_eq!(
        us.ask(Change::Delete(ip(9)), &[ip(1)]),
        Err(Refused::Unknown)
    );
    assert_eq!(us.ask(Change::Add(ip(1)), &[ip(1)]), Err(Refused::Known));
    us.ask(Change::Delete(ip(1)), &[ip(1), ip(2)])
        .expect("it is allowed");
    assert_eq!(
        us.ask(Change::Delete(ip(2)), &[ip(1), ip(2)]),
        Err(Refused::Last)
    );
    assert_eq!(us.request(ip(2), Some(ip(1)), 1000), None, "not from there");
    assert!(us.wants());
    send(&mut us, ip(2));

    let delete = |address| Param::DeleteIp {
        correlation: 0,
        address,
    };
    let last = deliver(
        &mut peer,
        &request(LOCAL, &[delete(ip(1))]),
        ip(1),
        &[ip(1)],
    );
    assert_eq!(causes_of(&last.answer.expect("an answer")), [Some(0xa0)]);
    let list = [delete(ip(1)), delete(ip(2)), delete(ip(9))];
    let source = deliver(
        &mut peer,
        &request(LOCAL.next(), &list),
        ip(1),
        &[ip(1), ip(2)],
    );
    assert_eq!(
        causes_of(&source.answer.expect("an answer")),
        [Some(0xa2), None, Some(5)]
    );
    assert_eq!(source.actions, [Change::Delete(ip(2))]);
}

#[test]
fn the_wildcard_stands_for_the_source() {
    let (_, mut peer) = pair();
    let list = [
        Param::AddIp {
            correlation: 1,
            address: wildcard(),
        },
        Param::DeleteIp {
            correlation: 2,
            address: wildcard(),
        },
        Param::SetPrimary {
            correlation: 3,
            address: wildcard(),
        },
    ];
    let handled = deliver(&mut peer, &request(LOCAL, &list), ip(7), &[ip(1), ip(2)]);
    let expected = [
        Change::Add(ip(7)),
        Change::Delete(ip(1)),
        Change::Delete(ip(2)),
        Change::SetPrimary(ip(7)),
    ];
    assert_eq!(handled.actions, expected);
    assert_eq!(
        handled.answer.map(|answer| answer.len()),
        Some(HEAD),
        "complete success says nothing"
    );
}

#[test]
fn what_is_not_understood_is_reported_and_not_asked_again() {
    let (mut us, mut peer) = pair();
    let unknown = [0xc0, 0x99, 0, 8, 0, 0, 0, 0];
    let list = [
        Param::Unknown {
            kind: 0xc099,
            whole: &unknown,
        },
        Param::AddIp {
            correlation: 9,
            address: ip(2),
        },
    ];
    let handled = deliver(&mut peer, &request(LOCAL, &list), ip(1), &[ip(1)]);
    assert_eq!(
        causes_of(handled.answer.as_ref().expect("an answer")),
        [Some(8), None]
    );
    assert_eq!(handled.actions, [Change::Add(ip(2))]);

    us.ask(Change::Add(ip(2)), &[ip(1)]).expect("it is allowed");
    us.ask(Change::Add(ip(3)), &[ip(1)]).expect("it is allowed");
    send(&mut us, ip(1));
    us.ask(Change::Add(ip(4)), &[ip(1)]).expect("it is allowed");
    let handled = Handled {
        answer: Some(
            handled
                .answer
                .map(|mut answer| {
                    answer.truncate(answer.len() - 8);
                    let length = answer.len() as u8;
                    answer[3] = length;
                    answer
                })
                .expect("an answer"),
        ),
        ..Handled::default()
    };
    let done = acknowledge(&mut us, &handled);
    let expected = [
        (Change::Add(ip(2)), Outcome::Denied),
        (Change::Add(ip(3)), Outcome::Failed),
        (Change::Add(ip(4)), Outcome::Failed),
    ];
    assert_eq!(done, expected);
    assert_eq!(
        us.ask(Change::Add(ip(5)), &[ip(1)]),
        Err(Refused::Unsupported)
    );
    us.ask(Change::SetPrimary(ip(1)), &[ip(1)])
        .expect("that may still work");
    assert!(us.outstanding.is_none());
    assert_eq!(us.queue, [Change::SetPrimary(ip(1))]);
}

#[test]
fn addresses_that_are_none_or_too_many_are_refused() {
    let (_, mut peer) = pair();
    let add = |address| Param::AddIp {
        correlation: 0,
        address,
    };
    let list = [
        add(IpAddr::from([224, 0, 0, 1])),
        add(IpAddr::from([255; 4])),
        add(ip(1)),
    ];
    let handled = deliver(&mut peer, &request(LOCAL, &list), ip(1), &[ip(1)]);
    assert_eq!(
        causes_of(&handled.answer.expect("an answer")),
        [Some(5), Some(5), None]
    );
    let many: Vec<IpAddr> = (1..=PATHS as u8).map(ip).collect();
    let list = [
        add(ip(100)),
        Param::DeleteIp {
            correlation: 1,
            address: ip(2),
        },
    ];
    let handled = deliver(&mut peer, &request(LOCAL.next(), &list), ip(1), &many);
    assert_eq!(
        causes_of(&handled.answer.expect("an answer")),
        [Some(0xa1), Some(0xa1)]
    );
    assert_eq!(handled.actions, []);
}

#[test]
fn a_long_queue_goes_out_in_several_chunks() {
    let (mut us, mut peer) = pair();
    let mut theirs = vec![ip(1)];
    let many: Vec<IpAddr> = (0..15)
        .map(|n| IpAddr::from([0xfc00, 0, 0, 0, 0, 0, 0, n + 1]))
        .collect();
    for addr in &many {
        us.ask(Change::Add(*addr), &[ip(1)]).expect("it is allowed");
    }
    let mut rounds = 0;
    while us.wants() {
        let chunk = send(&mut us, ip(1));
        assert!(chunk.len() <= LONGEST);
        let handled = deliver(&mut peer, &chunk, ip(1), &theirs);
        acknowledge(&mut us, &handled);
        theirs.extend(handled.actions.iter().map(|action| match action {
            Change::Add(addr) => *addr,
            other => panic!("{other:?}"),
        }));
        rounds += 1;
    }
    assert_eq!((rounds, theirs.len()), (2, 16));
}

#[test]
fn all_but_a_source_that_is_no_address_of_the_peer_can_not_be_deleted() {
    let (_, mut b) = pair();
    let all = Param::DeleteIp {
        correlation: 1,
        address: wildcard(),
    };
    let handled = deliver(&mut b, &request(LOCAL, &[all]), ip(9), &[ip(1), ip(2)]);
    assert_eq!(handled.actions, []);
    assert_ne!(causes_of(&handled.answer.expect("an answer")), [None]);
}

proptest! {
    #[test]
    fn no_asconf_leaves_a_peer_without_addresses(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        list in prop::collection::vec((0u8..3, 0u8..5), 0..12),
    ) {
        let (_, mut peer) = pair();
        let (first, second) = (ip(1), ip(2));
        peer.on_asconf(PEER.0, Params::new(&bytes), first, &[first]);
        let addr = |n| if n == 0 { wildcard() } else { ip(n) };
        let params: Vec<Param> = list.iter().map(|(what, n)| match what {
            0 => Param::AddIp { correlation: 1, address: addr(*n) },
            1 => Param::DeleteIp { correlation: 1, address: addr(*n) },
            _ => Param::SetPrimary { correlation: 1, address: addr(*n) },
        }).collect();
        let handled = deliver(&mut peer, &request(LOCAL, &params), first, &[first, second]);
        let mut now = vec![first, second];
        for action in handled.actions {
            match action {
                Change::Add(addr) => {
                    prop_assert!(!now.contains(&addr));
                    now.push(addr);
                }
                Change::Delete(addr) => now.retain(|one| *one != addr),
                Change::SetPrimary(addr) => prop_assert!(now.contains(&addr)),
            }
        }
        prop_assert!(now.contains(&first));
    }
}
