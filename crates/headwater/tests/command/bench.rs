//! What is handed on to the program that measures.

use crate::installation::{Installation, stderr, stdout};

#[test]
fn where_it_is_missing_the_remedy_is_named() {
    let it = Installation::new();
    for verb in ["bench", "demo"] {
        let output = it.output(&[verb]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with(&format!("headwater {verb}: headwater-bench is neither in ")),
            "{said}"
        );
        assert!(said.contains("make install"), "{said}");
    }
}

/// Its help too: it knows its options, the command does not.
#[test]
fn it_gets_the_words_as_they_were_typed() {
    let it = Installation::new();
    let folder = it.path().join("libexec/headwater");
    std::fs::create_dir_all(&folder).unwrap();
    it.program(
        "libexec/headwater/headwater-bench",
        "#!/bin/sh\necho \"$@\"\nexit 7\n",
    );
    let words = ["bench", "--help", "--quick", "sockets", "--", "-x"];
    let output = it.output(&words);
    assert_eq!(stdout(&output), format!("{}\n", words.join(" ")));
    for verb in ["bench", "demo"] {
        let help = it.output(&["help", verb]);
        assert_eq!(stdout(&help), format!("{verb} --help\n"));
    }
    assert_eq!(output.status.code(), Some(7));
}
