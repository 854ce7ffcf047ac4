use super::*;
use crate::serial::Tsn;
use crate::wire::Chunk;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn two_sides() -> (Auth, Auth) {
    let a = Vectors::ours([1; 32], &[kind::ASCONF, kind::DATA], &[Hmac::Sha256]);
    let b = Vectors::ours([2; 32], &[], &[Hmac::Sha1, Hmac::Sha256]);
    let read = |v: &Vectors| {
        let (random, chunks, hmacs) = v.parts();
        Vectors::of_peer(random, chunks, hmacs).unwrap()
    };
    (
        Auth::agree(&a, &read(&b)).unwrap(),
        Auth::agree(&b, &read(&a)).unwrap(),
    )
}

fn signed_packet(by: &Auth) -> Vec<u8> {
    let mut out = vec![0xee; 4];
    let mut packet = PacketBuilder::begin(&mut out, 1, 2, 3, 1000);
    packet.cookie_ack();
    by.place(&mut packet);
    packet.shutdown(Tsn(9));
    packet.finish(by.signing_key(), true);
    out.split_off(4)
}

fn check(packet: &[u8], by: &Auth) -> Result<(), AuthError> {
    let packet = Packet::parse(packet).unwrap();
    let chunks: Vec<_> = packet.chunks().map(Result::unwrap).collect();
    let Chunk::Auth(chunk) = chunks[1] else {
        panic!("the second chunk is AUTH")
    };
    by.verify(&packet, &chunk)
}

/// RFC 2202 (SHA-1) and RFC 4231 (SHA-256), cases 1, 2 and 6.
#[test]
fn digests_are_those_of_the_published_vectors() {
    let cases: [(Vec<u8>, &[u8], &str); 3] = [
        (
            vec![0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe".to_vec(),
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            vec![0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ];
    for (key, data, expected) in cases {
        assert_eq!(
            Key::new(&key).digest(Hmac::Sha256, &[data])[..],
            hex(expected)
        );
    }
    let sha1 = |key: &[u8], data| Key::new(key).digest(Hmac::Sha1, &[data])[..20].to_vec();
    assert_eq!(
        sha1(&[0x0b; 20], b"Hi There"),
        hex("b617318655057264e28bc0b6fb378c8ef146be00")
    );
    assert_eq!(
        sha1(b"Jefe", b"what do ya want for nothing?"),
        hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
    );
    assert_eq!(
        sha1(
            &[0xaa; 80],
            b"Test Using Larger Than Block-Size Key - Hash Key First"
        ),
        hex("aa4ae5e15272d00e95705637ce8a3b55ed402112")
    );
}

#[test]
fn both_sides_make_the_same_keys() {
    let (mut a, mut b) = two_sides();
    assert_eq!((a.hmac, b.hmac), (Hmac::Sha1, Hmac::Sha256));
    assert_eq!(check(&signed_packet(&a), &b), Ok(()));
    assert_eq!(check(&signed_packet(&b), &a), Ok(()));
    a.set_key(7, b"secret");
    a.activate(7).unwrap();
    assert_eq!(check(&signed_packet(&a), &b), Err(AuthError::UnknownKey(7)));
    b.set_key(7, b"another");
    assert_eq!(check(&signed_packet(&a), &b), Err(AuthError::Wrong));
    b.set_key(7, b"secret");
    assert_eq!(check(&signed_packet(&a), &b), Ok(()));
}

#[test]
fn the_key_vector_leaves_paddings_out_and_the_smaller_one_goes_first() {
    let ours = Vectors::ours([1; 32], &[0xc1], &[Hmac::Sha1]);
    let theirs = Vectors::ours([0; 32], &[], &[Hmac::Sha256]);
    let small = [
        &hex("80020024")[..],
        &[1; 32],
        &hex("80030005c1"),
        &hex("800400060001"),
    ]
    .concat();
    let other = [&hex("80020024")[..], &[0; 32], &hex("8004000800030001")].concat();
    assert_eq!(ours.key_vector(), small);
    assert_eq!(theirs.key_vector(), other);
    // The shorter is the smaller number here, as neither begins with zeros.
    assert_eq!(
        association_secret(b"k", &ours, &theirs),
        [&b"k"[..], &other, &small].concat()
    );
    assert_eq!(
        association_secret(b"k", &theirs, &ours),
        [&b"k"[..], &other, &small].concat()
    );
    assert!(as_number(&[0, 5]) < as_number(&[6]));
    assert!(as_number(&[5]) < as_number(&[0, 5]));
}

/// CVE-2026-23125: before both sides' vectors are known there is nothing that a packet could be verified with.
#[test]
fn there_is_no_auth_before_there_are_keys() {
    let (a, _) = two_sides();
    assert!(Auth::agree(&Vectors::default(), a.ours()).is_none());
    assert!(Auth::agree(a.ours(), &Vectors::default()).is_none());
}

#[test]
fn vectors_that_break_the_rules_are_refused() {
    assert!(
        Vectors::of_peer(&[1; 31], None, &[0, 1]).is_none(),
        "a short RANDOM"
    );
    assert!(
        Vectors::of_peer(&[1; 32], None, &[0, 3]).is_none(),
        "no SHA-1"
    );
    assert!(
        Vectors::of_peer(&[1; 32], None, &[0, 1, 0]).is_none(),
        "half an identifier"
    );
    let all = Vectors::of_peer(&[1; 32], Some(&[0, 1, 2, 14, 15]), &[0, 9, 0, 1]).unwrap();
    assert_eq!(
        (0..=255)
            .filter(|kind| all.asks_for(*kind))
            .collect::<Vec<u8>>(),
        [0]
    );
}

#[test]
fn any_changed_byte_under_the_digest_is_noticed() {
    let (a, b) = two_sides();
    let packet = signed_packet(&a);
    for at in 16..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 1;
        let changed = Packet::parse(&changed).unwrap();
        if let Some(Ok(Chunk::Auth(chunk))) = changed.chunks().nth(1) {
            assert!(b.verify(&changed, &chunk).is_err(), "byte {at}");
        }
    }
    let mut before = packet;
    before[4] ^= 1;
    assert_eq!(check(&before, &b), Ok(()), "the tag is not covered");
}

#[test]
fn an_hmac_that_was_not_announced_is_named() {
    let a = Vectors::ours([1; 32], &[], &[Hmac::Sha1]);
    let auth = Auth::agree(&a, &a).unwrap();
    let verify = |hmac| {
        let chunk = wire::Auth {
            key: 0,
            hmac,
            digest: &[0; 32],
            at: 12,
        };
        auth.verify(&Packet::parse(&[1; 60]).unwrap(), &chunk)
    };
    assert_eq!(verify(3), Err(AuthError::UnsupportedHmac(3)));
    assert_eq!(verify(2), Err(AuthError::UnsupportedHmac(2)));
    assert_eq!(
        verify(1),
        Err(AuthError::Wrong),
        "a digest of another length"
    );
}

#[test]
fn the_key_in_use_stays() {
    let (mut a, _) = two_sides();
    assert_eq!(a.remove_key(0), Err(KeyError::InUse));
    assert_eq!(a.activate(4), Err(KeyError::Unknown));
    a.set_key(4, b"x");
    a.activate(4).unwrap();
    assert_eq!(a.remove_key(0), Ok(()));
    assert_eq!(a.remove_key(0), Err(KeyError::Unknown));
    assert!(a.we_require(kind::DATA) && !a.peer_requires(kind::DATA));
}
