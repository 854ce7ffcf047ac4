//! The configuration as flags: one for each HEADWATER_* variable, with the same values. docs/configuration.md is their page.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use headwater_host::config::Config;

use crate::variables;

#[derive(clap::Args, Debug, Default)]
pub struct Settings {
    /// Bytes per direction of a connection: a power of two, 64K to 16M
    #[arg(long, value_name = "BYTES")]
    ring: Option<String>,
    /// Longest spin before a wait sleeps; 0 never spins
    #[arg(long, value_name = "MICROSECONDS")]
    spin: Option<String>,
    /// Accelerate only these ports, as in 6379,8000-8100
    #[arg(long, value_name = "LIST")]
    ports: Option<String>,
    /// Leave these ports alone
    #[arg(long, value_name = "LIST")]
    deny_ports: Option<String>,
    /// Accelerate only these programs, as in redis-server,nginx*
    #[arg(long, value_name = "LIST")]
    programs: Option<String>,
    /// Leave these programs alone
    #[arg(long, value_name = "LIST")]
    deny_programs: Option<String>,
    /// Other users to talk to, as in uid:1000,group:33; they must name this one too
    #[arg(long, value_name = "LIST")]
    peers: Option<String>,
    /// error, warn, info or debug
    #[arg(long, value_name = "LEVEL")]
    log: Option<String>,
    /// Where the library's log goes instead of stderr
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Runtime folder instead of /dev/shm/headwater-UID
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Settings {
    /// The variables that were given as flags, with paths made absolute: the program may change its folder.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let texts = [
            ("HEADWATER_RING", &self.ring),
            ("HEADWATER_SPIN", &self.spin),
            ("HEADWATER_PORTS", &self.ports),
            ("HEADWATER_DENY_PORTS", &self.deny_ports),
            ("HEADWATER_PROGRAMS", &self.programs),
            ("HEADWATER_DENY_PROGRAMS", &self.deny_programs),
            ("HEADWATER_PEERS", &self.peers),
            ("HEADWATER_LOG", &self.log),
        ];
        let paths = [
            ("HEADWATER_LOG_FILE", &self.log_file),
            ("HEADWATER_DIR", &self.dir),
        ];
        let texts = texts.map(|(name, text)| Some((name, text.as_ref()?.into())));
        let paths = paths.map(|(name, path)| Some((name, absolute(path.as_ref()?).into())));
        texts.into_iter().chain(paths).flatten().collect()
    }

    /// Looks at the flags, and at the variables of the environment, as the library would.
    pub fn check(&self) -> Result<(), Vec<String>> {
        let given = self.variables();
        let named = |complaint: &String| {
            let is_flag = |(name, _): &(&str, OsString)| complaint.starts_with(&format!("{name}="));
            match given.iter().any(is_flag) {
                true => as_flag(complaint),
                false => complaint.trim_end_matches("; ignored").to_string(),
            }
        };
        let wrong = variables::wrong(|name| self.over_environment(name));
        if wrong.is_empty() {
            return Ok(());
        }
        Err(wrong.iter().map(named).collect())
    }

    /// What a program started from here would find: the flag, else this process's variable.
    pub fn over_environment(&self, name: &str) -> Option<String> {
        let given = self.variables();
        match given.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Some(value.to_string_lossy().into_owned()),
            None => std::env::var(name).ok(),
        }
    }
}

/// The configuration that a program started from here would have: the flags over this process's environment.
pub fn effective(over: &Settings) -> Config {
    Config::from(|name| over.over_environment(name))
}

pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// `HEADWATER_DENY_PORTS=x: want ...; ignored` as `--deny-ports=x: want ...`.
fn as_flag(complaint: &str) -> String {
    let text = complaint.strip_suffix("; ignored").unwrap_or(complaint);
    let Some((name, rest)) = text
        .strip_prefix("HEADWATER_")
        .and_then(|text| text.split_once('='))
    else {
        return text.to_string();
    };
    format!("--{}={rest}", name.to_lowercase().replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_named_by_its_flag() {
        let settings = Settings {
            deny_ports: Some("http".to_string()),
            ..Settings::default()
        };
        let complaints = settings.check().unwrap_err();
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].starts_with("--deny-ports=http: "));
    }

    #[test]
    fn paths_survive_a_change_of_folder() {
        let settings = Settings {
            log_file: Some("log".into()),
            ..Settings::default()
        };
        let here = std::env::current_dir().unwrap().join("log");
        assert_eq!(
            settings.variables(),
            [("HEADWATER_LOG_FILE", here.into_os_string())]
        );
    }
}
