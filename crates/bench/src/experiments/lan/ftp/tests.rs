use super::*;

#[test]
fn rates_are_read_as_the_client_writes_them() {
    let said = "f-1:    \rf-1:   ETA:   0:00    1.00/  1.00 kB   29.59 MB/s  \rf-1:     1.00 kB    9.96 MB/s  \n\
                    f-2:   \rf-2:                1.00 B     5.49 kB/s  \nRemote host has closed the connection.\n";
    let found = reported(said);
    assert_eq!(found, [9.96 * 1024.0 * 1024.0, 5.49 * 1024.0]);
    assert!(reported("ncftpget f-1: server said: Failed to open file.").is_empty());
}

#[test]
fn passwords_are_long_and_differ() {
    let (one, other) = (password().unwrap(), password().unwrap());
    assert_eq!(one.len(), 32);
    assert_ne!(one, other);
}
