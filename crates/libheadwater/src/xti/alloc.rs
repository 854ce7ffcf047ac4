//! t_alloc and t_free: structures with buffers of the provider's sizes, from malloc(3).

use headwater_tpi::prim::{T_CLTS, T_INVALID};
use headwater_tpi::{Info, Refusal, error};
use headwater_xti::{Outcome, with};
use libc::{c_int, c_uint, c_void};

use super::{TBind, TCall, TDiscon, TInfo, TOptMgmt, TUdErr, TUnitData, done, noted};
use crate::netbuf::NetBuf;

const T_BIND: c_int = 1;
const T_OPTMGMT: c_int = 2;
const T_CALL: c_int = 3;
const T_DIS: c_int = 4;
const T_UNITDATA: c_int = 5;
const T_UDERROR: c_int = 6;
const T_INFO: c_int = 7;

const T_ADDR: c_int = 1;
const T_OPT: c_int = 2;
const T_UDATA: c_int = 4;
const T_ALL: c_int = 0xffff;

/// A buffer for what has no limit.
const UNLIMITED: c_uint = 1024;

/// Size of a structure, and its buffers: offset and T_ADDR, T_OPT or T_UDATA.
struct Layout {
    size: usize,
    buffers: &'static [(usize, c_int)],
}

macro_rules! layout {
    ($t:ty $(, $field:ident $what:ident)*) => {
        Layout {
            size: size_of::<$t>(),
            buffers: const { &[$((core::mem::offset_of!($t, $field), $what)),*] },
        }
    };
}

fn layout(kind: c_int) -> Option<Layout> {
    Some(match kind {
        T_BIND => layout!(TBind, addr T_ADDR),
        T_OPTMGMT => layout!(TOptMgmt, opt T_OPT),
        T_CALL => layout!(TCall, addr T_ADDR, opt T_OPT, udata T_UDATA),
        T_DIS => layout!(TDiscon, udata T_UDATA),
        T_UNITDATA => layout!(TUnitData, addr T_ADDR, opt T_OPT, udata T_UDATA),
        T_UDERROR => layout!(TUdErr, addr T_ADDR, opt T_OPT),
        T_INFO => layout!(TInfo),
        _ => return None,
    })
}

/// Does the service type have such a structure? To TLI they are the same for all.
fn suits(kind: c_int, service: c_int) -> bool {
    match kind {
        T_CALL | T_DIS => service != T_CLTS,
        T_UNITDATA | T_UDERROR => service == T_CLTS,
        _ => true,
    }
}

/// How large a buffer is to be; `None`: the provider has nothing to put there.
fn size(kind: c_int, what: c_int, info: &Info) -> Option<c_uint> {
    let most = match (what, kind) {
        (T_ADDR, _) => info.addr,
        (T_OPT, _) => info.opt,
        (_, T_CALL) => info.cdata,
        (_, T_DIS) => info.ddata,
        _ => info.tsdu,
    };
    match most {
        T_INVALID => None,
        most if most < 0 => Some(UNLIMITED),
        most => Some(most as c_uint),
    }
}

unsafe fn buffer(s: *mut c_void, offset: usize) -> *mut NetBuf {
    // SAFETY: one of its structures, which are larger than the offsets of their buffers.
    unsafe { s.cast::<u8>().add(offset).cast() }
}

fn allocate(info: &Info, kind: c_int, fields: c_int, any: bool) -> Outcome<*mut c_void> {
    // SAFETY: as much as the structure needs, zeroed, and nobody else's yet; its buffers are where its layout says.
    unsafe {
        let layout = layout(kind)
            .filter(|_| any || suits(kind, info.serv))
            .ok_or(Refusal::new(error::TNOSTRUCTYPE))?;
        let s = libc::calloc(1, layout.size);
        if s.is_null() {
            return Err(Refusal::system(libc::ENOMEM));
        }
        for &(offset, what) in layout.buffers {
            if fields & what == 0 {
                continue;
            }
            let filled = match size(kind, what, info) {
                Some(0) => Ok(()),
                Some(n) => (*buffer(s, offset))
                    .allocate(n)
                    .map_err(|_| Refusal::system(libc::ENOMEM)),
                None if fields == T_ALL => Ok(()),
                None => Err(Refusal::system(libc::EINVAL)),
            };
            if let Err(e) = filled {
                release(s, kind);
                return Err(e);
            }
        }
        Ok(s)
    }
}

unsafe fn release(s: *mut c_void, kind: c_int) {
    // SAFETY: `allocate` made it, and it is not used any more; its buffers are where its layout says.
    unsafe {
        let Some(layout) = layout(kind) else { return };
        for &(offset, _) in layout.buffers {
            (*buffer(s, offset)).release();
        }
        libc::free(s);
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_alloc(fd: c_int, kind: c_int, fields: c_int) -> *mut c_void {
    answer(fd, kind, fields, false)
}

/// t_alloc of programs with `<tiuser.h>`.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn hw_tli_alloc(fd: c_int, kind: c_int, fields: c_int) -> *mut c_void {
    answer(fd, kind, fields, true)
}

fn answer(fd: c_int, kind: c_int, fields: c_int, any: bool) -> *mut c_void {
    let made = with(fd, |p| allocate(&p.info()?, kind, fields, any));
    noted(made).unwrap_or(core::ptr::null_mut())
}

/// # Safety
/// As t_free(3) asks of its caller: t_alloc(3) gave `s`, of that kind, and it is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_free(s: *mut c_void, kind: c_int) -> c_int {
    if layout(kind).is_none() {
        return done(Err(Refusal::new(error::TNOSTRUCTYPE)));
    }
    if !s.is_null() {
        // SAFETY: the program is done with it.
        unsafe { release(s, kind) };
    }
    0
}
