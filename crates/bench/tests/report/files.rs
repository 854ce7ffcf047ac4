//! CSV, SVG and the page's text.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use headwater_bench::data::*;
use headwater_bench::render;

use crate::fixture;

fn rendered(run: &Run) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let paths = render(run, folder.path()).unwrap();
    (folder, paths)
}

fn of_kind<'a>(paths: &'a [PathBuf], kind: &'a str) -> impl Iterator<Item = &'a PathBuf> {
    paths
        .iter()
        .filter(move |path| path.extension().is_some_and(|own| own == kind))
}

fn csv(path: &PathBuf) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_path(path)
        .unwrap();
    let head = reader.headers().unwrap().iter().map(String::from).collect();
    let rows = reader
        .records()
        .map(|row| row.unwrap().iter().map(String::from).collect());
    (head, rows.collect())
}

#[test]
fn every_table_and_plot_has_a_file_of_its_own_in_the_folder() {
    for run in [fixture::plausible(), fixture::hostile(), fixture::empty()] {
        let (folder, paths) = rendered(&run);
        assert_eq!(paths.iter().collect::<HashSet<_>>().len(), paths.len());
        let there: HashSet<PathBuf> = fs::read_dir(folder.path())
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        assert_eq!(there, paths.iter().cloned().collect());
        assert!(paths.contains(&folder.path().join("report.html")));
    }
    let (folder, paths) = rendered(&fixture::plausible());
    for name in [
        "pipe-cells.csv",
        "pipe-comparisons.csv",
        "pipe-regression.csv",
        "pipe-seeds.csv",
        "tcp-sizes.csv",
        "lan-bandwidth.svg",
    ] {
        assert!(paths.contains(&folder.path().join(name)), "{name}");
    }
}

#[test]
fn a_table_of_cells_has_a_row_for_each_arm_with_every_digit() {
    let run = fixture::full();
    let (folder, _) = rendered(&run);
    let (head, rows) = csv(&folder.path().join("pipe-cells.csv"));
    let arms: usize = run.experiments[0]
        .cells
        .iter()
        .map(|cell| cell.arms.len())
        .sum();
    assert_eq!(rows.len(), arms);
    assert!(rows.iter().all(|row| row.len() == head.len()));
    let field = |name: &str| {
        let column = head.iter().position(|own| own == name).expect(name);
        rows[0][column].clone()
    };
    let arm = &run.experiments[0].cells[0].arms[0];
    assert_eq!(field("rate").parse::<f64>().ok(), arm.rate);
    assert_eq!(
        field("rate_q1").parse::<f64>().ok(),
        Some(arm.spreads["rate"].q1)
    );
    assert_eq!(
        field("round_trip_p999_ns").parse::<f64>().ok(),
        Some(arm.latencies["round_trip"].p999_ns)
    );
    assert_eq!(
        (
            field("cell").as_str(),
            field("unit").as_str(),
            field("carried").as_str()
        ),
        ("one-4", "Messages", "14")
    );
}

#[test]
fn odd_values_survive_a_table() {
    let run = fixture::hostile();
    let (_folder, paths) = rendered(&run);
    let table = of_kind(&paths, "csv")
        .find(|path| path.to_string_lossy().contains("odd-"))
        .unwrap();
    let (head, rows) = csv(table);
    assert!(head[1].ends_with("(bytes)"), "{head:?}");
    assert_eq!(rows[0][1].parse::<f64>(), Ok(1e300));
    assert_eq!((rows[0][2].as_str(), rows[1][0].as_str()), ("", ""));
    assert_eq!(rows[1][1], "text, with \"quotes\"\nand lines");
    let cells = of_kind(&paths, "csv")
        .find(|path| path.to_string_lossy().contains("-cells"))
        .unwrap();
    assert!(
        csv(cells)
            .1
            .iter()
            .any(|row| row.iter().any(|field| field == "1e300"))
    );
}

#[test]
fn comparisons_have_their_verdicts_first_and_again() {
    let (folder, _) = rendered(&fixture::plausible());
    let (head, rows) = csv(&folder.path().join("tcp-comparisons.csv"));
    let column = |name: &str| head.iter().position(|own| own == name).unwrap();
    let last = rows.last().unwrap();
    assert_eq!(
        (
            last[column("measured")].as_str(),
            last[column("cell")].as_str()
        ),
        ("again", "tcp-16384")
    );
    assert!(
        rows.iter()
            .any(|row| row[column("verdict")] == "slower" && row[column("value")] == "0.91")
    );
}

#[test]
fn plots_are_well_formed_and_within_their_bounds() {
    let (_folder, mut paths) = rendered(&fixture::plausible());
    let (_other, odd) = rendered(&fixture::hostile());
    paths.extend(odd);
    assert!(of_kind(&paths, "svg").count() >= 10);
    for path in of_kind(&paths, "svg") {
        let text = fs::read_to_string(path).unwrap();
        let document = roxmltree::Document::parse(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        within_bounds(&document, &path.display().to_string());
        assert!(
            !text.contains("NaN") && !text.contains("inf"),
            "{}",
            path.display()
        );
        let has = |name: &str| {
            document
                .descendants()
                .any(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)))
        };
        assert!(has("title") && has("style") && has("text"));
    }
}

/// By the numbers of lines, boxes, marks and the places of texts.
fn within_bounds(document: &roxmltree::Document<'_>, name: &str) {
    let bounds: Vec<f64> = document
        .root_element()
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|n| n.parse().unwrap())
        .collect();
    let shift = |node: &roxmltree::Node<'_, '_>| -> f64 {
        let moved = node.ancestors().filter_map(|up| up.attribute("transform"));
        let down = moved.filter_map(|text| {
            text.strip_prefix("translate(0 ")?
                .strip_suffix(')')?
                .parse::<f64>()
                .ok()
        });
        down.sum()
    };
    for node in document.descendants().filter(|node| node.is_element()) {
        let numbers = |names: &[&str]| -> Vec<f64> {
            names
                .iter()
                .filter_map(|name| node.attribute(*name)?.parse().ok())
                .collect()
        };
        let mut across = numbers(&["x", "x1", "x2", "cx"]);
        let mut down = numbers(&["y", "y1", "y2", "cy"]);
        if let (Some(x), Some(width)) = (across.first().copied(), numbers(&["width"]).first()) {
            across.push(x + width);
        }
        for (x, y) in places(node.attribute("d").unwrap_or_default()) {
            across.push(x);
            down.push(y);
        }
        let shift = shift(&node);
        assert!(
            across.iter().all(|x| (0.0..=bounds[2]).contains(x)),
            "{name}: {across:?} of {node:?}"
        );
        assert!(
            down.iter()
                .all(|y| (0.0..=bounds[3]).contains(&(y + shift))),
            "{name}: {down:?} of {node:?}"
        );
    }
}

/// Where a path of straight lines goes.
fn places(path: &str) -> Vec<(f64, f64)> {
    let mut places = Vec::new();
    let (mut x, mut y) = (0.0, 0.0);
    let starts = path.match_indices(|c: char| c.is_ascii_alphabetic());
    for (at, command) in starts {
        let rest = &path[at + 1..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic());
        let numbers = rest[..end.unwrap_or(rest.len())].split_whitespace();
        let numbers: Vec<f64> = numbers.map(|n| n.parse().unwrap()).collect();
        (x, y) = match (command, &numbers[..]) {
            ("M" | "L", [x, y]) => (*x, *y),
            ("l", [dx, dy]) => (x + dx, y + dy),
            ("H", [x]) => (*x, y),
            ("V", [y]) => (x, *y),
            ("v", [dy]) => (x, y + dy),
            ("z", []) => continue,
            other => panic!("{other:?} of {path}"),
        };
        places.push((x, y));
    }
    places
}

#[test]
fn the_page_needs_nothing_but_itself() {
    for run in [fixture::plausible(), fixture::hostile(), fixture::empty()] {
        let (folder, _) = rendered(&run);
        let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
        let namespace = "http://www.w3.org/2000/svg";
        let bare = page.replace(namespace, "");
        for outside in [
            "http:", "https:", "src=", "@import", "url(", "<link", "<script", "<iframe", "<object",
        ] {
            assert!(!bare.contains(outside), "{outside}");
        }
        let targets = page
            .split("href=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        for target in targets {
            let id = target
                .strip_prefix('#')
                .unwrap_or_else(|| panic!("{target} leaves the page"));
            assert!(
                page.contains(&format!("id=\"{id}\"")),
                "{target} leads nowhere"
            );
        }
    }
}

#[test]
fn the_page_says_what_was_measured_and_what_was_not() {
    let (folder, _) = rendered(&fixture::plausible());
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "Example CPU 7B13",
        "6.1.0-18-amd64",
        "15 rounds",
        "Full run",
        "22.6×",
        "20.1–24.0×",
        "003_c5bc4b9930b1375e.txt",
        "What did not get better",
        "the loop-back device saw the traffic",
        "pgbench is not there",
        "it needs three CPUs",
        "headwater bench --out headwater-results",
        "3 disturbed rounds",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let (folder, _) = rendered(&fixture::hostile());
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    for part in [
        "Wrong bytes were received",
        "A partial report",
        "A quick run",
        "&lt;script&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

/// What a full run has too much of for one page stands in files that the page names; a usual one's is all there.
#[test]
fn the_page_of_a_full_run_is_at_most_two_megabytes() {
    let published = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/report");
    assert!(fs::metadata(published.join("report.html")).unwrap().len() <= 2_000_000);
    let mut run = Run::read(&published.join("results.json")).unwrap();
    for report in &mut run.experiments {
        let again = |n: usize| {
            let mut more = report.cells.clone();
            more.iter_mut().for_each(|c| c.cell += &format!("-{n}"));
            more
        };
        let more: Vec<_> = (1..6).flat_map(again).collect();
        report.cells.extend(more);
        for sheet in &mut report.conclusion.sheets {
            sheet.rows = vec![sheet.rows.clone(); 6].concat();
        }
    }
    let (folder, paths) = rendered(&run);
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.len() <= 2_000_000, "{} bytes", page.len());
    let named = page.split("<code>").filter_map(|rest| {
        let name = rest.split("</code>").next()?;
        name.ends_with(".csv").then_some(name)
    });
    let named: HashSet<&str> = named.collect();
    assert!(named.contains("xti-cells.csv") && named.contains("sockets-over-tcp.csv"));
    for name in named {
        assert!(paths.contains(&folder.path().join(name)), "{name}");
    }
}
