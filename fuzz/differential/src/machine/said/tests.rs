use super::*;

#[test]
fn a_number_that_a_step_replaces_is_closed_under_the_wait_on_it() {
    let row = |put: &str, wait: &str| {
        let begun = format!("0 0 pair 0 1 = 0\n0 0 fork 1 = 0\n{wait} = waits\n{put} = 0\n");
        let said = |last: &str| -> Vec<String> {
            let all = format!("{begun}0 0 write 0 3 = 3{last}");
            all.lines().map(str::to_string).collect()
        };
        super::row(&said(" | 2 = 1 0 0 0"), &said(""))
    };
    let waits = ["0 1 select -1 2 0 0 0", "0 1 poll -1 17 -1 -1"];
    for wait in waits {
        for put in [
            "0 0 pair 5 1",
            "0 0 accept 1 4",
            "0 0 epoll_create 1",
            "0 0 dup2 1 0",
        ] {
            assert_eq!(row(put, wait), Some("poll-held"), "{put}, {wait}");
        }
        // Another slot, one of another process, and the same thread's.
        for put in [
            "0 0 pair 0 5",
            "0 0 dup 2 1",
            "1 0 pair 0 1",
            "0 1 pair 0 1",
        ] {
            assert_eq!(row(put, wait), None, "{put}, {wait}");
        }
    }
    assert_eq!(
        row("1 0 dup 1 0", "1 1 select 50 0 0 2 0"),
        Some("poll-held")
    );
    // Who waits closes nothing meanwhile.
    let busy = "0 1 select -1 2 0 0 0 = waits\n0 1 close 1";
    for (closes, found) in [("busy", Some("poll-held")), ("0", None)] {
        let lines = format!("0 0 pair 0 1 = 0\n{busy} = {closes}\n0 0 pair 5 1 = 0\n");
        let said = |last: &str| -> Vec<String> {
            let all = format!("{lines}0 0 write 0 3 = 3{last}");
            all.lines().map(str::to_string).collect()
        };
        assert_eq!(
            super::row(&said(" | 2 = 1 0 0 0"), &said("")),
            found,
            "{closes}"
        );
    }
}

#[test]
fn who_of_two_that_wait_on_an_endpoint_comes_first_is_not_told() {
    let said = |second: &str, last: &str| -> (Script, Vec<String>) {
        let steps = format!("0 0 t_rcv 1 50\n0 1 t_rcv {second} 50\n0 0 t_snd 2 66 0");
        let script = format!("over xti\nthreads 2\nrestarts 0\n{steps}\n");
        let results = ["waits", "waits", last];
        let lines = steps
            .lines()
            .zip(results)
            .map(|(a, b)| format!("{a} = {b}"));
        (script.parse().expect("a script"), lines.collect())
    };
    let told = |second: &str, last: [&str; 2]| {
        let ((script, one), (_, other)) = (said(second, last[0]), said(second, last[1]));
        is_about_who_comes_first(&script, &one, &other)
    };
    let first = ["66 | 0 = 66 flags 0 d6ca", "66 | 1 = 66 flags 0 d6ca"];
    assert!(told("1", first));
    assert!(told("1", ["66 | 0 = 50 flags 0", "66 | 1 = 66 flags 0"]));
    assert!(!told("3", first));
    assert!(!told("1", ["66", "65"]));
}

#[test]
fn who_of_several_that_receive_comes_first_is_not_told() {
    let steps =
        "0 0 recvfrom 0 1 0\n1 0 recv 0 9 0\n2 0 read 0 1\n2 1 readv 0 9 9\n0 1 sendmmsg 1 9 6 0";
    let script: Script = format!("threads 2\nrestarts 0\n{steps}\n")
        .parse()
        .expect("a script");
    let said = |last: &str| -> Vec<String> {
        let results = ["waits", "waits", "waits", "EBADF", last];
        let lines = steps
            .lines()
            .zip(results)
            .map(|(a, b)| format!("{a} = {b}"));
        lines.collect()
    };
    let told = |one, other| is_about_who_comes_first(&script, &said(one), &said(other));
    assert!(told(
        "2 9 6 | 0 = 1 a263 name 0 | 1 = 9 0d70",
        "2 9 6 | 2 = 1 a263 | 1 = 9 0d70"
    ));
    // Fewer bytes, another result of the call itself, nobody served, and one that did not wait.
    assert!(!told(
        "2 9 6 | 0 = 1 a263 name 0 | 1 = 9 0d70",
        "2 9 6 | 1 = 9 0d70"
    ));
    assert!(!told("2 9 6 | 0 = 1 a263 name 0", "1 9 | 2 = 1 a263"));
    assert!(!told("2 9 6 | 0 = EINTR", "2 9 6"));
    assert!(!told("2 9 6 | 1 = 9 0d70", "2 9 6 | 3 = 9 0d70"));
}

#[test]
fn a_mark_and_a_wait_may_come_in_either_order() {
    let set = "0 1 setopt 0 1 18 -1 4 = 0\n";
    let wait = "0 1 recvfrom 0 520 0 = waits\n";
    let row = |before: &str| {
        let said = |last: &str| -> Vec<String> {
            let all = format!("0 0 pair 0 1 = 0\n{before}0 0 recv 0 89 0 = {last}");
            all.lines().map(str::to_string).collect()
        };
        super::row(&said("89 9ba3"), &said("waits"))
    };
    for both in [[set, wait], [wait, set]] {
        assert_eq!(row(&both.concat()), Some("low-water-waits"));
    }
    let elsewhere = set.replacen('0', "1", 1);
    for before in [set, wait, &format!("{elsewhere}{wait}")] {
        assert_eq!(row(before), None, "{before}");
    }
}
