//! Whatever bytes come, decoding stays within them; whatever is encoded decodes to itself.

use headwater_tpi::option::{List, Options};
use headwater_tpi::{Indication, Info, Request};
use proptest::prelude::*;

/// What any primitive may be made of.
#[derive(Clone, Debug)]
struct Stuff {
    first: Vec<u8>,
    second: Vec<u8>,
    numbers: [i32; 10],
    flags: [bool; 2],
}

fn stuff() -> impl Strategy<Value = Stuff> {
    let part = || prop::collection::vec(any::<u8>(), 0..80);
    (part(), part(), any::<[i32; 10]>(), any::<[bool; 2]>()).prop_map(
        |(first, second, numbers, flags)| Stuff {
            first,
            second,
            numbers,
            flags,
        },
    )
}

fn requests(stuff: &Stuff) -> [Request<'_>; 14] {
    let Stuff {
        first,
        second: opts,
        numbers: [number, other, ..],
        flags: [more, expedited],
    } = stuff;
    let (number, unsigned, more, expedited) = (*number, other.cast_unsigned(), *more, *expedited);
    [
        Request::Conn { dest: first, opts },
        Request::ConnRes {
            acceptor: unsigned,
            opts,
            seq: number,
        },
        Request::Discon { seq: number },
        Request::Data { more },
        Request::Exdata { more },
        Request::OptData {
            more,
            expedited,
            opts,
        },
        Request::Info,
        Request::Bind {
            addr: first,
            qlen: unsigned,
        },
        Request::Unbind,
        Request::Unitdata { dest: first, opts },
        Request::Optmgmt {
            flags: number,
            opts,
        },
        Request::Ordrel,
        Request::Addr,
        Request::Capability { bits: unsigned },
    ]
}

fn indications(stuff: &Stuff) -> [Indication<'_>; 16] {
    let Stuff {
        first,
        second: opts,
        numbers,
        flags: [more, expedited],
    } = stuff;
    let (number, unsigned, more, expedited) =
        (numbers[0], numbers[1].cast_unsigned(), *more, *expedited);
    let info = info(numbers);
    [
        Indication::ConnInd {
            src: first,
            opts,
            seq: number,
        },
        Indication::ConnCon { res: first, opts },
        Indication::DisconInd {
            reason: number,
            seq: numbers[1],
        },
        Indication::DataInd { more },
        Indication::ExdataInd { more },
        Indication::OptdataInd {
            more,
            expedited,
            opts,
        },
        Indication::UnitdataInd { src: first, opts },
        Indication::UderrorInd {
            dest: first,
            opts,
            error: number,
        },
        Indication::OrdrelInd,
        Indication::InfoAck { info },
        Indication::BindAck {
            addr: first,
            qlen: unsigned,
        },
        Indication::ErrorAck {
            prim: number,
            tli: numbers[1],
            unix: numbers[2],
        },
        Indication::OkAck { prim: number },
        Indication::OptmgmtAck {
            flags: number,
            opts,
        },
        Indication::AddrAck {
            local: first,
            remote: opts,
        },
        Indication::CapabilityAck {
            bits: unsigned,
            info,
            acceptor: numbers[2].cast_unsigned(),
        },
    ]
}

fn info(numbers: &[i32; 10]) -> Info {
    let [
        tsdu,
        etsdu,
        cdata,
        ddata,
        addr,
        opt,
        tidu,
        serv,
        state,
        provider_flag,
    ] = *numbers;
    Info {
        tsdu,
        etsdu,
        cdata,
        ddata,
        addr,
        opt,
        tidu,
        serv,
        state: state.cast_unsigned(),
        provider_flag,
    }
}

/// A primitive's number, then words of which many are small enough to be lengths and offsets.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![0u32..64, any::<u32>(), Just(u32::MAX)];
    (
        0u32..32,
        prop::collection::vec(word, 0..20),
        prop::collection::vec(any::<u8>(), 0..5),
    )
        .prop_map(|(prim, words, tail)| {
            let mut bytes = prim.to_ne_bytes().to_vec();
            bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            bytes.extend(tail);
            bytes
        })
}

proptest! {
    #[test]
    fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = (Request::decode(&bytes), Indication::decode(&bytes));
        let _ = Options::all(&bytes);
    }

    #[test]
    fn what_decodes_from_hostile_bytes_means_the_same_encoded_again(bytes in hostile()) {
        if let Ok(request) = Request::decode(&bytes) {
            let bytes = request.encode();
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
        }
        if let Ok(indication) = Indication::decode(&bytes) {
            let bytes = indication.encode();
            prop_assert_eq!(Indication::decode(&bytes), Ok(indication));
        }
        for option in Options::new(&bytes).flatten() {
            prop_assert!(option.value.len() <= bytes.len());
        }
    }

    #[test]
    fn primitives_decode_to_themselves(stuff in stuff()) {
        for request in requests(&stuff) {
            let bytes = request.encode();
            prop_assert_eq!(Request::decode(&bytes), Ok(request));
        }
        for indication in indications(&stuff) {
            let bytes = indication.encode();
            prop_assert_eq!(Indication::decode(&bytes), Ok(indication));
        }
    }

    #[test]
    fn option_lists_give_back_their_options(
        options in prop::collection::vec((any::<[u32; 3]>(), prop::collection::vec(any::<u8>(), 0..20)), 0..8)
    ) {
        let mut list = List::new();
        for ([level, name, status], value) in &options {
            list.push(*level, *name, *status, value);
        }
        let read = Options::all(list.bytes()).unwrap();
        prop_assert_eq!(read.len(), options.len());
        for (option, ([level, name, status], value)) in read.iter().zip(&options) {
            prop_assert_eq!((option.level, option.name, option.status), (*level, *name, *status));
            prop_assert_eq!(option.value, &value[..]);
        }
    }
}
