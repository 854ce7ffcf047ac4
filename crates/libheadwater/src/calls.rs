//! The calls of the table in `prototypes`: what is exported and by which names, what each kind of descriptor does, and what syscall(2)
//! does.

#![expect(
    non_upper_case_globals,
    reason = "the numbers' names are the C library's"
)]

use headwater_host::table::{self, Handle, Kind};
use libc::*;

use crate::descriptor::{self, Connections, Hidden, Inherited, Sets, Streams, of_kind};
use crate::prototypes::prototypes;
use crate::variadic::jumps;

/// To a descriptor that is none of ours, or of a kind that leaves a call to the kernel: the C library's own, but for those that are named.
mod foreign {
    use libc::{c_int, c_uint, mmsghdr};

    pub use crate::foreign::{recvmmsg, recvmsg, sendmsg};
    pub use crate::real::*;
    pub use crate::sockets::{accept, accept4, connect, getsockopt, listen, setsockopt, shutdown};

    #[inline(always)]
    pub unsafe fn sendmmsg(fd: c_int, msgs: *mut mmsghdr, n: c_uint, flags: c_int) -> c_int {
        // SAFETY: the caller's arguments.
        unsafe {
            crate::foreign::sendmmsg(fd, msgs, n, flags, |msg| super::sendmsg(fd, msg, flags))
        }
    }
}

/// What the lines of the table become.
macro_rules! calls {
    ($($which:ident fn $name:ident $(, $other:ident)*(fd: c_int $(, $arg:ident: $ty:ty)*) -> $ret:ty
        $(= $number:ident[$($place:literal),*] $($when:ident)?)?;)*
    ) => {
        jumps! { $($($other = $name,)*)* }

        /// What a kind of descriptor does in each call. What it does not say is done as to a foreign one.
        #[allow(unused_unsafe, reason = "of calls that take nothing but numbers")]
        #[allow(clippy::too_many_arguments, reason = "a call's own, and what it is made on")]
        pub trait Calls: Copy {
            $(
                /// # Safety
                #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
                #[inline(always)]
                unsafe fn $name(self, _h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
                    // SAFETY: the caller's arguments.
                    unsafe { foreign::$name(fd $(, $arg)*) }
                }
            )*
        }

        $(
            // Foreign descriptors come first, without the registers that the rest needs, which would cost them more than all else; then
            // connections, which most of ours are.
            /// # Safety
            #[doc = concat!("As ", stringify!($name), "(2) asks of its caller: its buffers and addresses are as long as it says.")]
            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn $name(fd: c_int $(, $arg: $ty)*) -> $ret {
                #[inline(never)]
                #[allow(unused_unsafe, reason = "of calls that take nothing but numbers")]
                unsafe fn others(h: Handle, fd: c_int $(, $arg: $ty)*) -> $ret {
                    // SAFETY: the program's arguments, as the call of this name wants them.
                    unsafe {
                        match known!($which fd, h) {
                            None => foreign::$name(fd $(, $arg)*),
                            Some(h) => of_kind!(h, $name(fd $(, $arg)*)),
                        }
                    }
                }

                // SAFETY: the program's arguments, as the call of this name wants them.
                unsafe {
                    match table::lookup(fd) {
                        None => foreign::$name(fd $(, $arg)*),
                        Some(h) if h.kind() == Kind::Socket => Connections.$name(h, fd $(, $arg)*),
                        Some(h) if h.kind() == Kind::Stream => Streams.$name(h, fd $(, $arg)*),
                        Some(h) => others(h, fd $(, $arg)*),
                    }
                }
            }
        )*

        /// A call of the table by its number.
        ///
        /// # Safety
        /// As the call of that number asks of its caller.
        pub unsafe fn by_number(number: c_long, a: &Arguments) -> Option<c_long> {
            // SAFETY: the program's arguments, as the call of that number takes them.
            unsafe {
                match number {
                    $($(
                        $number if serves!(a $($when)?) => {
                            Some($name(a.of(0) $(, a.of($place))*) as c_long)
                        }
                    )?)*
                    _ => None,
                }
            }
        }
    };
}

macro_rules! known {
    (used $fd:ident, $h:ident) => {
        table::as_used($fd, $h)
    };
    (asked $fd:ident, $h:ident) => {
        Some($h)
    };
}

macro_rules! serves {
    ($a:ident) => {
        $a.is_known(0)
    };
    ($a:ident tracked) => {
        table::any_tracked()
    };
    ($a:ident always) => {
        true
    };
}

prototypes!(calls);

/// Verbs of a kind that are functions of a module, of the handle and what else is given.
macro_rules! as_called {
    ($module:ident: $($(#[$how:meta])* $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty = $to:ident($($given:expr),*);)*) => {$(
        $(#[$how])*
        unsafe fn $name(self, h: Handle, _fd: c_int $(, $arg: $ty)*) -> $ret {
            // SAFETY: the caller's arguments.
            unsafe { $module::$to(h $(, $given)*) }
        }
    )*};
}
pub(crate) use as_called;

impl Calls for Inherited {
    unsafe fn ioctl(self, _h: Handle, fd: c_int, request: c_ulong, arg: usize) -> c_int {
        // SAFETY: the caller's argument.
        unsafe { descriptor::ioctl(fd, request, arg) }
    }
}

impl Calls for Sets {}

impl Calls for Hidden {}

/// The arguments of a call, of which each takes as many as it has.
pub struct Arguments(pub [c_long; 6]);

/// What a register holds of a call's argument.
pub trait Argument {
    fn of(register: c_long) -> Self;
}

macro_rules! numbers {
    ($($ty:ty),*) => {$(
        impl Argument for $ty {
            fn of(register: c_long) -> $ty {
                register as $ty
            }
        }
    )*};
}

numbers!(c_int, c_uint, c_long, c_ulong, size_t);

impl<T> Argument for *mut T {
    fn of(register: c_long) -> *mut T {
        core::ptr::with_exposed_provenance_mut(register as usize)
    }
}

impl<T> Argument for *const T {
    fn of(register: c_long) -> *const T {
        core::ptr::with_exposed_provenance(register as usize)
    }
}

impl Arguments {
    pub fn of<T: Argument>(&self, i: usize) -> T {
        T::of(self.0[i])
    }

    /// A number that is not foreign?
    pub fn is_known(&self, i: usize) -> bool {
        table::lookup(self.of(i)).is_some()
    }
}
