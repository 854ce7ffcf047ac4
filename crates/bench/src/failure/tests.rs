use super::*;
use headwater_load::wrong_bytes;

#[test]
fn wrong_bytes_are_known_again_by_what_a_program_says() {
    let said = format!(
        "ready\nprogram: {}\nerror: it stops\n",
        wrong_bytes("message 7")
    );
    let failure = Failure::ended("program", "error: it stops".to_string(), &said);
    assert!(matches!(failure, Failure::Contents(_)));
    assert!(failure.is_wrong_contents());
    let other = Failure::ended("program", "it died".to_string(), "it died");
    assert!(matches!(other, Failure::Ended(..)));
    assert!(!other.is_wrong_contents());
}

#[test]
fn a_failure_that_tells_of_wrong_bytes_is_about_them() {
    let suffered = Failure::Contents("client".to_string());
    let both = Failure::Ended("server".to_string(), format!("killed; {suffered}"));
    assert!(both.is_wrong_contents());
}
