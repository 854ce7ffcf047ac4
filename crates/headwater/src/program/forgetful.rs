//! Programs that start others without the environment they have themselves, so that what they start is not preloaded.

use std::path::Path;

/// Whom a program of that kind keeps the variables from, and what is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgetful {
    names: &'static [&'static str],
    pub whom: &'static str,
    pub remedy: &'static str,
}

const ALL: &[Forgetful] = &[
    Forgetful {
        names: &["dovecot"],
        whom: "its log-in and mail processes",
        remedy: "name LD_PRELOAD and the HEADWATER_ variables in import_environment of dovecot.conf",
    },
    Forgetful {
        names: &["postfix"],
        whom: "its daemons",
        remedy: "name LD_PRELOAD and the HEADWATER_ variables in import_environment of main.cf",
    },
    Forgetful {
        names: &["sshd", "in.sshd", "dropbear"],
        whom: "the sessions of those who log in",
        remedy: "SetEnv LD_PRELOAD=... HEADWATER_SOCKETS=1 in sshd_config, or in the users' own profiles",
    },
    Forgetful {
        names: &["sudo", "doas", "pkexec"],
        whom: "the command",
        remedy: "start headwater behind it: sudo headwater run -- CMD",
    },
    Forgetful {
        names: &["su", "runuser", "login"],
        whom: "log-in shells, and as a set-user-ID program all that it starts",
        remedy: "start headwater behind it: su -c 'headwater run -- CMD' USER",
    },
    Forgetful {
        names: &["cron", "crond", "anacron", "atd", "fcron"],
        whom: "its jobs",
        remedy: "set LD_PRELOAD and HEADWATER_SOCKETS in the crontab, or start headwater run there",
    },
    Forgetful {
        names: &["apache2ctl", "apachectl"],
        whom: "the server",
        remedy: "export LD_PRELOAD and HEADWATER_SOCKETS in /etc/apache2/envvars",
    },
    Forgetful {
        names: &["php-fpm*"],
        whom: "what its scripts start",
        remedy: "clear_env = no in the pool's configuration",
    },
];

/// What is known of the program of this name.
pub fn known(path: &Path) -> Option<Forgetful> {
    let name = path.file_name()?.to_str()?;
    let is_it = |known: &&'static str| match known.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == *known,
    };
    ALL.iter().find(|f| f.names.iter().any(is_it)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_known_by_their_names() {
        let known = |path: &str| known(Path::new(path)).map(|f| f.whom);
        assert_eq!(known("/usr/sbin/cron"), Some("its jobs"));
        assert_eq!(
            known("/usr/sbin/php-fpm8.2"),
            Some("what its scripts start")
        );
        assert_eq!(known("/usr/bin/sum"), None);
    }
}
