//! Endpoints at the bottom of streams over fork. Alone in their process, and one after the other: a child holds copies of
//! every connection.

#[path = "common/fd.rs"]
mod fd;

use std::sync::Mutex;

use fd::{Fd, connected};

static ALONE: Mutex<()> = Mutex::new(());

/// Runs `f` in a child process, which must end well.
fn in_child(f: impl FnOnce()) -> i32 {
    // SAFETY: the child runs our code only, then ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        // SAFETY: ends the process.
        unsafe { libc::_exit(ended.is_err() as i32) };
    }
    assert!(pid > 0);
    pid
}

fn ended_well(pid: i32) {
    let mut status = -1;
    // SAFETY: status is writable.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
}

#[test]
fn a_child_serves_the_connection_that_its_parent_accepted() {
    let _alone = ALONE.lock();
    for device in ["ticotsord", "ticots", "tcp"] {
        let (client, server) = connected(device, [Fd::stream; 3]);
        let child = in_child(|| {
            // SAFETY: plain number.
            unsafe { libc::alarm(30) };
            for _ in 0..100 {
                let (text, _) = server.receive(100).unwrap();
                server.send(&text, 0).unwrap();
            }
        });
        drop(server);
        for i in 0..100u32 {
            client.send(&i.to_ne_bytes(), 0).unwrap();
            assert_eq!(
                client.receive(100),
                Ok((i.to_ne_bytes().to_vec(), 0)),
                "{device}"
            );
        }
        ended_well(child);
    }
}

#[test]
fn a_fork_finds_nothing_half_done() {
    let _alone = ALONE.lock();
    let (client, server) = connected("ticots", [Fd::stream; 3]);
    let over = std::sync::atomic::AtomicBool::new(false);
    let ordering = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !over.load(ordering) {
                client.send(b"ping", 0).unwrap();
                server.receive(100).unwrap();
            }
        });
        for _ in 0..200 {
            ended_well(in_child(|| ()));
        }
        over.store(true, ordering);
    });
}
