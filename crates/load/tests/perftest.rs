//! The perftest by itself, over what the kernel has: every message arrives, and what cannot be done is said.

use std::process::{Command, Output};

fn perftest(words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater-load"));
    command
        .arg("perftest")
        .args(words.split(' '))
        .output()
        .unwrap()
}

fn number(said: &str, name: &str) -> f64 {
    let (_, rest) = said.split_once(&format!("\"{name}\":")).unwrap();
    let end = rest.find([',', '}']).unwrap();
    rest[..end].parse().unwrap()
}

#[test]
fn both_patterns_move_messages_of_any_size_through_pipes_and_sockets() {
    for kind in ["pipe", "unix"] {
        // 5000 bytes are more than a pipe takes in one piece, 200000 more than it holds.
        for size in [4, 64, 5000, 65536, 200_000] {
            for pattern in ["one", "two"] {
                let words = format!("{pattern} {kind} {size} 0.01");
                let output = perftest(&words);
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(output.status.success(), "{words}: {output:?}");
                assert!(number(&said, "messages") > 0.0, "{words}: {said}");
                let bytes = number(&said, "messages") * size as f64;
                assert_eq!(number(&said, "bytes"), bytes, "{words}");
            }
        }
    }
}

#[test]
fn memory_is_that_of_as_many_ends_as_were_asked_for() {
    let output = perftest("memory pipe 20");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(number(&said, "streams"), 20.0);
}

#[test]
fn a_streams_pipe_without_the_library_is_refused() {
    let output = perftest("one streams 64 0.01");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("streams_pipe"), "{said}");
}
