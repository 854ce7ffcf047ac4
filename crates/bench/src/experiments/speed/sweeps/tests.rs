use super::*;

#[test]
fn every_ring_is_one_that_the_channel_has() {
    for sweep in &SWEEPS {
        for slot in SLOT_SIZES {
            let ways = sweep.runs(slot).ways;
            let slots = |way: &Way| SLOTS.iter().find(|(arm, _)| *arm == way.arm).unwrap().1;
            let rings: Vec<usize> = ways.iter().map(|way| slots(way) * slot).collect();
            assert!(
                rings.iter().all(|ring| (4096..=64 << 20).contains(ring)),
                "{slot}"
            );
            assert!(rings.len() >= 4, "{slot}");
        }
    }
}
