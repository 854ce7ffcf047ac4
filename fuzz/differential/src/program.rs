//! A script as a program in C: the source of what runs scripts, with this script in it, and without the operations that it does not use.

use crate::machine::{How, source};
use crate::script::{Over, Script};

/// A program that runs one script, in this way; with "way 0" it prints what it should.
pub fn of(script: &Script, how: How, about: &str) -> String {
    let text = format!("{}{script}", how.header());
    let lines: String = text
        .lines()
        .map(|line| format!("    \"{line}\\n\" \\\n"))
        .collect();
    let about: String = about.lines().map(|line| format!(" * {line}\n")).collect();
    let source = without_unused(&source(script.over), script);
    let built = match script.over {
        Over::Sockets => "cc -D_GNU_SOURCE -pthread; natively and with the library",
        Over::Streams | Over::Xti => {
            "cc -D_GNU_SOURCE -pthread -lheadwater; \"way 0\" and the way below"
        }
    };
    format!(
        "/* {built} print the same, but:\n *\n{about} */\n#define SCRIPT \\\n{lines}    \"\"\n\n{source}"
    )
}

/// `OP(name) { ... }` ends with a brace at the beginning of a line, or at the end of its first.
fn without_unused(source: &str, script: &Script) -> String {
    let used = |name: &str| script.steps.iter().any(|s| s.name == name);
    let mut kept = String::new();
    let mut dropping = false;
    for line in source.lines() {
        if let Some(rest) = line.strip_prefix("OP(") {
            let name = rest.split(')').next().unwrap_or_default();
            dropping = !used(name) && !line.ends_with('}');
            if !used(name) {
                continue;
            }
        } else if dropping {
            dropping = line != "}";
            continue;
        }
        kept += line;
        kept.push('\n');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_becomes_a_program_that_says_what_the_script_does() {
        let script: Script = "threads 1\n0 0 pair 0 1\n0 0 write 0 5\n0 0 read 1 10\n"
            .parse()
            .expect("a script");
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        let text = of(&script, How::Native, "nothing");
        assert!(!text.contains("OP(recvmmsg)"));
        crate::machine::compile(&text, &program, &[]);
        let output = std::process::Command::new(&program)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            said.contains("0 0 write 0 5 = 5\n0 0 read 1 10 = 5 "),
            "{said}"
        );
    }
}
