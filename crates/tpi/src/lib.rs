//! The Transport Provider Interface, revision 2.0, without any I/O.
//!
//! ```text
//!   bytes of an M_PROTO block  <->  Request (user to provider), Indication (provider to user)      prim: their numbers
//!   state    the states of a provider (TS_) and of XTI (T_), and what may happen in each: one table for each
//!   option   lists of struct t_opthdr        error    t_errno 1 to 29
//! ```
//!
//! Layouts and numbers are those of <sys/tihdr.h>: 32-bit fields in the machine's byte order; an offset counts from the
//! start of the primitive. Decoding never reads outside the message and copies nothing.

#![forbid(unsafe_code)]

/// Numbers of a header from 0 on, and a table of what each is called there.
macro_rules! named {
    ($names:ident: $($name:ident = $number:literal,)*) => {
        $(pub const $name: i32 = $number;)*
        const $names: &[&str] = &[$(stringify!($name)),*];
    };
}

pub mod error;
pub mod indication;
pub mod option;
pub mod prim;
pub mod request;
pub mod state;
mod wire;

pub use error::{Refusal, refuse};
pub use indication::{Indication, Info};
pub use request::Request;
pub use wire::Malformed;

/// What a call comes to, or the TLI error and errno that T_ERROR_ACK carries.
pub type Outcome<T> = Result<T, Refusal>;
