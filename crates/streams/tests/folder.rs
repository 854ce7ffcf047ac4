//! What the runtime folder keeps: the autopush table, the lines of strlog, the boards of processes.

#![cfg(not(loom))]

use std::sync::{Mutex, MutexGuard};

use headwater_host::table;
use headwater_streams::board::read::{self, Listed};
use headwater_streams::drivers::log;
use headwater_streams::drivers::pushlist::{self, Entry, Minors};
use headwater_streams::exec::registry::find_device;
use headwater_streams::head::life;
use headwater_streams::open;
use headwater_streams::strlog::{self, SL_TRACE};

/// One test at a time, in a folder of this process.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static START: std::sync::Once = std::sync::Once::new();
    let turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    START.call_once(|| {
        let dir = tempfile::Builder::new()
            .prefix("headwater-")
            .tempdir()
            .unwrap();
        // SAFETY: every other test of this process waits for its turn.
        unsafe { std::env::set_var("HEADWATER_DIR", dir.keep().join("run")) };
        headwater_host::process::identify();
        headwater_streams::start();
        // SAFETY: a function that may run at any exit.
        unsafe { libc::atexit(remove) };
    });
    turn
}

extern "C" fn remove() {
    // Not in the children, which end by _exit.
    let folder = headwater_host::board::folder();
    let parent = std::path::Path::new(&folder).parent();
    let _ = std::fs::remove_dir_all(parent.expect("a folder of ours"));
}

fn open(name: &str) -> i32 {
    open::device(find_device(name).unwrap(), libc::O_RDWR).unwrap()
}

fn close(fd: i32) {
    life::close(fd, table::stream(fd).unwrap());
}

fn listed(pid: u32, fd: i32) -> Option<Listed> {
    let all = read::all().unwrap();
    all.into_iter().find(|s| (s.pid, s.fd) == (pid, fd))
}

/// Runs `work` in a child; true if it said so.
fn in_child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: no other thread of this process holds anything, and the child ends by _exit.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            libc::alarm(20);
            libc::_exit(!work() as i32);
        }
        let mut status = -1;
        libc::waitpid(pid, &mut status, 0) == pid && status == 0
    }
}

#[test]
fn the_table_is_kept_and_its_modules_are_pushed_at_open() {
    let _turn = alone();
    let entry = |minors, module: &str| Entry {
        device: "echo".to_string(),
        minors,
        modules: vec!["bufmod".to_string(), module.to_string()],
    };
    pushlist::set(entry(Minors::Range(0, 3), "sc")).unwrap();
    assert_eq!(pushlist::set(entry(Minors::All, "sc")), Err(libc::EEXIST));
    assert_eq!(
        pushlist::set(entry(Minors::Range(3, 3), "sc")),
        Err(libc::EEXIST)
    );
    pushlist::set(entry(Minors::Range(4, 4), "nullmod")).unwrap();
    assert_eq!(pushlist::modules_for("echo", 4), ["bufmod", "nullmod"]);
    assert!(
        pushlist::modules_for("echo", 5).is_empty() && pushlist::modules_for("nuls", 0).is_empty()
    );

    let fd = open("echo");
    let shown = listed(std::process::id(), fd).unwrap();
    assert_eq!(shown.modules, ["sc", "bufmod"]);
    close(fd);

    assert_eq!(pushlist::remove("echo", 1), Err(libc::ERANGE));
    assert_eq!(pushlist::remove("echo", 9), Err(libc::ENODEV));
    pushlist::remove("echo", 0).unwrap();
    pushlist::remove("echo", 4).unwrap();
    assert!(pushlist::list().is_empty());
}

#[test]
fn another_process_reads_what_strlog_was_given() {
    let _turn = alone();
    let mut lines = strlog::follow(0).unwrap();
    lines.skip_to_end();
    assert!(in_child(|| {
        log::submit(5, 6, 7, SL_TRACE, b"from a child");
        true
    }));
    let entry = lines.next().unwrap();
    assert_eq!(
        (entry.line.mid, entry.line.sid, entry.line.level),
        (5, 6, 7)
    );
    assert_eq!(entry.text, b"from a child");
    assert!(lines.next_kept().is_none());
}

#[test]
fn streams_are_listed_until_they_are_closed_or_their_process_is_gone() {
    let _turn = alone();
    let me = std::process::id();
    let fd = open("nuls");
    let shown = listed(me, fd).unwrap();
    assert_eq!((shown.name.as_str(), shown.modules.len()), ("nuls", 0));
    // A child has its own board from its first open on, with what it inherited.
    assert!(in_child(|| {
        let own = open("echo");
        let me = std::process::id();
        let inherited = listed(me, fd).is_some_and(|s| s.name == "nuls");
        inherited && listed(me, own).is_some_and(|s| s.name == "echo")
    }));
    assert!(read::all().unwrap().iter().all(|s| s.pid == me));
    let left = std::fs::read_dir(headwater_host::board::folder()).unwrap();
    let boards = left
        .flatten()
        .filter(|f| f.file_name().to_string_lossy().starts_with("streams."));
    assert_eq!(boards.count(), 1, "the child's was removed");
    close(fd);
    assert!(listed(me, fd).is_none());
}
