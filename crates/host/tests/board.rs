//! What the board keeps of processes that are gone, in whatever way, wherever they lived.

use headwater_host::board::{Addr, Board, Posting, State, Tuple};
use headwater_host::process;
use headwater_testkit::needs;

const CHILD_DONE: i32 = 0;

fn board() -> (tempfile::TempDir, Board) {
    process::identify();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let board = Board::open(folder.to_str().unwrap(), true).unwrap();
    (dir, board)
}

fn addr(port: u16) -> Addr {
    let ip = 0xffff_7f00_0001;
    Addr { ip, port }
}

fn tuple(port: u16) -> Tuple {
    Tuple {
        client: addr(port),
        server: addr(80),
        netns: process::netns(),
    }
}

/// Runs `work` in a child without fork's handlers, in namespaces of its own as `flags` say; what waitpid(2) tells of it.
fn in_child(flags: i32, work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: no thread of this process holds anything that `work` needs; the child ends by _exit.
    unsafe {
        let pid = libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) as i32;
        if pid == 0 {
            libc::alarm(20);
            libc::_exit(if work() { CHILD_DONE } else { 1 });
        }
        assert!(pid > 0, "{}", std::io::Error::last_os_error());
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        status
    }
}

fn kill_myself() -> bool {
    // SAFETY: it has no other effect.
    unsafe { libc::raise(libc::SIGKILL) };
    false
}

#[test]
fn slots_of_dead_processes_in_other_pid_namespaces_are_used_again() {
    needs!("root");
    let (_dir, b) = board();
    // More listeners than there are slots, each sixteen by another process.
    for n in 0..400u16 {
        let ports = (0..16).map(|i| 1024 + n * 16 + i);
        let all = || {
            let posted = ports.map(|port| b.post_listener(addr(port)));
            posted.filter(|p| *p == Posting::Done).count() == 16
        };
        let status = in_child(libc::CLONE_NEWPID, all);
        assert_eq!(status, CHILD_DONE, "process {n} finds places");
    }
    assert!(b.listeners().is_empty());
    assert_eq!(b.post_listener(addr(80)), Posting::Done);
    assert_eq!(b.listeners().len(), 1);
}

/// The file leads to other memory by now; closing its second descriptor drops the locks of this process.
#[test]
fn a_seat_is_held_where_the_file_was_opened_again() {
    let (dir, b) = board();
    assert_eq!(b.post_listener(addr(80)), Posting::Done);
    let folder = dir.path().join("run");
    for file in std::fs::read_dir(&folder).unwrap() {
        let file = std::fs::File::options()
            .write(true)
            .open(file.unwrap().path());
        file.unwrap().set_len(0).unwrap();
    }
    assert!(b.is_replaced());
    let next = Board::open(folder.to_str().unwrap(), true).unwrap();
    b.hold_seat();
    let lives = |b: &Board| {
        in_child(0, || {
            b.account(addr(80)).is_some() && !b.listeners().is_empty()
        })
    };
    assert_eq!(lives(&b), CHILD_DONE);
    assert_eq!(next.post_listener(addr(80)), Posting::Done);
    assert_eq!(lives(&next), CHILD_DONE);
    assert_eq!(lives(&b), CHILD_DONE);
}

#[test]
fn a_listener_lives_as_long_as_its_process_and_no_longer() {
    let (_dir, b) = board();
    assert_eq!(b.post_listener(addr(80)), Posting::Done);
    // A child knows that its parent lives, and has a place of its own.
    let in_child = in_child(0, || {
        b.forget_dead_listeners(addr(80));
        let kept = b.account(addr(80)).is_some() && b.listeners().len() == 1;
        kept && b.post_listener(addr(81)) == Posting::Done && b.listeners().len() == 2
    });
    assert_eq!(in_child, CHILD_DONE);
    assert_eq!(b.listeners().len(), 1);
    assert!(b.account(addr(81)).is_some(), "a hint, until somebody asks");
    b.forget_dead_listeners(addr(81));
    b.forget_dead_listeners(addr(80));
    assert!(b.account(addr(81)).is_none() && b.account(addr(80)).is_some());
}

#[test]
fn a_process_that_takes_a_dead_ones_seat_does_not_inherit_its_slots() {
    let (_dir, b) = board();
    for port in 100..110 {
        let posted = in_child(0, || b.post_listener(addr(port)) == Posting::Done);
        assert_eq!(posted, CHILD_DONE);
    }
    assert!(b.listeners().is_empty());
}

#[test]
fn offers_of_killed_processes_are_used_again() {
    let (_dir, b) = board();
    for _ in 0..64 {
        let offered = in_child(0, || {
            let offer = b.offer(tuple(1000)).unwrap();
            let kept = b.advance(offer, State::Offered, State::Accepted);
            assert!(kept && b.state(offer) == State::Accepted);
            b.advance(offer, State::Accepted, State::Attached) && kill_myself()
        });
        assert_eq!(offered, libc::SIGKILL);
    }
    assert!(b.connections().is_empty());
    let offer = b.offer(tuple(1000)).unwrap();
    assert_eq!(b.find(&tuple(1000)), Some(offer));
}
