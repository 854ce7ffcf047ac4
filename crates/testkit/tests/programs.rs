//! What `scripts/programs` does on machines of several kinds. Each is a folder with all the programs that the script finds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use headwater_testkit::needs;
use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// What the script itself is made of.
const TOOLS: [&str; 13] = [
    "bash", "dirname", "env", "mktemp", "rm", "tail", "wc", "cut", "sort", "uniq", "awk", "touch",
    "chmod",
];
const LIST: &str =
    "# A package, and how it is told.\nalpha  alpha-tool\nbeta  beta-tool\ngamma  gamma-tool\n";
/// Knows all packages but gamma, and none before its lists are there. What it installs brings a tool of its name.
const APT_GET: &str = r#"
echo "$*" >>"$MACHINE/apt"
[[ " $* " != *" update "* ]] || touch "$MACHINE/lists"
[[ " $* " == *" install "* ]] || exit 0
[ -e "$MACHINE/lists" ] && [[ " $* " != *" gamma "* ]] || exit 100
[[ " $* " != *" --simulate "* ]] || exit 0
for package in alpha beta; do
    [[ " $* " != *" $package "* ]] || { touch "$MACHINE/bin/$package-tool" && chmod +x "$MACHINE/bin/$package-tool"; }
done
"#;

#[derive(Clone, Copy)]
enum Who {
    Root,
    /// sudo asks for nothing.
    Trusted,
    /// sudo wants a password.
    Asked,
    WithoutSudo,
}

struct Machine(TempDir);

impl Machine {
    fn of(who: Who) -> Machine {
        let it = Machine(tempfile::tempdir().unwrap());
        for folder in ["bin", "scripts", "crates/testkit"] {
            fs::create_dir_all(it.at(folder)).unwrap();
        }
        let script = Path::new(REPOSITORY).join("scripts/programs");
        fs::copy(script, it.at("scripts/programs")).unwrap();
        fs::write(it.at("crates/testkit/programs.txt"), LIST).unwrap();
        for tool in TOOLS {
            symlink(found(tool), it.at("bin").join(tool)).unwrap();
        }
        it.program("apt-get", APT_GET);
        it.program(
            "id",
            match who {
                Who::Root => "echo 0",
                _ => "echo 1000",
            },
        );
        match who {
            Who::Trusted => it.program("sudo", "[ \"$1\" = -n ] && shift && \"$@\""),
            Who::Asked => it.program("sudo", "exit 1"),
            Who::Root | Who::WithoutSudo => {}
        }
        it
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.at("bin").join(name);
        fs::write(&path, format!("#!/usr/bin/env bash\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn output(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.at("scripts/programs"));
        command
            .args(words)
            .env_clear()
            .env("PATH", self.at("bin"))
            .env("MACHINE", self.0.path())
            .env("HOME", "/home/one")
            .env("RUSTUP_HOME", "/rustup");
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// What the script says, when it succeeds.
    fn said(&self, words: &[&str]) -> String {
        let output = self.output(words, &[]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn has(&self, tool: &str) -> bool {
        self.at("bin").join(tool).exists()
    }

    fn asked_apt(&self) -> bool {
        self.at("apt").exists()
    }
}

fn found(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut at = std::env::split_paths(&path).map(|folder| folder.join(tool));
    at.find(|file| file.is_file()).expect(tool)
}

#[test]
fn an_ordinary_user_is_told_the_one_line_to_type() {
    let typed = "apt-get update && apt-get install -y --no-install-recommends alpha beta gamma";
    for (who, line) in [
        (Who::Asked, format!("    sudo sh -c '{typed}'")),
        (Who::WithoutSudo, format!("    su - -c '{typed}'")),
    ] {
        let machine = Machine::of(who);
        let said = machine.said(&["install"]);
        assert!(said.lines().any(|l| l == line), "{said}");
        assert!(!machine.asked_apt());
    }
}

#[test]
fn where_nothing_may_be_missing_it_fails_as_the_tests_do() {
    let machine = Machine::of(Who::WithoutSudo);
    for (name, value, fails) in [
        ("STRICT", "1", true),
        ("STRICT", "0", false),
        ("STRICT", "", false),
        ("CI", "true", true),
    ] {
        let status = machine.output(&["install"], &[(name, value)]).status;
        assert_eq!(status.success(), !fails, "{name}={value}");
    }
}

#[test]
fn what_is_missing_is_installed_where_nobody_is_asked() {
    for who in [Who::Root, Who::Trusted] {
        let machine = Machine::of(who);
        machine.program("alpha-tool", "");
        let said = machine.said(&["install", "alpha", "beta"]);
        assert!(machine.has("beta-tool"), "{said}");
        assert!(!said.contains("Not installed"), "{said}");
        let asked = fs::read_to_string(machine.at("apt")).unwrap();
        assert!(!asked.contains("alpha"), "{asked}");
    }
}

#[test]
fn a_package_that_this_release_lacks_keeps_none_of_the_others_away() {
    let machine = Machine::of(Who::Root);
    let said = machine.said(&["install"]);
    assert!(
        machine.has("alpha-tool") && machine.has("beta-tool"),
        "{said}"
    );
    let line = "    apt-get update && apt-get install -y --no-install-recommends gamma";
    assert!(said.lines().any(|l| l == line), "{said}");
}

#[test]
fn the_table_says_what_was_not_run_and_how_it_would_be() {
    let machine = Machine::of(Who::Asked);
    let notes = machine.at("not-run");
    let table = || machine.said(&["table", notes.to_str().unwrap()]);
    assert_eq!(table(), "", "nothing was left out");
    fs::write(
        &notes,
        "alpha\tone::a\nalpha\tone::b\nroot beta\ttwo::c\nalpha\tone::a\n",
    )
    .unwrap();
    let said = table();
    let row = |want, count, test| format!("  {want:<34}  {count:>5}  {test}");
    assert!(said.contains("Not run: 3 tests."), "{said}");
    for line in [row("alpha", 2, "one::a"), row("root beta", 1, "two::c")] {
        assert!(said.lines().any(|l| l == line), "{said}");
    }
    assert!(said.contains("scripts/programs install"), "{said}");
    let homes = "CARGO_HOME='/home/one/.cargo' RUSTUP_HOME='/rustup'";
    let line = format!("sudo env PATH=\"$PATH\" {homes} make test CARGO_TARGET_DIR=target/root");
    assert!(said.contains(&line), "{said}");
    fs::write(&notes, "go\tthree::d\n").unwrap();
    let said = table();
    assert!(
        !said.contains("sudo") && !said.contains("install"),
        "{said}"
    );
}

#[test]
fn a_target_folder_of_ones_own_has_the_library_and_the_notes() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    if std::env::var_os("HEADWATER_E2E_LIBRARY").is_none() {
        let library = target.join("release/libheadwater.so");
        assert_eq!(headwater_testkit::library(), library);
    }
    needs!("make");
    let show = "--eval=show: ; @echo '$(NOT_RUN)'";
    for (folder, notes) in [
        (
            "elsewhere",
            Path::new(REPOSITORY)
                .canonicalize()
                .unwrap()
                .join("elsewhere/not-run"),
        ),
        ("/elsewhere", "/elsewhere/not-run".into()),
    ] {
        let said = make(&["-s", show, "show", &format!("CARGO_TARGET_DIR={folder}")]);
        assert_eq!(Path::new(said.trim_end()), notes);
    }
}

#[test]
fn programs_are_looked_for_before_anything_is_built() {
    needs!("make");
    for target in ["test", "demo", "soak"] {
        let steps = make(&["-n", target]);
        let programs = steps.find("scripts/programs install");
        assert!(
            programs.is_some() && programs < steps.find("cargo build"),
            "{steps}"
        );
    }
}

#[test]
fn a_missing_toolchain_is_named_before_anything_is_installed() {
    needs!("make");
    for target in ["build", "test", "demo", "soak"] {
        let mut make = command(&[target, "CARGO=/no/such/cargo"]);
        let output = make.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("https://rustup.rs"),
            "{output:?}"
        );
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

/// What `make` says.
fn make(words: &[&str]) -> String {
    let output = command(words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// `make`, which is not the one that may have started this test.
fn command(words: &[&str]) -> Command {
    let mut command = Command::new("make");
    for inherited in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "CARGO_TARGET_DIR"] {
        command.env_remove(inherited);
    }
    command.args(words).current_dir(REPOSITORY);
    command
}
