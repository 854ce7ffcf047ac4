//! Scripts that once differed.

use std::path::PathBuf;
use std::sync::Mutex;

use headwater_differential::{Machine, Script, Verdict, kept};

/// At a time: most of a sequence is spent waiting.
const JOBS: usize = 4;

#[test]
fn what_once_differed_does_so_no_more() {
    let scripts = kept::all().expect("all are understood");
    assert!(!scripts.is_empty());
    let machines: Vec<Machine> = (0..JOBS).map(|_| Machine::new()).collect();
    let differ = Mutex::new(Vec::new());
    let told = |(file, _): (PathBuf, Script), verdict: &Verdict| {
        if verdict.differs() {
            let how = format!("{}:\n{}", file.display(), verdict.tell());
            differ
                .lock()
                .expect("no other thread panics here")
                .push(how);
        }
    };
    kept::judge(&machines, scripts, |(_, script)| script, told);
    let differ = differ.into_inner().expect("no thread panicked");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    let carried: u64 = machines.iter().map(Machine::take_carried).sum();
    assert!(carried > 0, "nothing was carried");
}
