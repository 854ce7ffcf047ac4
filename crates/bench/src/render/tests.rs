use super::*;

#[test]
fn names_of_files_stay_in_their_folder() {
    assert_eq!(slug("../../etc/passwd"), "etc-passwd");
    assert_eq!(slug("delay apart"), "delay-apart");
    assert_eq!(slug("loss-1%"), "loss-1percent");
    assert_eq!(slug("<>&\""), "unnamed");
    assert_eq!(slug(&"x".repeat(300)).len(), 80);
}
