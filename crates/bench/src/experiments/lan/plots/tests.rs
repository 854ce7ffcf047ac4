use super::*;

#[test]
fn a_fit_is_drawn_from_the_least_to_the_largest_size() {
    let points = [1.0, 1024.0].map(|x| Point::new(x, 1.0));
    let places: Vec<f64> = steps(&points).collect();
    assert_eq!(places.len(), 81);
    assert_eq!((places[0], places[80]), (1.0, 1024.0));
    assert_eq!(steps(&points[..1]).count(), 1);
}
