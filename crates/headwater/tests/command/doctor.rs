//! `headwater doctor` and `headwater stat`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::installation::{Installation, stdout};
use serde_json::Value;

fn json(it: &Installation, arguments: &[&str]) -> (Value, i32) {
    let output = it.output(arguments);
    let text = stdout(&output);
    let value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (value, output.status.code().unwrap())
}

fn status_of<'a>(report: &'a Value, name: &str) -> &'a str {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name);
    check.unwrap_or_else(|| panic!("no {name}"))["status"]
        .as_str()
        .unwrap()
}

#[test]
fn a_sound_installation_has_no_failing_check() {
    let it = Installation::new();
    let (report, code) = json(&it, &["doctor", "--json"]);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    for name in ["kernel", "tcp-info", "memfd", "eventfd", "library"] {
        assert_eq!(status_of(&report, name), "ok", "{report:#}");
    }
    assert_eq!((&report["healthy"], code), (&Value::Bool(true), 0));
    let text = stdout(&it.output(&["doctor"]));
    assert_eq!(
        text.lines().filter(|line| line.starts_with("fail")).count(),
        0
    );
}

#[test]
fn a_missing_library_fails_with_a_remedy() {
    let it = Installation::without_library();
    let (report, code) = json(&it, &["doctor", "--json"]);
    assert_eq!(status_of(&report, "library"), "fail");
    assert_eq!((&report["healthy"], code), (&Value::Bool(false), 1));
    let text = stdout(&it.output(&["doctor"]));
    let mut after = text.lines().skip_while(|line| !line.starts_with("fail"));
    assert!(after.nth(1).unwrap().trim().starts_with("->"));
}

#[test]
fn an_open_runtime_folder_fails() {
    let it = Installation::new();
    let folder = it.path().join("run");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (report, _) = json(&it, &["doctor", "--json"]);
    assert_eq!(status_of(&report, "runtime-folder"), "fail");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let (report, _) = json(&it, &["doctor", "--json"]);
    assert_ne!(status_of(&report, "runtime-folder"), "fail");
}

#[test]
fn a_program_is_judged() {
    let it = Installation::new();
    let (report, code) = json(&it, &["doctor", "--json", "sh"]);
    assert_eq!((&report["program"]["status"], code), (&"ok".into(), 0));
    let (report, code) = json(&it, &["doctor", "--json", "no-such-program-anywhere"]);
    assert_eq!((&report["program"]["status"], code), (&"fail".into(), 1));
    let path = it.path().join("static");
    if it.compile("int main(void) { return 0; }", &["-static"], &path) {
        let path = path.display().to_string();
        let (report, code) = json(&it, &["doctor", "--json", &path]);
        assert_eq!((&report["program"]["status"], code), (&"fail".into(), 1));
        let detail = report["program"]["detail"].as_str().unwrap();
        assert!(detail.contains("statically linked"));
    }
}

#[test]
fn a_program_with_a_sanitizer_is_named() {
    headwater_testkit::needs!("gcc");
    let it = Installation::new();
    let cases = [
        ("address", "AddressSanitizer"),
        ("thread", "ThreadSanitizer"),
    ];
    for (flag, name) in cases {
        let path = it.path().join(flag);
        let flag = format!("-fsanitize={flag}");
        assert!(it.compile("int main(void) { return 0; }", &[&flag], &path));
        let path = path.display().to_string();
        let (report, code) = json(&it, &["doctor", "--json", &path]);
        assert_eq!((&report["program"]["status"], code), (&"fail".into(), 1));
        let detail = report["program"]["detail"].as_str().unwrap();
        assert!(detail.contains(name), "{detail}");
        let output = it.output(&["run", "--", &path]);
        // What comes after that is the runtime's, to which the stand-in is a stranger.
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = said.lines().next().unwrap_or_default();
        assert!(first.contains(name), "{said}");
    }
}

#[test]
fn a_program_for_musl_is_named() {
    let it = Installation::new();
    let path = it.path().join("musl");
    // What makes it one is the loader that it names.
    let flags = ["-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"];
    assert!(it.compile("int main(void) { return 0; }", &flags, &path));
    let (report, _) = json(&it, &["doctor", "--json", &path.display().to_string()]);
    let detail = report["program"]["detail"].as_str().unwrap();
    assert!(detail.contains("musl"), "{detail}");
}

#[test]
fn a_setting_that_is_not_understood_is_named() {
    let it = Installation::new();
    let output = it
        .headwater(&["doctor"])
        .env("HEADWATER_SPIN", "fast")
        .output()
        .unwrap();
    assert!(stdout(&output).contains("HEADWATER_SPIN=fast"));
}

#[test]
fn a_variable_that_there_is_not_is_named() {
    let it = Installation::new();
    let said = |name: &str| {
        let output = it.headwater(&["doctor"]).env(name, "1").output();
        let text = stdout(&output.unwrap());
        let line = text.lines().find(|line| line.contains(" configuration "));
        line.expect("the check").to_string()
    };
    let slip = said("HEADWATER_RINGS");
    assert!(slip.starts_with("warn"), "{slip}");
    assert!(slip.contains("HEADWATER_RINGS: ") && slip.contains("HEADWATER_RING?"));
    let strange = said("HEADWATER_COLOUR_OF_THE_SKY");
    assert!(strange.contains("HEADWATER_COLOUR_OF_THE_SKY") && !strange.contains('?'));
    assert!(said("HEADWATER_NAMES").starts_with("ok"));
    assert!(said("HEADWATER").starts_with("ok"));
}

#[test]
fn a_program_that_clears_the_environment_is_named() {
    let it = Installation::new();
    for name in ["dovecot", "sshd", "sudo", "crond", "su"] {
        // What makes it one is its name.
        let path = it.program(name, "#!/bin/sh\n");
        let (report, code) = json(&it, &["doctor", "--json", &path]);
        assert_eq!((&report["program"]["status"], code), (&"warn".into(), 1));
        let detail = report["program"]["detail"].as_str().unwrap();
        assert!(detail.contains("clears the environment"), "{detail}");
        assert!(report["program"]["remedy"].is_string());
    }
}

#[test]
fn whose_sctp_sockets_programs_get_is_told() {
    let it = Installation::new();
    let with = |name: &str, value: &str| {
        let output = it.headwater(&["doctor"]).env(name, value).output();
        stdout(&output.unwrap())
    };
    let text = with("HEADWATER_SCTP", "always");
    for check in ["sctp-sockets", "sctp-raw", "sctp-udp", "sctp-link"] {
        assert!(text.contains(check), "{text}");
    }
    assert!(
        text.contains("Headwater's, HEADWATER_SCTP=always"),
        "{text}"
    );
    assert!(
        with("HEADWATER_SCTP", "yes").contains("HEADWATER_SCTP=yes: want auto, always or never")
    );
    assert!(with("HEADWATER_SCTP_LINK", "tcp").contains("tcp is not understood"));
    let holder =
        std::net::UdpSocket::bind("[::]:0").or_else(|_| std::net::UdpSocket::bind("0.0.0.0:0"));
    let port = holder
        .as_ref()
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string();
    assert!(with("HEADWATER_SCTP_UDP_PORT", &port).contains("in use"));
}

#[test]
fn a_user_without_connections_has_an_empty_list() {
    let it = Installation::new();
    let (snapshot, code) = json(&it, &["stat", "--json"]);
    assert_eq!(code, 0);
    assert_eq!(snapshot["connections"], Value::Array(vec![]));
    assert_eq!(snapshot["listeners"], Value::Array(vec![]));
    let text = stdout(&it.output(&["stat"]));
    assert_eq!(text.lines().count(), 1);
}

#[test]
fn the_header_names_this_version() {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/headwater.h");
    let header = fs::read_to_string(header).unwrap();
    let quoted = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");
    assert!(header.contains(quoted));
}
