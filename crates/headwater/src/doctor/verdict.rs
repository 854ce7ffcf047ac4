//! Whether one program can be accelerated.

use std::ffi::OsStr;

use serde::Serialize;

use super::{Check, Status, comm};
use crate::program;
use headwater_host::config;

#[derive(Serialize)]
pub struct Verdict {
    command: String,
    /// What would be executed; the interpreter of a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(flatten)]
    pub(super) check: Check,
}

impl Verdict {
    pub fn accelerated(&self) -> bool {
        self.check.status == Status::Ok
    }
}

pub fn examine(command: &OsStr) -> Verdict {
    let (image, check) = match program::examine(command) {
        Ok(found) => {
            let check = judge(&found);
            (Some(found.image.display().to_string()), check)
        }
        Err(e) => {
            let detail = format!("{}: {e}", command.display());
            let remedy = "name a program, or the path of one";
            (None, Check::fail("program", detail, remedy))
        }
    };
    Verdict {
        command: command.to_string_lossy().into_owned(),
        image,
        check,
    }
}

fn judge(found: &program::Program) -> Check {
    const NAME: &str = "program";
    let image = found.image.display();
    if let Some(obstacle) = &found.obstacle {
        return Check::fail(NAME, format!("{image} {obstacle}"), obstacle.remedy());
    }
    let name = comm(&found.image);
    if !config::get().program_allowed(&name) {
        return Check::fail(
            NAME,
            format!("{image} is excluded by HEADWATER_PROGRAMS or HEADWATER_DENY_PROGRAMS"),
            format!("allow {name} there"),
        );
    }
    if std::fs::File::open(&found.image).is_err() {
        return Check::warn(
            NAME,
            format!("{image} can't be read, so nothing is known about it"),
            "try as a user who may read it",
        );
    }
    if let Some(forgetful) = &found.forgetful {
        let (path, whom) = (found.path.display(), forgetful.whom);
        let detail = format!(
            "{path}: can be accelerated, but clears the environment of {whom}, which are not"
        );
        return Check::warn(NAME, detail, forgetful.remedy);
    }
    let via = match found.image == found.path {
        true => String::new(),
        false => format!("{} is run by ", found.path.display()),
    };
    Check::ok(NAME, format!("{via}{image}: can be accelerated"))
}
