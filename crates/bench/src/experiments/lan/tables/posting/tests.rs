use super::*;

#[test]
fn posting_pays_from_where_no_larger_size_is_in_doubt() {
    let factors = |lows: [f64; 4]| -> Vec<(usize, Factor)> {
        let sizes = [1 << 10, 1 << 16, 1 << 20, 1 << 22];
        let factor = |low| Factor {
            value: low + 0.1,
            low,
            high: low + 0.2,
        };
        sizes.into_iter().zip(lows.map(factor)).collect()
    };
    assert_eq!(pays_from(&factors([1.5, 0.9, 1.1, 1.3])), Some(1 << 20));
    assert_eq!(pays_from(&factors([1.5, 1.2, 1.1, 1.0])), None);
    assert_eq!(pays_from(&factors([1.1, 1.2, 1.1, 1.3])), Some(1 << 10));
    assert_eq!(pays_from(&[]), None);
}
