//! Scripts that once differed.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use headwater_differential::{Machine, Script, kept};
use headwater_e2e::network;

/// At a time: most of a sequence is spent waiting.
const JOBS: usize = 4;

#[test]
fn what_once_differed_does_so_no_more() {
    network::isolate();
    let scripts = kept::all().expect("all are understood");
    assert!(!scripts.is_empty());
    let left = Mutex::new(scripts.iter());
    let next = || left.lock().expect("no other thread panics here").next();
    let differ = Mutex::new(Vec::new());
    let carried = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                let machine = Machine::new();
                while let Some((file, script)) = next() {
                    if let Some(how) = differs(&machine, file, script) {
                        differ.lock().expect("as above").push(how);
                    }
                }
                carried.fetch_add(machine.take_carried(), Ordering::Relaxed);
            });
        }
    });
    let differ = differ.into_inner().expect("no thread panicked");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(carried.into_inner() > 0, "nothing was carried");
}

/// How what was done by this script differs; none where it does not.
fn differs(machine: &Machine, file: &Path, script: &Script) -> Option<String> {
    let verdict = machine.judge(script);
    let how = || format!("{}:\n{}", file.display(), verdict.tell());
    verdict.differs().then(how)
}
