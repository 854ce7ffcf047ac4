//! What a process tells of its associations: `headwater stat sctp` asks each for it by an abstract UNIX name. One datagram asks
//! ("from association N on"), one answers: as many as fit, and how to go on. Only the same user and root are answered.

use core::time::Duration;

use headwater_host::{hidden, sys};

use super::registry::{Name, named, receive_from, receive_trusted, send_to};
use super::signal::readable;

/// Bytes in an answer, but for the last association in it.
pub const ENOUGH: usize = 48 << 10;
const LARGEST: usize = 128 << 10;

/// Where this process is asked. Hidden.
pub fn open() -> sys::Result<i32> {
    named(&Name::stat(sys::getuid(), sys::getpid() as u32))
}

/// Answers those who have asked: `page` has what there is from so many associations on, its first line where the next page begins.
pub fn answer(fd: i32, page: impl Fn(usize) -> Option<String>) {
    if fd < 0 {
        return;
    }
    let mut question = [0; 32];
    while let Some((len, asker)) = receive_trusted(fd, &mut question) {
        let text = core::str::from_utf8(&question[..len]).ok();
        if let Some(page) = text.and_then(|t| t.parse().ok()).and_then(&page) {
            let _ = send_to(fd, &asker, page.as_bytes());
        }
    }
}

/// Processes that can be asked in this network namespace, by name: user and process id.
pub fn processes() -> Vec<(u32, u32)> {
    // Others give names that are no text.
    let all = std::fs::read("/proc/net/unix").unwrap_or_default();
    let all = String::from_utf8_lossy(&all);
    let names = all
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    let mut found: Vec<_> = names.filter_map(Name::parse_stat).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// What a process tells: JSON objects, the first of them about the process, the others of one association each. EACCES: it belongs
/// to another user; ETIMEDOUT: it has not answered; ECONNREFUSED: it is gone.
pub fn ask(uid: u32, pid: u32) -> sys::Result<Vec<String>> {
    let fd = named(&Name::anonymous())?;
    let all = ask_at(fd, &Name::stat(uid, pid), uid);
    hidden::close(fd);
    all
}

fn ask_at(fd: i32, name: &Name, uid: u32) -> sys::Result<Vec<String>> {
    let mut all = Vec::new();
    let mut buffer = vec![0; LARGEST];
    let mut from = 0usize;
    loop {
        send_to(fd, name, from.to_string().as_bytes())?;
        let mut set = readable(core::iter::once(fd));
        if sys::ppoll(&mut set, Some(Duration::from_secs(2).as_nanos() as u64))? == 0 {
            return Err(libc::ETIMEDOUT);
        }
        let Some((len @ 1.., _)) = receive_from(fd, &mut buffer, uid) else {
            // Nothing, or of somebody else.
            continue;
        };
        let text = core::str::from_utf8(&buffer[..len]).map_err(|_| libc::EBADMSG)?;
        let mut lines = text.lines();
        let next = lines.next().unwrap_or("");
        all.extend(lines.map(String::from));
        match next.parse::<usize>() {
            Ok(next) if next > from => from = next,
            _ => return Ok(all),
        }
    }
}
