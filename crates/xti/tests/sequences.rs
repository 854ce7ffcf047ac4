//! Random calls on a few endpoints that know each other's addresses: no panic, no hang, an error of the list, and never a
//! state that the table does not lead to.

use headwater_endpoints::device::Device;
use headwater_endpoints::endpoint;
use headwater_providers::provider::{Datagram, Outcome};
use headwater_streams::api as streams;
use headwater_tpi::error;
use headwater_tpi::state::{self, Call, Ending};
use headwater_xti::calls;
use headwater_xti::direct::Direct;
use headwater_xti::port::Port;
use proptest::prelude::*;

const ENDPOINTS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Step {
    call: u8,
    on: usize,
    other: usize,
    size: usize,
    flags: i32,
}

fn step() -> impl Strategy<Value = Step> {
    let numbers = (0..24u8, 0..ENDPOINTS, 0..ENDPOINTS, 0..3000usize, 0..8i32);
    numbers.prop_map(|(call, on, other, size, flags)| Step {
        call,
        on,
        other,
        size,
        flags,
    })
}

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

struct World {
    ports: Vec<Direct>,
    addrs: Vec<Vec<u8>>,
    /// The last request that each heard.
    seqs: Vec<i32>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.ports
            .iter()
            .for_each(|p| p.endpoint().expect("it is direct").let_go());
    }
}

fn part(bytes: &[u8]) -> [libc::iovec; 1] {
    [libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }]
}

impl World {
    fn new(device: Device) -> World {
        let open = |_| {
            let e = endpoint::detached(device).unwrap();
            e.set_nonblocking(true);
            Direct::alone(e)
        };
        World {
            ports: (0..ENDPOINTS).map(open).collect(),
            addrs: vec![Vec::new(); ENDPOINTS],
            seqs: vec![-1; ENDPOINTS],
        }
    }

    fn make(&mut self, s: Step) -> (Call, Outcome<()>) {
        let p = self.ports[s.on];
        let bytes = vec![s.on as u8; s.size];
        let data = part(&bytes);
        let to = self.addrs[s.other].clone();
        match s.call {
            0..=2 => {
                let bound = calls::bind(&p, None, (s.flags & 3) as u32);
                let done = bound.map(|(mut addr, _)| {
                    if addr.len() == 16 {
                        addr[4..8].copy_from_slice(&[127, 0, 0, 1]);
                    }
                    self.addrs[s.on] = addr;
                });
                (Call::Bind, done)
            }
            3 => (Call::Unbind, calls::unbind(&p)),
            4..=6 => (Call::Connect, calls::connect(&p, &to, &[], &[]).map(drop)),
            7..=9 => {
                let heard = calls::listen(&p);
                (Call::Listen, heard.map(|c| self.seqs[s.on] = c.seq))
            }
            10..=12 => {
                let on = self.ports[s.other];
                let done = calls::accept(&p, &on, s.on == s.other, self.seqs[s.on], &[], &[]);
                (Call::Accept, done)
            }
            13 => (Call::RcvConnect, calls::rcvconnect(&p).map(drop)),
            14..=15 => (Call::Snd, calls::snd(&p, &data, s.flags).map(drop)),
            16..=17 => (Call::Rcv, calls::rcv(&p, &data).map(drop)),
            18 => (Call::SndDis, calls::snddis(&p, Some(self.seqs[s.on]), &[])),
            19 => (Call::RcvDis, calls::rcvdis(&p).map(drop)),
            20 => (Call::SndRel, calls::sndrel(&p, Call::SndRel, &[])),
            21 => (Call::RcvRel, calls::rcvrel(&p, Call::RcvRel).map(drop)),
            22 => (Call::SndUData, calls::sndudata(&p, &to, &[], &data)),
            _ => {
                let (mut addr, mut opts) = ([0; 1024], [0; 1024]);
                let mut d = Datagram {
                    addr: &mut addr,
                    opts: &mut opts,
                    data: &data,
                    addr_len: 0,
                    opts_len: 0,
                    data_len: 0,
                    more: false,
                };
                (Call::RcvUData, calls::rcvudata(&p, &mut d))
            }
        }
    }

    fn run(&mut self, s: Step) {
        let port = self.ports[s.on];
        let before = port.state().unwrap();
        let (outstanding, _) = port.requests();
        let service = port.info().unwrap().serv;
        let (call, done) = self.make(s);
        let after = port.state().unwrap();
        let what = format!("{s:?} {} in {}", call.name(), state::xti_name(before));
        match done {
            Ok(()) => {
                assert!(state::allowed(call, before, service), "{what}");
                let ending = Ending {
                    outstanding,
                    same: s.on == s.other,
                    pending: false,
                };
                assert_eq!(state::after(call, before, ending), Some(after), "{what}");
            }
            Err(e) => {
                assert!(e.tli > 0 && error::text(e.tli).is_some(), "{what}: {e:?}");
                let begun = call == Call::Connect && after == state::T_OUTCON;
                // In one process the acceptor's own state may be what changed.
                assert!(
                    after == before || begun,
                    "{what}: {e}, and led to {}",
                    state::xti_name(after)
                );
            }
        }
    }
}

fn sequence(device: Device, steps: &[Step]) {
    start();
    let mut world = World::new(device);
    for &s in steps {
        world.run(s);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ticots(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Ticots, &steps);
    }
    #[test]
    fn ticotsord(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Ticotsord, &steps);
    }
    #[test]
    fn ticlts(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Ticlts, &steps);
    }
    #[test]
    fn tcp(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Tcp, &steps);
    }
    #[test]
    fn udp(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Udp, &steps);
    }
    #[test]
    fn udp2(steps in prop::collection::vec(step(), 1..60)) {
        sequence(Device::Udp2, &steps);
    }
}
