use super::*;

fn parse(name: &str) -> Result<Selection, String> {
    Selection::parse(&[name.to_string()]).map(|mut all| all.remove(0))
}

#[test]
fn a_selector_names_an_experiment_a_part_of_a_cell_and_a_placement() {
    let sockets = experiments::by_name("sockets").unwrap();
    let cells = sockets.cells();
    let cell = cells.iter().find(|cell| cell.name == "rtt-70").unwrap();
    let takes = |name: &str, placement, extent| {
        let selection = parse(name).unwrap();
        let offered = &Placement::ALL;
        selection.takes_placement(&sockets, cell, placement, offered, extent)
    };
    assert!(takes(
        "sockets/rtt-70/apart",
        Placement::Apart,
        Extent::Quick
    ));
    assert!(!takes(
        "sockets/rtt-70/apart",
        Placement::ApartBusy,
        Extent::All
    ));
    assert!(takes("sockets", Placement::Free, Extent::All));
    assert!(!takes("sockets", Placement::Free, Extent::Usual));
    assert!(takes("sockets/rtt-70", Placement::Free, Extent::Usual));
    assert!(parse("sockets//same").unwrap().cell.is_none());
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    assert!(parse("socket").unwrap_err().contains("sockets"));
    assert!(
        parse("sockets/rtt/sideways")
            .unwrap_err()
            .contains("apart-busy")
    );
    let names = ["sockets/rtt-70", "sockets/rtt-71"].map(str::to_string);
    let refused = Selection::parse(&names).unwrap_err();
    assert!(refused.starts_with("sockets has no cell rtt-71"));
}
