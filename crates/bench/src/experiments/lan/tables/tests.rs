use super::*;

#[test]
fn sizes_are_named_as_people_do() {
    let names = [1, 700, 1024, 1536, 1 << 26].map(kib);
    assert_eq!(
        names,
        ["1 byte", "700 bytes", "1 KiB", "1536 bytes", "64 MiB"]
    );
}
