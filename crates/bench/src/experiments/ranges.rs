//! The netperf ranges of the documents of 2007: what each of their machines received, beside what was received here.

use crate::experiment::Arm;
use crate::findings::{Measure, Seed, Sheet, Value};
use crate::placement::Placement;
use crate::report::CellReport;
use crate::table::number;

/// The sizes that are carried over.
const SIZES: [usize; 4] = [1, 64, 1024, 16384];
/// The tables count the messages of a test of so many seconds.
const TEST: f64 = 10.0;

/// The tables of one document; their first column is what the others are compared with.
pub struct Ranges<const COLUMNS: usize> {
    pub file: &'static str,
    columns: [&'static str; COLUMNS],
    machines: &'static [(&'static str, [[u32; COLUMNS]; 4])],
}

/// One of their columns beside one of our arms.
pub struct Beside {
    pub column: usize,
    pub arm: Arm,
}

pub const UDP: Ranges<3> = Ranges {
    file: "000_ea6e3dee696ec663.txt",
    columns: ["sockets", "XTI over Sockets", "STREAMS UDP"],
    machines: &[
        (
            "Porky, Fedora Core 6",
            [
                [728170, 714928, 947085],
                [722478, 686785, 939695],
                [693917, 619363, 868517],
                [437599, 249574, 469473],
            ],
        ),
        (
            "Porky, CentOS 4",
            [
                [860982, 849556, 1167337],
                [849599, 824115, 1156625],
                [806991, 767813, 1118677],
                [477303, 268809, 590359],
            ],
        ),
        (
            "Porky, SuSE 10.0",
            [
                [594467, 573782, 713505],
                [593128, 570664, 705259],
                [576220, 546252, 633632],
                [377998, 258954, 455258],
            ],
        ),
        (
            "Porky, Ubuntu 6.10",
            [
                [615243, 529546, 662575],
                [613586, 524389, 648903],
                [590474, 481919, 623681],
                [391741, 232668, 405489],
            ],
        ),
        (
            "Pumbah, RedHat 7.2",
            [
                [1422429, 1133044, 1560517],
                [1406332, 1136008, 1574065],
                [1211158, 941482, 1455262],
                [419478, 248763, 779901],
            ],
        ),
        (
            "Daisy, Fedora Core 6",
            [
                [731713, 553384, 1009820],
                [720612, 545330, 994740],
                [707136, 483900, 951565],
                [503729, 211150, 505130],
            ],
        ),
        (
            "Mspiggy, SuSE 10.0",
            [
                [481652, 479565, 591462],
                [472577, 466619, 587245],
                [433157, 421073, 567214],
                [191737, 137006, 348957],
            ],
        ),
    ],
};

pub const TCP: Ranges<4> = Ranges {
    file: "004_d64a27e9d34dc10b.txt",
    columns: [
        "sockets",
        "sockets at -20/19",
        "XTI over Sockets",
        "STREAMS SCTP",
    ],
    machines: &[
        (
            "Porky, Fedora Core 6",
            [
                [427906, 1838370, 1159849, 985536],
                [426793, 1566994, 1101200, 975575],
                [463988, 968138, 755090, 799680],
                [274833, 140657, 186284, 176092],
            ],
        ),
        (
            "Porky, CentOS 4",
            [
                [488139, 2047905, 1364620, 1203447],
                [481714, 1718639, 1317137, 1205860],
                [507169, 1011463, 878106, 983178],
                [292729, 142018, 223135, 230284],
            ],
        ),
        (
            "Porky, SuSE 10.0",
            [
                [439922, 1376226, 1006583, 915368],
                [441098, 1253906, 948700, 925600],
                [465298, 845664, 722228, 829716],
                [243425, 140259, 190270, 282432],
            ],
        ),
        (
            "Porky, Ubuntu 7.04",
            [
                [596044, 3320562, 1919955, 1454549],
                [590804, 2779697, 1827200, 1526600],
                [606248, 1393740, 1176572, 1176774],
                [320299, 157594, 240334, 261424],
            ],
        ),
        (
            "Pumbah, RedHat 7.2",
            [
                [785896, 2053453, 1487391, 1299066],
                [788717, 1779218, 1446800, 1303624],
                [747633, 1088448, 965640, 1126673],
                [315475, 152971, 210356, 366916],
            ],
        ),
        (
            "Daisy, Fedora Core 6",
            [
                [530271, 4000488, 537894, 1507754],
                [519086, 4139794, 529188, 1504607],
                [593941, 2353643, 467082, 1190510],
                [429703, 326267, 207719, 211762],
            ],
        ),
        (
            "Mspiggy, SuSE 10.0",
            [
                [245146, 1028581, 659556, 565257],
                [240886, 811724, 635102, 570400],
                [250385, 512218, 422162, 502356],
                [102834, 79644, 85080, 134818],
            ],
        ),
    ],
};

impl<const COLUMNS: usize> Ranges<COLUMNS> {
    /// The range of their machines beside what the cells `WORK-SIZE` measured; `beside` begins with the baseline.
    pub fn seeds(&self, cells: &[CellReport], work: &str, beside: &[Beside]) -> Vec<Seed> {
        let Some(base) = beside.first() else {
            return Vec::new();
        };
        let at = |size: usize| {
            beside.iter().map(move |other| Seed {
                file: self.file.to_string(),
                what: format!(
                    "{size} {}, {}: messages a second, on their {} machines",
                    if size == 1 { "byte" } else { "bytes" },
                    self.columns[other.column],
                    self.machines.len()
                ),
                theirs: self.theirs(size, base.column, other.column),
                ours: ours(cells, work, size, base.arm, other.arm),
            })
        };
        SIZES.into_iter().flat_map(at).collect()
    }

    /// Lowest and highest of all machines, and of their factors over the baseline.
    fn theirs(&self, size: usize, base: usize, column: usize) -> String {
        let rows = || self.rows(size);
        let rates = span(rows().map(|row| row[column]), "");
        match column == base {
            true => format!("{rates}/s"),
            false => {
                let factors = span(rows().map(|row| row[column] / row[base]), "x");
                format!("{rates}/s, {factors}")
            }
        }
    }

    /// Messages a second of each machine.
    fn rows(&self, size: usize) -> impl Iterator<Item = [f64; COLUMNS]> {
        let at = SIZES.iter().position(|own| *own == size);
        let machines = self.machines.iter();
        machines.filter_map(move |(_, rows)| Some(rows[at?].map(|count| f64::from(count) / TEST)))
    }

    /// All of them.
    pub fn sheet(&self) -> Sheet {
        let factors: Vec<String> = self.columns[1..]
            .iter()
            .map(|column| format!("{column}, factor"))
            .collect();
        let mut columns = vec![
            ("machine of 2007", Measure::Text),
            ("Message", Measure::Bytes),
        ];
        columns.extend(self.columns.map(|column| (column, Measure::PerSecond)));
        columns.extend(factors.iter().map(|head| (head.as_str(), Measure::Factor)));
        let caption = format!(
            "From {}: what netperf counted in {TEST} seconds, divided by them.",
            self.file
        );
        let mut sheet = Sheet::new(
            "machines-of-2007",
            "Messages received in 2007",
            &caption,
            &columns,
        );
        for (machine, rows) in self.machines {
            for (size, counts) in SIZES.into_iter().zip(rows) {
                let rates = counts.map(|count| f64::from(count) / TEST);
                let mut row = vec![Value::from(*machine), Value::from(size as f64)];
                row.extend(rates.map(Value::from));
                row.extend(rates[1..].iter().map(|rate| Value::from(rate / rates[0])));
                sheet.rows.push(row);
            }
        }
        sheet
    }
}

fn span(values: impl Iterator<Item = f64>, unit: &str) -> String {
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    format!("{}-{}{unit}", number(low), number(high))
}

/// What was received in each placement, and the factor of medians over the baseline.
fn ours(cells: &[CellReport], work: &str, size: usize, base: Arm, arm: Arm) -> String {
    let name = format!("{work}-{size}");
    let placed = Placement::ALL.into_iter().filter_map(|placement| {
        let cell = cells
            .iter()
            .find(|cell| cell.cell == name && cell.placement == placement)?;
        let rate = cell.arm(arm.name).filter(|arm| arm.is_proved())?.rate?;
        let factor = cell
            .arm(base.name)
            .filter(|_| base.name != arm.name)
            .and_then(|base| base.rate)
            .map(|base| format!(", {}x", number(rate / base)));
        Some(format!(
            "{} {}/s{}",
            placement.name(),
            number(rate),
            factor.unwrap_or_default()
        ))
    });
    placed.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, Sample, Unit, streams};
    use crate::verdict::Series;

    const BASE: Arm = streams("base");
    const OTHER: Arm = streams("other");
    const BESIDE: [Beside; 2] = [
        Beside {
            column: 0,
            arm: BASE,
        },
        Beside {
            column: 2,
            arm: OTHER,
        },
    ];

    #[test]
    fn their_counts_of_ten_seconds_become_rates_and_factors() {
        let seeds = UDP.seeds(&[], "udp", &BESIDE);
        assert_eq!(seeds.len(), 8);
        assert_eq!(seeds[2].theirs, "47,258-140,633/s");
        assert_eq!(seeds[3].theirs, "58,725-157,407/s, 1.06-1.38x");
        assert!(seeds.iter().all(|seed| seed.ours.is_empty()));
    }

    #[test]
    fn ours_are_told_by_placement() {
        let series = |arm, rate| Series {
            arm,
            samples: vec![Some(Sample {
                rate,
                ..Sample::default()
            })],
            failures: Vec::new(),
            syscalls: None,
            wrong_contents: false,
        };
        let cell = Cell::new("udp-64", Unit::Rate, vec![BASE, OTHER]);
        let found = |placement| {
            let all = [series(BASE, 100_000.0), series(OTHER, 250_000.0)];
            CellReport::new(&cell, placement, &all)
        };
        let cells = [found(Placement::Same), found(Placement::Apart)];
        let seeds = UDP.seeds(&cells, "udp", &BESIDE);
        assert_eq!(seeds[2].ours, "apart 100,000/s; same 100,000/s");
        assert_eq!(
            seeds[3].ours,
            "apart 250,000/s, 2.50x; same 250,000/s, 2.50x"
        );
        assert_eq!(seeds[0].ours, "");
    }

    #[test]
    fn every_machine_has_a_row_for_each_size() {
        let sheet = TCP.sheet();
        assert_eq!((sheet.rows.len(), sheet.columns.len()), (28, 9));
        assert!(sheet.rows.iter().all(|row| row.len() == 9));
    }
}
