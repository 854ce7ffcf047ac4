use super::*;

#[test]
fn every_cell_has_a_name_of_its_own_and_aims_beyond_what_it_must() {
    for experiment in all() {
        let cells = experiment.cells();
        for (index, cell) in cells.iter().enumerate() {
            let name = &cell.name;
            assert!(!name.contains('/'), "{name}");
            assert!(
                cells[..index].iter().all(|other| other.name != *name),
                "{name}"
            );
            for goal in &cell.goals {
                assert!(goal.aim.is_none_or(|aim| goal.must <= aim), "{name}");
            }
        }
    }
}

#[test]
fn every_name_has_its_experiment() {
    for name in names() {
        assert_eq!(by_name(name).unwrap().name, name);
    }
}

#[test]
fn of_nothing_nothing_follows() {
    for experiment in all() {
        let conclusion = experiment.conclude(&[]);
        assert!(conclusion.headlines.is_empty(), "{}", experiment.name);
        assert!(conclusion.plots.is_empty(), "{}", experiment.name);
    }
}

#[test]
fn a_quick_run_has_cells_of_its_own_of_each_experiment_and_they_come_first() {
    for experiment in ["sockets", "costs", "pipe", "xti", "apps"] {
        let experiment = by_name(experiment).unwrap();
        let quick: Vec<bool> = experiment.cells().iter().map(|cell| cell.quick).collect();
        assert!(quick[0] && quick.is_sorted_by(|a, b| a >= b));
    }
}
