//! The library exports the libc names that it interposes, and nothing else.

use headwater_testkit::needs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_list_of_dynamic_symbols_is_pinned() {
    needs!("binutils");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let library = std::env::var("HEADWATER_LIBRARY")
        .map_or_else(|_| root.join("target/release/libheadwater.so"), Into::into);
    let nm = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(&library)
        .output()
        .expect("nm, from the package binutils");
    assert!(
        nm.status.success(),
        "nm cannot read {library:?}: run make build first"
    );
    let text = String::from_utf8(nm.stdout).unwrap();
    let mut exported: Vec<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
    exported.sort_unstable();
    let pinned = std::fs::read_to_string(root.join("crates/libheadwater/exports.txt")).unwrap();
    let mut pinned: Vec<&str> = pinned.lines().collect();
    pinned.sort_unstable();
    assert_eq!(
        exported, pinned,
        "a change of the list is a change of crates/libheadwater/exports.txt"
    );
}
