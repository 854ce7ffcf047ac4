use super::*;
use crate::experiment::{TCP, Unit};

struct Named(&'static str);

impl Work for Named {
    fn cell(&self) -> Cell {
        Cell::new(self.0, Unit::Rate, vec![TCP])
    }

    fn sample(&self, _: &Job<'_>) -> Result<Sample> {
        Ok(Sample::default())
    }
}

#[test]
fn the_telling_cells_come_first_and_the_others_keep_their_order() {
    let works = boxed(["b", "connect", "a", "rtt-70"].map(Named));
    let works = Works::new("sockets", works, |_| Conclusion::default());
    let cells = works.cells();
    let seen: Vec<(&str, bool)> = cells.iter().map(|c| (c.name.as_str(), c.quick)).collect();
    let wanted = [
        ("rtt-70", true),
        ("connect", true),
        ("b", false),
        ("a", false),
    ];
    assert_eq!(seen, wanted);
}
