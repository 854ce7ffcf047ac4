//! A module that edits lines, pushed on a pipe: what a terminal's line discipline was in System V.
//!
//!     cargo run -p headwater-examples --bin line_editor
//!
//! The other end of the pipe is the keyboard. Characters come up from there one by one; the module keeps the line that is
//! being typed, lets ^H (or DEL) erase a character and ^U the whole line, and hands each finished line on as one message.
//! What a screen would show goes back down. docs/streams.md walks through this program.

use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::time::{Duration, Instant};

use headwater_streams::ddi::{M_DATA, M_FLUSH, M_HANGUP, M_IOCTL, Message};
use headwater_streams::drivers::reply;
use headwater_streams::exec::queue::Flush;
use headwater_streams::exec::registry::register_module;
use headwater_streams::exec::{Info, Module, OpenFlag, Queue};
use headwater_streams::{Choice, Error, Priority, Received, Stream};

/// ioctl: the two characters that erase and kill.
const LINE_SETCHARS: c_int = (b'e' as c_int) << 8 | 1;

const BACKSPACE: u8 = 0x08;
const DEL: u8 = 0x7f;
const KILL: u8 = 0x15;

/// One stream's line. A put procedure may be entered again by what it calls, so the state lies in cells.
struct LineEditor {
    line: RefCell<Vec<u8>>,
    erase: Cell<u8>,
    kill: Cell<u8>,
}

impl Module for LineEditor {
    const INFO: Info = Info::new(0x6c65, c"lined");
    /// Lines wait on the read queue while the reader is full; the service procedure hands them on.
    const RSRV: bool = true;

    fn open(_: Queue, _: &mut libc::dev_t, _: c_int, _: OpenFlag) -> Result<Self, c_int> {
        Ok(LineEditor {
            line: RefCell::default(),
            erase: Cell::new(BACKSPACE),
            kill: Cell::new(KILL),
        })
    }

    /// From the keyboard.
    fn rput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_DATA => {
                for (_, bytes) in m.blocks() {
                    for &byte in bytes {
                        self.type_in(q, byte);
                    }
                }
            }
            M_FLUSH => {
                self.line.borrow_mut().clear();
                q.flush_as(&m, Flush::Data);
                q.putnext(m);
            }
            M_HANGUP => {
                // The line that was begun is a line too.
                self.finish(q);
                q.putnext(m);
            }
            _ => q.putnext(m),
        }
    }

    /// From the program.
    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_IOCTL if reply::command(&m) == Some(LINE_SETCHARS) => match m.to_data()[..] {
                [erase, kill] => {
                    self.erase.set(erase);
                    self.kill.set(kill);
                    reply::done(q, m, 0);
                }
                _ => reply::refuse(q, m, libc::EINVAL),
            },
            M_FLUSH => {
                q.flush_as(&m, Flush::Data);
                q.putnext(m);
            }
            _ => q.putnext(m),
        }
    }
}

impl LineEditor {
    fn type_in(&self, q: Queue, byte: u8) {
        if byte == self.erase.get() || byte == DEL {
            if erase_character(&mut self.line.borrow_mut()) {
                show(q, b"\x08 \x08");
            }
        } else if byte == self.kill.get() {
            self.line.borrow_mut().clear();
            show(q, b"\r\x1b[K");
        } else {
            self.line.borrow_mut().push(byte);
            show(q, &[byte]);
            if byte == b'\n' {
                self.finish(q);
            }
        }
    }

    /// Hands the line on, as one message.
    fn finish(&self, q: Queue) {
        let line = self.line.take();
        if line.is_empty() {
            return;
        }
        let m = Message::data(&line);
        if !reply::must_queue(q, &m) && q.takes_next(&m) {
            q.putnext(m);
        } else {
            q.putq(m);
        }
    }
}

/// Takes the last character off, all bytes of it; false if there is none.
fn erase_character(line: &mut Vec<u8>) -> bool {
    while let Some(byte) = line.pop() {
        if byte & 0xc0 != 0x80 {
            return true;
        }
    }
    false
}

/// To the screen: down, from the write queue beside this read queue. A screen that does not keep up misses some.
fn show(q: Queue, text: &[u8]) {
    let down = q.write();
    if down.canputnext() {
        down.putnext(Message::data(text));
    }
}

fn main() -> Result<(), Error> {
    register_module::<LineEditor>().map_err(Error::Failed)?;
    let (program, keyboard) = Stream::pipe()?;
    program.push("lined")?;
    println!("pushed: {}", program.modules()?.join(", "));

    // Two typing errors, and a line thought better of.
    for key in "helo\x08lo, wörldd\x08\nrm -rf /\x15ls\n".bytes() {
        keyboard.put_message(None, Some(&[key]), Priority::Band(0))?;
    }
    for _ in 0..2 {
        println!("line: {:?}", text(&program.get_message(Choice::Any)?));
    }

    // Other keys, by ioctl: # erases, @ kills, as on a teletype.
    program.ioctl(LINE_SETCHARS, &mut b"#@".to_vec(), None)?;
    keyboard.put_message(None, Some(b"cd /tmq#p@pwd\nlast"), Priority::Band(0))?;
    println!("line: {:?}", text(&program.get_message(Choice::Any)?));

    // An unfinished line is not there yet.
    let soon = Instant::now() + Duration::from_millis(10);
    println!(
        "unfinished: {}",
        program
            .get_message_until(Choice::Any, soon)
            .expect_err("no end of line yet")
    );

    keyboard.put_message(None, Some(b"\n"), Priority::Band(0))?;
    println!("line: {:?}", text(&program.get_message(Choice::Any)?));

    let mut screen = 0;
    keyboard.set_nonblocking(true)?;
    while let Ok(shown) = keyboard.get_message(Choice::Any) {
        screen += shown.data.map_or(0, |d| d.len());
    }
    println!("shown on the screen: {screen} bytes");

    drop(keyboard);
    println!(
        "then: {}",
        program
            .get_message(Choice::Any)
            .expect_err("nobody types any more")
    );
    Ok(())
}

fn text(m: &Received) -> String {
    String::from_utf8_lossy(m.data.as_deref().unwrap_or_default()).into_owned()
}
