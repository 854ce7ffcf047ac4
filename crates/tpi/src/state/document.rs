//! The tables as Markdown, for the documentation.

use super::calls::{Needs, Row, Then, rows};
use super::{T_INREL, T_UNINIT, TABLE, xti_state};
use crate::prim;

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
    for row in rows() {
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

fn xti_name(state: i32) -> &'static str {
    [
        "T_UNINIT",
        "T_UNBND",
        "T_IDLE",
        "T_OUTCON",
        "T_INCON",
        "T_DATAXFER",
        "T_OUTREL",
        "T_INREL",
    ][state as usize]
}

impl super::Event {
    /// Its name in the documentation: the primitive's, and where counts decide, what they are.
    fn name(self) -> &'static str {
        use super::Event::*;
        let prim = match self {
            ConnReq => prim::T_CONN_REQ,
            ConnRes => prim::T_CONN_RES,
            DisconReq => prim::T_DISCON_REQ,
            DataReq => prim::T_DATA_REQ,
            ExdataReq => prim::T_EXDATA_REQ,
            OptdataReq => prim::T_OPTDATA_REQ,
            BindReq => prim::T_BIND_REQ,
            UnbindReq => prim::T_UNBIND_REQ,
            UnitdataReq => prim::T_UNITDATA_REQ,
            OptmgmtReq => prim::T_OPTMGMT_REQ,
            OrdrelReq => prim::T_ORDREL_REQ,
            ConnInd => prim::T_CONN_IND,
            ConnCon => prim::T_CONN_CON,
            DisconInd1 => prim::T_DISCON_IND,
            DataInd => prim::T_DATA_IND,
            ExdataInd => prim::T_EXDATA_IND,
            OptdataInd => prim::T_OPTDATA_IND,
            UnitdataInd => prim::T_UNITDATA_IND,
            UderrorInd => prim::T_UDERROR_IND,
            OrdrelInd => prim::T_ORDREL_IND,
            BindAck => prim::T_BIND_ACK,
            OptmgmtAck => prim::T_OPTMGMT_ACK,
            ErrorAck => prim::T_ERROR_ACK,
            OkAck1 => prim::T_OK_ACK,
            DisconInd2 => return "T_DISCON_IND (last indication)",
            DisconInd3 => return "T_DISCON_IND (more indications)",
            OkAck2 => return "T_OK_ACK (last indication, same stream)",
            OkAck3 => return "T_OK_ACK (last indication, other stream)",
            OkAck4 => return "T_OK_ACK (more indications)",
            PassConn => return "a connection accepted here",
        };
        prim::name(prim).unwrap_or_default()
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
