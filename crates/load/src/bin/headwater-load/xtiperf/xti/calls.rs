//! <xti.h> as far as it is needed: structures, the calls by their names, and what went wrong in one of them.

use std::ffi::{CStr, c_char, c_void};
use std::io;
use std::mem;
use std::ptr;
use std::sync::OnceLock;

/// struct netbuf
#[repr(C)]
pub struct Buffer {
    maxlen: u32,
    pub len: u32,
    buf: *mut c_void,
}

impl Buffer {
    pub const EMPTY: Buffer = Buffer {
        maxlen: 0,
        len: 0,
        buf: ptr::null_mut(),
    };

    /// What a call only reads.
    #[inline]
    pub fn of<T: Copy>(given: &[T]) -> Buffer {
        let len = mem::size_of_val(given) as u32;
        Buffer {
            maxlen: len,
            len,
            buf: given.as_ptr().cast_mut().cast(),
        }
    }

    #[inline]
    pub fn room<T: Copy>(room: &mut [T]) -> Buffer {
        Buffer {
            maxlen: mem::size_of_val(room) as u32,
            len: 0,
            buf: room.as_mut_ptr().cast(),
        }
    }
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer::EMPTY
    }
}

/// struct t_bind
#[repr(C)]
pub struct Bind {
    pub addr: Buffer,
    pub qlen: u32,
}

/// struct t_call
#[repr(C)]
#[derive(Default)]
pub struct Call {
    pub addr: Buffer,
    pub opt: Buffer,
    pub udata: Buffer,
    pub sequence: i32,
}

/// struct t_unitdata
#[repr(C)]
#[derive(Default)]
pub struct UnitData {
    pub addr: Buffer,
    pub opt: Buffer,
    pub udata: Buffer,
}

/// struct t_optmgmt
#[repr(C)]
pub struct OptMgmt {
    opt: Buffer,
    flags: i32,
}

impl OptMgmt {
    pub fn negotiate(opt: Buffer) -> OptMgmt {
        const T_NEGOTIATE: i32 = 0x0004;
        OptMgmt {
            opt,
            flags: T_NEGOTIATE,
        }
    }
}

macro_rules! calls {
    ($($name:ident: $type:ty,)*) => {
        pub struct Calls { $(pub $name: $type,)* }

        impl Calls {
            fn look_up() -> Result<Calls, &'static str> {
                Ok(Calls { $($name: {
                    let symbol = symbol(concat!(stringify!($name), "\0"))?;
                    // SAFETY: a symbol of this name has this type, by <xti.h>.
                    unsafe { mem::transmute::<*mut c_void, $type>(symbol) }
                },)* })
            }
        }
    };
}

calls! {
    t_open: unsafe extern "C" fn(*const c_char, i32, *mut c_void) -> i32,
    t_bind: unsafe extern "C" fn(i32, *const Bind, *mut Bind) -> i32,
    t_connect: unsafe extern "C" fn(i32, *const Call, *mut Call) -> i32,
    t_listen: unsafe extern "C" fn(i32, *mut Call) -> i32,
    t_accept: unsafe extern "C" fn(i32, i32, *const Call) -> i32,
    t_snd: unsafe extern "C" fn(i32, *const c_void, u32, i32) -> i32,
    t_rcv: unsafe extern "C" fn(i32, *mut c_void, u32, *mut i32) -> i32,
    t_sndudata: unsafe extern "C" fn(i32, *const UnitData) -> i32,
    t_rcvudata: unsafe extern "C" fn(i32, *mut UnitData, *mut i32) -> i32,
    t_look: unsafe extern "C" fn(i32) -> i32,
    t_rcvrel: unsafe extern "C" fn(i32) -> i32,
    t_rcvdis: unsafe extern "C" fn(i32, *mut c_void) -> i32,
    t_sndrel: unsafe extern "C" fn(i32) -> i32,
    t_optmgmt: unsafe extern "C" fn(i32, *const OptMgmt, *mut OptMgmt) -> i32,
    t_close: unsafe extern "C" fn(i32) -> i32,
    t_strerror: unsafe extern "C" fn(i32) -> *const c_char,
    _t_errno: unsafe extern "C" fn() -> *mut i32,
}

fn symbol(name: &'static str) -> Result<*mut c_void, &'static str> {
    // SAFETY: the name ends in NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
    match found.is_null() {
        true => Err(name.trim_end_matches('\0')),
        false => Ok(found),
    }
}

impl Calls {
    pub fn find() -> io::Result<&'static Calls> {
        static CALLS: OnceLock<Result<Calls, &'static str>> = OnceLock::new();
        let missing = |name: &&str| io::Error::other(format!("no library here has {name}"));
        CALLS.get_or_init(Calls::look_up).as_ref().map_err(missing)
    }

    pub fn check(&self, call: &str, rc: i32) -> io::Result<i32> {
        match rc {
            0.. => Ok(rc),
            _ => Err(self.error(call)),
        }
    }

    /// What the last call of this thread failed with.
    #[cold]
    pub fn error(&self, call: &str) -> io::Error {
        const TSYSERR: i32 = 8;
        let system = io::Error::last_os_error();
        // SAFETY: both calls give pointers that stay valid, the second one to a string.
        let (number, words) = unsafe {
            let number = *(self._t_errno)();
            (number, CStr::from_ptr((self.t_strerror)(number)))
        };
        let words = words.to_string_lossy();
        match number {
            TSYSERR => io::Error::new(system.kind(), format!("{call}: {system}")),
            _ => io::Error::other(format!("{call}: {words} (t_errno {number})")),
        }
    }
}
