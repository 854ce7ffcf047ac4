//! What the executive itself costs: `cargo run --release -p headwater-streams --example executive_costs`.
//! Nanoseconds, the best of several runs.

use std::ffi::c_int;
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use headwater_streams::ddi::*;
use headwater_streams::exec::{
    Info, Module, OpenFlag, Perimeter, Queue, alloc_pair, qattach, qdetach, setq, streamtab_of,
};

struct Pass;
impl Module for Pass {
    const INFO: Info = Info::new(1, c"pass");
    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Pass)
    }
}

struct Queues;
impl Module for Queues {
    const INFO: Info = Info::new(2, c"queues");
    const WSRV: bool = true;
    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Queues)
    }
    fn wput(&self, q: Queue, m: Message) {
        q.putq(m);
    }
}

/// A driver that swallows.
struct Sink;
impl Module for Sink {
    const INFO: Info = Info::new(3, c"sink");
    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Sink)
    }
    fn wput(&self, _: Queue, m: Message) {
        drop(m);
    }
}

fn best(mut f: impl FnMut()) -> f64 {
    const TURNS: u32 = 1_000_000;
    let run = |f: &mut dyn FnMut()| {
        let begun = Instant::now();
        (0..TURNS).for_each(|_| f());
        begun.elapsed().as_nanos() as f64 / TURNS as f64
    };
    (0..7).map(|_| run(&mut f)).fold(f64::MAX, f64::min)
}

/// A head with a driver, and perhaps a module between; what a 64-byte message costs that is made, put and freed.
fn through(module: Option<&'static streamtab>) -> [f64; 2] {
    static EMPTY: qinit = qinit {
        qi_putp: None,
        qi_srvp: None,
        qi_qopen: None,
        qi_qclose: None,
        qi_qadmin: None,
        qi_minfo: None,
        qi_mstat: std::ptr::null(),
    };
    let perimeter = Perimeter::fresh();
    let guard = perimeter.enter();
    let head = alloc_pair(perimeter, null_mut());
    // SAFETY: fresh queues, inside their perimeter.
    unsafe {
        setq(head, Some(&EMPTY), Some(&EMPTY));
        let _ = qattach(head, streamtab_of::<Sink>(), &mut 0, 0, 0);
        if let Some(module) = module {
            let _ = qattach(head, module, &mut 0, 0, MODOPEN);
        }
        let send = || {
            let m = Message::filled(M_DATA, 0, 64, |to| to.fill(0));
            head.write().putnext(black_box(m.unwrap()));
        };
        let inside = best(|| {
            send();
            guard.run();
        });
        drop(guard);
        let entered = best(|| {
            let _guard = perimeter.enter();
            send();
        });
        let _guard = perimeter.enter();
        while let Some(write) = head.write().next() {
            qdetach(write.read(), 0);
        }
        [inside, entered]
    }
}

fn main() {
    headwater_host::process::identify();
    let blocks = best(|| {
        // SAFETY: a fresh block.
        unsafe { freeb(black_box(allocb(64, BPRI_MED))) }
    });
    let perimeter = Perimeter::fresh();
    let enter = best(|| drop(black_box(perimeter.enter())));
    println!("allocb and freeb, 64 bytes                {blocks:6.1}");
    println!("entering and leaving a perimeter          {enter:6.1}");
    for (what, module) in [
        ("head, driver", None),
        (
            "head, pass-through module, driver",
            Some(streamtab_of::<Pass>()),
        ),
        (
            "head, queueing module, driver",
            Some(streamtab_of::<Queues>()),
        ),
    ] {
        let [inside, entered] = through(module);
        println!("{what:41} {inside:6.1}   each entering anew {entered:6.1}");
    }
}
