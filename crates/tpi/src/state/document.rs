//! The tables as Markdown, for the documentation.

use super::calls::{self, Needs, Row, Then};
use super::{T_INREL, T_UNINIT, TABLE, xti_name, xti_state};

/// Both tables: the provider's machine, then calls by state. An empty cell is TOUTSTATE.
pub fn markdown() -> String {
    format!("{}\n{}", provider(), calls())
}

fn provider() -> String {
    let mut text = String::from(
        "| State | Number | XTI state | Event → next state |\n| --- | --- | --- | --- |\n",
    );
    for (state, moves) in TABLE {
        let moves: Vec<_> = moves
            .iter()
            .map(|(event, then)| format!("{} → {}", event.name(), then.name()))
            .collect();
        let (number, xti) = (state.number(), xti_name(xti_state(*state)));
        text += &format!(
            "| {} | {number} | {xti} | {} |\n",
            state.name(),
            moves.join("; ")
        );
    }
    text
}

fn calls() -> String {
    let states: Vec<_> = (T_UNINIT..=T_INREL).map(xti_name).collect();
    let mut text = format!(
        "| Call | Services | {} |\n|{}\n",
        states.join(" | "),
        " --- |".repeat(states.len() + 2)
    );
    for row in calls::TABLE {
        let cells: Vec<_> = (T_UNINIT..=T_INREL).map(|state| cell(row, state)).collect();
        text += &format!(
            "| {} | {} | {} |\n",
            row.name,
            services(row.needs),
            cells.join(" | ")
        );
    }
    text
}

fn cell(row: &Row, state: i32) -> &'static str {
    match row.then(state) {
        None => "",
        Some(Then::Stay) => "stays",
        Some(Then::To(next)) => xti_name(next),
        Some(Then::Connect) => "T_DATAXFER, T_OUTCON",
        Some(Then::Accept) => "T_DATAXFER, T_IDLE, T_INCON",
        Some(Then::Turn) => "T_IDLE, T_INCON",
    }
}

fn services(needs: Needs) -> &'static str {
    match needs {
        Needs::Nothing => "all",
        Needs::Connections => "T_COTS, T_COTS_ORD",
        Needs::Release => "T_COTS_ORD",
        Needs::Datagrams => "T_CLTS",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_table_has_the_columns_of_its_head() {
        for (table, rows) in [(provider(), 17), (calls(), 35)] {
            let columns: Vec<_> = table
                .lines()
                .map(|line| line.matches('|').count())
                .collect();
            assert_eq!(columns.len(), rows + 2);
            assert!(columns.iter().all(|count| *count == columns[0]));
        }
    }

    #[test]
    fn the_tables_say_what_the_machines_do() {
        let text = markdown();
        assert!(text.contains("T_CONN_REQ → TS_WACK_CREQ"));
        assert!(text.contains("| t_bind | all |  | T_IDLE |  |  |  |  |  |  |"));
    }
}
