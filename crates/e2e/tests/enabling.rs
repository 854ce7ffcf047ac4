//! What docs/sockets.md says of leaving the library on for a user, a unit and an image: its blocks are taken as they stand there, with
//! paths of this test's in place of an installation's. Nobody logs in, no unit is started and no image built here; programs run with
//! what the blocks set, and with no other variable that turns anything on.

use std::path::Path;
use std::process::Command;

use headwater_e2e::lab::{library, source};
use headwater_e2e::{Lab, Mode, compile};
use headwater_testkit::needs;

const INSTALLED: &str = "/usr/local/lib/libheadwater.so.0";

/// The first block under this heading.
fn block(heading: &str) -> String {
    let page = std::fs::read_to_string(source("../../docs/sockets.md")).expect("it is there");
    let (_, section) = page
        .split_once(&format!("### {heading}\n"))
        .expect("the heading");
    let block = section.split("```\n").nth(1).expect("a block");
    block.to_string()
}

fn shown(path: &Path) -> &str {
    path.to_str().expect("a plain name")
}

/// A command that has nothing of the environment of this test, and keeps its files in the lab.
fn bare(lab: &Lab, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut c = lab.plain(program);
    c.env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HEADWATER_DIR", lab.path("run"))
        .env("HEADWATER_STATS_FILE", lab.path("stats"));
    c
}

/// `NAME=VALUE NAME=VALUE` behind `keyword`, in all lines that begin so.
fn variables(text: &str, keyword: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(keyword));
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        (name.to_string(), value.to_string())
    };
    lines.flat_map(str::split_whitespace).map(pair).collect()
}

fn assert_on(lab: &Lab) {
    let carried = |l: &headwater_e2e::stats::Line| l.accelerated > 0 && l.shm_tx > 0;
    assert!(lab.lines().iter().any(carried), "{}", lab.lines_text());
}

#[test]
fn for_a_user() {
    let lab = Lab::new(Mode::Accelerated);
    let log_in = || {
        let program = compile::program("transfer", &[]);
        let mut c = bare(&lab, "sh");
        c.args(["-l", "-c", &format!("{} messages", shown(&program))])
            .env("HOME", lab.path("home"));
        lab.run(c).ok();
    };
    std::fs::create_dir(lab.path("home")).expect("our own folder");
    log_in();
    assert!(lab.lines().is_empty(), "{}", lab.lines_text());
    let lines = block("Leaving it on for a user").replace(INSTALLED, shown(&library()));
    std::fs::write(lab.path("home/.profile"), lines).expect("our own file");
    log_in();
    assert_on(&lab);
}

#[test]
fn for_a_unit() {
    let lab = Lab::new(Mode::Accelerated);
    let text = block("A systemd unit").replace(INSTALLED, shown(&library()));
    let mut c = bare(&lab, compile::program("transfer", &[]));
    c.arg("messages").envs(variables(&text, "Environment="));
    lab.run(c).ok();
    assert_on(&lab);
}

/// NoExecPaths= is a mount without execution, ExecPaths= one with it inside.
#[test]
fn for_a_unit_that_may_execute_little() {
    needs!("root", "mounts", "util-linux");
    let lab = Lab::new(Mode::Accelerated);
    let folder = lab.path("lib");
    std::fs::create_dir(&folder).expect("our own folder");
    std::fs::copy(library(), folder.join("libheadwater.so.0")).expect("room");
    let text = block("A systemd unit").replace("/usr/local/lib", shown(&folder));
    let run = |executable: &[&str]| {
        let mount = |folder: &str, how: &str| {
            format!("mount --bind {folder} {folder} && mount -o remount,bind,{how} {folder} && ")
        };
        let mut script = mount(shown(&folder), "noexec");
        script.extend(executable.iter().map(|folder| mount(folder, "exec")));
        let environment = variables(&text, "Environment=");
        let words = environment
            .iter()
            .map(|(name, value)| format!("{name}={value} "));
        script.extend(words);
        script += &format!(
            "exec {} messages",
            shown(&compile::program("transfer", &[]))
        );
        let mut c = bare(&lab, "unshare");
        c.args(["-m", "sh", "-c", &script]);
        lab.run(c).ok();
    };
    run(&[]);
    assert!(lab.lines().is_empty(), "{}", lab.lines_text());
    let executable = text
        .lines()
        .find_map(|line| line.strip_prefix("ExecPaths="));
    run(&[executable.expect("a folder")]);
    assert_on(&lab);
}

#[test]
fn systemd_knows_what_the_unit_says() {
    needs!("systemd");
    let lab = Lab::new(Mode::Native);
    let verify = |text: &str| {
        let folder = lab.path("units/some.service.d");
        std::fs::create_dir_all(&folder).expect("our own folder");
        std::fs::write(folder.join("override.conf"), text).expect("our own file");
        let unit = lab.path("units/some.service");
        std::fs::write(&unit, "[Service]\nExecStart=/bin/true\n").expect("our own file");
        let mut c = lab.plain("systemd-analyze");
        c.arg("verify").arg(&unit);
        c.env(
            "SYSTEMD_UNIT_PATH",
            format!("{}:", lab.path("units").display()),
        );
        let said = lab.run(c).err;
        said.lines().filter(|l| l.contains("override.conf")).count()
    };
    let text = block("A systemd unit");
    assert_eq!(verify(&text), 0);
    assert_eq!(verify(&text.replace("Environment=", "Surroundings=")), 1);
}

/// The loader finds the library by a variable here, where ldconfig tells it in an image.
#[test]
fn for_an_image() {
    let lab = Lab::new(Mode::Accelerated);
    let text = block("Containers and pods").replace("/run/headwater", shown(&lab.path("image")));
    let (_, made) = text.split_once("RUN ldconfig && ").expect("the folder");
    let mut c = bare(&lab, "sh");
    c.args(["-c", made.lines().next().expect("a command")]);
    lab.run(c).ok();
    let libraries = lab.path("lib");
    std::fs::create_dir(&libraries).expect("our own folder");
    std::os::unix::fs::symlink(library(), libraries.join("libheadwater.so.0"))
        .expect("our own folder");
    let mut c = bare(&lab, compile::program("transfer", &[]));
    c.arg("messages")
        .env("LD_LIBRARY_PATH", libraries)
        .envs(variables(&text, "ENV "));
    lab.run(c).ok();
    assert_on(&lab);
    let files = std::fs::read_dir(lab.path("image")).expect("the block makes it");
    assert!(
        files.count() > 0,
        "the runtime folder is the one that the block names"
    );
}
