//! Sinks: what the associations of a socket tell it, over UDP within one process.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::Duration;

use headwater_host::{process, sys};
use headwater_sctp_stack::sink::Sink;
use headwater_sctp_stack::{AssocConfig, Association, Down, Event, Outgoing, Port, Via, stack};

const LONG: u64 = 20_000_000_000;

fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

fn udp_port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(|| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        // SAFETY: nobody else reads the environment now.
        unsafe { std::env::set_var("HEADWATER_SCTP_UDP_PORT", port.to_string()) };
        process::identify();
        port
    })
}

/// A port with its sink, as a socket has them.
struct End {
    sink: Arc<Sink>,
    port: Port,
}

impl End {
    fn new() -> End {
        let via = udp_port();
        assert_ne!(via, 0);
        let sink = Arc::<Sink>::default();
        let port = Port::bind_for(&here(), 0, &AssocConfig::default(), Some(sink.clone())).unwrap();
        End { sink, port }
    }

    /// At all addresses.
    fn any() -> End {
        let sink = Arc::<Sink>::default();
        let port = Port::bind_for(&[], 0, &AssocConfig::default(), Some(sink.clone())).unwrap();
        End { sink, port }
    }

    fn listening() -> End {
        let mut end = End::new();
        end.port.listen(100).unwrap();
        end
    }

    fn connect(&self, to: &End) -> Association {
        let via = Via::Udp(udp_port());
        let config = AssocConfig::default();
        self.port
            .connect(&here(), to.port.port(), &config, via)
            .unwrap()
    }

    fn accept(&self) -> Association {
        wait(&self.sink, || self.sink.arrivals());
        self.port.accept().unwrap()
    }

    /// Until this association has news.
    fn hear_of(&self, one: &Association) {
        hear_of(&self.sink, one);
    }
}

fn here() -> [IpAddr; 1] {
    ["127.0.0.1".parse().unwrap()]
}

fn wait(sink: &Sink, ready: impl FnMut() -> bool) {
    let until = sys::now() + LONG;
    let stack = stack::current().unwrap();
    assert_eq!(stack.wait(&sink.signal, until, &[], ready), Ok(true));
}

fn hear_of(sink: &Sink, one: &Association) {
    let wanted = (one.local_port(), one.id());
    wait(sink, || sink.take().contains(&wanted));
}

fn events(of: &Association) -> Vec<Event> {
    std::iter::from_fn(|| of.event().unwrap()).collect()
}

/// Two associations' ends, up, with nothing left to tell.
fn pair(client: &End, server: &End) -> (Association, Association) {
    let ours = client.connect(server);
    let theirs = server.accept();
    while events(&ours).is_empty() {
        client.hear_of(&ours);
    }
    server.hear_of(&theirs);
    assert_eq!(events(&theirs).first(), Some(&Event::Up { by_peer: true }));
    client.sink.take();
    server.sink.take();
    (ours, theirs)
}

fn is_readable(fd: i32) -> bool {
    let mut set = [libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }];
    sys::ppoll(&mut set, Some(0)) == Ok(1)
}

fn say(on: &Association, text: &[u8]) {
    on.send(&Outgoing::default(), text, false).unwrap();
    on.flush();
}

#[test]
fn an_association_with_news_is_named_once_until_that_is_taken() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let fd = server.sink.descriptor().unwrap();
    let (one, at_server) = pair(&client, &server);
    let second_client = End::new();
    let (two, other) = pair(&second_client, &server);
    assert!(!is_readable(fd), "there is nothing to tell");
    for text in [b"a", b"b", b"c"] {
        say(&one, text);
    }
    wait(&server.sink, || is_readable(fd));
    let port = server.port.port();
    assert_eq!(server.sink.take(), [(port, at_server.id())]);
    assert!(!is_readable(fd), "it was taken");
    say(&two, b"x");
    server.hear_of(&other);
    let mut buffer = [0; 10];
    assert_eq!(other.receive(&mut buffer).unwrap().unwrap().len, 1);
    one.abort(b"enough");
    server.hear_of(&at_server);
    let told = events(&at_server);
    let down = |e: &Event| matches!(e, Event::Down(Down::Aborted { by_peer: true, .. }));
    assert!(told.iter().any(down), "{told:?}");
}

#[test]
fn who_waits_to_be_accepted_is_told_by_the_descriptor() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let fd = server.sink.descriptor().unwrap();
    let ours = client.connect(&server);
    wait(&server.sink, || is_readable(fd));
    assert!(server.sink.arrivals());
    assert_eq!(server.sink.take(), [], "nobody has it yet");
    assert!(is_readable(fd), "it still waits");
    let theirs = server.port.accept().unwrap();
    assert!(!server.sink.arrivals(), "nobody waits any more");
    let told = server.sink.take();
    assert_eq!(told, [(server.port.port(), theirs.id())], "with its news");
    assert!(!is_readable(fd));
    drop((ours, theirs));
}

#[test]
fn an_association_that_moves_tells_its_new_socket() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let (ours, theirs) = pair(&client, &server);
    say(&ours, b"before");
    server.hear_of(&theirs);
    let peeled = Arc::<Sink>::default();
    theirs.attach(&peeled);
    assert_eq!(peeled.take(), [(server.port.port(), theirs.id())]);
    let mut buffer = [0; 10];
    theirs.receive(&mut buffer).unwrap().unwrap();
    say(&ours, b"after");
    hear_of(&peeled, &theirs);
    assert_eq!(server.sink.take(), []);
}

#[test]
fn room_is_told_after_there_was_none() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let (ours, theirs) = pair(&client, &server);
    let message = [7; 10_000];
    while ours.send(&Outgoing::default(), &message, false) != Err(libc::EAGAIN) {}
    assert!(!ours.has_room());
    client.sink.take();
    let mut buffer = [0; 20_000];
    let fd = client.sink.descriptor().unwrap();
    client.sink.want_room();
    wait(&client.sink, || {
        while theirs.receive(&mut buffer).is_ok() {}
        is_readable(fd)
    });
    client.hear_of(&ours);
    assert!(ours.has_room());
}

#[test]
fn a_wait_ends_with_other_descriptors_too() {
    let _turn = alone();
    let end = End::new();
    let stack = stack::current().unwrap();
    let mut pipe = [0; 2];
    // SAFETY: room for two descriptors.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let wait_beside = || {
        let sink = Arc::<Sink>::default();
        stack.wait(&sink.signal, sys::now() + LONG, &pipe[..1], || false)
    };
    let say = || {
        thread::sleep(Duration::from_millis(30));
        // SAFETY: one readable byte.
        assert_eq!(unsafe { libc::write(pipe[1], b"x".as_ptr().cast(), 1) }, 1);
    };
    thread::scope(|scope| {
        scope.spawn(say);
        assert_eq!(wait_beside(), Ok(true), "as the leader");
    });
    let mut byte = 0u8;
    // SAFETY: one writable byte.
    assert_eq!(unsafe { libc::read(pipe[0], (&raw mut byte).cast(), 1) }, 1);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let leader = scope.spawn(|| {
            let ready = || over.load(Ordering::SeqCst);
            stack.wait(&end.sink.signal, sys::now() + LONG, &[], ready)
        });
        scope.spawn(say);
        assert_eq!(wait_beside(), Ok(true), "as a follower");
        over.store(true, Ordering::SeqCst);
        stack::kick(&end.sink);
        assert_eq!(leader.join().unwrap(), Ok(true), "the kick was heard");
    });
    // SAFETY: ours.
    unsafe { (libc::close(pipe[0]), libc::close(pipe[1])) };
}

#[test]
fn what_is_sent_before_the_handshake_is_over_arrives_though_the_sender_lets_go() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let ours = client.connect(&server);
    say(&ours, b"early");
    drop(ours);
    let theirs = server.accept();
    let mut buffer = [0; 10];
    let mut got = None;
    wait(&server.sink, || {
        got = theirs.receive(&mut buffer).ok().flatten();
        got.is_some()
    });
    assert_eq!(&buffer[..got.unwrap().len], b"early");
}

#[test]
fn a_port_can_be_had_again_while_associations_keep_it() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let (ours, theirs) = pair(&client, &server);
    let number = server.port.port();
    let bind = || {
        Port::bind_for(
            &here(),
            number,
            &AssocConfig::default(),
            Some(Arc::default()),
        )
    };
    assert_eq!(bind().err(), Some(libc::EADDRINUSE), "it has a user");
    drop(server);
    let sink = Arc::<Sink>::default();
    let mut port =
        Port::bind_for(&here(), number, &AssocConfig::default(), Some(sink.clone())).unwrap();
    port.listen(10).unwrap();
    let again = End { sink, port };
    let second = End::new();
    let (new, at_new) = pair(&second, &again);
    say(&new, b"new");
    again.hear_of(&at_new);
    drop((ours, theirs));
    let mut buffer = [0; 10];
    assert_eq!(at_new.receive(&mut buffer).unwrap().unwrap().len, 3);
}

#[test]
fn a_port_answers_at_its_own_addresses_and_families_only() {
    let _turn = alone();
    let (client, server) = (End::new(), End::listening());
    let config = AssocConfig::default();
    let number = server.port.port();
    let call = |host: &str| {
        let host: IpAddr = host.parse().unwrap();
        let via = Via::Udp(udp_port());
        let ours = End::any().port.connect(&[host], number, &config, via);
        ours.unwrap().established(Some(Duration::from_secs(20)))
    };
    assert_eq!(call("127.0.0.2"), Err(libc::ECONNREFUSED));
    assert_eq!(call("127.0.0.1"), Ok(()));
    server.port.configure(|config| config.ipv4 = false).unwrap();
    assert_eq!(call("127.0.0.1"), Err(libc::ECONNREFUSED));
    drop(client);
}
