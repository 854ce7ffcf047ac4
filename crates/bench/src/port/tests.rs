use super::*;

#[test]
fn a_listener_is_known_by_the_process_that_has_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(is_served_by(port, &[std::process::id() as i32]));
    assert!(!is_served_by(port, &[]));
    assert!(is_taken(port, "nothing of it"));
    drop(listener);
    assert!(!is_served_by(port, &[std::process::id() as i32]));
    assert!(!is_taken(port, "no space left"));
    assert!(is_taken(port, "bind: Address already in use"));
}
