use super::*;
use crate::experiment::{UNIX, Unit};

#[test]
fn a_command_is_put_before_the_program() {
    let arm = parse("mine=env 'A B=1' runner --").unwrap();
    assert_eq!(arm.name, "mine");
    let mut program = Command::new("server");
    program.args(["-p", "1"]).env("X", "y");
    let command = wrap(arm.carrier, program);
    let words: Vec<_> = command
        .get_args()
        .map(|arg| arg.to_string_lossy())
        .collect();
    assert_eq!(command.get_program(), "env");
    assert_eq!(words, ["A B=1", "runner", "--", "server", "-p", "1"]);
    assert_eq!(command.get_envs().count(), 1);
    let plain = wrap(Carrier::Tcp, Command::new("server"));
    assert_eq!(plain.get_program(), "server");
}

#[test]
fn it_stands_beside_the_kernels_tcp_wherever_that_is() {
    let of = |arms: &[Arm]| native(&Cell::new("work", Unit::Rate, arms.to_vec()));
    assert_eq!(of(&[UNIX, TCP_NODELAY, TCP]), Some(TCP));
    assert_eq!(of(&[TCP_NODELAY, UNIX]), Some(TCP_NODELAY));
    assert_eq!(of(&[NATIVE]), Some(NATIVE));
    assert_eq!(of(&[UNIX]), None);
}

#[test]
fn what_makes_no_arm_is_refused_with_its_reason() {
    for (text, word) in [
        ("x", "NAME"),
        ("a b=c", "letters"),
        ("x=", "empty"),
        ("x='", "quote"),
    ] {
        assert!(parse(text).unwrap_err().contains(word), "{text}");
    }
}
