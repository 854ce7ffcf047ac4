use super::*;

#[test]
fn a_folder_goes_with_its_owner_and_is_known_until_then() {
    let scratch = Scratch::new("headwater-test-").unwrap();
    let path = scratch.path().to_path_buf();
    fs::write(path.join("file"), "x").unwrap();
    assert!(all().contains(&path));
    drop(scratch);
    assert!(!path.exists());
    assert!(!all().contains(&path));
}

#[test]
fn a_place_where_none_can_be_made_is_named() {
    let refused = Scratch::new_in(Path::new("/nowhere/at/all"), "x-");
    let words = refused.err().unwrap().to_string();
    assert!(words.contains("/nowhere/at/all"), "{words}");
}
