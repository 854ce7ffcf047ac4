use super::*;

#[test]
fn a_file_is_replaced_as_a_whole_and_readable_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/results.json");
    replace(&path, b"one").unwrap();
    replace(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    let other = folder.path().join("other");
    File::create(&other).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&path), mode(&other));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_full_disk_leaves_the_old_results_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    replace(&path, b"old").unwrap();
    let full = replace_by(&path, 123_456, |file| {
        file.write_all(b"half of the")?;
        Err(io::Error::from_raw_os_error(libc::ENOSPC))
    });
    let words = full.unwrap_err().to_string();
    for part in [
        "results.json",
        "123456 bytes",
        "No space left",
        "--out",
        "still there",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().join("results.json");
    let words = replace(&path, b"x").unwrap_err().to_string();
    assert!(words.contains(&path.display().to_string()), "{words}");
    assert!(words.contains("nothing was left behind"), "{words}");
}

#[test]
fn a_folder_in_which_nothing_can_be_written_is_named_with_what_to_do() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let words = check_writable(&file.path().join("results"));
    let words = words.unwrap_err().to_string();
    for part in [file.path().to_str().unwrap(), "Not a directory", "--out"] {
        assert!(words.contains(part), "{words}");
    }
    let folder = tempfile::tempdir().unwrap();
    check_writable(&folder.path().join("new")).unwrap();
}
