use super::*;

#[test]
fn a_missing_program_is_named_with_its_package() {
    let nowhere = || ["/nowhere"].map(PathBuf::from).into_iter();
    let words = |name: &str| find(name, nowhere()).unwrap_err().to_string();
    assert_eq!(words("wrk"), "wrk (Debian package wrk) is not there");
    assert_eq!(words("other"), "other is not there");
}

#[test]
fn a_missing_library_is_named_with_the_variable_that_tells_where_it_is() {
    for named in [None, Some(Path::new("/nowhere/lib.so"))] {
        let words = missing_library(named);
        assert!(words.contains("HEADWATER_LIBRARY"), "{words}");
    }
    assert!(missing_library(Some(Path::new("/nowhere/lib.so"))).contains("/nowhere/lib.so"));
}
