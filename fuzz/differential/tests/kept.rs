//! Scripts that once differed.

use std::path::Path;

use headwater_differential::{Machine, Script};
use headwater_e2e::network;

#[test]
fn what_once_differed_does_so_no_more() {
    network::isolate();
    let machine = Machine::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    let mut count = 0;
    let mut differ = Vec::new();
    for entry in std::fs::read_dir(folder).expect("seeds are there") {
        let file = entry.expect("readable").path();
        let text = std::fs::read_to_string(&file).expect("readable");
        let script: Script = text.parse().expect("a script");
        let verdict = machine.judge(&script);
        if verdict.differs() {
            differ.push(format!("{}:\n{}", file.display(), verdict.tell()));
        }
        count += 1;
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
    assert!(
        count > 0 && machine.take_carried() > 0,
        "nothing was carried"
    );
}
