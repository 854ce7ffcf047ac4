//! One colour and one mark for each arm, the same in all plots of an experiment.
//!
//! Eight colours that stay apart for colour-blind eyes (after Okabe and Ito, darker on white, lighter on black); marks differ
//! as well, for those who see none, and for paper. What is compared with is grey, what is new is blue, where names tell.

use std::collections::BTreeMap;

use crate::cells::distinct;
use crate::findings::Plot;

pub const SLOTS: usize = 8;
const NEW: usize = 0;
const BASELINE: usize = 7;
/// In which colours are given away.
const ORDER: [usize; SLOTS] = [0, 1, 2, 3, 5, 6, 4, 7];
/// The first of those that are there has the colour.
const PREFERRED: [(&str, usize); 11] = [
    ("tcp", BASELINE),
    ("native", BASELINE),
    ("pipe", BASELINE),
    ("nagle", BASELINE),
    ("sockets", BASELINE),
    ("accelerated", NEW),
    ("streams", NEW),
    ("udp2", NEW),
    ("sctp", NEW),
    ("xti", NEW),
    ("unix", 4),
];

/// On light and on dark ground.
const COLOURS: [(&str, &str); SLOTS] = [
    ("#0b63ad", "#62b0f2"),
    ("#c24a12", "#f58b52"),
    ("#0a7f5c", "#3fc79c"),
    ("#a33f7b", "#ea90c6"),
    ("#8f6200", "#e2b23f"),
    ("#1a7f9c", "#74d0ee"),
    ("#6549bd", "#b0a2f8"),
    ("#666d76", "#a3abb5"),
];

/// How an arm's curves look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub slot: usize,
    pub mark: usize,
}

#[derive(Default)]
pub struct Palette {
    looks: BTreeMap<String, Look>,
}

impl Palette {
    /// Names that have a colour of their own get it first, the others what is left, in the order in which the plots name
    /// their curves. Beyond eight names colours come again, with other marks.
    pub fn of<'a>(plots: impl IntoIterator<Item = &'a Plot>) -> Palette {
        let curves = plots.into_iter().flat_map(|plot| &plot.curves);
        let names = distinct(curves.map(|curve| &curve.name));
        let mut palette = Palette::default();
        for (name, slot) in PREFERRED {
            let taken = palette.looks.values().any(|look| look.slot == slot);
            if names.contains(&name) && !taken {
                palette.add(name, Look { slot, mark: slot });
            }
        }
        let turns = (0..SLOTS).flat_map(|turn| {
            ORDER.map(|slot| Look {
                slot,
                mark: (slot + turn) % SLOTS,
            })
        });
        let free: Vec<Look> = turns
            .filter(|look| !palette.looks.values().any(|own| own == look))
            .collect();
        let others = names
            .into_iter()
            .filter(|name| palette.look(name).is_none())
            .collect::<Vec<_>>();
        for (name, look) in others.into_iter().zip(free.into_iter().cycle()) {
            palette.add(name, look);
        }
        palette
    }

    fn add(&mut self, name: &str, look: Look) {
        self.looks.insert(name.to_string(), look);
    }

    pub fn look(&self, name: &str) -> Option<Look> {
        self.looks.get(name).copied()
    }

    /// For the curves of one plot.
    pub fn looks(&self, plot: &Plot) -> Vec<Look> {
        let look = |name: &str| self.look(name).unwrap_or(Look { slot: 0, mark: 0 });
        plot.curves.iter().map(|curve| look(&curve.name)).collect()
    }
}

/// The style of the drawings, within a page and in files of their own. Paper is always light.
pub fn style() -> String {
    let classes = |pick: fn(&(&'static str, &'static str)) -> &'static str| -> String {
        let class = |(slot, colours)| format!(".hw-{slot}{{color:{}}}", pick(colours));
        COLOURS.iter().enumerate().map(class).collect()
    };
    let ground = |paper: &str, ink: &str, quiet: &str, rule: &str| {
        format!(
            ".hw-paper{{fill:{paper}}}.hw-ink{{fill:{ink}}}.hw-quiet{{fill:{quiet}}}.hw-halo{{paint-order:stroke;stroke:{paper};stroke-width:4px}}.hw-rule{{stroke:{rule}}}.hw-zero{{stroke:{quiet}}}"
        )
    };
    let light = ground("#ffffff", "#1c2024", "#5c646d", "#e3e5e8") + &classes(|colours| colours.0);
    let dark = ground("#17191c", "#e8e6e1", "#9da4ad", "#33383e") + &classes(|colours| colours.1);
    format!(
        ".hw-plot{{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
         font-variant-numeric:tabular-nums}}.hw-own{{fill:currentColor}}\
         {light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
    )
}

#[cfg(test)]
mod tests;
