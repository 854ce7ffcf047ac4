//! Servers as they run on real machines: they fork, change user, confine themselves, hand descriptors on and splice. And a shell
//! with a build inside. Each natively and under the library, with the same results.

mod dovecot;
mod haproxy;
mod node;
mod openssh;
mod postgresql;
mod rings;
mod shell;
mod smol;
mod vsftpd;

use std::path::Path;

use headwater_e2e::{Lab, lab};

/// Writes a configuration file, the names in braces replaced.
fn configure(lab: &Lab, name: &str, text: &str, values: &[(&str, &str)]) {
    let mut text = text.to_string();
    for (from, to) in values {
        text = text.replace(&format!("{{{from}}}"), to);
    }
    std::fs::write(lab.path(name), text).expect("the lab's folder is writable");
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// A download by curl: what came, and its digest.
fn fetched(lab: &Lab, url: &str) -> (usize, u64) {
    let mut c = lab.command("curl");
    c.args(["-sS", "--fail", "-q", url]);
    lab::digest(&lab.run(c).ok())
}

/// User and group of a system account.
fn ids(name: &str) -> (u32, u32) {
    let text = std::fs::read_to_string("/etc/passwd").expect("a list of accounts");
    let line = text
        .lines()
        .find(|l| l.starts_with(&format!("{name}:")))
        .expect("the account exists");
    let mut fields = line
        .split(':')
        .skip(2)
        .map(|f| f.parse().expect("a number"));
    let mut next = || fields.next().expect("user and group");
    (next(), next())
}
