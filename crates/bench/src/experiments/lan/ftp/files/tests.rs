use super::*;

fn fetched(files: &Files, change: impl Fn(&mut Vec<u8>)) -> Result<()> {
    for name in files.names() {
        let mut bytes = fs::read(files.offered().join(&name)).unwrap();
        change(&mut bytes);
        fs::write(files.wanted().join(&name), bytes).unwrap();
    }
    files.check()
}

#[test]
fn what_was_fetched_must_be_what_was_offered() {
    let scratch = tempfile::tempdir().unwrap();
    for size in [1, PERIOD, 2 * PERIOD + 1] {
        let files = Files::offer(scratch.path(), size, 3).unwrap();
        assert!(files.check().is_err());
        assert!(fetched(&files, |_| {}).is_ok());
        let changed = fetched(&files, |bytes| bytes[size - 1] ^= 1);
        assert!(matches!(changed, Err(Failure::Contents(_))));
        assert!(fetched(&files, |bytes| bytes.truncate(size - 1)).is_err());
        assert!(fetched(&files, |bytes| bytes.push(0)).is_err());
    }
}

#[test]
fn pieces_of_a_file_do_not_repeat_at_a_usual_distance() {
    let bytes: Vec<u8> = pieces(4 * PERIOD).flatten().collect();
    assert_eq!(bytes.len(), 4 * PERIOD);
    assert_ne!(bytes[..65536], bytes[65536..131_072]);
}

#[test]
fn there_is_room_for_some_small_files() {
    let scratch = tempfile::tempdir().unwrap();
    assert!(Files::room(scratch.path(), 1) > 1000);
}
