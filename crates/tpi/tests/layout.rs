//! The bytes that a C program sees.

use headwater_tpi::{Indication, Info, Malformed, Request, prim::*};

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes
        .chunks_exact(4)
        .map(|word| i32::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

fn bytes(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

const INFO: Info = Info {
    tsdu: 1,
    etsdu: 2,
    cdata: 3,
    ddata: 4,
    addr: 5,
    opt: 6,
    tidu: 7,
    serv: T_COTS,
    state: 9,
    provider_flag: 10,
};

#[test]
fn requests_have_the_structures_of_tihdr() {
    let (dest, opts) = (&b"ab"[..], &[7; 16][..]);
    assert_eq!(
        words(&Request::Conn { dest, opts }.encode())[..5],
        [T_CONN_REQ, 2, 20, 16, 24]
    );
    assert_eq!(
        words(
            &Request::ConnRes {
                acceptor: 5,
                opts,
                seq: 9
            }
            .encode()
        )[..5],
        [T_CONN_RES, 5, 16, 20, 9]
    );
    assert_eq!(
        words(&Request::Discon { seq: NO_SEQUENCE }.encode()),
        [T_DISCON_REQ, -1]
    );
    assert_eq!(
        words(
            &Request::Bind {
                addr: dest,
                qlen: 3
            }
            .encode()
        )[..4],
        [T_BIND_REQ, 2, 16, 3]
    );
    assert_eq!(
        words(&Request::Optmgmt { flags: 4, opts }.encode())[..4],
        [T_OPTMGMT_REQ, 16, 16, 4]
    );
    let both = Request::OptData {
        more: true,
        expedited: true,
        opts: &[],
    };
    assert_eq!(words(&both.encode()), [T_OPTDATA_REQ, 3, 0, 0]);
    assert_eq!(
        words(&Request::Capability { bits: TC1_INFO }.encode()),
        [T_CAPABILITY_REQ, 1]
    );
    assert_eq!(words(&Request::Info.encode()), [T_INFO_REQ]);
}

#[test]
fn indications_have_the_structures_of_tihdr() {
    let src = &b"abcd"[..];
    assert_eq!(
        words(
            &Indication::ConnInd {
                src,
                opts: &[],
                seq: 9
            }
            .encode()
        )[..6],
        [T_CONN_IND, 4, 24, 0, 0, 9]
    );
    let lost = Indication::UderrorInd {
        dest: src,
        opts: &[],
        error: 111,
    };
    assert_eq!(
        words(&lost.encode())[..6],
        [T_UDERROR_IND, 4, 24, 0, 0, 111]
    );
    assert_eq!(
        words(
            &Indication::DisconInd {
                reason: 104,
                seq: -1
            }
            .encode()
        ),
        [T_DISCON_IND, 104, -1]
    );
    assert_eq!(
        words(
            &Indication::ErrorAck {
                prim: 6,
                tli: 8,
                unix: 22
            }
            .encode()
        ),
        [T_ERROR_ACK, 6, 8, 22]
    );
    assert_eq!(
        words(&Indication::InfoAck { info: INFO }.encode()),
        [T_INFO_ACK, 1, 2, 3, 4, 5, 6, 7, T_COTS, 9, 10]
    );
    let capable = Indication::CapabilityAck {
        bits: TC1_INFO | TC1_ACCEPTOR_ID,
        info: INFO,
        acceptor: 77,
    };
    let expected = [
        T_CAPABILITY_ACK,
        3,
        T_INFO_ACK,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        T_COTS,
        9,
        10,
        77,
    ];
    assert_eq!(words(&capable.encode()), expected);
    assert_eq!(
        words(
            &Indication::AddrAck {
                local: src,
                remote: src
            }
            .encode()
        )[..5],
        [T_ADDR_ACK, 4, 20, 4, 24]
    );
}

#[test]
fn a_part_outside_the_message_is_refused() {
    let refused = Err(Malformed::OutOfBounds { prim: T_BIND_REQ });
    for (length, offset) in [
        (1, 16),
        (16, 1),
        (-1, 0),
        (-1, -1),
        (1, -1),
        (i32::MAX, i32::MAX),
    ] {
        assert_eq!(
            Request::decode(&bytes(&[T_BIND_REQ, length, offset, 0])),
            refused,
            "{length} at {offset}"
        );
    }
}

#[test]
fn an_empty_part_may_lie_anywhere() {
    for offset in [0, 16, -1, i32::MAX] {
        let message = bytes(&[T_BIND_REQ, 0, offset, 5]);
        assert_eq!(
            Request::decode(&message),
            Ok(Request::Bind { addr: &[], qlen: 5 })
        );
    }
}

#[test]
fn structures_that_are_cut_off_are_refused() {
    assert_eq!(Request::decode(&[]), Err(Malformed::Empty));
    assert_eq!(Request::decode(&[0; 3]), Err(Malformed::Empty));
    let full = Indication::CapabilityAck {
        bits: 3,
        info: INFO,
        acceptor: 1,
    }
    .encode();
    for length in 4..full.len() {
        assert_eq!(
            Indication::decode(&full[..length]),
            Err(Malformed::Short {
                prim: T_CAPABILITY_ACK
            })
        );
    }
}

#[test]
fn every_primitive_is_either_a_request_or_an_indication() {
    for prim in T_CONN_REQ..=T_CAPABILITY_ACK {
        let message = bytes(&[&[prim][..], &[0; 13]].concat());
        let (request, indication) = (Request::decode(&message), Indication::decode(&message));
        assert!(request.is_ok() != indication.is_ok(), "{prim}");
        assert!(request.is_err_and(|bad| bad == Malformed::Unknown(prim)) == indication.is_ok());
        assert_eq!(
            name(prim).unwrap().contains("_REQ") || prim == T_CONN_RES,
            request.is_ok()
        );
    }
    assert_eq!(Request::decode(&bytes(&[30])), Err(Malformed::Unknown(30)));
    assert_eq!(Request::decode(&bytes(&[-1])), Err(Malformed::Unknown(-1)));
}

#[test]
fn acknowledgements_and_questions_about_the_provider_are_of_high_priority() {
    assert!(Request::Info.is_high() && Request::Addr.is_high() && !Request::Unbind.is_high());
    assert!(Indication::OkAck { prim: 0 }.is_high() && !Indication::OrdrelInd.is_high());
}
