//! What an association is to be made with: RFC 9260's parameters, and which extensions are offered.

use core::time::Duration;

use headwater_sctp::{AssocConfig, SchedulerKind};

use super::*;

#[derive(Clone, Debug)]
pub struct Chosen {
    pub association: AssocConfig,
    pub cookie_life: Duration,
    /// The peer's UDP port for calls; `None`: as HEADWATER_SCTP_LINK says.
    pub encap: Option<u16>,
    /// Received messages are told with their options.
    pub tells: bool,
}

impl Default for Chosen {
    fn default() -> Chosen {
        Chosen {
            association: AssocConfig::default(),
            cookie_life: Duration::from_secs(60),
            encap: None,
            tells: false,
        }
    }
}

fn ms(n: i64) -> Duration {
    Duration::from_millis(n.max(0) as u64)
}

impl Chosen {
    /// The value of a number or flag among them.
    pub fn number(&self, name: u32) -> Option<i64> {
        let a = &self.association;
        let ms = |d: Duration| d.as_millis() as i64;
        Some(match name {
            T_SCTP_NODELAY => !a.nagle as i64,
            T_SCTP_MAXSEG => a.most_mtu as i64,
            T_SCTP_RECVOPT => self.tells as i64,
            T_SCTP_COOKIE_LIFE => ms(self.cookie_life),
            T_SCTP_RTO_INITIAL => ms(a.rto.initial),
            T_SCTP_RTO_MIN => ms(a.rto.min),
            T_SCTP_RTO_MAX => ms(a.rto.max),
            T_SCTP_CKSUM_TYPE if a.zero_checksum.is_some() => ZERO,
            T_SCTP_CKSUM_TYPE => CRC32C,
            T_SCTP_SCHED => SCHEDULERS.iter().position(|&s| s == a.scheduler)? as i64,
            T_SCTP_ALI => a.adaptation.unwrap_or(0).into(),
            T_SCTP_ENCAP_PORT => self.encap.unwrap_or(0).into(),
            T_SCTP_AUTOCLOSE => a.autoclose.map_or(0, |d| d.as_secs() as i64),
            T_SCTP_ECN => NO,
            name => return parameter(a, name),
        })
    }

    /// Sets a legal value; false: it is none of these.
    pub fn set_number(&mut self, name: u32, n: i64) -> bool {
        let a = &mut self.association;
        let on = n == YES;
        match name {
            T_SCTP_NODELAY => a.nagle = !on,
            T_SCTP_MAXSEG => {
                a.most_mtu = n as usize;
                a.mtu = a.mtu.min(a.most_mtu);
            }
            T_SCTP_RECVOPT => self.tells = on,
            T_SCTP_COOKIE_LIFE => self.cookie_life = ms(n),
            T_SCTP_RTO_INITIAL => a.rto.initial = ms(n).clamp(a.rto.min, a.rto.max),
            T_SCTP_RTO_MIN => {
                a.rto.min = ms(n).min(a.rto.max);
                a.rto.initial = a.rto.initial.max(a.rto.min);
            }
            T_SCTP_RTO_MAX => {
                a.rto.max = ms(n).max(a.rto.min);
                a.rto.initial = a.rto.initial.min(a.rto.max);
            }
            // SCTP over DTLS is the one method that has a number (RFC 9653 8.2); between ends that agree it will do for others.
            T_SCTP_CKSUM_TYPE => a.zero_checksum = (n == ZERO).then_some(1),
            T_SCTP_SCHED => a.scheduler = SCHEDULERS[n as usize % SCHEDULERS.len()],
            T_SCTP_ALI => a.adaptation = (n != 0).then_some(n as u32),
            T_SCTP_ENCAP_PORT => self.encap = (n != 0).then_some(n as u16),
            T_SCTP_AUTOCLOSE => a.autoclose = (n > 0).then(|| Duration::from_secs(n as u64)),
            name => return set_parameter(a, name, n),
        }
        true
    }
}

/// In the order of T_SCTP_SCHED_FCFS and so on.
const SCHEDULERS: [SchedulerKind; 6] = [
    SchedulerKind::Fcfs,
    SchedulerKind::RoundRobin,
    SchedulerKind::RoundRobinPacket,
    SchedulerKind::Priority,
    SchedulerKind::FairCapacity,
    SchedulerKind::WeightedFair,
];

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_providers::options::Value;

    #[test]
    fn the_table_s_defaults_are_the_engine_s() {
        let chosen = Chosen::default();
        for option in &TABLE {
            if let (Some(now), Value::Number(default)) =
                (chosen.number(option.name), option.default_value())
            {
                assert_eq!(now, default, "option {}", option.name);
            }
        }
    }

    #[test]
    fn what_was_set_is_there() {
        let mut chosen = Chosen::default();
        for option in &TABLE {
            if !Chosen::default().set_number(option.name, 1) {
                continue;
            }
            let wanted = match option.kind {
                Kind::Number(least, most) => 2000i64.clamp(least, most),
                _ => YES,
            };
            chosen.set_number(option.name, wanted);
            assert_eq!(
                chosen.number(option.name),
                Some(wanted),
                "option {}",
                option.name
            );
        }
    }

    #[test]
    fn the_limits_of_the_rto_stay_in_order() {
        let mut chosen = Chosen::default();
        chosen.set_number(T_SCTP_RTO_MAX, 500);
        chosen.set_number(T_SCTP_RTO_MIN, 5000);
        let rto = chosen.association.rto;
        assert!(rto.min <= rto.initial && rto.initial <= rto.max);
    }
}
