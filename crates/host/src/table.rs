//! The descriptor table: what each descriptor number of this process means to us. A foreign descriptor costs one load.

use std::sync::OnceLock;

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Exchange, Ordering};

/// Numbers at and beyond this are always foreign.
pub const SIZE: usize = 1 << 20;

/// Between the tables that most processes touch and the others, since its beginning is touched, and the most of it not.
#[cfg_attr(target_arch = "x86_64", unsafe(link_section = ".bss.headwater_table"))]
static TABLE: [AtomicU64; SIZE] = [const { AtomicU64::new(0) }; SIZE];
/// Descriptors that are ours in some way (hidden ones not counted): while zero, sets need not be searched.
#[unsafe(link_section = ".data")]
static TRACKED: AtomicU32 = AtomicU32::new(0);
/// One past the highest number ever tracked.
#[unsafe(link_section = ".data")]
static TOP: AtomicU32 = AtomicU32::new(0);

/// What stands in the table: {kind: 8, generation: 24, tag: 16, index: 16}, a socket's or set's index having all of 32 bits;
/// 0 is foreign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Handle(u64);

/// What only some kinds are, in the table of which it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trait {
    /// The kernel can do nothing with it: it stays what it is in a process that has confined itself.
    OursAlone,
    /// The kernel sees nothing of what comes, so without a bell no set can have it; and poll(2) tells all that is ready of it, rather
    /// than all that was so a little before.
    ToldByBell,
}

macro_rules! kinds {
    ($($(#[$m:meta])* $kind:ident = $number:literal $(is $first:ident $(and $more:ident)*)?,)*) => {
        /// What a number may stand for. A new kind has a line here, and registers its [`Descriptor`].
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$m])* $kind = $number,)*
        }

        impl Kind {
            fn of(number: u64) -> Kind {
                match number {
                    $($number => Kind::$kind,)*
                    _ => Kind::Hidden,
                }
            }

            /// Is it a kind that is `what`?
            #[inline(always)]
            pub fn is(self, what: Trait) -> bool {
                match self {
                    $(Kind::$kind => false $(|| what == Trait::$first $(|| what == Trait::$more)*)?,)*
                }
            }
        }

        static DESCRIPTORS: [OnceLock<&'static dyn Descriptor>; 1 + [$($number),*].len()] =
            [const { OnceLock::new() }; 1 + [$($number),*].len()];
    };
}

kinds! {
    /// One of the library's own; the program must not touch it.
    Hidden = 1,
    Socket = 2,
    Epoll = 3,
    Stream = 4 is OursAlone and ToldByBell,
    /// A transport endpoint that is used by function calls.
    Endpoint = 5 is OursAlone,
    /// An SCTP socket of our own.
    Sctp = 6 is OursAlone and ToldByBell,
    /// A socket that the former image looked after, and this one not yet.
    Inherited = 7,
}

impl Handle {
    /// What a foreign descriptor has.
    pub const FOREIGN: Handle = Handle(0);
    const HIDDEN: Handle = Handle((Kind::Hidden as u64) << 56);

    pub fn new(kind: Kind, generation: u32, index: u32) -> Handle {
        Handle((kind as u64) << 56 | (generation as u64 & 0xff_ffff) << 32 | index as u64)
    }
    #[inline(always)]
    pub fn kind(self) -> Kind {
        Kind::of(self.0 >> 56)
    }
    /// All of it, for an atomic word; 0 is foreign.
    pub fn bits(self) -> u64 {
        self.0
    }
    pub fn from_bits(bits: u64) -> Option<Handle> {
        (bits != 0).then_some(Handle(bits))
    }
    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32 & 0xff_ffff
    }
    pub fn index(self) -> usize {
        match self.kind() {
            Kind::Stream => self.0 as u16 as usize,
            _ => self.0 as u32 as usize,
        }
    }
    /// What distinguishes descriptors of one stream.
    pub fn tag(self) -> u32 {
        (self.0 >> 16) as u16 as u32
    }
    pub fn with_tag(self, tag: u32) -> Handle {
        Handle(self.0 & !0xffff_0000 | (tag as u64 & 0xffff) << 16)
    }
}

/// Among [`Descriptor::kernel_events`]: what the kernel says of the descriptor means nothing for now. poll(2) then leaves it
/// out; in an epoll set, where the bit is EPOLLET, it is said once.
pub const NOT_KERNELS: u32 = 1 << 31;

/// How often this process has ended something of a connection, or found it ended.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    pub shut: u32,
    pub reset: u32,
}

/// What has come by the kernel, for edge-triggered sets.
#[derive(Clone, Copy, Default)]
pub struct Arrivals {
    /// Changes with each arrival; what was in shared memory before is none.
    pub count: u64,
    /// How much was in shared memory before, and has come by the kernel since.
    pub taken_back: u64,
    /// Whatever the kernel has told by now is counted.
    pub certain: bool,
}

static SHARES_ENDS: AtomicBool = AtomicBool::new(false);

/// From here on other processes may hold ends that this one holds, and move them without a bell.
pub fn share_ends() {
    SHARES_ENDS.store(true, Ordering::SeqCst);
}

pub fn shares_ends() -> bool {
    SHARES_ENDS.load(Ordering::Relaxed)
}

/// A kind of descriptor whose readiness is partly known in user space. Event bits are poll(2)'s.
pub trait Descriptor: Sync {
    /// Events among `want` that hold by shared memory alone; what the kernel knows is asked of the kernel.
    fn ready(&self, h: Handle, want: u32) -> u32;
    /// As [`ready`](Descriptor::ready), for an edge-triggered registration that was told of all that has come: the kernel would not look.
    fn still_ready(&self, h: Handle, want: u32) -> u32 {
        self.ready(h, want)
    }
    /// Registers a sleeper for `want`: the peer will ring the bell. The caller fences and looks again afterwards.
    fn arm(&self, h: Handle, want: u32);
    /// Takes back one `arm`.
    fn disarm(&self, h: Handle, want: u32);
    /// In the child of a fork: what its parent has armed, and the child has not. It takes back what is counted in its own memory, and nothing
    /// in what both share. False: it is disarmed as any other.
    fn armed_by_parent(&self, _h: Handle, _want: u32) -> bool {
        false
    }
    /// Does a call that waits hold it, though its last number is closed?
    fn is_held(&self, _h: Handle) -> bool {
        false
    }
    /// The doorbell's descriptor; `None` while the kernel alone decides.
    fn bell(&self, h: Handle) -> Option<i32>;
    /// The bell of `h` fired and was consumed: pass the ring on to whoever else sleeps.
    fn settle(&self, h: Handle);
    /// The events that the kernel must watch on the descriptor itself. None where the shadow says nothing.
    fn kernel_events(&self, _h: Handle, _want: u32) -> u32 {
        NOT_KERNELS
    }
    /// Changes with each arrival (reading) and each return of room (writing): for edge-triggered sets.
    fn edges(&self, h: Handle) -> (u64, u64);
    /// What has come by the kernel.
    fn kernel_arrivals(&self, _h: Handle) -> Arrivals {
        Arrivals::default()
    }
    /// Where that is not [certain](Arrivals::certain): is it all that the kernel has received, as this tells by itself?
    fn has_counted_all(&self, _h: Handle) -> bool {
        false
    }
    /// How much the kernel has received in all, whoever counted it; `None`: that can't be told.
    fn kernel_received(&self, _h: Handle) -> Option<u64> {
        None
    }
    /// Has the program taken all that came by the kernel? What it has not, the kernel tells by itself.
    fn has_taken_arrivals(&self, _h: Handle) -> bool {
        true
    }
    /// Change with each call that shut something or told the program of a reset: edges that may leave no trace.
    fn ends(&self, _h: Handle) -> Ends {
        Ends::default()
    }
    /// Is there room where the kernel alone knows of it?
    fn has_kernel_room(&self, _h: Handle) -> bool {
        false
    }
    /// Which of the events `asked` for hold by the kernel now, where it `reported` some a while ago? Who can't ask says those.
    fn kernel_holds(&self, _h: Handle, reported: u32, _asked: u32) -> u32 {
        reported
    }
    /// The kernel reported these events for the descriptor itself; returns what holds of them. Of a shadow that says nothing that it is
    /// closed.
    fn kernel_reported(&self, _h: Handle, events: u32) -> u32 {
        events & libc::POLLNVAL as u32
    }
    /// Where the peer last ran, `u32::MAX` if unknown.
    fn peer_cpu(&self, _h: Handle) -> u32 {
        u32::MAX
    }
    /// A wait in the bare kernel begins (+1) or ends (-1) on a descriptor without a bell. False when it may not begin: the
    /// descriptor has a bell by now, look again.
    fn busy(&self, _h: Handle, _change: i32) -> bool {
        true
    }
    /// The longest that a sleep for `want` may last, in nanoseconds, where it must be bounded.
    fn slice(&self, _h: Handle, _want: u32) -> Option<u64> {
        None
    }
    /// A sleep for `want` lasted its slice.
    fn slice_over(&self, _h: Handle, _want: u32) {}
    /// Takes what made the bell readable; was there anything?
    fn take(&self, _h: Handle, bell: i32) -> bool {
        headwater_channel::bell::take(bell)
    }
    /// An epoll set was told by the bell, and took nothing from it.
    fn rung(&self, _h: Handle) {}
    /// Do epoll sets hold it as the program says, for the kernel to tell?
    fn is_apart(&self, _h: Handle) -> bool {
        false
    }
    /// Rings the bell from this side.
    fn ring(&self, _h: Handle, bell: i32) {
        headwater_channel::bell::ring(bell);
    }
}

/// Names the implementation of a kind; before the first of that kind.
pub fn register(kind: Kind, d: &'static dyn Descriptor) {
    let _ = DESCRIPTORS[kind as usize].set(d);
}

/// The implementation behind a handle.
pub fn descriptor(h: Handle) -> Option<&'static dyn Descriptor> {
    DESCRIPTORS[h.kind() as usize].get().copied()
}

/// Makes sockets of inherited descriptors, when they are used first.
static ADOPT: OnceLock<fn(i32, Handle) -> Option<Handle>> = OnceLock::new();

/// Names what adopts inherited descriptors; once, at start.
pub fn on_inherited(adopt: fn(i32, Handle) -> Option<Handle>) {
    let _ = ADOPT.set(adopt);
}

/// What an inherited descriptor becomes with its first use; `None`: foreign.
#[cold]
fn adopted(fd: i32, h: Handle) -> Option<Handle> {
    ADOPT.get().and_then(|adopt| adopt(fd, h))
}

/// What `fd` is to us; `None`: foreign.
#[inline(always)]
pub fn lookup(fd: i32) -> Option<Handle> {
    let word = TABLE.get(fd as usize)?.load(Ordering::Acquire);
    if word == 0 { None } else { Some(Handle(word)) }
}

/// As [`lookup`], for a use of the descriptor: an inherited one is adopted.
#[inline(always)]
pub fn used(fd: i32) -> Option<Handle> {
    as_used(fd, lookup(fd)?)
}

/// What `fd` is for a use, where it was looked up.
#[inline(always)]
pub fn as_used(fd: i32, h: Handle) -> Option<Handle> {
    if h.kind() == Kind::Inherited {
        return adopted(fd, h);
    }
    Some(h)
}

/// The socket behind `fd`, if we look after it.
#[inline(always)]
pub fn socket(fd: i32) -> Option<Handle> {
    used(fd).filter(|h| h.kind() == Kind::Socket)
}

/// The stream behind `fd`.
#[inline(always)]
pub fn stream(fd: i32) -> Option<Handle> {
    lookup(fd).filter(|h| h.kind() == Kind::Stream)
}

/// The SCTP socket behind `fd`.
#[inline(always)]
pub fn sctp(fd: i32) -> Option<Handle> {
    lookup(fd).filter(|h| h.kind() == Kind::Sctp)
}

/// Enters `h` for `fd`; false when the number is beyond the table. What stood there is overwritten.
pub fn set(fd: i32, h: Handle) -> bool {
    let entered = enter(fd, h);
    if entered {
        TRACKED.fetch_add(1, Ordering::Relaxed);
    }
    entered
}

pub fn set_hidden(fd: i32) -> bool {
    enter(fd, Handle::HIDDEN)
}

fn enter(fd: i32, h: Handle) -> bool {
    let Some(word) = TABLE.get(fd as usize) else {
        return false;
    };
    word.store(h.0, Ordering::Release);
    TOP.fetch_max(fd as u32 + 1, Ordering::Relaxed);
    true
}

/// Makes `fd` foreign again; returns what it was.
pub fn clear(fd: i32) -> Option<Handle> {
    let word = TABLE.get(fd as usize)?.swap(0, Ordering::AcqRel);
    if word == 0 {
        return None;
    }
    let h = Handle(word);
    if h.kind() != Kind::Hidden {
        TRACKED.fetch_sub(1, Ordering::Relaxed);
    }
    Some(h)
}

/// Makes `fd` foreign if it still is `h`; was it?
pub fn clear_if(fd: i32, h: Handle) -> bool {
    swap_if(fd, h, Handle::FOREIGN)
}

/// Makes `fd` one of the library's own if it still is `h`; was it?
pub fn hide_if(fd: i32, h: Handle) -> bool {
    swap_if(fd, h, Handle::HIDDEN)
}

/// Makes `fd` this instead if it still is `h`; was it?
pub fn replace_if(fd: i32, h: Handle, new: Handle) -> bool {
    let word = TABLE.get(fd as usize);
    word.is_some_and(|word| word.exchange(h.0, new.0))
}

fn swap_if(fd: i32, h: Handle, new: Handle) -> bool {
    let swapped = replace_if(fd, h, new);
    if swapped {
        TRACKED.fetch_sub(1, Ordering::Relaxed);
    }
    swapped
}

/// Does the process have any descriptor that is not foreign?
#[inline(always)]
pub fn any_tracked() -> bool {
    TRACKED.load(Ordering::Relaxed) > 0
}

/// Has any descriptor ever been more than foreign? The library's own count too.
pub fn any() -> bool {
    TOP.load(Ordering::Relaxed) > 0
}

/// The numbers that stand for `h`, the lowest first.
pub fn numbers(h: Handle) -> impl Iterator<Item = i32> {
    entries().filter_map(move |(fd, other)| (other == h).then_some(fd))
}

/// All entries, lowest number first.
pub fn entries() -> impl Iterator<Item = (i32, Handle)> {
    let top = TOP.load(Ordering::Relaxed) as usize;
    TABLE[..top].iter().enumerate().filter_map(|(fd, word)| {
        let word = word.load(Ordering::Acquire);
        (word != 0).then_some((fd as i32, Handle(word)))
    })
}
