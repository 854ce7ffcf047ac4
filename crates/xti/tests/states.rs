//! Every call in every state, on every provider, against the one state table: what it does not allow is TOUTSTATE (or
//! TNOTSUPPORT) and changes nothing; what succeeds leads where the table says.

use headwater_endpoints::device::{self, Device};
use headwater_endpoints::endpoint::{self, Endpoint};
use headwater_providers::provider::{Datagram, Outcome};
use headwater_streams::api as streams;
use headwater_tpi::error::{TNOTSUPPORT, TOUTSTATE};
use headwater_tpi::prim::T_CLTS;
use headwater_tpi::state::{self, Call, Ending};
use headwater_tpi::{Refusal, option};
use headwater_xti::calls;
use headwater_xti::direct::Direct;
use headwater_xti::port::Port;

fn start() {
    static START: std::sync::Once = std::sync::Once::new();
    START.call_once(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        // SAFETY: no other thread reads the environment yet.
        unsafe { std::env::set_var("HEADWATER_DIR", folder) };
        streams::start();
        headwater_endpoints::start();
    });
}

fn open(device: Device) -> Direct {
    let e: &'static Endpoint = endpoint::detached(device).expect("descriptors are left");
    e.set_nonblocking(true);
    Direct::alone(e)
}

/// An endpoint in some state, and the others that keep it there.
struct Fixture {
    port: Direct,
    others: Vec<Direct>,
    /// A request that was heard and not answered.
    seq: i32,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.port.endpoint().expect("it is direct").let_go();
        self.others
            .iter()
            .for_each(|o| o.endpoint().expect("it is direct").let_go());
    }
}

fn patiently<T>(mut f: impl FnMut() -> Outcome<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        match f() {
            Ok(value) => return value,
            Err(e) if begun.elapsed().as_secs() > 5 => panic!("{e}"),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
}

/// Where a client reaches a bound endpoint.
fn reachable(device: Device, bound: Vec<u8>) -> Vec<u8> {
    let mut addr = bound;
    match device {
        Device::Tcp => addr[4..8].copy_from_slice(&[127, 0, 0, 1]),
        Device::Tcp6 => addr[23] = 1,
        _ => {}
    }
    addr
}

fn connected(device: Device) -> (Direct, Direct, Direct) {
    let (listener, client, server) = (open(device), open(device), open(device));
    let (bound, _) = calls::bind(&listener, None, 3).unwrap();
    calls::bind(&client, None, 0).unwrap();
    let _ = calls::connect(&client, &reachable(device, bound), &[], &[]);
    let request = patiently(|| calls::listen(&listener));
    calls::accept(&listener, &server, false, request.seq, &[], &[]).unwrap();
    patiently(|| calls::rcvconnect(&client));
    (listener, client, server)
}

fn reach(device: Device, wanted: i32) -> Fixture {
    let alone = |port| Fixture {
        port,
        others: Vec::new(),
        seq: -1,
    };
    let f = match wanted {
        state::T_UNBND => alone(open(device)),
        state::T_IDLE => {
            let port = open(device);
            calls::bind(&port, None, 2).unwrap();
            alone(port)
        }
        state::T_OUTCON | state::T_INCON => {
            let (listener, client) = (open(device), open(device));
            let (bound, _) = calls::bind(&listener, None, 3).unwrap();
            calls::bind(&client, None, 0).unwrap();
            let _ = calls::connect(&client, &reachable(device, bound), &[], &[]);
            let seq = patiently(|| calls::listen(&listener)).seq;
            let (port, other) = if wanted == state::T_OUTCON {
                (client, listener)
            } else {
                (listener, client)
            };
            Fixture {
                port,
                others: vec![other],
                seq,
            }
        }
        _ => {
            let (listener, client, server) = connected(device);
            match wanted {
                state::T_OUTREL => calls::sndrel(&client, Call::SndRel, &[]).unwrap(),
                state::T_INREL => {
                    calls::sndrel(&server, Call::SndRel, &[]).unwrap();
                    patiently(|| calls::rcvrel(&client, Call::RcvRel));
                }
                _ => {}
            }
            Fixture {
                port: client,
                others: vec![listener, server],
                seq: -1,
            }
        }
    };
    assert_eq!(f.port.state(), Ok(wanted), "{device:?}");
    f
}

fn part(bytes: &mut [u8]) -> [libc::iovec; 1] {
    [libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    }]
}

/// Makes a call; `None` for those that are not about one endpoint's state.
fn make(call: Call, f: &Fixture, device: Device) -> Option<Outcome<()>> {
    let p = &f.port;
    let (mut bytes, mut addr, mut opts) = ([7u8; 8], [0; 1024], [0; 1024]);
    let data = part(&mut bytes);
    let target = || {
        let other = open(device);
        let (bound, _) = calls::bind(&other, None, 1).unwrap();
        (other, reachable(device, bound))
    };
    let mut datagram = Datagram {
        addr: &mut addr,
        opts: &mut opts,
        data: &data,
        addr_len: 0,
        opts_len: 0,
        data_len: 0,
        more: false,
    };
    Some(match call {
        Call::Accept => {
            let on = open(device);
            let done = calls::accept(p, &on, false, f.seq, &[], &[]);
            on.endpoint().expect("it is direct").let_go();
            done
        }
        Call::Bind => calls::bind(p, None, 0).map(drop),
        Call::Connect => {
            let (other, to) = target();
            let done = calls::connect(p, &to, &[], &[]).map(drop);
            other.endpoint().expect("it is direct").let_go();
            done
        }
        Call::Listen => calls::listen(p).map(drop),
        Call::Look => calls::look(p).map(drop),
        Call::OptMgmt => calls::optmgmt(p, option::T_CURRENT, &all_options()).map(drop),
        Call::Rcv | Call::RcvV => calls::rcv(p, &data).map(drop),
        Call::RcvConnect => calls::rcvconnect(p).map(drop),
        Call::RcvDis => calls::rcvdis(p).map(drop),
        Call::RcvRel | Call::RcvRelData => calls::rcvrel(p, call).map(drop),
        Call::RcvUData | Call::RcvVUData => calls::rcvudata(p, &mut datagram),
        Call::RcvUdErr => calls::rcvuderr(p).map(drop),
        Call::Snd | Call::SndV => calls::snd(p, &data, 0).map(drop),
        Call::SndDis => calls::snddis(p, Some(f.seq), &[]),
        Call::SndRel | Call::SndRelData => calls::sndrel(p, call, &[]),
        Call::SndUData | Call::SndVUData => {
            let (other, to) = target();
            let done = calls::sndudata(p, &to, &[], &data);
            other.endpoint().expect("it is direct").let_go();
            done
        }
        Call::Sync => calls::sync(p).map(drop),
        Call::GetInfo => p.info().map(drop),
        Call::GetState => p.state().map(drop),
        Call::GetProtAddr => p.local().map(drop),
        Call::Unbind => calls::unbind(p),
        _ => return None,
    })
}

fn all_options() -> Vec<u8> {
    let mut list = option::List::new();
    list.push(option::XTI_GENERIC, option::T_ALLOPT, 0, &[]);
    list.into_bytes()
}

fn states(service: i32) -> Vec<i32> {
    use state::*;
    match service {
        T_CLTS => vec![T_UNBND, T_IDLE],
        headwater_tpi::prim::T_COTS => vec![T_UNBND, T_IDLE, T_OUTCON, T_INCON, T_DATAXFER],
        _ => vec![
            T_UNBND, T_IDLE, T_OUTCON, T_INCON, T_DATAXFER, T_OUTREL, T_INREL,
        ],
    }
}

fn check(device: Device) {
    start();
    let service = open(device).info().unwrap().serv;
    let mut made = 0;
    for before in states(service) {
        for call in Call::all() {
            let f = reach(device, before);
            let Some(done) = make(call, &f, device) else {
                continue;
            };
            made += 1;
            let what = format!(
                "{} on {device:?} in {}",
                call.name(),
                state::xti_name(before)
            );
            let after = f.port.state().unwrap();
            // A peer's SHUTDOWN ends both directions (RFC 9260 9.2).
            let one_way =
                before == state::T_INREL && matches!(device, Device::Sctp | Device::Sctp6);
            let expected = match call {
                Call::Snd | Call::SndV if one_way => Err(Refusal::new(TOUTSTATE)),
                _ => state::check(call, before, service),
            };
            match (done, expected) {
                (Err(e), Err(wanted)) => {
                    assert_eq!(e, wanted, "{what}");
                    assert_eq!(after, before, "{what}");
                }
                (Ok(()), Err(wanted)) => panic!("{what}: succeeded instead of {wanted}"),
                (
                    Err(Refusal {
                        tli: tli @ (TOUTSTATE | TNOTSUPPORT),
                        ..
                    }),
                    Ok(()),
                ) => {
                    panic!("{what}: is allowed, but {tli}")
                }
                (Err(_), Ok(())) => {
                    let pending = call == Call::Connect;
                    assert!(
                        after == before || pending,
                        "{what}: failed, and led to {after}"
                    );
                }
                (Ok(()), Ok(())) => {
                    let ending = Ending {
                        outstanding: (f.seq >= 0) as usize,
                        same: false,
                        pending: false,
                    };
                    assert_eq!(Some(after), state::after(call, before, ending), "{what}");
                }
            }
        }
    }
    assert!(made >= 20 * states(service).len(), "{made} calls");
}

macro_rules! devices {
    ($($name:ident: $device:ident),*) => {
        $(#[test]
        fn $name() {
            let device = Device::$device;
            // A raw socket is behind these.
            if !matches!(device, Device::Rawip | Device::Rawip6) || is_root() {
                check(device);
            }
        })*
        #[test]
        fn no_device_is_left_out() {
            assert_eq!(device::ALL.len(), [$(Device::$device),*].len());
        }
    };
}

/// False is told to `make test`, whose table names the test.
fn is_root() -> bool {
    headwater_testkit::are_there(&["root"], "states::rawip")
}

devices!(
    ticlts: Ticlts, ticots: Ticots, ticotsord: Ticotsord, tcp: Tcp, udp: Udp, tcp6: Tcp6, udp6: Udp6,
    rawip: Rawip, rawip6: Rawip6, udp2: Udp2, udp26: Udp26,
    sctp_t: Sctp, sctp6_t: Sctp6
);
