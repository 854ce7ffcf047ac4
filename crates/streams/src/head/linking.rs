//! I_LINK, I_UNLINK, I_PLINK, I_PUNLINK: streams below a multiplexer.

use core::ffi::c_int;
use core::time::Duration;

use headwater_host::guarded::{Entered, Guarded};
use headwater_host::sync::Ordering::Release;
use headwater_host::sys::{self, Errno};

use super::requests::{self, ioctl_message};
use super::{Head, local};
use crate::background;
use crate::ddi::*;
use crate::exec::attach::{Above, link_lower, move_stream, unlink_lower};
use crate::exec::perimeter::Perimeter;
use crate::pipe::words::state;

const MUXID_ALL: c_int = -1;
/// A multiplexer must answer within this time, in nanoseconds.
const LINK_TIMEOUT: u64 = Duration::from_secs(15).as_nanos() as u64;

/// One stream below a multiplexer.
struct Link {
    id: c_int,
    /// Index of the control stream's head; of none after the close of one that linked persistently.
    upper: u32,
    lower: &'static Head,
    /// A descriptor of ours that keeps the lower stream open.
    keep: c_int,
    persistent: bool,
    device: String,
    above: Option<Above>,
    /// The lower stream's own perimeter, for when it is alone again.
    own: &'static Perimeter,
}

// SAFETY: `above` is only used inside the perimeter, by one thread.
unsafe impl Send for Link {}

pub struct Table {
    links: Vec<Link>,
    last: c_int,
}

/// The table, kept as it is.
pub type Held = Entered<'static, Table>;

static LINKS: Guarded<Table> = Guarded::new(Table {
    links: Vec::new(),
    last: 0,
});

/// Keeps the table as it is while the process is copied.
pub fn hold() -> Held {
    LINKS.enter()
}

/// Lets go of a stream that its link kept.
pub type LetGo = fn(&'static Head);

/// I_LINK, I_PLINK: connects the stream `lower`, a descriptor of which is `fd`, below the multiplexer of `head`; returns the multiplexer ID.
/// Who calls keeps it from closing until then, and leaves that to the link from then on.
/// Errors: EINVAL (no multiplexer, linked already, a circle), EAGAIN, ENXIO, ETIME, what the driver says.
pub fn link(
    head: &'static Head,
    lower: &'static Head,
    fd: c_int,
    persistent: bool,
) -> Result<c_int, Errno> {
    if lower.index == head.index || lower.words().has(state::LINKED) || reaches(lower, head) {
        return Err(libc::EINVAL);
    }
    lower.check_connected()?;
    let tab = multiplexer(head)?;
    local::begin(lower)?;
    // Who waits above is woken for what comes below.
    background::start()?;
    let keep = headwater_host::hidden::hide_needed(sys::dup_above(fd, 0)?)?;
    let id = {
        let mut table = LINKS.enter();
        table.last = table.last.wrapping_add(1).max(1);
        table.last
    };
    let own = move_to(lower, perimeter_of(head));
    let above = local::inside(lower, |l| {
        // SAFETY: inside the perimeter; the head's pair becomes the multiplexer's lower one.
        unsafe { link_lower(l.rq, tab) }
    });
    let above = match above {
        Some(Ok(above)) => above,
        other => {
            headwater_host::hidden::close(keep);
            return Err(other.and_then(Result::err).unwrap_or(libc::ENXIO));
        }
    };
    lower.words().set(state::LINKED);
    let cmd = if persistent { I_PLINK } else { I_LINK };
    let answer = ask(head, cmd, lower, id);
    let device = local::device(head);
    LINKS.enter().links.push(Link {
        id,
        upper: head.index,
        lower,
        keep,
        persistent,
        device,
        above: Some(above),
        own,
    });
    if let Err(e) = answer {
        undo(id, |_| ());
        return Err(e);
    }
    local::inside(head, |l| l.links.set(l.links.get() + 1));
    lower.notify();
    Ok(id)
}

/// I_UNLINK, I_PUNLINK: by multiplexer ID, or MUXID_ALL. Errors: EINVAL (no such link), what the driver says.
pub fn unlink(
    head: &'static Head,
    id: c_int,
    persistent: bool,
    let_go: LetGo,
) -> Result<c_int, Errno> {
    let device = local::device(head);
    let matching = links_that(|l| {
        let ours = match persistent {
            true => l.device == device,
            false => l.upper == head.index,
        };
        l.persistent == persistent && ours && (id == MUXID_ALL || l.id == id)
    });
    if matching.is_empty() && id != MUXID_ALL {
        return Err(libc::EINVAL);
    }
    multiplexer(head)?;
    for id in matching {
        let cmd = if persistent { I_PUNLINK } else { I_UNLINK };
        unlink_one(head, id, cmd, let_go)?;
    }
    Ok(0)
}

/// The tables of the driver, if it is a multiplexer; EINVAL.
fn multiplexer(head: &Head) -> Result<&'static streamtab, Errno> {
    local::inside(head, |local| local.driver.get().map(|d| d.table()))
        .flatten()
        .filter(|tab| tab.st_muxwinit.is_some())
        .ok_or(libc::EINVAL)
}

/// The control stream closes: what it linked with I_LINK comes off.
pub fn unlink_all(head: &'static Head, let_go: LetGo) {
    for id in links_that(|l| !l.persistent && l.upper == head.index) {
        if unlink_one(head, id, I_UNLINK, let_go).is_err() {
            undo(id, let_go);
        }
    }
}

fn links_that(wanted: impl Fn(&Link) -> bool) -> Vec<c_int> {
    let table = LINKS.enter();
    let links = table.links.iter().filter(|l| wanted(l));
    links.map(|l| l.id).collect()
}

fn unlink_one(head: &'static Head, id: c_int, cmd: c_int, let_go: LetGo) -> Result<(), Errno> {
    let find = |table: &Table| Some(table.links.iter().find(|l| l.id == id)?.lower);
    let lower = find(&LINKS.enter()).ok_or(libc::EINVAL)?;
    ask(head, cmd, lower, id)?;
    undo(id, let_go);
    local::inside(head, |l| l.links.set(l.links.get().saturating_sub(1)));
    Ok(())
}

/// Takes a link off the table, and gives the lower stream its head back.
fn undo(id: c_int, let_go: LetGo) {
    let link = LINKS.enter().links.extract_if(.., |l| l.id == id).next();
    let Some(mut link) = link else { return };
    let lower = link.lower;
    if let Some(above) = link.above.take() {
        local::inside(lower, |l| {
            // SAFETY: inside the perimeter, with what link_lower returned for this pair.
            unsafe { unlink_lower(l.rq, above) }
        });
    }
    move_to(lower, link.own);
    lower.words().clear(state::LINKED);
    lower.notify();
    headwater_host::hidden::close(link.keep);
    let_go(lower);
}

fn head_wq(head: &Head) -> Result<Queue, Errno> {
    local::inside(head, local::Local::down).ok_or(libc::ENXIO)
}

/// Sends M_IOCTL with a linkblk to the multiplexer.
fn ask(head: &'static Head, cmd: c_int, lower: &Head, id: c_int) -> Result<(), Errno> {
    let (upper, lower) = (head_wq(head)?, head_wq(lower)?);
    // The driver's queue is the last below the head.
    let top = upper.from_here().last().unwrap_or(upper);
    let block = linkblk {
        l_qtop: top.as_ptr(),
        l_qbot: lower.as_ptr(),
        l_index: id,
        l_pad: [0; 5],
    };
    let block = Message::from_struct(M_DATA, block);
    let message = ioctl_message(cmd, block.bytes(), size_of::<linkblk>() as u32);
    let deadline = sys::now() + LINK_TIMEOUT;
    let (answer, ioc) = requests::ask(head, message, deadline)?;
    requests::outcome(&answer, &ioc, libc::EINVAL)
}

/// Of a head with queues.
fn perimeter_of(head: &Head) -> &'static Perimeter {
    head.perimeter().expect("a perimeter")
}

/// Moves a stream into another perimeter; returns its own.
fn move_to(head: &Head, to: &'static Perimeter) -> &'static Perimeter {
    let from = perimeter_of(head);
    let (a, b) = from.enter_both(to);
    // SAFETY: inside both.
    if let (Some(b), Some(local)) = (&b, unsafe { head.local() }) {
        move_stream(local.rq, &a, b);
        head.perimeter
            .store(core::ptr::from_ref(to).cast_mut(), Release);
    }
    from
}

/// Does a stream below `from`, or below one of those, lead to `to`? Then linking would make a circle.
fn reaches(from: &Head, to: &Head) -> bool {
    let table = LINKS.enter();
    let mut open = vec![from.index];
    let mut seen = Vec::new();
    while let Some(at) = open.pop() {
        if at == to.index {
            return true;
        }
        if seen.contains(&at) {
            continue;
        }
        seen.push(at);
        let below = table.links.iter().filter(|l| l.upper == at);
        open.extend(below.map(|l| l.lower.index));
    }
    false
}
