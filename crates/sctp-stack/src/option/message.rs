//! What goes with single messages: as options of T_OPTDATA_REQ and T_OPTDATA_IND, and as current values of an endpoint.

use headwater_providers::provider::Outcome;
use headwater_tpi::Refusal;
use headwater_tpi::error::TBADOPT;
use headwater_tpi::option::{List, Options, T_SUCCESS};

use super::*;
use crate::Received;

/// How a message is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Outgoing {
    pub stream: u16,
    pub ppid: u32,
    pub policy: Policy,
    /// Milliseconds, transmissions or priority, as the policy has it.
    pub limit: u32,
}

/// When a message is given up (RFC 3758, RFC 7496).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    #[default]
    Never,
    Lifetime,
    Retransmissions,
    Priority,
}

impl Policy {
    pub fn of_number(n: i64) -> Option<Policy> {
        use Policy::*;
        [Never, Lifetime, Retransmissions, Priority]
            .get(usize::try_from(n).ok()?)
            .copied()
    }
}

impl Outgoing {
    /// As the options of one message change it. TBADOPT.
    pub fn with(mut self, opts: &[u8]) -> Outcome<Outgoing> {
        let bad = || Refusal::new(TBADOPT);
        for option in Options::all(opts)?.iter().filter(|o| o.level == INET_SCTP) {
            let number = option.number().ok_or_else(bad)?;
            match option.name {
                T_SCTP_SID => self.stream = u16::try_from(number).map_err(|_| bad())?,
                T_SCTP_PPI => self.ppid = number as u32,
                T_SCTP_LIFETIME => self.set_lifetime(u32::try_from(number).map_err(|_| bad())?),
                T_SCTP_PR => self.policy = Policy::of_number(number).ok_or_else(bad)?,
                T_SCTP_PR_VALUE => self.limit = u32::try_from(number).map_err(|_| bad())?,
                _ => {}
            }
        }
        Ok(self)
    }

    /// 0: as long as it takes.
    pub fn set_lifetime(&mut self, ms: u32) {
        self.policy = if ms == 0 {
            Policy::Never
        } else {
            Policy::Lifetime
        };
        self.limit = ms;
    }

    pub fn lifetime(&self) -> u32 {
        if self.policy == Policy::Lifetime {
            self.limit
        } else {
            0
        }
    }
}

/// struct t_sctp_rcvinfo.
pub fn rcvinfo(came: &Received) -> Vec<u8> {
    let (stream, ssn) = (came.stream.into(), came.ssn.0.into());
    status::words(&[stream, ssn, came.ppid, came.tsn.0, came.unordered as u32])
}

/// As T_OPTDATA_IND has it.
pub fn received_options(came: &Received) -> Vec<u8> {
    let mut list = List::new();
    for (name, value) in [
        (T_SCTP_SID, came.stream.into()),
        (T_SCTP_SSN, came.ssn.0.into()),
        (T_SCTP_PPI, came.ppid),
        (T_SCTP_TSN, came.tsn.0),
    ] {
        list.push_number(INET_SCTP, name, T_SUCCESS as u32, value as i32);
    }
    list.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_sctp::serial::{Ssn, Tsn};

    #[test]
    fn a_message_s_options_change_that_message() {
        let current = Outgoing {
            stream: 1,
            ppid: 2,
            ..Default::default()
        };
        let mut list = List::new();
        list.push_number(INET_SCTP, T_SCTP_SID, 0, 7);
        list.push_number(INET_SCTP, T_SCTP_LIFETIME, 0, 50);
        let one = current.with(list.bytes()).unwrap();
        assert_eq!((one.stream, one.ppid, one.lifetime()), (7, 2, 50));
        let mut list = List::new();
        list.push_number(INET_SCTP, T_SCTP_SID, 0, 70_000);
        assert_eq!(current.with(list.bytes()).unwrap_err().tli, TBADOPT);
    }

    #[test]
    fn what_came_is_told_by_four_options() {
        let came = Received {
            stream: 3,
            ssn: Ssn(4),
            ppid: !0,
            tsn: Tsn(6),
            ..Default::default()
        };
        let opts = received_options(&came);
        let told: Vec<i64> = Options::all(&opts)
            .unwrap()
            .iter()
            .map(|o| o.number().unwrap())
            .collect();
        assert_eq!(told, [3, 4, -1, 6]);
    }
}
