//! The TLI and XTI programs of docs/xti.md, with each other over loop-back and TCP, and with plain sockets.

mod programs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Output, Stdio};

use programs::{build, build_at, command, folder, run, said};

/// A server that has said where it listens.
struct Server {
    child: Child,
    messages: BufReader<std::process::ChildStderr>,
    /// For its clients: a name or a port.
    service: String,
}

impl Server {
    fn start(program: &Path, folder: &Path, args: &[&str]) -> Server {
        let mut command = command(program, folder);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("timeout, of coreutils");
        let mut messages = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        messages.read_line(&mut line).expect("text");
        let at = line.trim_end().rsplit_once("listening at ");
        let service = service(at.unwrap_or_else(|| panic!("{line}")).1);
        Server {
            child,
            messages,
            service,
        }
    }

    fn port(&self) -> u16 {
        self.service.parse().expect("a port")
    }

    fn end(mut self) -> Output {
        let mut stderr = Vec::new();
        self.messages.read_to_end(&mut stderr).expect("a pipe");
        let output = self.child.wait_with_output().expect("it ends");
        Output { stderr, ..output }
    }
}

/// Of a universal address: the last two numbers are a port.
fn service(address: &str) -> String {
    let mut words = address.rsplit('.').map(str::parse::<u16>);
    match (words.next(), words.next()) {
        (Some(Ok(low)), Some(Ok(high))) => (high * 256 + low).to_string(),
        _ => address.to_owned(),
    }
}

/// This host, as the transport knows it.
fn host(transport: &str) -> &'static str {
    if transport == "tcp6" {
        "::1"
    } else {
        "localhost"
    }
}

/// Each transport that can be had here, with the name of a service that nobody else has.
fn transports(names: &[&'static str]) -> Vec<(&'static str, String)> {
    let of_test = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let own = of_test.replace(['(', ')'], "-");
    let service = |name: &str| {
        if name.contains("tcp") {
            "0".into()
        } else {
            own.clone()
        }
    };
    let has_v6 = TcpListener::bind("[::1]:0").is_ok();
    let can_be_had = |name: &&str| *name != "tcp6" || has_v6;
    names
        .iter()
        .filter(|n| can_be_had(n))
        .map(|name| (*name, service(name)))
        .collect()
}

fn is_time(line: &str) -> bool {
    line.ends_with("\r\n") && line.matches(':').count() == 2 && line.contains(", ")
}

#[test]
fn every_transport_in_rust() {
    let folder = folder();
    let text = run(Path::new(env!("CARGO_BIN_EXE_transports")), folder.path());
    assert_eq!(
        text,
        "/dev/ticotsord: is anybody there?
/dev/tcp: is anybody there?
/dev/ticlts: one
/dev/ticlts: two
/dev/ticlts: three
/dev/udp: one
/dev/udp: two
/dev/udp: three
nobody: errno 111
"
    );
}

/// The program that the page begins with.
#[test]
fn the_first_minute() {
    let folder = folder();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../docs/xti.md")).expect("the page");
    let program = page
        .split("```c\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let source = folder.path().join("first.c");
    std::fs::write(&source, program.expect("a program in C")).expect("our own folder");
    let program = build_at(&source, folder.path());
    assert_eq!(run(&program, folder.path()), "hello world\n");
}

#[test]
fn the_tables_of_the_page_are_the_library_s() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../docs/xti.md")).expect("the page");
    for table in headwater_tpi::state::markdown().split("\n\n") {
        assert!(page.contains(table.trim_end()), "paste this:\n{table}");
    }
}

#[test]
fn daytime() {
    let folder = folder();
    let server = build("daytime_server", folder.path());
    let client = build("daytime_client", folder.path());
    for (name, at) in transports(&["ticotsord", "ticots", "tcp", "tcp6", "/dev/tcp"]) {
        let server = Server::start(&server, folder.path(), &["-n", "3", name, &at]);
        for _ in 0..3 {
            let mut client = command(&client, folder.path());
            let line = said(
                &client
                    .args([name, host(name), &server.service])
                    .output()
                    .expect("it runs"),
            );
            assert!(is_time(&line), "{name}: {line}");
        }
        said(&server.end());
    }
}

#[test]
fn a_plain_client_of_the_daytime_server() {
    let folder = folder();
    let server = build("daytime_server", folder.path());
    let server = Server::start(&server, folder.path(), &["-n", "2", "tcp", "0"]);
    for _ in 0..2 {
        let mut line = String::new();
        let mut connection = TcpStream::connect(("127.0.0.1", server.port())).expect("it listens");
        connection
            .read_to_string(&mut line)
            .expect("text, then the end");
        assert!(is_time(&line), "{line}");
    }
    said(&server.end());
}

#[test]
fn the_daytime_client_of_a_plain_server() {
    let folder = folder();
    let client = build("daytime_client", folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port().to_string();
    let mut client = command(&client, folder.path());
    client
        .args(["tcp", "localhost", &port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let client = client.spawn().expect("timeout, of coreutils");
    let (mut connection, _) = listener.accept().expect("the client");
    connection
        .write_all(b"half past seven\n")
        .expect("it reads");
    drop(connection);
    assert_eq!(
        said(&client.wait_with_output().expect("it ends")),
        "half past seven\n"
    );
}

#[test]
fn a_server_that_is_not_there() {
    let folder = folder();
    let client = build("daytime_client", folder.path());
    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = nobody.local_addr().expect("bound").port().to_string();
    drop(nobody);
    for (name, at) in [
        ("tcp", port.as_str()),
        ("ticotsord", "nobody"),
        ("ticots", "nobody"),
    ] {
        let mut client = command(&client, folder.path());
        let output = client
            .args([name, "localhost", at])
            .output()
            .expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert_eq!(stderr, format!("{at}: disconnected: Connection refused\n"));
    }
    let mut client = command(&client, folder.path());
    let output = client
        .args(["decnet", "localhost", "13"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are: ticotsord"));
}

/// Whatever it says about its progress.
fn printed(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Bytes in which a missing, repeated or moved piece shows.
fn content(n: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9u32;
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x as u8
    };
    (0..n).map(|_| next()).collect()
}

#[test]
fn a_file_arrives_whole() {
    let folder = folder();
    let sender = build("xti_send", folder.path());
    let receiver = build("xti_receive", folder.path());
    let (here, there) = (folder.path().join("here"), folder.path().join("there"));
    let there_name = there.to_str().expect("text");
    for (name, at) in transports(&["ticotsord", "tcp", "tcp6"]) {
        for size in [0, 1, 65_536, 20_000_001] {
            std::fs::write(&here, content(size)).expect("our own folder");
            let receiver = Server::start(&receiver, folder.path(), &[there_name, name, &at]);
            let mut sender = command(&sender, folder.path());
            let sent = sender
                .arg(&here)
                .args([name, host(name), &receiver.service])
                .output()
                .expect("it runs");
            let sent = printed(&sent);
            assert_eq!(sent, format!("{}: {size} bytes sent\n", here.display()));
            let received = printed(&receiver.end());
            assert_eq!(
                received,
                format!("{}: {size} bytes received\n", there.display())
            );
            assert!(
                std::fs::read(&there).expect("it is there") == content(size),
                "{name}, {size}"
            );
        }
    }
}

/// A plain socket as the sender of something that is not right.
fn spoiled(bytes: &[u8]) -> (String, Output, bool) {
    let folder = folder();
    let receiver = build("xti_receive", folder.path());
    let file = folder.path().join("file");
    let receiver = Server::start(
        &receiver,
        folder.path(),
        &[file.to_str().expect("text"), "tcp", "0"],
    );
    let mut connection = TcpStream::connect(("127.0.0.1", receiver.port())).expect("it listens");
    connection.write_all(bytes).expect("it reads");
    connection
        .shutdown(Shutdown::Write)
        .expect("an open connection");
    let mut answer = String::new();
    connection.read_to_string(&mut answer).expect("a line");
    let output = receiver.end();
    let left = std::fs::read_dir(folder.path()).expect("our own folder");
    let left = left
        .flatten()
        .any(|e| e.file_name().to_string_lossy().starts_with("file"));
    (answer, output, left)
}

#[test]
fn a_spoiled_file_is_refused_and_leaves_nothing() {
    let mut wrong = 4u64.to_be_bytes().to_vec();
    wrong.extend_from_slice(b"data\0\0\0\0");
    for (bytes, why) in [
        (&b"\0\0"[..], "no file has come\n"),
        (&wrong[..10], "the file has ended too early\n"),
        (&wrong[..], "wrong checksum\n"),
    ] {
        let (answer, output, left) = spoiled(bytes);
        assert_eq!(answer, why);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).ends_with(why));
        assert!(!left);
    }
}
