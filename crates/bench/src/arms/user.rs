//! Arms of the user's own: `--arm NAME='COMMAND'` runs the programs of a cell as `COMMAND PROGRAM ARGS...`.

use std::process::Command;

use crate::experiment::{Arm, Carrier, Cell, NATIVE, TCP, TCP_NODELAY};

/// Reads `NAME=COMMAND`. The command is split into words as a shell does it, and put before each program.
pub fn parse(text: &str) -> Result<Arm, String> {
    let (name, command) = text
        .split_once('=')
        .ok_or_else(|| format!("--arm {text}: NAME='COMMAND' is wanted"))?;
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(good) {
        return Err(format!(
            "--arm {text}: a name is made of letters, digits, and any of -_."
        ));
    }
    let words = shlex::split(command).filter(|words| !words.is_empty());
    let words =
        words.ok_or_else(|| format!("--arm {text}: the command is empty, or a quote is open"))?;
    let leaked = |word: String| &*Box::leak(word.into_boxed_str());
    let words: Vec<&'static str> = words.into_iter().map(leaked).collect();
    Ok(Arm {
        // As long as the process lives, like the names of other arms.
        name: leaked(name.to_string()),
        carrier: Carrier::Command(Box::leak(words.into_boxed_slice())),
        ..TCP
    })
}

/// The arm of a cell that those of the user stand beside, if there is one: the same programs over the kernel's TCP.
pub fn native(cell: &Cell) -> Option<Arm> {
    let known = [NATIVE, TCP, TCP_NODELAY];
    known.into_iter().find(|arm| cell.arms.contains(arm))
}

/// The arm whose programs are run: this one, or the one that an arm of the user's stands beside.
pub fn model(arm: Arm, cell: &Cell) -> Arm {
    match arm.carrier {
        Carrier::Command(_) => native(cell).unwrap_or(arm),
        _ => arm,
    }
}

/// The program as this carrier runs it.
pub fn wrap(carrier: Carrier, program: Command) -> Command {
    let Carrier::Command([first, rest @ ..]) = carrier else {
        return program;
    };
    let mut command = Command::new(first);
    command.args(rest);
    command.arg(program.get_program());
    command.args(program.get_args());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    if let Some(folder) = program.get_current_dir() {
        command.current_dir(folder);
    }
    command
}

#[cfg(test)]
mod tests;
