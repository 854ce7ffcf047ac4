//! Each example runs, says what docs/streams.md says it says, and ends by itself.

mod programs;

use std::path::Path;

use programs::{build, folder, run};

#[test]
fn line_editor() {
    let folder = folder();
    let text = run(Path::new(env!("CARGO_BIN_EXE_line_editor")), folder.path());
    assert_eq!(
        text,
        r#"pushed: lined
line: "hello, wörld\n"
line: "ls\n"
line: "pwd\n"
unfinished: the deadline passed
line: "last\n"
shown on the screen: 61 bytes
then: the stream has hung up
"#
    );
}

#[test]
fn fan_out() {
    let folder = folder();
    let text = run(Path::new(env!("CARGO_BIN_EXE_fan_out")), folder.path());
    assert_eq!(
        text,
        "linked: 3
published: 0 to 999
link 1: 1000 messages so far
link 2: 1000 messages so far
link 3: 1000 messages so far
unlinked: 3
published: 1000 to 1499
link 1: 1500 messages so far
link 2: 1500 messages so far
link 1: 1500 messages in all
link 2: 1500 messages in all
link 3: 1000 messages in all
"
    );
}

#[test]
fn messages_in_c() {
    let folder = folder();
    let program = build("messages", folder.path());
    assert_eq!(
        run(&program, folder.path()),
        r#"a stream: yes
poll: high priority yes
waiting: 4 messages, the first has 4 bytes of data
high priority, band 0: control "alarm" data "fire"
ordinary, band 2: data "in band 2"
ordinary, band 1: data "in band 1"
ordinary, band 0: data "ordinary"
on top: bufmod
ordinary, band 0: data "through a module"
a second I_POP: Invalid argument
read: "bytes too"
then: 0 bytes
"#
    );
}
