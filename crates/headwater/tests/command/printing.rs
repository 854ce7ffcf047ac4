//! What commands print into a pipe whose reader has had enough.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::installation::{Installation, stderr};

#[test]
fn a_reader_that_leaves_ends_what_only_prints() {
    let it = Installation::new();
    for arguments in [&["stat"][..], &["doctor"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = it
            .headwater(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let said = stderr(&output);
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGPIPE),
            "{arguments:?}: {said}"
        );
        assert_eq!(said, "", "{arguments:?}");
    }
}
