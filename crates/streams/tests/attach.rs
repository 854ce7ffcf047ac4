//! Streams with names: attached files, connld, FIFOs, opened by other processes.

#![cfg(not(loom))]

#[path = "common/processes.rs"]
mod processes;

use std::path::Path;

use processes::*;

/// A pipe with its second end attached and closed, as servers do it.
fn served(path: &Path, module: Option<&str>) -> i32 {
    let [mine, named] = pipe();
    if let Some(module) = module {
        push(named, module);
    }
    attach(named, path).unwrap();
    close(named);
    mine
}

#[test]
fn another_process_opens_the_stream_by_its_path() {
    let _turn = alone();
    let file = file();
    let (ready, told) = {
        let [a, b] = pipe();
        (a, b)
    };
    let child = Child::judged(|| {
        assert_eq!(read(told).unwrap(), "attached");
        let fd = open_stream(&file.path).unwrap();
        write(fd, "from the opener").is_ok() && read(fd).unwrap() == "from the server"
    });
    let server = served(&file.path, None);
    write(ready, "attached").unwrap();
    assert_eq!(read(server).unwrap(), "from the opener");
    write(server, "from the server").unwrap();
    assert!(child.succeeded());
    detach(&file.path).unwrap();
    assert_eq!(
        read(server).unwrap(),
        "",
        "detached, nobody holds the other end"
    );
    assert!(open_path(&file.path).is_none());
    for fd in [server, ready, told] {
        close(fd);
    }
}

#[test]
fn a_path_opened_in_its_own_process_is_the_same_stream() {
    let _turn = alone();
    let file = file();
    let [a, b] = pipe();
    attach(b, &file.path).unwrap();
    let again = open_stream(&file.path).unwrap();
    assert!(std::ptr::eq(stream(again), stream(b)));
    write(a, "x").unwrap();
    assert_eq!(read(again).unwrap(), "x");
    detach(&file.path).unwrap();
    for fd in [a, b, again] {
        close(fd);
    }
}

#[test]
fn a_drivers_stream_is_named_for_its_own_process_only() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let child = Child::judged(|| read(told).is_ok() && open_stream(&file.path) == Err(libc::ENXIO));
    let echo = open_stream("/dev/echo".as_ref()).unwrap();
    attach(echo, &file.path).unwrap();
    close(echo);
    write(ready, "attached").unwrap();
    let again = open_stream(&file.path).unwrap();
    write(again, "echoed").unwrap();
    assert_eq!(read(again).unwrap(), "echoed");
    assert!(child.succeeded());
    detach(&file.path).unwrap();
    for fd in [again, ready, told] {
        close(fd);
    }
}

#[test]
fn errors_are_the_manuals() {
    let _turn = alone();
    let file = file();
    let [a, b] = pipe();
    assert_eq!(attach(b, "/nowhere/at/all".as_ref()), Err(libc::ENOENT));
    assert_eq!(attach(b, "".as_ref()), Err(libc::ENOENT));
    assert_eq!(attach(b, &file.path.join("below")), Err(libc::ENOTDIR));
    let long = format!("/tmp/{}", "x".repeat(300));
    assert_eq!(attach(b, long.as_ref()), Err(libc::ENAMETOOLONG));
    let circle = file.path.with_file_name("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    assert_eq!(attach(b, &circle), Err(libc::ELOOP));
    assert_eq!(detach(&circle), Err(libc::ELOOP));
    assert_eq!(detach(&file.path), Err(libc::EINVAL));
    assert_eq!(detach("/nowhere".as_ref()), Err(libc::ENOENT));
    attach(b, &file.path).unwrap();
    assert_eq!(attach(a, &file.path), Err(libc::EBUSY));
    assert_eq!(attach(b, &file.path), Err(libc::EBUSY));
    detach(&file.path).unwrap();
    assert_eq!(detach(&file.path), Err(libc::EINVAL));
    attach(b, &file.path).unwrap();
    detach(&file.path).unwrap();
    close(a);
    close(b);
}

#[test]
fn another_users_file_is_refused() {
    headwater_testkit::needs!("root");
    let _turn = alone();
    let file = file();
    let [_a, b] = pipe();
    let child = Child::judged(|| {
        // SAFETY: this process only.
        unsafe { libc::setresuid(65534, 65534, 65534) };
        attach(b, "/etc/passwd".as_ref()) == Err(libc::EPERM)
            && matches!(detach(&file.path), Err(libc::EPERM | libc::EACCES))
    });
    assert!(child.succeeded());
    close(_a);
    close(b);
}

#[test]
fn any_process_of_the_user_may_detach() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let child = Child::judged(|| {
        read(told).unwrap();
        detach(&file.path) == Ok(()) && open_path(&file.path).is_none()
    });
    let server = served(&file.path, None);
    write(ready, "attached").unwrap();
    assert!(child.succeeded());
    assert_eq!(read(server).unwrap(), "");
    assert_eq!(detach(&file.path), Err(libc::EINVAL));
    for fd in [server, ready, told] {
        close(fd);
    }
}

#[test]
fn after_the_death_of_its_holders_the_path_is_the_plain_file() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let child = Child::judged(|| {
        let _server = served(&file.path, None);
        write(ready, "attached").unwrap();
        pause()
    });
    read(told).unwrap();
    child.kill();
    assert!(open_path(&file.path).is_none());
    assert_eq!(detach(&file.path), Err(libc::EINVAL));
    for fd in [ready, told] {
        close(fd);
    }
}

#[test]
fn an_opener_answers_when_the_process_that_attached_has_died() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let [mine, named] = pipe();
    let attacher = Child::judged(|| {
        attach(named, &file.path).unwrap();
        write(ready, "attached").unwrap();
        pause()
    });
    close(named);
    assert_eq!(read(told).unwrap(), "attached");
    let first = open_stream(&file.path).unwrap();
    attacher.kill();
    let other = Child::judged(|| {
        // Not what the fork gave us: by the path, from the parent.
        close(first);
        let fd = open_stream(&file.path).unwrap();
        write(fd, "second").is_ok()
    });
    assert!(other.succeeded());
    assert_eq!(read(mine).unwrap(), "second");
    close(first);
    assert_eq!(read(mine).unwrap(), "");
    assert!(open_path(&file.path).is_none());
    for fd in [mine, ready, told] {
        close(fd);
    }
}

#[test]
fn connld_gives_every_opener_a_pipe_of_its_own() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let client = |text: &'static str| {
        Child::judged(|| {
            read(told).unwrap();
            let fd = open_stream(&file.path).unwrap();
            write(fd, text).unwrap();
            read(fd).unwrap() == format!("{text} to you")
        })
    };
    let clients = [client("good day"), client("good night")];
    let server = served(&file.path, Some("connld"));
    write(ready, "1").unwrap();
    for _ in 0..2 {
        let r = receive(server).unwrap();
        // SAFETY: no arguments.
        assert_eq!(r.uid, unsafe { libc::geteuid() });
        let text = read(r.fd).unwrap();
        write(r.fd, &format!("{text} to you")).unwrap();
        assert_eq!(read(r.fd).unwrap(), "");
        close(r.fd);
        write(ready, "1").unwrap();
    }
    for client in clients {
        assert!(client.succeeded());
    }
    detach(&file.path).unwrap();
    assert_eq!(receive_fd(server), Err(libc::ENXIO));
    for fd in [server, ready, told] {
        close(fd);
    }
}

#[test]
fn connld_serves_threads_of_its_own_process() {
    let _turn = alone();
    let file = file();
    let server = served(&file.path, Some("connld"));
    std::thread::scope(|s| {
        s.spawn(|| {
            let fd = receive_fd(server).unwrap();
            write(fd, "welcome").unwrap();
            close(fd);
        });
        let fd = open_stream(&file.path).unwrap();
        assert_eq!(read(fd).unwrap(), "welcome");
        assert_eq!(read(fd).unwrap(), "");
        close(fd);
    });
    detach(&file.path).unwrap();
    close(server);
}

#[test]
fn an_open_fails_when_the_server_goes_instead_of_receiving() {
    let _turn = alone();
    let file = file();
    let [ready, told] = pipe();
    let client = Child::judged(|| {
        read(told).unwrap();
        open_stream(&file.path) == Err(libc::ENXIO)
    });
    let server = served(&file.path, Some("connld"));
    write(ready, "attached").unwrap();
    // Not before the connection waits to be received.
    let mut fds = [libc::pollfd {
        fd: server,
        events: libc::POLLIN,
        revents: 0,
    }];
    // SAFETY: one entry; the shadow itself is readable then.
    assert_eq!(unsafe { libc::poll(fds.as_mut_ptr(), 1, 20_000) }, 1);
    close(server);
    assert!(client.succeeded());
    detach(&file.path).unwrap();
    for fd in [ready, told] {
        close(fd);
    }
}

#[test]
fn a_fifo_is_found_by_its_name_and_lives_as_long_as_its_openers() {
    let _turn = alone();
    let name = format!("/dev/fifo.test-{}", std::process::id());
    let name = Path::new(&name);
    let [ready, told] = pipe();
    let child = Child::judged(|| {
        read(told).unwrap();
        let fd = open_stream(name).unwrap();
        write(fd, "through the fifo").is_ok()
    });
    let fd = open_stream(name).unwrap();
    write(ready, "made").unwrap();
    assert!(child.succeeded());
    assert_eq!(read(fd).unwrap(), "through the fifo");
    write(fd, "forgotten").unwrap();
    close(fd);
    let fresh = open_stream(name).unwrap();
    nonblocking(fresh);
    assert_eq!(read(fresh), Err(libc::EAGAIN));
    for fd in [fresh, ready, told] {
        close(fd);
    }
}

#[test]
fn many_processes_that_open_a_fifo_at_once_get_the_same_one() {
    let _turn = alone();
    let name = format!("/dev/fifo.crowd-{}", std::process::id());
    let name = Path::new(&name);
    let [ready, told] = pipe();
    let children: Vec<_> = (0..6)
        .map(|_| {
            Child::judged(|| {
                let fd = open_stream(name).unwrap();
                write(fd, "x").unwrap();
                // Held until the parent has read what all of them wrote.
                read(told).is_ok()
            })
        })
        .collect();
    let fd = open_stream(name).unwrap();
    let mut seen = 0;
    while seen < 6 {
        seen += read(fd).unwrap().len();
    }
    for _ in 0..6 {
        write(ready, "go").unwrap();
    }
    drop(children);
    for fd in [fd, ready, told] {
        close(fd);
    }
}

#[test]
fn unnamed_fifos_are_apart() {
    let _turn = alone();
    let [a, b] = [0; 2].map(|_| open_stream("/dev/fifo".as_ref()).unwrap());
    write(a, "mine").unwrap();
    nonblocking(b);
    assert_eq!(read(b), Err(libc::EAGAIN));
    assert_eq!(read(a).unwrap(), "mine");
    close(a);
    close(b);
}
