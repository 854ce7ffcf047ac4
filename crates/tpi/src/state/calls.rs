//! XTI calls: which state allows them, and what state they lead to (XNS 5.2: VALID STATES of each call, and the state
//! tables).

use super::{T_DATAXFER, T_IDLE, T_INCON, T_INREL, T_OUTCON, T_OUTREL, T_UNBND, T_UNINIT};
use crate::Refusal;
use crate::error::{TNOTSUPPORT, TOUTSTATE};
use crate::prim::{T_CLTS, T_COTS_ORD};

/// What, besides call and state, decides where a successful call leads. `outstanding`: connect indications that were
/// heard and not answered, before the call; `same`: t_accept with resfd the same as fd; `pending`: t_connect that does
/// not wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ending {
    pub outstanding: usize,
    pub same: bool,
    pub pending: bool,
}

/// Whether the call may be made now: TNOTSUPPORT where the service type has it not, TOUTSTATE where the state forbids it.
pub fn check(call: Call, xti_state: i32, service: i32) -> Result<(), Refusal> {
    match supported(call, service) {
        false => Err(Refusal::new(TNOTSUPPORT)),
        true if row(call).then(xti_state).is_none() => Err(Refusal::new(TOUTSTATE)),
        true => Ok(()),
    }
}

/// Whether an endpoint of this service type may make the call in this state.
pub fn allowed(call: Call, xti_state: i32, service: i32) -> bool {
    check(call, xti_state, service).is_ok()
}

/// Whether endpoints of this service type have the call at all.
pub fn supported(call: Call, service: i32) -> bool {
    match row(call).needs {
        Needs::Nothing => true,
        Needs::Connections => service != T_CLTS,
        Needs::Release => service == T_COTS_ORD,
        Needs::Datagrams => service == T_CLTS,
    }
}

/// The state of the endpoint after a successful call; `None` where it is not allowed.
pub fn after(call: Call, xti_state: i32, ending: Ending) -> Option<i32> {
    let served = if ending.outstanding > 1 {
        T_INCON
    } else {
        T_IDLE
    };
    Some(match row(call).then(xti_state)? {
        Then::Stay => xti_state,
        Then::To(state) => state,
        Then::Connect if ending.pending => T_OUTCON,
        Then::Connect => T_DATAXFER,
        Then::Accept if ending.same => T_DATAXFER,
        Then::Accept | Then::Turn => served,
    })
}

impl Call {
    /// Its name in <xti.h>.
    pub fn name(self) -> &'static str {
        row(self).name
    }

    pub fn all() -> impl Iterator<Item = Call> {
        TABLE.iter().map(|row| row.call)
    }
}

pub(super) struct Row {
    pub call: Call,
    pub name: &'static str,
    pub needs: Needs,
    from: From,
}

#[derive(Clone, Copy)]
pub(super) enum Needs {
    Nothing,
    Connections,
    Release,
    Datagrams,
}

#[derive(Clone, Copy)]
pub(super) enum Then {
    Stay,
    To(i32),
    /// T_DATAXFER, or T_OUTCON when the call does not wait.
    Connect,
    /// T_DATAXFER on fd itself, otherwise as Turn.
    Accept,
    /// One indication less: T_IDLE after the last, otherwise T_INCON.
    Turn,
}

enum From {
    /// Every state, T_UNINIT too.
    Anywhere(Then),
    /// Every state but T_UNINIT.
    Opened(Then),
    These(&'static [(i32, Then)]),
}

impl Row {
    pub fn then(&self, state: i32) -> Option<Then> {
        match self.from {
            From::Anywhere(then) => (T_UNINIT..=T_INREL).contains(&state).then_some(then),
            From::Opened(then) => (T_UNBND..=T_INREL).contains(&state).then_some(then),
            From::These(states) => states
                .iter()
                .find(|(from, _)| *from == state)
                .map(|(_, then)| *then),
        }
    }
}

fn row(call: Call) -> &'static Row {
    &TABLE[call as usize]
}

use Needs::*;
use Then::*;

const READ: From = From::These(&[(T_DATAXFER, Stay), (T_OUTREL, Stay)]);
const WRITE: From = From::These(&[(T_DATAXFER, Stay), (T_INREL, Stay)]);
const IN_IDLE: From = From::These(&[(T_IDLE, Stay)]);
const RELEASE: From = From::These(&[(T_DATAXFER, To(T_OUTREL)), (T_INREL, To(T_IDLE))]);
const RELEASED: From = From::These(&[(T_DATAXFER, To(T_INREL)), (T_OUTREL, To(T_IDLE))]);
const BREAK: From = From::These(&[
    (T_OUTCON, To(T_IDLE)),
    (T_INCON, Turn),
    (T_DATAXFER, To(T_IDLE)),
    (T_OUTREL, To(T_IDLE)),
    (T_INREL, To(T_IDLE)),
]);

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident => $name:literal, $needs:ident, $from:expr;)*) => {
        /// The calls of XNS 5.2.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Call { $($(#[$doc])* $call),* }

        /// In the order of Call.
        pub(super) static TABLE: &[Row] = &[$(Row {
            call: Call::$call,
            name: $name,
            needs: $needs,
            from: $from,
        }),*];
    };
}

calls! {
    Accept => "t_accept", Connections, From::These(&[(T_INCON, Accept)]);
    /// t_accept, for a resfd that is not fd.
    AcceptOn => "t_accept (resfd)", Connections, From::These(&[(T_UNBND, To(T_DATAXFER)), (T_IDLE, To(T_DATAXFER))]);
    Alloc => "t_alloc", Nothing, From::Opened(Stay);
    Bind => "t_bind", Nothing, From::These(&[(T_UNBND, To(T_IDLE))]);
    Close => "t_close", Nothing, From::Opened(To(T_UNINIT));
    Connect => "t_connect", Connections, From::These(&[(T_IDLE, Connect)]);
    Error => "t_error", Nothing, From::Anywhere(Stay);
    Free => "t_free", Nothing, From::Anywhere(Stay);
    GetInfo => "t_getinfo", Nothing, From::Opened(Stay);
    GetProtAddr => "t_getprotaddr", Nothing, From::Opened(Stay);
    GetState => "t_getstate", Nothing, From::Opened(Stay);
    Listen => "t_listen", Connections, From::These(&[(T_IDLE, To(T_INCON)), (T_INCON, Stay)]);
    Look => "t_look", Nothing, From::Opened(Stay);
    Open => "t_open", Nothing, From::These(&[(T_UNINIT, To(T_UNBND))]);
    OptMgmt => "t_optmgmt", Nothing, From::Opened(Stay);
    Rcv => "t_rcv", Connections, READ;
    RcvConnect => "t_rcvconnect", Connections, From::These(&[(T_OUTCON, To(T_DATAXFER))]);
    RcvDis => "t_rcvdis", Connections, BREAK;
    RcvRel => "t_rcvrel", Release, RELEASED;
    RcvRelData => "t_rcvreldata", Release, RELEASED;
    RcvUData => "t_rcvudata", Datagrams, IN_IDLE;
    RcvUdErr => "t_rcvuderr", Datagrams, IN_IDLE;
    RcvV => "t_rcvv", Connections, READ;
    RcvVUData => "t_rcvvudata", Datagrams, IN_IDLE;
    Snd => "t_snd", Connections, WRITE;
    SndDis => "t_snddis", Connections, BREAK;
    SndRel => "t_sndrel", Release, RELEASE;
    SndRelData => "t_sndreldata", Release, RELEASE;
    SndUData => "t_sndudata", Datagrams, IN_IDLE;
    SndV => "t_sndv", Connections, WRITE;
    SndVUData => "t_sndvudata", Datagrams, IN_IDLE;
    StrError => "t_strerror", Nothing, From::Anywhere(Stay);
    Sync => "t_sync", Nothing, From::Opened(Stay);
    SysConf => "t_sysconf", Nothing, From::Anywhere(Stay);
    Unbind => "t_unbind", Nothing, From::These(&[(T_IDLE, To(T_UNBND))]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prim::T_COTS;

    #[test]
    fn every_call_has_its_row() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.call as usize, index);
            if row.call != Call::AcceptOn {
                assert_eq!(row.name, format!("t_{:?}", row.call).to_lowercase());
            }
        }
        assert_eq!(TABLE.len(), Call::Unbind as usize + 1);
    }

    #[test]
    fn a_state_that_does_not_exist_allows_nothing() {
        for call in Call::all() {
            for state in [-1, 8, i32::MIN, i32::MAX] {
                assert!(!allowed(call, state, T_COTS_ORD));
                assert_eq!(after(call, state, Ending::default()), None);
            }
        }
    }

    #[test]
    fn an_endpoint_that_was_never_opened_has_only_the_calls_without_one() {
        let names: Vec<_> = Call::all()
            .filter(|call| allowed(*call, T_UNINIT, T_COTS))
            .map(Call::name)
            .collect();
        assert_eq!(
            names,
            ["t_error", "t_free", "t_open", "t_strerror", "t_sysconf"]
        );
    }

    #[test]
    fn calls_of_the_other_service_type_are_not_supported() {
        for call in [
            Call::Accept,
            Call::Connect,
            Call::Listen,
            Call::Snd,
            Call::RcvDis,
        ] {
            assert!(supported(call, T_COTS) && !supported(call, T_CLTS));
        }
        assert!(supported(Call::SndUData, T_CLTS) && !supported(Call::SndUData, T_COTS_ORD));
        assert!(supported(Call::SndRel, T_COTS_ORD) && !supported(Call::SndRel, T_COTS));
        assert_eq!(
            check(Call::SndRel, T_DATAXFER, T_COTS),
            Err(Refusal::new(TNOTSUPPORT))
        );
        assert_eq!(
            check(Call::SndRel, T_IDLE, T_COTS_ORD),
            Err(Refusal::new(TOUTSTATE))
        );
    }

    #[test]
    fn a_half_released_connection_carries_data_one_way() {
        assert!(
            allowed(Call::Rcv, T_OUTREL, T_COTS_ORD) && !allowed(Call::Snd, T_OUTREL, T_COTS_ORD)
        );
        assert!(
            allowed(Call::SndV, T_INREL, T_COTS_ORD) && !allowed(Call::RcvV, T_INREL, T_COTS_ORD)
        );
        assert_eq!(
            after(Call::SndRel, T_INREL, Ending::default()),
            Some(T_IDLE)
        );
        assert_eq!(
            after(Call::RcvRel, T_DATAXFER, Ending::default()),
            Some(T_INREL)
        );
    }

    #[test]
    fn a_listener_is_idle_again_after_its_last_indication() {
        let of = |outstanding, same| Ending {
            outstanding,
            same,
            pending: false,
        };
        assert_eq!(after(Call::Accept, T_INCON, of(2, false)), Some(T_INCON));
        assert_eq!(after(Call::Accept, T_INCON, of(1, false)), Some(T_IDLE));
        assert_eq!(after(Call::Accept, T_INCON, of(1, true)), Some(T_DATAXFER));
        assert_eq!(after(Call::SndDis, T_INCON, of(2, false)), Some(T_INCON));
        assert_eq!(after(Call::RcvDis, T_INCON, of(1, false)), Some(T_IDLE));
    }

    #[test]
    fn a_connect_that_does_not_wait_is_outgoing() {
        let pending = Ending {
            pending: true,
            ..Ending::default()
        };
        assert_eq!(after(Call::Connect, T_IDLE, pending), Some(T_OUTCON));
        assert_eq!(
            after(Call::Connect, T_IDLE, Ending::default()),
            Some(T_DATAXFER)
        );
        assert_eq!(
            after(Call::RcvConnect, T_OUTCON, Ending::default()),
            Some(T_DATAXFER)
        );
    }
}
