use headwater_sctp::serial::{Mid, Ssn, Tsn};
use proptest::prelude::*;

use super::*;
use crate::abi::SCTP_NOTIFICATION;

fn message(kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, kind, data);
    bytes
}

fn asked(control: &[u8]) -> Asked {
    read(control, &SendInfo::default()).unwrap()
}

fn refused(control: &[u8]) {
    assert_eq!(
        read(control, &SendInfo::default()).unwrap_err(),
        libc::EINVAL
    );
}

/// SNDRCV or SNDINFO was there.
fn has_info(asked: &Asked) -> bool {
    asked.said.sndrcv.is_some() || asked.said.sndinfo.is_some()
}

#[test]
fn without_control_data_the_defaults_hold() {
    let defaults = SendInfo {
        raw: sctp_sndinfo {
            snd_sid: 3,
            snd_ppid: 9,
            ..Default::default()
        },
        key: Some(2),
        reliability: Reliability::Rtx(1),
    };
    let asked = read(&[], &defaults).unwrap();
    assert_eq!((asked.info, has_info(&asked)), (defaults, false));
    assert!(asked.init.is_none() && asked.to.is_empty());
}

#[test]
fn sndrcv_says_everything_in_one() {
    let raw = sctp_sndrcvinfo {
        sinfo_stream: 5,
        sinfo_flags: SCTP_UNORDERED | SCTP_PR_SCTP_RTX,
        sinfo_ppid: 46u32.to_be(),
        sinfo_context: 7,
        sinfo_timetolive: 4,
        sinfo_assoc_id: 11,
        ..Default::default()
    };
    let asked = asked(&message(SCTP_SNDRCV, raw.bytes()));
    assert!(has_info(&asked));
    assert_eq!(asked.info.raw.snd_assoc_id, 11);
    let expected = Outgoing {
        stream: 5,
        ppid: 46,
        unordered: true,
        sack_now: false,
        reliability: Reliability::Rtx(4),
        context: 7,
        ..Outgoing::default()
    };
    assert_eq!(asked.info.outgoing(), expected);
    assert_eq!(asked.info.sndrcv(), raw);
}

#[test]
fn a_time_to_live_needs_no_policy() {
    let raw = sctp_sndrcvinfo {
        sinfo_timetolive: 1500,
        ..Default::default()
    };
    let asked = asked(&message(SCTP_SNDRCV, raw.bytes()));
    let expected = Reliability::Ttl(Duration::from_millis(1500));
    assert_eq!(asked.info.reliability, expected);
}

#[test]
fn sndinfo_leaves_the_default_reliability_which_prinfo_changes_wherever_it_stands() {
    let defaults = SendInfo {
        reliability: Reliability::Prio(3),
        ..SendInfo::default()
    };
    let info = sctp_sndinfo {
        snd_sid: 1,
        snd_flags: SCTP_EOF,
        ..Default::default()
    };
    let info = message(SCTP_SNDINFO, info.bytes());
    let asked = read(&info, &defaults).unwrap();
    assert_eq!(asked.info.reliability, Reliability::Prio(3));
    assert!(asked.info.has(SCTP_EOF));

    let policy = sctp_prinfo {
        pr_policy: SCTP_PR_SCTP_TTL,
        pr_value: 20,
        ..Default::default()
    };
    let policy = message(SCTP_PRINFO, policy.bytes());
    for control in [
        [info.clone(), policy.clone()].concat(),
        [policy, info].concat(),
    ] {
        let asked = read(&control, &defaults).unwrap();
        let expected = Reliability::Ttl(Duration::from_millis(20));
        let info = asked.info;
        assert_eq!((info.raw.snd_sid, info.reliability), (1, expected));
    }
}

#[test]
fn what_was_asked_holds_over_an_associations_defaults_too() {
    let of_stream = |snd_sid| sctp_sndinfo {
        snd_sid,
        ..Default::default()
    };
    let defaults = SendInfo {
        raw: of_stream(4),
        key: Some(1),
        ..SendInfo::default()
    };
    let of_association = SendInfo {
        raw: of_stream(6),
        reliability: Reliability::Rtx(2),
        ..defaults
    };
    let asked = read(&message(SCTP_AUTHINFO, &9u16.to_ne_bytes()), &defaults).unwrap();
    let expected = SendInfo {
        key: Some(9),
        ..of_association
    };
    assert_eq!(asked.over(&of_association), expected);
}

#[test]
fn key_addresses_and_init_are_read_and_other_levels_passed_over() {
    let init = sctp_initmsg {
        sinit_num_ostreams: 8,
        ..Default::default()
    };
    let mut foreign = message(77, &[1, 2, 3]);
    foreign[LEN..LEN + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    let control = [
        foreign,
        message(SCTP_AUTHINFO, &2u16.to_ne_bytes()),
        message(SCTP_INIT, init.bytes()),
        message(SCTP_DSTADDRV4, &[10, 0, 0, 1]),
        message(SCTP_DSTADDRV6, &Ipv6Addr::LOCALHOST.octets()),
        message(SCTP_DSTADDRV4, &[10, 0, 0, 2]),
    ]
    .concat();
    let asked = asked(&control);
    assert_eq!((asked.info.key, asked.init), (Some(2), Some(init)));
    let to: Vec<String> = asked.to.iter().map(IpAddr::to_string).collect();
    assert_eq!(to, ["10.0.0.1", "::1", "10.0.0.2"]);
    assert!(!has_info(&asked));
}

#[test]
fn wrong_lengths_types_flags_and_policies_are_refused() {
    refused(&message(SCTP_SNDRCV, &[0; 31]));
    refused(&message(SCTP_SNDRCV, &[0; 33]));
    refused(&message(SCTP_SNDINFO, &[0; 15]));
    refused(&message(SCTP_INIT, &[]));
    refused(&message(SCTP_AUTHINFO, &[0; 4]));
    refused(&message(SCTP_DSTADDRV4, &[0; 16]));
    refused(&message(SCTP_DSTADDRV6, &[0; 4]));
    refused(&message(SCTP_PRINFO, &[0x40, 0, 0, 0, 0, 0, 0, 0]));
    for kind in [SCTP_RCVINFO, SCTP_NXTINFO, 9, -1] {
        refused(&message(kind, &[]));
    }
    let flags = sctp_sndinfo {
        snd_flags: SCTP_NOTIFICATION,
        ..Default::default()
    };
    refused(&message(SCTP_SNDINFO, flags.bytes()));
}

#[test]
fn a_length_beyond_the_buffer_or_within_the_header_is_refused() {
    let whole = message(SCTP_SNDINFO, &[0; 16]);
    refused(&whole[..whole.len() - 1]);
    for len in [0, HEAD - 1, whole.len() + 1, usize::MAX] {
        let mut wrong = whole.clone();
        wrong[..LEN].copy_from_slice(&len.to_ne_bytes());
        refused(&wrong);
    }
}

#[test]
fn what_is_too_short_for_a_header_is_no_control_message() {
    assert!(!has_info(&asked(&[1; HEAD - 1])));
    let mut control = message(SCTP_SNDINFO, &[0; 16]);
    control.extend_from_slice(&[0xff; HEAD - 1]);
    assert!(has_info(&asked(&control)));
}

fn received() -> Received {
    Received {
        len: 4,
        end: true,
        aborted: false,
        stream: 2,
        ssn: Ssn(3),
        ppid: 0x0102_0304,
        tsn: Tsn(0x11),
        mid: Mid(0),
        unordered: true,
    }
}

#[test]
fn a_received_message_is_described_byte_for_byte() {
    let received = received();
    let came = Came {
        received: &received,
        assoc: 5,
        context: 6,
        cumtsn: 0x12,
    };
    let next = sctp_nxtinfo {
        nxt_sid: 1,
        nxt_flags: SCTP_NOTIFICATION,
        nxt_ppid: 0x0a0b_0c0d_u32.to_be(),
        nxt_length: 99,
        nxt_assoc_id: 5,
    };
    let mut control = Vec::new();
    write(&mut control, (true, true), &came, Some(&next));
    #[rustfmt::skip]
    let expected: [u8; 32 + 48 + 48] = [
        32, 0, 0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 4, 0, 0, 0,
        1, 0, 0, 0x80, 0x0a, 0x0b, 0x0c, 0x0d, 99, 0, 0, 0, 5, 0, 0, 0,
        44, 0, 0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 3, 0, 0, 0,
        2, 0, 3, 0, 1, 0, 0, 0, 1, 2, 3, 4, 0x11, 0, 0, 0, 0x12, 0, 0, 0, 6, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
        48, 0, 0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 1, 0, 0, 0,
        2, 0, 3, 0, 1, 0, 0, 0, 1, 2, 3, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0, 0x12, 0, 0, 0, 5, 0, 0, 0,
    ];
    assert_eq!(control, expected);
}

#[test]
fn only_what_is_wanted_is_written() {
    let received = received();
    let came = Came {
        received: &received,
        assoc: 5,
        context: 0,
        cumtsn: 0,
    };
    let mut control = Vec::new();
    write(&mut control, (false, false), &came, None);
    assert!(control.is_empty());
    write(&mut control, (false, true), &came, None);
    assert_eq!(control.len(), 48);
    assert_eq!(i32_at(&control, LEN + 4), Some(SCTP_RCVINFO));
}

#[test]
fn too_little_room_cuts_the_last_message_but_no_header() {
    let whole = [message(1, &[7; 32]), message(3, &[8; 28])].concat();
    assert_eq!(whole.len(), 96);
    for (room, left, lost) in [
        (200, 96, false),
        (96, 96, false),
        (92, 92, false),
        (91, 91, true),
        (64, 64, true),
        (63, 48, true),
        (48, 48, true),
        (47, 47, true),
        (15, 0, true),
        (0, 0, true),
    ] {
        let mut control = whole.clone();
        assert_eq!(fit(&mut control, room), lost, "room for {room}");
        assert_eq!(control.len(), left, "room for {room}");
    }
    let mut control = whole;
    fit(&mut control, 64);
    assert_eq!(usize_at(&control, 48), Some(16));
}

#[test]
fn padding_has_room_too_or_is_cut() {
    let whole = [message(3, &[8; 28]), message(1, &[7; 32])].concat();
    for room in 44..=48 {
        let mut control = whole.clone();
        assert!(fit(&mut control, room), "room for {room}");
        assert_eq!(control.len(), room);
    }
}

#[test]
fn what_is_no_control_message_is_cut_where_the_room_ends() {
    for len in [0, 15, 33] {
        let mut control = message(1, &[7; 16]);
        control[..LEN].copy_from_slice(&usize::to_ne_bytes(len));
        let before = control.clone();
        assert!(!fit(&mut control, usize::MAX), "length {len}");
        assert_eq!(control, before);
        fit(&mut control, 20);
        assert!(control.len() <= 20);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(control in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&control, &SendInfo::default());
    }

    #[test]
    fn any_bytes_are_cut(control in proptest::collection::vec(any::<u8>(), 0..200), room in 0usize..220) {
        let mut cut = control.clone();
        fit(&mut cut, room);
        prop_assert!(cut.len() <= room.min(control.len()));
    }

    #[test]
    fn messages_cut_anywhere_are_read_or_refused(
        kind in -1i32..12, len in 0usize..40, cut in 0usize..60, field in 0usize..80,
    ) {
        let mut control = message(kind, &vec![1; len]);
        control.truncate(control.len().saturating_sub(cut));
        if control.len() >= LEN {
            control[..LEN].copy_from_slice(&field.to_ne_bytes());
        }
        let _ = read(&control, &SendInfo::default());
    }
}
