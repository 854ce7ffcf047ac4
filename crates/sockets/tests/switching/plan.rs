//! What happens in one case; all of it follows from the seed.

use crate::common::stream::{Random, Stream};

/// How an end goes about its two directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// One thread reads, one writes, both block.
    Threads,
    /// One thread, a non-blocking socket, and poll.
    Poll,
}

/// What a forked sibling does with the connection; its parent does the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sibling {
    Reads,
    Writes,
    /// The parent closes its descriptor at once. Only with [`Style::Poll`].
    DoesAll,
    /// Reads by bare kernel calls, after a freeze, as an image without the library would.
    ReadsBare,
    /// Peeks, polls, switches and un-switches, but moves nothing.
    Disturbs,
}

/// Something that happens at `end` once it has moved `after` bytes in the direction that matters.
#[derive(Clone, Copy, Debug)]
pub struct Event<T> {
    pub end: usize,
    pub after: u64,
    pub what: T,
}

/// Who is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Victim {
    End,
    /// The sibling that disturbs: nothing may be lost.
    Sibling,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finish {
    /// Each end shuts its direction down when all is written, and reads to the end of file.
    Shutdown,
    /// Each end closes when it has written and read what was agreed.
    Close,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub v6: bool,
    /// Bytes of the kernel's buffers, small ones so that its sends block in the middle; 0: the usual ones.
    pub buffers: i32,
    /// Begins with an exchange during which the connection is taken over; else that happens in full flow, or not at all.
    pub greets: bool,
    /// Bytes that each end sends.
    pub total: [u64; 2],
    pub style: [Style; 2],
    /// One write in so many goes back to the kernel first.
    pub unswitch: [usize; 2],
    pub largest: usize,
    /// A third thread switches and un-switches at any time.
    pub shaken: [bool; 2],
    pub spins: bool,
    pub finish: Finish,
    pub fork: Option<Event<Sibling>>,
    pub freeze: Option<Event<()>>,
    pub kill: Option<Event<Victim>>,
    /// Each time that the end has read so many bytes more it starts an image without the library, which inherits the
    /// connection, and is waited for or not; 0: never.
    pub images: [u64; 2],
}

impl Plan {
    pub fn new(seed: u64) -> Plan {
        let mut r = Random::new(seed);
        let buffers = r.pick(&[0, 0, 0, 8_000, 30_000]);
        // TCP is slow with small buffers.
        let most = if buffers > 0 { 150_000 } else { 1_000_000 };
        let total = [0, 1].map(|_| r.scale(20_000, most) as u64);
        let mut plan = Plan {
            seed,
            v6: r.one_in(3),
            buffers,
            greets: !r.one_in(6),
            total,
            style: [0, 1].map(|_| r.pick(&[Style::Threads, Style::Poll])),
            unswitch: [0, 1].map(|_| r.pick(&[3, 10, 50, usize::MAX])),
            largest: r.pick(&[100, 3_000, 30_000, 200_000]),
            shaken: [0, 1].map(|_| r.one_in(3)),
            spins: r.one_in(2),
            finish: r.pick(&[Finish::Shutdown, Finish::Close]),
            fork: None,
            freeze: None,
            kill: None,
            images: [0; 2],
        };
        match r.below(10) {
            0..3 => {}
            3..6 => plan.fork = Some(plan.sibling(&mut r)),
            6 => plan.freeze = Some(plan.event(&mut r, ())),
            7 => plan.kill = Some(plan.event(&mut r, Victim::End)),
            8 => plan.disturb_and_kill(&mut r),
            _ => {
                plan.fork = Some(plan.sibling(&mut r));
                plan.freeze = Some(plan.event(&mut r, ()));
            }
        }
        // What goes in crumbs by TCP takes long.
        if r.one_in(3) && plan.largest > 100 {
            let read = [plan.total[1], plan.total[0]];
            plan.images = read.map(|n| r.pick(&[0, n / 2, n / 4, n / 8]));
        }
        plan
    }

    pub fn stream(&self, end: usize) -> Stream {
        Stream {
            seed: self.seed.wrapping_mul(2) + end as u64,
        }
    }

    fn event<T>(&self, r: &mut Random, what: T) -> Event<T> {
        let least = self.total[0].min(self.total[1]) as usize;
        // Often near the end, when the other end may have written all and only waits.
        let after = if r.one_in(2) {
            r.scale(1_000, least)
        } else {
            least - r.scale(1, least.min(60_000))
        };
        Event {
            end: r.below(2),
            after: after as u64,
            what,
        }
    }

    fn sibling(&self, r: &mut Random) -> Event<Sibling> {
        use Sibling::*;
        let mut event = self.event(
            r,
            r.clone()
                .pick(&[Reads, Writes, DoesAll, ReadsBare, Disturbs]),
        );
        if self.style[event.end] == Style::Threads && event.what == DoesAll {
            event.what = Reads;
        }
        event
    }

    fn disturb_and_kill(&mut self, r: &mut Random) {
        let fork = self.event(r, Sibling::Disturbs);
        let rest = (self.total[0].min(self.total[1]) - fork.after) as usize;
        self.kill = Some(Event {
            end: fork.end,
            after: fork.after + r.below(rest) as u64,
            what: Victim::Sibling,
        });
        self.fork = Some(fork);
    }

    /// May bytes be missing at the end of a stream?
    pub fn loses_tail(&self) -> bool {
        self.kill.is_some_and(|k| k.what == Victim::End)
    }
}
