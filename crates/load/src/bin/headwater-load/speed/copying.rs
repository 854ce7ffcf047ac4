//! The copies alone: what a message there and back takes where it is copied four times, into shared memory and out of it on
//! either way, and nobody waits for anybody.

use std::hint::black_box;
use std::io;
use std::slice;
use std::time::Instant;

use crate::speed::message::Message;
use crate::speed::options::Options;
use crate::speed::report::Report;
use crate::sys;
use crate::until::Until;

/// Messages between two looks at the clock and at the contents.
const BATCH: u64 = 64;

pub fn run(options: &Options) -> io::Result<Report> {
    sys::pin(&options.server_cpus)?;
    let mut copies = Copies::new(options)?;
    copies.run(options.warm_up())?;
    let (before, usage, start) = (copies.number, sys::usage(), Instant::now());
    copies.run(options.until())?;
    let messages = copies.number - before;
    Ok(Report {
        messages,
        all_messages: copies.number,
        seconds: start.elapsed().as_secs_f64(),
        bytes: messages * options.size as u64,
        spent: sys::usage().since(usage),
        ..Report::default()
    })
}

struct Copies {
    message: Message,
    there: Area,
    back: Area,
    at_server: Vec<u8>,
    at_client: Vec<u8>,
    number: u64,
}

impl Copies {
    fn new(options: &Options) -> io::Result<Copies> {
        Ok(Copies {
            message: Message::new(options.size, 0),
            there: Area::new(options)?,
            back: Area::new(options)?,
            at_server: vec![0; options.size],
            at_client: vec![0; options.size],
            number: 0,
        })
    }

    fn run(&mut self, until: Until) -> io::Result<()> {
        let (start, before) = (Instant::now(), self.number);
        let batch = match until {
            Until::Count(count) => count.min(BATCH),
            Until::Time(_) => BATCH,
        };
        while !until.reached(start.elapsed(), self.number - before) {
            for _ in 0..batch {
                let message = self.message.stamped(self.number);
                self.there.pass(message, &mut self.at_server);
                self.back.pass(&self.at_server, &mut self.at_client);
                self.number += 1;
            }
            self.message.check(&self.at_client, self.number - 1)?;
        }
        Ok(())
    }
}

/// Shared memory as large as a ring, used from one end to the other as a ring's is.
struct Area {
    memory: &'static mut [u8],
    step: usize,
    at: usize,
}

impl Area {
    fn new(options: &Options) -> io::Result<Area> {
        let (size, step) = (options.ring(), options.size.next_multiple_of(8));
        if step > size {
            return Err(io::Error::other("a message does not fit into the slots"));
        }
        let memory = sys::map_shared(size, None)?;
        // SAFETY: so many bytes that nobody else has.
        let memory = unsafe { slice::from_raw_parts_mut(memory, size) };
        let at = 0;
        Ok(Area { memory, step, at })
    }

    /// In and out again.
    #[inline]
    fn pass(&mut self, message: &[u8], received: &mut [u8]) {
        let place = &mut self.memory[self.at..self.at + message.len()];
        place.copy_from_slice(message);
        // Else both copies could become one.
        black_box(&mut *place);
        received.copy_from_slice(place);
        black_box(received);
        self.at += self.step;
        if self.at + self.step > self.memory.len() {
            self.at = 0;
        }
    }
}
