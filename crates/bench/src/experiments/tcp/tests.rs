use super::*;
use crate::carriage::Proof;

#[test]
fn every_size_is_there_and_sockets_that_claim_to_be_fast_must_prove_it() {
    let cells = experiment().cells();
    let mut sizes: Vec<usize> = cells.iter().filter_map(|cell| cell.size).collect();
    sizes.sort_unstable();
    let powers: Vec<usize> = (0..15).map(|power| 1 << power).collect();
    assert_eq!(sizes, powers);
    for cell in cells {
        assert!(matches!(cell.proof, Proof::Carried { ends: 2 }));
    }
}
