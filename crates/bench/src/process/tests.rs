use super::*;

const SOON: Duration = Duration::from_secs(20);

fn shell(script: &str) -> Running {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    prepare(&mut command, None, None);
    Running::start("sh", command).unwrap()
}

#[test]
fn a_program_that_ends_tells_its_output_and_its_cost() {
    let (usage, said) = shell("echo one; echo two >&2").finish(SOON).unwrap();
    assert_eq!(said, "one\ntwo\n");
    assert!(usage.cpu_ns > 0);
}

#[test]
fn a_bad_end_is_a_failure_with_the_last_words() {
    let failure = shell("echo oh; exit 3").finish(SOON).unwrap_err();
    assert_eq!(failure.to_string(), "sh failed: oh");
}

#[test]
fn a_killed_program_tells_the_signal() {
    let failure = shell("echo oh; kill -KILL $$").finish(SOON).unwrap_err();
    let words = "sh failed: killed by SIGKILL, having said: oh";
    assert_eq!(failure.to_string(), words);
}

#[test]
fn who_ended_before_he_was_asked_to_has_failed_unless_all_was_well() {
    let ended = |script: &str| {
        let running = shell(script);
        assert_eq!(wait_any([&running], SOON).unwrap(), [true]);
        running.stop(None)
    };
    assert!(ended("exit 0").is_ok());
    assert!(matches!(ended("exit 1"), Err(Failure::Ended(..))));
    assert!(
        shell("trap 'exit 1' TERM; read x")
            .stop(Some(libc::SIGTERM))
            .is_ok()
    );
}

#[test]
fn the_first_of_two_to_end_is_told() {
    let (short, long) = (shell("exit 0"), shell("read x"));
    assert_eq!(wait_any([&long, &short], SOON).unwrap(), [false, true]);
    assert_eq!(wait_any([&long], Duration::ZERO).unwrap(), [false]);
}

#[test]
fn a_late_program_is_killed_with_its_children() {
    let mut running = shell("sleep 1000 & echo $!; wait");
    running
        .wait_until(SOON, |r| r.said().ends_with('\n'))
        .unwrap();
    let child: i32 = running.said().trim().parse().unwrap();
    assert!(family(running.pid).contains(&child));
    let late = running.finish(Duration::ZERO).unwrap_err().to_string();
    assert_eq!(late, format!("sh took too long, having said: {child}"));
    // Its new parent may take a moment to reap it, but a zombie has no memory map.
    let start = Instant::now();
    while fs::read_to_string(format!("/proc/{child}/statm")).is_ok_and(|m| !m.starts_with("0 ")) {
        assert!(start.elapsed() < SOON, "the grandchild lives on");
        std::thread::yield_now();
    }
}

#[test]
fn closing_its_input_stops_a_program_that_reads_it() {
    let (_, said) = shell("cat; echo done").stop(None).unwrap();
    assert_eq!(said, "done\n");
}
