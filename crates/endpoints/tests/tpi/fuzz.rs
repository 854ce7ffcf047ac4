//! Random primitives: never a panic, and always an answer, an M_ERROR, or silence where TPI has none.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use super::stream::Tpi;
use headwater_streams::head::message::Priority;
use headwater_tpi::Request;
use headwater_tpi::prim::*;
use proptest::prelude::*;

fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![4 => 0i32..40, 1 => any::<i32>(), 1 => Just(-1), 2 => Just(16)];
    (
        0i32..30,
        prop::collection::vec(word, 0..8),
        prop::collection::vec(any::<u8>(), 0..40),
    )
        .prop_map(|(prim, words, tail)| {
            let mut bytes = prim.to_ne_bytes().to_vec();
            bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
            bytes.extend(tail);
            bytes
        })
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let address = prop::sample::select(vec![&b""[..], b"a", b"b"]);
    (0..12, address, -1i32..3).prop_map(|(which, addr, n)| {
        let (opts, qlen) = (&[][..], n.max(0) as u32);
        let request = match which {
            0 => Request::Bind { addr, qlen },
            1 => Request::Unbind,
            2 => Request::Conn { dest: addr, opts },
            3 => Request::ConnRes {
                acceptor: qlen,
                opts,
                seq: n,
            },
            4 => Request::Discon { seq: n },
            5 => Request::Data { more: n > 0 },
            6 => Request::Exdata { more: n > 0 },
            7 => Request::Unitdata { dest: addr, opts },
            8 => Request::Optmgmt {
                flags: 4 << qlen,
                opts,
            },
            9 => Request::Ordrel,
            10 => Request::Addr,
            _ => Request::Info,
        };
        request.encode()
    })
}

/// Is this answered in every case?
fn has_answer(control: &[u8]) -> bool {
    let prim = control.first_chunk().map(|b| i32::from_ne_bytes(*b));
    !matches!(
        prim,
        Some(T_DATA_REQ | T_EXDATA_REQ | T_OPTDATA_REQ | T_UNITDATA_REQ | T_ORDREL_REQ)
    )
}

/// Panics of this process; a driver's is caught and becomes M_ERROR.
static PANICS: AtomicU32 = AtomicU32::new(0);

fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            usual(info);
        }));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn random_messages_do_no_harm(
        device in prop::sample::select(vec!["ticlts", "ticots", "ticotsord", "tcp", "udp", "udp2"]),
        messages in prop::collection::vec((prop_oneof![words(), requests()], prop::option::of(0usize..3000), any::<bool>()), 1..25),
    ) {
        count_panics();
        let s = Tpi::open(device);
        for (control, data, high) in messages {
            let data = data.map(|n| vec![7; n]);
            let priority = if high { Priority::High } else { Priority::Band(0) };
            if s.head.put_message(Some(&control), data.as_deref(), priority, None).is_err() {
                // M_ERROR: the stream is over.
                break;
            }
            let mut answered = false;
            while s.try_get().is_some() {
                answered = true;
            }
            let over = s.head.events(libc::POLLIN as u32) & libc::POLLERR as u32 != 0;
            prop_assert!(answered || over || !has_answer(&control), "{control:?}");
        }
        prop_assert_eq!(PANICS.load(Ordering::SeqCst), 0);
    }
}
