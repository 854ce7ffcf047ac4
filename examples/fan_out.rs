//! A multiplexing driver that fans messages out, with streams linked below it.
//!
//!     cargo run -p headwater-examples --bin fan_out
//!
//! What is written to /dev/fanout goes to every stream linked below, as messages that share their data. What comes up from
//! one of them goes to who wrote, with the link's number as the control part. The slowest subscriber holds the writer back:
//! nothing is lost, and no more is kept than the queues' marks allow. docs/streams.md walks through this program.

use std::cell::RefCell;
use std::ffi::c_int;
use std::thread;

use headwater_streams::ddi::{
    M_DATA, M_FLUSH, M_HANGUP, M_IOCTL, M_PCPROTO, M_PROTO, Message, linkblk,
};
use headwater_streams::drivers::reply;
use headwater_streams::exec::module::{set_lower, with_lower};
use headwater_streams::exec::queue::Flush;
use headwater_streams::exec::registry::register_mux;
use headwater_streams::exec::{Flow, Info, Module, Mux, OpenFlag, Queue};
use headwater_streams::{Choice, Error, Priority, Stream};

const I_LINK: c_int = (b'S' as c_int) << 8 | 12;
const I_UNLINK: c_int = (b'S' as c_int) << 8 | 13;

/// The upper stream: the write queues of the streams below, with their links' numbers.
#[derive(Default)]
struct Fanout {
    below: RefCell<Vec<(c_int, Queue)>>,
}

/// What is known of a lower stream.
struct Lower {
    link: c_int,
    /// The upper stream's read queue. It outlives the link: I_UNLINK comes before the close.
    above: Queue,
}

impl Module for Fanout {
    const INFO: Info = Info::new(0x666f, c"fanout");
    const WSRV: bool = true;
    const RSRV: bool = true;
    /// Streams above and below put to each other's queues, so they share a perimeter.
    const FLOW: Flow = Flow::Shared;

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(Fanout::default())
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_DATA | M_PROTO | M_PCPROTO => {
                if !reply::must_queue(q, &m) && self.all_take(&m) {
                    self.fan_out(m);
                } else {
                    q.putq(m);
                }
            }
            M_IOCTL => self.request(q, m),
            M_FLUSH => reply::flush_at_end(q, m),
            _ => {}
        }
    }

    /// Runs when a lower stream has room again, see `lwsrv`.
    fn wsrv(&self, q: Queue) {
        while let Some(m) = q.getq() {
            if !self.all_take(&m) {
                return q.putbq(m);
            }
            self.fan_out(m);
        }
    }

    /// The reader above has room again: the lower streams go on.
    fn rsrv(&self, _: Queue) {
        for (_, below) in self.below.borrow().iter() {
            below.read().qenable();
        }
    }
}

impl Fanout {
    /// Every one is asked, so that every full one back-enables us.
    fn all_take(&self, m: &Message) -> bool {
        let below = self.below.borrow();
        below.iter().filter(|(_, q)| !q.takes_next(m)).count() == 0
    }

    fn fan_out(&self, m: Message) {
        for (_, below) in self.below.borrow().iter() {
            if let Some(same) = m.dup() {
                below.putnext(same);
            }
        }
    }

    fn request(&self, q: Queue, mut m: Message) {
        let block = m.take_rest().and_then(|data| data.read::<linkblk>());
        let done = match (reply::command(&m), block) {
            (Some(I_LINK), Some(block)) => self.link(q, &block),
            (Some(I_UNLINK), Some(block)) => {
                let mut below = self.below.borrow_mut();
                below.retain(|&(link, _)| link != block.l_index);
                // It may have been the full one.
                q.qenable();
                Ok(())
            }
            _ => Err(libc::EINVAL),
        };
        match done {
            Ok(()) => reply::done(q, m, 0),
            Err(errno) => reply::refuse(q, m, errno),
        }
    }

    fn link(&self, q: Queue, block: &linkblk) -> Result<(), c_int> {
        if block.l_qbot.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the stream head gives the pair that it has put below us, which lives until I_UNLINK.
        let below = unsafe { Queue::from_raw(block.l_qbot) }.write();
        let lower = Lower {
            link: block.l_index,
            above: q.read(),
        };
        if !set_lower::<Fanout>(below, lower) {
            return Err(libc::EINVAL);
        }
        self.below.borrow_mut().push((block.l_index, below));
        Ok(())
    }
}

impl Mux for Fanout {
    type Lower = Lower;
    const LRSRV: bool = true;
    const LWSRV: bool = true;

    /// Up from below: data gets the link's number in front.
    fn lrput(lower: &Lower, q: Queue, mut m: Message) {
        match m.kind() {
            M_DATA | M_PROTO => {
                let band = m.band();
                let data = match m.kind() {
                    M_DATA => Some(m),
                    _ => m.take_rest(),
                };
                let mut marked = Message::from_struct(M_PROTO, lower.link);
                marked.set_band(band);
                if let Some(data) = data {
                    marked.append(data);
                }
                if !reply::must_queue(q, &marked) && lower.above.takes_next(&marked) {
                    lower.above.putnext(marked);
                } else {
                    q.putq(marked);
                }
            }
            M_FLUSH => q.flush_as(&m, Flush::Data),
            // The lower stream is over. Its link stays until I_UNLINK.
            M_HANGUP => println!("link {} has hung up", lower.link),
            _ => {}
        }
    }

    fn lrsrv(lower: &Lower, q: Queue) {
        while let Some(m) = q.getq() {
            if !lower.above.takes_next(&m) {
                return q.putbq(m);
            }
            lower.above.putnext(m);
        }
    }

    /// Room below again: the writer above may go on.
    fn lwsrv(_: &Lower, q: Queue) {
        with_lower::<Fanout, _>(q, |lower| lower.above.write().qenable());
    }
}

/// Reads until the stream hangs up; answers when told to.
fn subscribe(stream: Stream) -> Result<usize, Error> {
    let mut messages = 0;
    loop {
        match stream.get_message(Choice::Any) {
            Ok(m) if m.data.as_deref() == Some(b"how many?") => {
                let answer = format!("{messages}");
                stream.put_message(None, Some(answer.as_bytes()), Priority::Band(0))?;
            }
            Ok(_) => messages += 1,
            Err(Error::HungUp) => return Ok(messages),
            Err(e) => return Err(e),
        }
    }
}

fn main() -> Result<(), Error> {
    register_mux::<Fanout>("fanout").map_err(Error::Failed)?;
    let publisher = Stream::open("/dev/fanout")?;

    let mut links = Vec::new();
    let mut subscribers = Vec::new();
    for _ in 0..3 {
        let (below, theirs) = Stream::pipe()?;
        // The link keeps the lower stream open.
        links.push(publisher.link(&below)?);
        subscribers.push(thread::spawn(move || subscribe(theirs)));
    }
    println!("linked: {}", links.len());

    publish(&publisher, 0..1000)?;
    ask(&publisher, &links)?;

    publisher.unlink(links[2])?;
    println!("unlinked: {}", links[2]);
    publish(&publisher, 1000..1500)?;
    ask(&publisher, &links[..2])?;

    // Closing undoes the links, and with them the lower streams: the subscribers see a hangup.
    drop(publisher);
    for (link, subscriber) in links.iter().zip(subscribers) {
        let messages = subscriber.join().expect("subscribers do not panic")?;
        println!("link {link}: {messages} messages in all");
    }
    Ok(())
}

fn publish(publisher: &Stream, numbers: std::ops::Range<u32>) -> Result<(), Error> {
    println!("published: {} to {}", numbers.start, numbers.end - 1);
    for number in numbers {
        let text = format!("news item {number}, of a length that fills queues before long");
        publisher.put_message(None, Some(text.as_bytes()), Priority::Band(0))?;
    }
    Ok(())
}

/// Asks all subscribers at once, and shows their answers in the order of the links.
fn ask(publisher: &Stream, links: &[c_int]) -> Result<(), Error> {
    publisher.put_message(None, Some(b"how many?"), Priority::Band(0))?;
    let mut answers = Vec::new();
    for _ in links {
        let answer = publisher.get_message(Choice::Any)?;
        let link = answer.control.and_then(|c| c.try_into().ok());
        let link = c_int::from_ne_bytes(link.expect("a link's number"));
        let count =
            String::from_utf8_lossy(answer.data.as_deref().unwrap_or_default()).into_owned();
        answers.push((link, count));
    }
    answers.sort();
    for (link, count) in answers {
        println!("link {link}: {count} messages so far");
    }
    Ok(())
}
