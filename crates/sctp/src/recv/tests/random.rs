//! Random messages that arrive in any order, and chunks of which nothing is right.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

/// Messages as a peer would send them, cut and numbered; and what must come out.
#[derive(Clone, Debug)]
struct Sent {
    stream: u16,
    unordered: bool,
    number: u32,
    body: Vec<u8>,
    sizes: Vec<usize>,
}

fn messages() -> impl Strategy<Value = Vec<Sent>> {
    let one = (
        0u16..4,
        any::<bool>(),
        prop::collection::vec(1usize..40, 1..6),
    );
    prop::collection::vec(one, 1..40).prop_map(|list| {
        let mut numbers: BTreeMap<(u16, bool), u32> = BTreeMap::new();
        let with_number = list
            .into_iter()
            .enumerate()
            .map(|(at, (stream, unordered, sizes))| {
                let number = numbers.entry((stream, unordered)).or_default();
                *number += 1;
                let body = (0..sizes.iter().sum())
                    .map(|byte| (byte * 7 + at * 13) as u8)
                    .collect();
                Sent {
                    stream,
                    unordered,
                    number: *number - 1,
                    body,
                    sizes,
                }
            });
        with_number.collect()
    })
}

/// The fragments of the messages with their TSNs; I-DATA takes turns among messages of different streams.
fn chunks(sent: &[Sent], interleave: bool) -> Vec<Data<'_>> {
    let mut queue: VecDeque<(usize, usize, usize)> = (0..sent.len()).map(|at| (at, 0, 0)).collect();
    let mut list = Vec::new();
    let mut open: Vec<(u16, bool, usize)> = Vec::new();
    while let Some((at, from, part)) = queue.pop_front() {
        let Sent {
            stream,
            unordered,
            number,
            body,
            sizes,
        } = &sent[at];
        let busy = open
            .iter()
            .any(|one| (one.0, one.1) == (*stream, *unordered) && one.2 != at);
        if busy {
            queue.push_back((at, from, part));
            continue;
        }
        let (begin, end) = (part == 0, part + 1 == sizes.len());
        let nth = list.len() as u32;
        let mut data = data(nth, *stream, 0, "", &body[from..from + sizes[part]]);
        (data.head.begin, data.head.end) = (begin, end);
        data.head.unordered = *unordered;
        data.head.interleaved = interleave;
        if interleave {
            data.head.mid = Mid(*number);
            data.head.fsn = part as u32;
        } else {
            data.head.ssn = Ssn(*number as u16);
        }
        list.push(data);
        open.retain(|one| one.2 != at);
        if end {
            continue;
        }
        open.push((*stream, *unordered, at));
        let rest = (at, from + sizes[part], part + 1);
        if interleave {
            queue.push_back(rest)
        } else {
            queue.push_front(rest)
        }
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn everything_comes_out_once_in_order_whatever_the_arrival(
        sent in messages(),
        interleave: bool,
        together: bool,
        small_window: bool,
        point in 1usize..200,
        picks in prop::collection::vec((any::<u16>(), 0u8..8), 1..400),
    ) {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.interleaved_delivery = together;
            config.partial_delivery_point = point;
            config.window = if small_window { 1000 } else { 1 << 16 };
        });
        let chunks = chunks(&sent, interleave);
        let last = FIRST.plus(chunks.len() as u32 - 1);
        let mut picks = picks.iter().cycle();
        let mut got: Vec<(Received, Vec<u8>)> = Vec::new();
        let mut buffer = [0; 64];
        let mut steps = 0;
        while receiver.cumulative() != last || receiver.readable() {
            let (pick, read) = picks.next().expect("a cycle");
            // The peer sends what was not acknowledged: something near its front, at times the front itself.
            let base = receiver.cumulative().next().since(FIRST) as usize;
            let near = if steps % 5 == 0 { base } else { base + usize::from(*pick) % 60 };
            if let Some(chunk) = chunks.get(near) {
                receiver.on_data(chunk).expect("right chunks");
                receiver.check();
            }
            let into = 1 + usize::from(*pick) % buffer.len();
            for _ in 0..read + u8::from(steps % 7 == 0) {
                let Some(received) = receiver.read(&mut buffer[..into]) else { break };
                receiver.check();
                let more = got.iter_mut().find(|one| one.0.tsn == received.tsn && !one.0.end);
                match more {
                    Some(one) => {
                        one.1.extend_from_slice(&buffer[..received.len]);
                        one.0.end = received.end;
                    }
                    None => got.push((received, buffer[..received.len].to_vec())),
                }
            }
            steps += 1;
            prop_assert!(steps < 100_000, "no progress");
        }
        prop_assert_eq!(got.len(), sent.len());
        prop_assert!(got.iter().all(|one| one.0.end && !one.0.aborted));
        for stream in 0..4 {
            let of = |unordered| {
                let sent = sent.iter().filter(move |one| one.stream == stream && one.unordered == unordered);
                let got = got.iter().filter(move |one| one.0.stream == stream && one.0.unordered == unordered);
                let sent: Vec<&Vec<u8>> = sent.map(|one| &one.body).collect();
                let got: Vec<&Vec<u8>> = got.map(|one| &one.1).collect();
                (sent, got)
            };
            let (expected, arrived) = of(false);
            prop_assert_eq!(expected, arrived);
            let (mut expected, mut arrived) = of(true);
            expected.sort();
            arrived.sort();
            prop_assert_eq!(expected, arrived);
        }
        prop_assert_eq!(receiver.used(), 0);
    }

    #[test]
    fn nothing_a_peer_sends_breaks_an_invariant(
        interleave: bool,
        steps in prop::collection::vec((0u32..40, 0u16..5, 0u32..6, 0u32..5, 0u8..8, 1usize..600, 0u8..10), 1..300),
    ) {
        let mut receiver = with(|config| {
            config.interleave = interleave;
            config.window = 4000;
            config.partial_delivery_point = 700;
        });
        let bytes = [0; 600];
        let mut buffer = [0; 500];
        for (nth, stream, number, fsn, bits, len, what) in steps {
            match what {
                0 => forward(&mut receiver, nth, &[skipped(stream, number, bits & 4 != 0)]),
                1 => while receiver.read(&mut buffer).is_some() {},
                2 if bits == 0 => receiver.reset_streams(&[stream]),
                _ => {
                    let parts = ["", "B", "E", "BE", "U", "BU", "EU", "BEU"][usize::from(bits)];
                    let chunk = if interleave {
                        idata(nth, stream, number, fsn, parts, &bytes[..len])
                    } else {
                        data(nth, stream, number as u16, parts, &bytes[..len])
                    };
                    if let Err(DataError::Violation(_)) = receiver.on_data(&chunk) {
                        break;
                    }
                }
            }
            receiver.check();
            prop_assert!(receiver.used() <= 4 * 4000 + 1000);
        }
    }

    #[test]
    fn the_map_is_a_set_of_tsns(start: u32, picks in prop::collection::vec((0u32..60, any::<bool>()), 1..200)) {
        let mut map = TsnMap::new(Tsn(start));
        let mut come = std::collections::BTreeSet::new();
        let base = map.cumulative() + 1;
        for (pick, back) in picks {
            let tsn = map.unwrap(Tsn(start).plus(pick));
            prop_assert_eq!(tsn, base + u64::from(pick));
            prop_assert_eq!(map.contains(tsn), tsn <= map.cumulative() || come.contains(&tsn));
            if !map.contains(tsn) {
                map.insert(tsn);
                come.insert(tsn);
            } else if back && tsn > map.cumulative() {
                map.take_back(tsn, tsn);
                come.remove(&tsn);
            }
            map.check();
        }
    }
}
