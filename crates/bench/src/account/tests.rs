use super::*;

#[test]
fn an_account_is_found_by_its_whole_name() {
    let passwd =
        "root:x:0:0:root:/root:/bin/sh\npostgres2:x:5:5::/:/\npostgres:x:101:104::/:/bin/sh\n";
    let (uid, gid) = (101, 104);
    assert_eq!(find(passwd, "postgres"), Some(Account { uid, gid }));
    assert_eq!(find(passwd, "post"), None);
}

#[test]
fn a_closed_folder_closes_what_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let close = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    // Nobody's, so that only what all may do counts.
    let (uid, gid) = (u32::MAX - 1, u32::MAX - 1);
    let account = Account { uid, gid };
    close(0o755).unwrap();
    assert!(account.may_read(&file));
    close(0o700).unwrap();
    assert!(!account.may_read(&file));
    assert!(!account.may_read(Path::new("/nowhere")));
}
