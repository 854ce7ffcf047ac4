//! The states of a transport endpoint, each machine as one table: what a provider may be asked and may tell
//! (TPI 2.0, "Allowable Sequence of TPI Primitives"), and which XTI call is allowed where (XNS 5.2, "States and Events").

mod calls;
mod document;

pub use calls::{Call, Ending, after, allowed, check, supported};
pub use document::markdown;

use crate::Request;
use crate::prim::{T_CLTS, T_COTS_ORD};
use Event::*;
use State::*;

named! {
    XTI_NAMES:
    T_UNINIT = 0,
    T_UNBND = 1,
    T_IDLE = 2,
    T_OUTCON = 3,
    T_INCON = 4,
    T_DATAXFER = 5,
    T_OUTREL = 6,
    T_INREL = 7,
}

/// An enumeration whose variants have names in a document.
macro_rules! machine {
    (
        $(#[$about:meta])*
        $kind:ident { $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:expr,)* }
    ) => {
        $(#[$about])*
        pub enum $kind { $($(#[$doc])* $variant $(= $number)?),* }

        impl $kind {
            pub const ALL: [$kind; [$($name),*].len()] = [$($kind::$variant),*];

            /// The name in <sys/tihdr.h>; of an event the primitive's, and where counts decide, what they are.
            pub fn name(self) -> &'static str {
                const NAMES: [&str; $kind::ALL.len()] = [$($name),*];
                NAMES[self as usize]
            }
        }
    };
}

machine! {
    /// The state of a provider's endpoint (CURRENT_state), with its number in <sys/tihdr.h>.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u32)]
    State {
        /// Unbound.
        #[default]
        Unbnd = 0 => "TS_UNBND",
        /// The others called Wack wait for the acknowledgement of a request: of T_BIND_REQ,
        WackBreq = 1 => "TS_WACK_BREQ",
        /// of T_UNBIND_REQ.
        WackUreq = 2 => "TS_WACK_UREQ",
        /// Bound, no connection.
        Idle = 3 => "TS_IDLE",
        WackOptreq = 4 => "TS_WACK_OPTREQ",
        /// Of T_CONN_REQ.
        WackCreq = 5 => "TS_WACK_CREQ",
        /// Waits for T_CONN_CON.
        WconCreq = 6 => "TS_WCON_CREQ",
        /// Has told of connections and waits for T_CONN_RES or T_DISCON_REQ.
        WresCind = 7 => "TS_WRES_CIND",
        /// Of T_CONN_RES.
        WackCres = 8 => "TS_WACK_CRES",
        DataXfer = 9 => "TS_DATA_XFER",
        /// Has released its side, waits for T_ORDREL_IND.
        WindOrdrel = 10 => "TS_WIND_ORDREL",
        /// The peer has released, the user's T_ORDREL_REQ is awaited.
        WreqOrdrel = 11 => "TS_WREQ_ORDREL",
        /// Of T_DISCON_REQ in the state with the number in the name.
        WackDreq6 = 12 => "TS_WACK_DREQ6",
        WackDreq7 = 13 => "TS_WACK_DREQ7",
        WackDreq9 = 14 => "TS_WACK_DREQ9",
        WackDreq10 = 15 => "TS_WACK_DREQ10",
        WackDreq11 = 16 => "TS_WACK_DREQ11",
    }
}

impl State {
    pub const fn number(self) -> u32 {
        self as u32
    }

    pub fn from_number(number: u32) -> Option<State> {
        State::ALL.get(number as usize).copied()
    }

    /// Whether a request waits for its acknowledgement: t_getstate and t_sync say TSTATECHNG.
    pub fn is_changing(self) -> bool {
        !STABLE.contains(&self)
    }
}

machine! {
    /// What moves a provider's endpoint. T_INFO_REQ, T_ADDR_REQ, T_CAPABILITY_REQ and their answers move nothing.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Event {
        ConnReq => "T_CONN_REQ",
        ConnRes => "T_CONN_RES",
        DisconReq => "T_DISCON_REQ",
        DataReq => "T_DATA_REQ",
        ExdataReq => "T_EXDATA_REQ",
        OptdataReq => "T_OPTDATA_REQ",
        BindReq => "T_BIND_REQ",
        UnbindReq => "T_UNBIND_REQ",
        UnitdataReq => "T_UNITDATA_REQ",
        OptmgmtReq => "T_OPTMGMT_REQ",
        OrdrelReq => "T_ORDREL_REQ",
        ConnInd => "T_CONN_IND",
        ConnCon => "T_CONN_CON",
        /// T_DISCON_IND with no connect indication outstanding.
        DisconInd1 => "T_DISCON_IND",
        /// With one outstanding.
        DisconInd2 => "T_DISCON_IND (last indication)",
        /// With more than one.
        DisconInd3 => "T_DISCON_IND (more indications)",
        DataInd => "T_DATA_IND",
        ExdataInd => "T_EXDATA_IND",
        OptdataInd => "T_OPTDATA_IND",
        UnitdataInd => "T_UNITDATA_IND",
        UderrorInd => "T_UDERROR_IND",
        OrdrelInd => "T_ORDREL_IND",
        BindAck => "T_BIND_ACK",
        OptmgmtAck => "T_OPTMGMT_ACK",
        /// The answer to a request that the state allowed; one that it does not allow is refused without an event.
        ErrorAck => "T_ERROR_ACK",
        /// T_OK_ACK with no connect indication outstanding.
        OkAck1 => "T_OK_ACK",
        /// With one outstanding, accepted on the stream it came to.
        OkAck2 => "T_OK_ACK (last indication, same stream)",
        /// With one outstanding, accepted on another stream or rejected.
        OkAck3 => "T_OK_ACK (last indication, other stream)",
        /// With more than one.
        OkAck4 => "T_OK_ACK (more indications)",
        /// Another endpoint's connection was accepted on this one.
        PassConn => "a connection accepted here",
    }
}

impl Event {
    /// The event that a request is.
    pub fn of(request: &Request<'_>) -> Option<Event> {
        Some(match request {
            Request::Conn { .. } => ConnReq,
            Request::ConnRes { .. } => ConnRes,
            Request::Discon { .. } => DisconReq,
            Request::Data { .. } => DataReq,
            Request::Exdata { .. } => ExdataReq,
            Request::OptData { .. } => OptdataReq,
            Request::Bind { .. } => BindReq,
            Request::Unbind => UnbindReq,
            Request::Unitdata { .. } => UnitdataReq,
            Request::Optmgmt { .. } => OptmgmtReq,
            Request::Ordrel => OrdrelReq,
            Request::Info | Request::Addr | Request::Capability { .. } => return None,
        })
    }

    /// T_OK_ACK. `outstanding`: connect indications before it; `same`: T_CONN_RES names the stream it came on.
    pub fn ok_ack(outstanding: usize, same: bool) -> Event {
        match (outstanding, same) {
            (0, _) => OkAck1,
            (1, true) => OkAck2,
            (1, false) => OkAck3,
            _ => OkAck4,
        }
    }

    /// T_DISCON_IND. `outstanding`: connect indications before it.
    pub fn discon_ind(outstanding: usize) -> Event {
        match outstanding {
            0 => DisconInd1,
            1 => DisconInd2,
            _ => DisconInd3,
        }
    }

    /// How the number of outstanding connect indications changes.
    pub fn outstanding(self) -> i32 {
        match self {
            ConnInd => 1,
            DisconInd2 | DisconInd3 | OkAck2 | OkAck3 | OkAck4 => -1,
            _ => 0,
        }
    }

    /// Whether providers of this service type have it at all; a request that they have not is TNOTSUPPORT.
    pub fn suits(self, service: i32) -> bool {
        match self {
            BindReq | UnbindReq | OptmgmtReq | BindAck | OptmgmtAck | ErrorAck | OkAck1 => true,
            UnitdataReq | UnitdataInd | UderrorInd => service == T_CLTS,
            OrdrelReq | OrdrelInd => service == T_COTS_ORD,
            _ => service != T_CLTS,
        }
    }
}

/// The state after `event`; `None` where the event may not happen: TOUTSTATE of a request.
pub fn next(state: State, event: Event) -> Option<State> {
    BY_STATE[state as usize][event as usize]
}

/// The state after a request that is acknowledged at once. `outstanding`, `same`: as for `Event::ok_ack`.
pub fn completed(state: State, request: Event, outstanding: usize, same: bool) -> Option<State> {
    let waiting = next(state, request)?;
    if !waiting.is_changing() {
        return Some(waiting);
    }
    let ack = match request {
        BindReq => BindAck,
        OptmgmtReq => OptmgmtAck,
        _ => Event::ok_ack(outstanding, same),
    };
    next(waiting, ack)
}

/// The name of an XTI state in <xti.h>.
pub fn xti_name(state: i32) -> &'static str {
    usize::try_from(state)
        .ok()
        .and_then(|i| XTI_NAMES.get(i))
        .unwrap_or(&"no state")
}

/// The XTI state of a user who has seen everything that the provider told, but for acknowledgements.
pub fn xti_state(state: State) -> i32 {
    match state {
        Unbnd | WackBreq => T_UNBND,
        Idle | WackUreq | WackOptreq => T_IDLE,
        WackCreq | WconCreq | WackDreq6 => T_OUTCON,
        WresCind | WackCres | WackDreq7 => T_INCON,
        DataXfer | WackDreq9 => T_DATAXFER,
        WindOrdrel | WackDreq10 => T_OUTREL,
        WreqOrdrel | WackDreq11 => T_INREL,
    }
}

/// The states in which no acknowledgement is awaited.
const STABLE: [State; 7] = [
    Unbnd, Idle, WconCreq, WresCind, DataXfer, WindOrdrel, WreqOrdrel,
];

macro_rules! moves {
    ($($state:ident $(, options in $same:ident)?: $($event:ident => $then:ident),+;)*) => {
        /// The provider's machine. Options can be managed in every stable state; of these only Idle has a state to wait in.
        const TABLE: &[(State, &[(Event, State)])] = &[$((
            $state,
            &[
                $(($event, $then),)+
                $((OptmgmtReq, $same), (OptmgmtAck, $same), (ErrorAck, $same),)?
            ],
        ),)*];
    };
}

moves! {
    Unbnd, options in Unbnd: BindReq => WackBreq, PassConn => DataXfer;
    WackBreq: BindAck => Idle, ErrorAck => Unbnd;
    WackUreq: OkAck1 => Unbnd, ErrorAck => Idle;
    Idle:
        UnbindReq => WackUreq, OptmgmtReq => WackOptreq, UnitdataReq => Idle, UnitdataInd => Idle,
        UderrorInd => Idle, ConnReq => WackCreq, ConnInd => WresCind, PassConn => DataXfer;
    WackOptreq: OptmgmtAck => Idle, ErrorAck => Idle;
    WackCreq: OkAck1 => WconCreq, ErrorAck => Idle;
    WconCreq, options in WconCreq: ConnCon => DataXfer, DisconInd1 => Idle, DisconReq => WackDreq6;
    WresCind, options in WresCind:
        ConnInd => WresCind, ConnRes => WackCres, DisconReq => WackDreq7, DisconInd2 => Idle,
        DisconInd3 => WresCind;
    WackCres: OkAck2 => DataXfer, OkAck3 => Idle, OkAck4 => WresCind, ErrorAck => WresCind;
    DataXfer, options in DataXfer:
        DataReq => DataXfer, ExdataReq => DataXfer, OptdataReq => DataXfer, DataInd => DataXfer,
        ExdataInd => DataXfer, OptdataInd => DataXfer, OrdrelReq => WindOrdrel,
        OrdrelInd => WreqOrdrel, DisconReq => WackDreq9, DisconInd1 => Idle;
    WindOrdrel, options in WindOrdrel:
        DataInd => WindOrdrel, ExdataInd => WindOrdrel, OptdataInd => WindOrdrel,
        OrdrelInd => Idle, DisconReq => WackDreq10, DisconInd1 => Idle;
    WreqOrdrel, options in WreqOrdrel:
        DataReq => WreqOrdrel, ExdataReq => WreqOrdrel, OptdataReq => WreqOrdrel,
        OrdrelReq => Idle, DisconReq => WackDreq11, DisconInd1 => Idle;
    WackDreq6: OkAck1 => Idle, ErrorAck => WconCreq;
    WackDreq7: OkAck2 => Idle, OkAck3 => Idle, OkAck4 => WresCind, ErrorAck => WresCind;
    WackDreq9: OkAck1 => Idle, ErrorAck => DataXfer;
    WackDreq10: OkAck1 => Idle, ErrorAck => WindOrdrel;
    WackDreq11: OkAck1 => Idle, ErrorAck => WreqOrdrel;
}

/// TABLE by state and event: asked for every datagram.
const BY_STATE: [[Option<State>; Event::ALL.len()]; State::ALL.len()] = {
    let mut by_state = [[None; Event::ALL.len()]; State::ALL.len()];
    let mut row = 0;
    while row < TABLE.len() {
        let (state, moves) = TABLE[row];
        let mut column = 0;
        while column < moves.len() {
            let (event, then) = moves[column];
            by_state[state as usize][event as usize] = Some(then);
            column += 1;
        }
        row += 1;
    }
    by_state
};

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(start: State, events: &[Event]) -> Option<State> {
        events
            .iter()
            .try_fold(start, |state, event| next(state, *event))
    }

    #[test]
    fn every_state_has_its_number_and_its_row() {
        for (number, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state.number() as usize, number);
            assert_eq!(State::from_number(number as u32), Some(state));
            assert_eq!(TABLE[number].0, state);
        }
        assert_eq!(State::from_number(17), None);
    }

    #[test]
    fn no_event_is_listed_twice_in_a_state() {
        for (_, moves) in TABLE {
            let distinct: std::collections::HashSet<_> =
                moves.iter().map(|(event, _)| event).collect();
            assert_eq!(distinct.len(), moves.len());
        }
    }

    #[test]
    fn every_wait_for_an_acknowledgement_can_be_refused_back_to_a_stable_state() {
        for state in State::ALL.into_iter().filter(|state| state.is_changing()) {
            let back = next(state, ErrorAck).unwrap();
            assert!(!back.is_changing());
        }
    }

    #[test]
    fn a_client_connects_and_releases_orderly() {
        let opened = [BindReq, BindAck, ConnReq, OkAck1, ConnCon, DataReq, DataInd];
        assert_eq!(walk(Unbnd, &opened), Some(DataXfer));
        assert_eq!(
            walk(
                DataXfer,
                &[OrdrelReq, DataInd, OrdrelInd, UnbindReq, OkAck1]
            ),
            Some(Unbnd)
        );
        assert_eq!(walk(DataXfer, &[OrdrelReq, DataReq]), None);
        assert_eq!(walk(DataXfer, &[OrdrelInd, DataReq, OrdrelReq]), Some(Idle));
    }

    #[test]
    fn a_listener_serves_its_indications_one_by_one() {
        let mut outstanding = 0;
        let mut state = Idle;
        let mut take = |event: Event| {
            outstanding += event.outstanding();
            state = next(state, event).unwrap();
            (state, outstanding)
        };
        assert_eq!(take(ConnInd), (WresCind, 1));
        assert_eq!(take(ConnInd), (WresCind, 2));
        take(ConnRes);
        assert_eq!(take(Event::ok_ack(2, false)), (WresCind, 1));
        take(DisconReq);
        assert_eq!(take(Event::ok_ack(1, false)), (Idle, 0));
        take(ConnInd);
        take(ConnRes);
        assert_eq!(take(Event::ok_ack(1, true)), (DataXfer, 0));
    }

    #[test]
    fn a_request_acknowledged_at_once_skips_the_wait() {
        assert_eq!(completed(Unbnd, BindReq, 0, false), Some(Idle));
        assert_eq!(completed(Idle, OptmgmtReq, 0, false), Some(Idle));
        assert_eq!(completed(Idle, ConnReq, 0, false), Some(WconCreq));
        assert_eq!(completed(WresCind, ConnRes, 1, true), Some(DataXfer));
        assert_eq!(completed(WresCind, DisconReq, 2, false), Some(WresCind));
        assert_eq!(completed(DataXfer, OrdrelReq, 0, false), Some(WindOrdrel));
        assert_eq!(completed(WindOrdrel, DisconReq, 0, false), Some(Idle));
        assert_eq!(completed(Idle, DisconReq, 0, false), None);
    }

    #[test]
    fn a_disconnect_takes_one_indication_with_it() {
        assert_eq!(next(WresCind, Event::discon_ind(2)), Some(WresCind));
        assert_eq!(next(WresCind, Event::discon_ind(1)), Some(Idle));
        assert_eq!(next(DataXfer, Event::discon_ind(0)), Some(Idle));
        assert_eq!(next(Idle, Event::discon_ind(0)), None);
    }

    #[test]
    fn events_belong_to_service_types() {
        use crate::prim::T_COTS;
        assert!(
            OrdrelReq.suits(T_COTS_ORD) && !OrdrelReq.suits(T_COTS) && !OrdrelReq.suits(T_CLTS)
        );
        assert!(UnitdataReq.suits(T_CLTS) && !UnitdataReq.suits(T_COTS));
        assert!(ConnReq.suits(T_COTS) && !ConnReq.suits(T_CLTS));
        assert!(BindReq.suits(T_CLTS) && OptmgmtReq.suits(T_COTS));
    }
}
