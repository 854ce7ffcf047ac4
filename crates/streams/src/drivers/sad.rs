//! sad(7D): says, sets and checks which modules are pushed by themselves when a device is opened. I_STR and transparent
//! ioctls; with I_STR the list of SAD_VML follows its str_list.

use core::ffi::c_int;

use super::minors::{Minor, Minors};
use super::pushlist::{self, Entry, MAXAPUSH};
use super::reply::{self, Argument};
use crate::ddi::owned::Message;
use crate::ddi::{M_FLUSH, M_IOCDATA, M_IOCTL, Plain};
use crate::exec::registry::{self, FMNAMESZ};
use crate::exec::{Info, Module, OpenFlag, Queue};
use crate::head::control::padded;
use crate::modules::id;

const SADIOC: c_int = (b'D' as c_int) << 8;
pub const SAD_SAP: c_int = SADIOC | 1;
pub const SAD_GAP: c_int = SADIOC | 2;
pub const SAD_VML: c_int = SADIOC | 3;

const SAP_CLEAR: u32 = 0;
const SAP_ONE: u32 = 1;
const SAP_RANGE: u32 = 2;
const SAP_ALL: u32 = 3;

/// struct strapush of <sys/sad.h>.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StrAPush {
    pub cmd: u32,
    pub major: c_int,
    pub minor: c_int,
    pub lastminor: c_int,
    pub npush: u32,
    pub list: [[u8; FMNAMESZ + 1]; MAXAPUSH],
}

// SAFETY: integers.
unsafe impl Plain for StrAPush {}

/// struct str_list of <stropts.h>.
#[derive(Clone, Copy)]
#[repr(C)]
struct StrList {
    count: c_int,
    names: usize,
}

// SAFETY: integers.
unsafe impl Plain for StrList {}

const NAME: usize = FMNAMESZ + 1;
/// Longest list for SAD_VML.
const MOST_NAMES: c_int = 1024;
/// The step of a transparent SAD_VML in which the names come.
const NAMES: usize = 1;

static MINORS: Minors = Minors::new();

pub struct Sad {
    _minor: Minor,
}

impl Module for Sad {
    const INFO: Info = Info::new(id::SAD, c"sad");

    fn open(_: Queue, dev: &mut libc::dev_t, _: c_int, flag: OpenFlag) -> Result<Self, c_int> {
        let _minor = MINORS.take(dev, flag)?;
        Ok(Sad { _minor })
    }

    fn wput(&self, q: Queue, m: Message) {
        match m.kind() {
            M_FLUSH => reply::flush_at_end(q, m),
            M_IOCTL | M_IOCDATA => request(q, m),
            _ => {}
        }
    }
}

fn request(q: Queue, m: Message) {
    match reply::command(&m) {
        Some(SAD_SAP) => {
            if let Argument::Is(wanted, m) = reply::argument::<StrAPush>(q, m) {
                reply::result(q, m, set(&wanted));
            }
        }
        Some(SAD_GAP) => {
            if let Argument::Is(asked, m) = reply::argument::<StrAPush>(q, m) {
                match look_up(asked) {
                    Ok(found) => reply::give(q, m, found),
                    Err(errno) => reply::refuse(q, m, errno),
                }
            }
        }
        Some(SAD_VML) => validate(q, m),
        _ if m.kind() == M_IOCTL => reply::refuse(q, m, libc::EINVAL),
        _ => {}
    }
}

/// SAD_SAP. EINVAL: command, device or modules are impossible; ERANGE, EEXIST, ENODEV as sad(7D) says.
fn set(wanted: &StrAPush) -> Result<(), c_int> {
    if wanted.cmd > SAP_ALL {
        return Err(libc::EINVAL);
    }
    let device = device(wanted.major)?;
    let minor = u32::try_from(wanted.minor);
    let minors = match wanted.cmd {
        SAP_CLEAR => return pushlist::remove(&device, minor.unwrap_or(0)),
        SAP_ALL => pushlist::Minors::All,
        _ => {
            let first = minor.map_err(|_| libc::EINVAL)?;
            let last = match wanted.cmd {
                SAP_ONE => first,
                _ => u32::try_from(wanted.lastminor).map_err(|_| libc::EINVAL)?,
            };
            if wanted.cmd == SAP_RANGE && last <= first {
                return Err(libc::ERANGE);
            }
            pushlist::Minors::Range(first, last)
        }
    };
    let names = wanted.list.get(..wanted.npush as usize);
    let names = names.ok_or(libc::EINVAL)?.iter();
    if !names.clone().all(|n| is_module(n)) {
        return Err(libc::EINVAL);
    }
    let modules = names.map(|n| String::from_utf8_lossy(word(n)).into_owned());
    pushlist::set(Entry {
        device,
        minors,
        modules: modules.collect(),
    })
}

/// SAD_GAP. EINVAL: no such device; ENODEV: nothing is pushed on it.
fn look_up(asked: StrAPush) -> Result<StrAPush, c_int> {
    let minor = u32::try_from(asked.minor).map_err(|_| libc::EINVAL)?;
    let entry = pushlist::find(&device(asked.major)?, minor).ok_or(libc::ENODEV)?;
    let (cmd, first, last) = match entry.minors {
        pushlist::Minors::All => (SAP_ALL, asked.minor as u32, 0),
        pushlist::Minors::Range(first, last) if first == last => (SAP_ONE, first, 0),
        pushlist::Minors::Range(first, last) => (SAP_RANGE, first, last),
    };
    let mut list = [[0; NAME]; MAXAPUSH];
    for (to, name) in list.iter_mut().zip(&entry.modules) {
        *to = padded(name);
    }
    Ok(StrAPush {
        cmd,
        minor: first as c_int,
        lastminor: last as c_int,
        npush: entry.modules.len().min(MAXAPUSH) as u32,
        list,
        ..asked
    })
}

fn device(major: c_int) -> Result<String, c_int> {
    let major = u32::try_from(major).map_err(|_| libc::EINVAL)?;
    let entry = registry::device_by_major(major).ok_or(libc::EINVAL)?;
    Ok(entry.name().to_string())
}

/// SAD_VML: 0 if all modules of the list are known, 1 if not. EINVAL for an impossible length.
fn validate(q: Queue, m: Message) {
    let step = reply::step(&m);
    if step.is_none() && m.kind() != M_IOCTL {
        return;
    }
    if step.is_none() && reply::is_transparent(&m) {
        let _ = reply::argument::<StrList>(q, m);
        return;
    }
    let data = m.to_data();
    if step == Some(NAMES) {
        return names(q, m, &data, data.len() / NAME * NAME);
    }
    let list = Message::data(&data).read::<StrList>();
    let Some(list) = list.filter(|list| (1..=MOST_NAMES).contains(&list.count)) else {
        return reply::refuse(q, m, libc::EINVAL);
    };
    let size = list.count as usize * NAME;
    match step {
        None => names(q, m, &data[size_of::<StrList>()..], size),
        Some(_) => reply::copy_in(q, m, list.names, size, NAMES),
    }
}

fn names(q: Queue, m: Message, data: &[u8], size: usize) {
    let Some(data) = data.get(..size) else {
        return reply::refuse(q, m, libc::EINVAL);
    };
    let known = data.chunks(NAME).all(is_module);
    reply::done(q, m, !known as c_int);
}

fn is_module(name: &[u8]) -> bool {
    registry::find_module(word(name)).is_some()
}

/// Up to its NUL.
fn word(name: &[u8]) -> &[u8] {
    name.split(|b| *b == 0).next().unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddi::{M_IOCACK, M_IOCNAK};
    use crate::drivers::testing::Stream;

    fn list(names: &[&str]) -> Vec<[u8; NAME]> {
        names.iter().map(|name| padded(name)).collect()
    }

    #[test]
    fn a_list_is_checked_wherever_it_lies() {
        crate::modules::register();
        let mut s = Stream::open::<Sad>().unwrap();
        for (names, value) in [(["sc", "nullmod"], 0), (["sc", "nosuch"], 1)] {
            let names = list(&names);
            let mut arg = StrList {
                count: names.len() as c_int,
                names: names.as_ptr().expose_provenance(),
            };
            assert_eq!(s.transparent(SAD_VML, &mut arg), (M_IOCACK, value, 0));
            arg.count = 0;
            assert_eq!(
                s.transparent(SAD_VML, &mut arg),
                (M_IOCNAK, 0, libc::EINVAL)
            );
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        crate::modules::register();
        crate::drivers::register();
        let mut s = Stream::open::<Sad>().unwrap();
        let major = registry::find_device("echo").unwrap().major() as c_int;
        let mut push = StrAPush {
            cmd: 77,
            major,
            minor: 5,
            lastminor: 4,
            npush: 1,
            list: [[0; NAME]; MAXAPUSH],
        };
        let refused = |s: &mut Stream, push: &mut StrAPush| s.transparent(SAD_SAP, push).2;
        assert_eq!(refused(&mut s, &mut push), libc::EINVAL);
        push.cmd = SAP_RANGE;
        assert_eq!(refused(&mut s, &mut push), libc::ERANGE);
        push.cmd = SAP_ONE;
        assert_eq!(refused(&mut s, &mut push), libc::EINVAL, "no such module");
        push.npush = 9;
        assert_eq!(refused(&mut s, &mut push), libc::EINVAL);
    }
}
