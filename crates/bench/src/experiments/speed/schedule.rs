//! Scheduling classes, priorities and a CPU for the server alone: undisturbed, and beside a process that never rests.

use super::Work;
use super::way::{Runs, Way, arm};
use crate::experiment::{Arm, Carrier};
use crate::placement::Placement::{ApartBusy, Free};

pub const WORK: &str = "schedule";
const SIZE: usize = 70;
/// The way, its carrier, and the program's word for it.
pub const WAYS: [(&str, Carrier, &str); 3] = [
    ("tcp", Carrier::Tcp, "tcp"),
    ("iii-futex", Carrier::Raw, "futex"),
    ("accelerated", Carrier::Accelerated, "tcp"),
];
pub const NORMAL: &str = "normal";
const CLASSES: [(&str, &str); 5] = [
    (NORMAL, ""),
    ("batch", "--class batch"),
    ("nice-20", "--nice -20"),
    ("rr", "--class rr"),
    ("fifo", "--class fifo"),
];

pub fn works() -> Vec<Box<dyn Work>> {
    WAYS.map(|(name, carrier, word)| over_classes(name, carrier, word).boxed())
        .into()
}

fn over_classes(name: &str, carrier: Carrier, word: &str) -> Runs {
    let way = |(class, words)| Way::new(arm(class, carrier), &format!("run {word} {words}"));
    let reserved = Arm {
        // Elsewhere each end has its CPU in any case.
        only: &[Free],
        ..arm("reserved", carrier)
    };
    let mut ways: Vec<Way> = CLASSES.map(way).into();
    ways.push(Way::new(reserved, &format!("run {word}")).reserved());
    Runs {
        words: format!("--size {SIZE}"),
        placements: &[Free, ApartBusy],
        stretch: 0.5,
        ..Runs::new(format!("{WORK}-{name}-{SIZE}"), ways)
    }
}
