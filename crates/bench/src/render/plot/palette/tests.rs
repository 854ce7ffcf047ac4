use super::*;
use crate::findings::{Axis, Curve, Measure, Scale};

fn plot(names: &[&str]) -> Plot {
    let axis = Axis::new("", Measure::Count, Scale::Linear);
    let curve = |name: &&str| Curve {
        name: name.to_string(),
        points: Vec::new(),
        fit: Vec::new(),
    };
    Plot {
        name: String::new(),
        title: String::new(),
        caption: String::new(),
        x: axis.clone(),
        y: axis,
        curves: names.iter().map(curve).collect(),
    }
}

#[test]
fn an_arm_looks_the_same_in_every_plot() {
    let plots = [
        plot(&["tcp", "unix", "new"]),
        plot(&["new", "other", "tcp"]),
    ];
    let palette = Palette::of(&plots);
    let (first, second) = (palette.looks(&plots[0]), palette.looks(&plots[1]));
    assert_eq!((first[2], first[0]), (second[0], second[2]));
    assert_eq!(first[0].slot, BASELINE);
}

#[test]
fn what_is_new_is_blue_however_many_others_there_are() {
    let names = [
        "a",
        "b",
        "tcp",
        "pipe",
        "c",
        "d",
        "e",
        "f",
        "g",
        "accelerated",
        "h",
    ];
    let plot = plot(&names);
    let palette = Palette::of([&plot]);
    let slot = |name: &str| palette.look(name).unwrap().slot;
    assert_eq!(
        (slot("accelerated"), slot("tcp"), slot("a")),
        (NEW, BASELINE, 1)
    );
}

#[test]
fn no_two_curves_of_a_plot_look_alike() {
    let names: Vec<String> = (0..40).map(|index| format!("arm {index}")).collect();
    let names: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .chain(["tcp", "pipe"])
        .collect();
    let plot = plot(&names);
    let looks = Palette::of([&plot]).looks(&plot);
    for (index, look) in looks.iter().enumerate() {
        assert!(!looks[..index].contains(look));
    }
}

#[test]
fn the_style_is_fit_for_a_page_and_for_a_file() {
    assert!(!style().contains(['<', '&', '>']));
}
