use super::*;
use crate::carriage::Counters;
use crate::experiments::xti::pair;
use crate::verdict::Series;

/// What a cell of a script tells where each of its arms was measured at these rates, for ten seconds.
fn measured(script: &Script, size: usize, rates: &[f64]) -> CellReport {
    let cell = script.pair(size).cell();
    let sample = |&rate: &f64| {
        let values = [
            (pair::ELAPSED, 10.0),
            (pair::SENT, rate * 10.0),
            (pair::RECEIVED, rate * 10.0 - 1.0),
            (pair::LOCAL_SEND, 262142.0),
            (pair::LOCAL_RECEIVE, 262142.0),
            (pair::REMOTE_SEND, 262142.0),
            (pair::REMOTE_RECEIVE, 262142.0),
        ];
        Some(Sample {
            rate,
            values: values.map(|(name, value)| (name.to_string(), value)).into(),
            // Those of an arm that is carried as it claims.
            counters: Some(Counters {
                accelerated: 2,
                processes: 2,
                ..Counters::default()
            }),
            ..Sample::default()
        })
    };
    let series = |arm: &Arm| Series {
        arm: *arm,
        samples: rates.iter().map(sample).collect(),
        failures: Vec::new(),
        syscalls: None,
        wrong_contents: false,
    };
    let all: Vec<Series> = cell.arms.iter().map(series).collect();
    CellReport::new(&cell, Placement::Same, &all)
}

fn lines(sheet: &Sheet) -> Vec<&str> {
    let line = |row: &'_ [Value]| matches!(row, [Value::Text(_)]);
    assert!(sheet.rows.iter().all(|row| line(row)));
    let texts = sheet.rows.iter().flatten();
    texts
        .filter_map(|value| match value {
            Value::Text(line) => Some(line.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_log_has_the_tests_of_a_script_in_its_order_and_by_size() {
    let script = &SCRIPTS[0];
    let cells = [
        measured(script, 1024, &[50.0]),
        measured(script, 64, &[300.0, 100.0, 200.0]),
    ];
    let conclusion = conclude(&cells);
    let log = conclusion.sheets.iter().find(|s| s.name == "udp-log-same");
    let lines = lines(log.unwrap());
    let commands: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| line.starts_with('#'))
        .collect();
    assert_eq!(
        commands[..3],
        [
            "# netperf -t XTI_UDP_STREAM -H 127.0.0.1 -l 10.00 -- -s 131071 -S 131071 -m 64 -X /dev/udp2",
            "# netperf -t XTI_UDP_STREAM -H 127.0.0.1 -l 10.00 -- -s 131071 -S 131071 -m 1024 -X /dev/udp2",
            "# netperf -t UDP_STREAM -H 127.0.0.1 -l 10.00 -- -s 131071 -S 131071 -m 64",
        ]
    );
    // The middle of three rounds.
    assert!(lines.contains(&"262142      64   10.00        2000      0       0.10"));
    assert!(lines.contains(&"262142           10.00        1999              0.10"));
}

#[test]
fn artificial_priorities_are_said() {
    let cells = [measured(&SCRIPTS[2], 64, &[10.0])];
    let conclusion = conclude(&cells);
    let log = conclusion
        .sheets
        .iter()
        .find(|s| s.name == "nice2-log-same");
    let log = log.unwrap();
    let priority = highest().1;
    assert!(log.caption.contains(&format!("priority {priority}")));
    assert!(lines(log)[0].starts_with(&format!("# nice -n {priority} netperf -t TCP_STREAM")));
}

#[test]
fn results_have_a_row_for_each_test_and_nothing_where_nothing_was_measured() {
    let cells = [
        measured(&SCRIPTS[1], 64, &[10.0]),
        measured(&ROUND_TRIPS, 1, &[10.0]),
    ];
    let conclusion = conclude(&cells);
    let rows = |name: &str| {
        let sheet = conclusion.sheets.iter().find(|sheet| sheet.name == name);
        sheet.map_or(0, |sheet| {
            let columns = sheet.columns.len();
            assert!(sheet.rows.iter().all(|row| row.len() == columns));
            sheet.rows.len()
        })
    };
    assert_eq!((rows("benchmark-results"), rows("rr-results")), (3, 3));
    assert_eq!(rows("udp-results"), 0);
    assert!(experiment().conclude(&[]).sheets.is_empty());
}

#[test]
fn a_quick_run_takes_three_sizes_of_each_script() {
    let cells = experiment().cells();
    for script in &SCRIPTS {
        let quick = cells
            .iter()
            .filter(|cell| cell.work == script.name && cell.quick);
        assert_eq!(quick.count(), 3);
    }
}
