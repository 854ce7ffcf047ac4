use super::*;

const SECOND: Duration = Duration::from_secs(1);
const START: Time = Time(77);

fn cookie() -> Cookie {
    let vectors = |byte| Vectors::ours([byte; 32], &[0xc1], &[crate::auth::Hmac::Sha256]);
    Cookie {
        made: START,
        lifetime: 60 * SECOND,
        local_tag: 1,
        peer_tag: 2,
        local_tsn: Tsn(3),
        peer_tsn: Tsn(4),
        peer_window: 5,
        outbound: 6,
        inbound: 7,
        local_tie: 8,
        peer_tie: 9,
        source: "192.0.2.1".parse().unwrap(),
        encap: Some(9899),
        local_port: 10,
        peer_port: 11,
        addresses: vec!["2001:db8::1".parse().unwrap(), "192.0.2.2".parse().unwrap()],
        features: Features {
            interleave: true,
            zero_checksum_in: true,
            ..Features::default()
        },
        vectors: Some((vectors(1), Vectors::ours([2; 32], &[], &[]))),
        adaptation: Some(0),
    }
}

fn keys() -> RotatingKeys {
    RotatingKeys::new([7; 32])
}

#[test]
fn what_was_sealed_is_opened() {
    let plain = Cookie {
        addresses: vec![],
        vectors: None,
        adaptation: None,
        encap: None,
        ..cookie()
    };
    for cookie in [cookie(), plain] {
        let sealed = cookie.seal(&mut keys(), START);
        assert_eq!(
            Cookie::open(&sealed, &mut keys(), START + 60 * SECOND),
            Ok(cookie)
        );
    }
    for bits in 0..256_u16 {
        let (bits, mut again) = (bits.to_be_bytes(), Vec::new());
        Features::take(&mut &bits[..]).unwrap().put(&mut again);
        assert_eq!(again, bits);
    }
}

#[test]
fn the_layout_is_that_of_the_version() {
    let bytes = cookie().encode();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected: [&str; 7] = [
        "01000000000000004d0000000df8475800000000010000000200000003000000",
        "0400000005000000080000000900060007000a000b008204c00002010126ab01",
        "0000000000020620010db800000000000000000000000104c0000202010020",
        &"01".repeat(32),
        "010001c10004000300010020",
        &"02".repeat(32),
        "0000020001",
    ];
    assert_eq!(text, expected.concat());
}

#[test]
fn a_cookie_with_any_bit_changed_cut_or_added_is_forged() {
    let mut keys = keys();
    let sealed = cookie().seal(&mut keys, START);
    for at in 0..sealed.len() * 8 {
        let mut forged = sealed.clone();
        forged[at / 8] ^= 1 << (at % 8);
        assert_eq!(
            Cookie::open(&forged, &mut keys, START),
            Err(CookieError::Forged)
        );
    }
    for length in 0..sealed.len() {
        assert_eq!(
            Cookie::open(&sealed[..length], &mut keys, START),
            Err(CookieError::Forged)
        );
    }
    let longer = [&sealed[..], &[0]].concat();
    assert_eq!(
        Cookie::open(&longer, &mut keys, START),
        Err(CookieError::Forged)
    );
    let elsewhere = cookie().seal(&mut RotatingKeys::new([8; 32]), START);
    assert_eq!(
        Cookie::open(&elsewhere, &mut keys, START),
        Err(CookieError::Forged)
    );
}

#[test]
fn a_stale_cookie_tells_by_how_much_and_what_it_was() {
    let mut keys = keys();
    let sealed = cookie().seal(&mut keys, START);
    let stale = Err(CookieError::Stale {
        by: 2 * SECOND,
        cookie: Box::new(cookie()),
    });
    assert_eq!(Cookie::open(&sealed, &mut keys, START + 62 * SECOND), stale);
}

#[test]
fn the_key_before_still_counts_and_the_one_before_that_does_not() {
    let mut keys = keys();
    let mut long = cookie();
    long.lifetime = 10 * RotatingKeys::PERIOD;
    let sealed = long.seal(&mut keys, START);
    let later = |periods: u32| START + periods * RotatingKeys::PERIOD;
    assert!(Cookie::open(&sealed, &mut keys, later(1)).is_ok());
    let again = long.seal(&mut keys, later(1));
    assert_ne!(again, sealed);
    assert_eq!(
        Cookie::open(&sealed, &mut keys, later(2)),
        Err(CookieError::Forged)
    );
    assert!(Cookie::open(&again, &mut keys, later(2)).is_ok());
    assert_eq!(
        Cookie::open(&again, &mut keys, later(9)),
        Err(CookieError::Forged),
        "long unused"
    );
}

#[test]
fn signed_bytes_that_are_no_cookie_do_no_harm() {
    let mut keys = keys();
    let body = cookie().encode();
    for length in 0..body.len() {
        let mut short = body[..length].to_vec();
        let signature = keys.sign(START, &short);
        short.extend_from_slice(&signature);
        assert_eq!(
            Cookie::open(&short, &mut keys, START),
            Err(CookieError::Malformed)
        );
    }
}
