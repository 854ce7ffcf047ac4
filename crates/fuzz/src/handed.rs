//! What an image is told of the streams, endpoints and SCTP sockets that it inherits, by variables that anybody may have set who
//! starts it. They speak of descriptors: this process has such as could be meant, and others of the program's.

use std::fs::File;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;

use headwater_endpoints::endpoint;
use headwater_host::handed::identity;
use headwater_host::table::{self, Kind};
use headwater_host::{hidden, sys};
use headwater_sctp_sockets::{face, remote};
use headwater_streams::head::{exec, life};
use headwater_streams::pipe::{Pipe, RING};

/// Below the library's own numbers, above the test's.
const FIRST: RawFd = 300;
/// Inodes of descriptors are words like their numbers.
const OTHER_WORDS: [&str; 22] = [
    "",
    "-",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "31",
    "300",
    "65536",
    "2147483648",
    "99999999999",
    "zz",
    "0a0b0c0d",
    "020013897f000001",
    ":",
    "/",
    ",",
    ";",
    "=",
    ".",
];

/// Which variable a text is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variable {
    Streams,
    Endpoints,
    Sctp,
}

/// A descriptor of the program's that nothing may happen to.
struct Kept {
    fd: RawFd,
    inode: u64,
    flags: i32,
}

/// This process, as an image that has inherited something.
pub struct Image {
    kept: Vec<Kept>,
    /// What lies at the numbers from [`FIRST`] on is a copy of these.
    models: Vec<RawFd>,
    words: Vec<String>,
    /// Entries that are understood as they are.
    valid: [Vec<Vec<String>>; 3],
}

impl Default for Image {
    fn default() -> Image {
        let pipe = Pipe::bare(false, RING).expect("memory");
        let bell = || sys::eventfd(0, libc::EFD_NONBLOCK).expect("an eventfd");
        let name = headwater_providers::loopback::name::socket().expect("a socket");
        let local = sys::dup_above(name.number(), 3).expect("a number");
        let (stream, _) = UnixStream::pair().expect("a pair");
        let stream = stream.into_raw_fd();
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        // The library's own come first: memory, bells, names and presences.
        let models = [
            pipe.memfd,
            bell(),
            bell(),
            local,
            udp.try_clone().expect("a copy").into_raw_fd(),
            stream,
            tcp.into_raw_fd(),
            udp.into_raw_fd(),
            bell(),
        ]
        .map(|fd| match table::lookup(fd) {
            Some(_) => fd,
            // Nothing that could be meant.
            None => hidden::hide(fd).expect("a number"),
        });
        let [read, write] = sys::pipe(0).expect("a pipe");
        let file = File::open("/proc/self/exe").expect("this program");
        let kept = [0, 1, 2, read, write, file.into_raw_fd()].map(|fd| Kept {
            fd,
            inode: identity(fd),
            flags: sys::fcntl(fd, libc::F_GETFD, 0).unwrap_or(-1),
        });
        let numbers = (0..models.len() as RawFd).map(|i| FIRST + i);
        let known = numbers.zip(models.iter().map(|&fd| identity(fd)));
        let kept_ones = kept.iter().map(|k| (k.fd, k.inode));
        let words = known
            .chain(kept_ones)
            .flat_map(|(fd, inode)| [fd.to_string(), inode.to_string()])
            .chain(OTHER_WORDS.map(String::from))
            .collect();
        let valid = valid(&models);
        Image {
            kept: kept.into(),
            models: models.into(),
            words,
            valid,
        }
    }
}

/// Words and what stands between them, for the numbers that the copies get.
fn valid(models: &[RawFd]) -> [Vec<Vec<String>>; 3] {
    let [
        memory,
        first,
        second,
        local,
        holder,
        stream,
        tcp,
        udp,
        nameless,
    ] = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|i| FIRST + i);
    let is = |fd: RawFd| identity(models[(fd - FIRST) as usize]);
    let link = format!(
        "0:{memory}:{}:{first}:{second}:1:6c6f63616c:72656d6f7465",
        is(memory)
    );
    let own = format!(
        "6e616d65/{local}.{}/{memory}.{}/{first}.{}",
        is(local),
        is(memory),
        is(first)
    );
    let host = "02001389000000007f00000100000000";
    let streams = [
        format!(
            "{stream}:0:0:{memory}:{first}:{second}:{}:{}",
            is(stream),
            is(memory)
        ),
        format!(
            "{nameless}:0:1:{memory}:{first}:{first}:{}:{}",
            is(nameless),
            is(memory)
        ),
    ];
    let endpoints = [
        format!("{nameless}:{}:ticlts:0:0:0:", is(nameless)),
        format!("{nameless}:{}:ticlts:1:0:0:{own}", is(nameless)),
        format!("{stream}:{}:ticots:6:0:0:6c6f63616c//0/{link}", is(stream)),
        format!(
            "{stream}:{}:ticotsord:6:1:4:6c6f63616c/{local}.{}/4/{link}",
            is(stream),
            is(local)
        ),
        format!("{tcp}:{}:tcp:1:0:5:1 5 9 0a0b 0,7 -", is(tcp)),
        format!(
            "{tcp}:{}:tcp:1:0:5:1 5 9 0a0b  {holder}.{} {udp}.{}",
            is(tcp),
            is(holder),
            is(udp)
        ),
        format!("{udp}:{}:udp:1:0:0:", is(udp)),
        format!("{udp}:{}:rawip:1:0:0:77", is(udp)),
        format!("{udp}:{}:udp2:1:0:0:{own}", is(udp)),
        format!("{udp}:{}:udp2:1:0:0:held/{holder}.{}", is(udp), is(holder)),
        format!(
            "{stream}:{}:sctp:6:0:0:{host}/{local}.{}/0/{host},{host},4,4,9,0,-1,{link}",
            is(stream),
            is(local)
        ),
        format!("{udp}:{}:udp:1:0:0:;{tcp}:{}:=1", is(udp), is(tcp)),
        format!("{udp}:{}:udp:1:0:0:;{tcp}:{}:={udp}", is(udp), is(tcp)),
    ];
    let sctp = [
        format!("{local},{};{stream},{},5,0,1", is(local), is(stream)),
        format!(
            "{local},{};{stream},{},5,0,0;{tcp},{},5,0,0;-1,0,6,0,0",
            is(local),
            is(stream),
            is(tcp)
        ),
    ];
    [&streams[..], &endpoints, &sctp].map(|all| all.iter().map(|text| words(text)).collect())
}

fn words(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '-' {
            all.last_mut().expect("there is one").push(c);
        } else {
            all.extend([c.to_string(), String::new()]);
        }
    }
    all
}

impl Image {
    /// Entries that are understood as they are, or were before a byte chose another word; returns how much was taken over.
    pub fn feed(&mut self, variable: Variable, bytes: &[u8]) -> usize {
        let text = self.text(variable, bytes);
        self.begin(variable, &text)
    }

    /// For each entry the first byte chooses which, and one for each of its words and signs whether it is another.
    fn text(&self, variable: Variable, mut bytes: &[u8]) -> String {
        let valid = &self.valid[variable as usize];
        let mut text = String::new();
        while let [which, rest @ ..] = bytes {
            let entry = &valid[usize::from(*which) % valid.len()];
            let (changes, left) = rest.split_at(rest.len().min(entry.len()));
            bytes = left;
            for (i, word) in entry.iter().enumerate() {
                let change = changes.get(i).copied().unwrap_or(0);
                text += match change {
                    0..192 => word,
                    _ => &self.words[(usize::from(change) * 7 + i) % self.words.len()],
                };
            }
            text.push(if variable == Variable::Sctp { '/' } else { ';' });
        }
        text
    }

    /// As any text.
    pub fn begin(&mut self, variable: Variable, text: &str) -> usize {
        for (to, &model) in (FIRST..).zip(&self.models) {
            sys::dup3(model, to, 0).expect("a number");
        }
        let before: Vec<RawFd> = table::entries().map(|(fd, _)| fd).collect();
        match variable {
            Variable::Streams => exec::inherit(text),
            Variable::Endpoints => endpoint::inherit(text),
            Variable::Sctp => remote::inherit(text),
        }
        for k in &self.kept {
            let flags = sys::fcntl(k.fd, libc::F_GETFD, 0).unwrap_or(-1);
            assert_eq!(
                (identity(k.fd), flags),
                (k.inode, k.flags),
                "{} by {text}",
                k.fd
            );
            assert_eq!(table::lookup(k.fd), None, "{} by {text}", k.fd);
        }
        let entered = || table::entries().filter(|(fd, _)| !before.contains(fd));
        let taken: Vec<_> = entered()
            .filter(|(_, h)| [Kind::Stream, Kind::Endpoint, Kind::Sctp].contains(&h.kind()))
            .collect();
        for &(fd, h) in &taken {
            match h.kind() {
                Kind::Endpoint => use_up(fd, endpoint::get(h).expect("it is open")),
                Kind::Stream => {
                    let after = life::closing(fd, h);
                    sys::close(fd).expect("it is open");
                    after.into_iter().for_each(life::After::finish);
                }
                _ => {
                    let closing = face::closing(fd, h);
                    sys::close(fd).expect("it is open");
                    closing.finish();
                }
            }
        }
        for fd in (FIRST..).take(self.models.len()) {
            hidden::close(fd);
        }
        taken.len()
    }
}

/// What a program does with it.
fn use_up(fd: RawFd, e: &endpoint::Endpoint) {
    let _ = e.state();
    let _ = e.local();
    let _ = e.remote();
    for _ in 0..4 {
        if e.peek().is_none() || e.take().is_none() {
            break;
        }
    }
    let _ = e.receive(&[]);
    let _ = e.sync();
    let _ = e.disconnect(None, &[]);
    let _ = e.unbind();
    e.forget(fd);
    sys::close(fd).expect("it is open");
    e.let_go();
}
