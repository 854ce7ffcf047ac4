use super::*;

fn close(found: f64, wanted: f64, within: f64) {
    assert!((found / wanted - 1.0).abs() < within, "{found}, {wanted}");
}

fn matches(points: &[(f64, f64)], rmax: f64, half: f64, r_squared: f64) {
    let found = saturation(points).unwrap();
    close(found.rmax, rmax, 1e-6);
    close(found.half, half, 1e-6);
    close(found.r_squared, r_squared, 1e-9);
}

fn sizes() -> impl Iterator<Item = f64> {
    (0..=16).map(|power| f64::from(1 << power))
}

#[test]
fn an_exact_curve_is_found_whatever_its_limit_and_its_half() {
    for rmax in [3.0, 1e6, 1e10] {
        for half in [0.5, 1.0, 70.0, 1460.0, 65536.0, 1e6] {
            let curve = Saturation {
                rmax,
                half,
                r_squared: 1.0,
            };
            let points: Vec<(f64, f64)> = sizes().map(|x| (x, curve.at(x))).collect();
            let found = saturation(&points).unwrap();
            close(found.rmax, rmax, 1e-8);
            close(found.half, half, 1e-8);
            close(found.r_squared, 1.0, 1e-12);
        }
    }
}

/// Treloar's reaction rates with puromycin (Bates and Watts 1988, `Puromycin` of R): the classic of this curve. Limits,
/// halves and R² are those of scipy 1.17.1's `optimize.curve_fit`, with all tolerances 1e-15.
#[test]
fn puromycin_gives_what_scipy_gives() {
    const AT: [f64; 12] = [
        0.02, 0.02, 0.06, 0.06, 0.11, 0.11, 0.22, 0.22, 0.56, 0.56, 1.1, 1.1,
    ];
    let rates =
        |of: &[f64]| -> Vec<(f64, f64)> { AT.into_iter().zip(of.iter().copied()).collect() };
    let treated = rates(&[
        76.0, 47.0, 97.0, 107.0, 123.0, 139.0, 159.0, 152.0, 191.0, 201.0, 207.0, 200.0,
    ]);
    matches(
        &treated,
        212.68374282488952,
        0.0641212811989921,
        0.9612608301402017,
    );
    let untreated = rates(&[
        67.0, 51.0, 84.0, 86.0, 98.0, 115.0, 131.0, 124.0, 144.0, 158.0, 160.0,
    ]);
    matches(
        &untreated,
        160.2800460945038,
        0.047708184373493084,
        0.9355724344418719,
    );
}

/// Bytes a second of made-up networks, against `curve_fit` as above.
#[test]
fn rates_over_all_sizes_give_what_scipy_gives() {
    let sizes = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536].map(f64::from);
    let fast = [
        2.6e6, 9.9e6, 4.2e7, 1.55e8, 5.9e8, 1.93e9, 4.4e9, 6.5e9, 7.0e9,
    ];
    let points: Vec<(f64, f64)> = sizes.into_iter().zip(fast).collect();
    matches(
        &points,
        7424563846.0675535,
        2804.306655185939,
        0.9993414645604493,
    );
    let bent = [
        1.1e6, 4.9e6, 1.9e7, 6.0e7, 1.9e8, 4.6e8, 6.9e8, 6.3e8, 8.1e8,
    ];
    let points: Vec<(f64, f64)> = sizes.into_iter().zip(bent).collect();
    matches(
        &points,
        757971360.5523432,
        687.1736026150268,
        0.9826495605077915,
    );
}

#[test]
fn what_shows_no_limit_has_none() {
    let line: Vec<(f64, f64)> = sizes().map(|x| (x, 5.0 * x)).collect();
    let level: Vec<(f64, f64)> = sizes().map(|x| (x, 5.0)).collect();
    let falling: Vec<(f64, f64)> = sizes().map(|x| (x, 1e6 / x)).collect();
    let nothing: Vec<(f64, f64)> = sizes().map(|x| (x, 0.0)).collect();
    for points in [line, level, falling, nothing] {
        assert_eq!(saturation(&points), None);
    }
}

#[test]
fn too_little_or_senseless_is_not_fitted() {
    assert_eq!(saturation(&[]), None);
    assert_eq!(saturation(&[(1.0, 1.0), (2.0, 1.5)]), None);
    assert_eq!(
        saturation(&[(1.0, 1.0), (2.0, 1.5), (2.0, 1.6), (1.0, 0.9)]),
        None
    );
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let points = [(1.0, 1.0), (2.0, 1.5), (4.0, 1.7)];
        let mut rates = points;
        rates[1].1 = bad;
        let mut sizes = points;
        sizes[1].0 = bad;
        assert_eq!((saturation(&rates), saturation(&sizes)), (None, None));
    }
}
