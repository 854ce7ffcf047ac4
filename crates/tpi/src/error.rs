//! The error codes of XTI and TLI (t_errno, TLI_error), and what a provider answers when it refuses.

use std::borrow::Cow;
use std::ffi::CStr;

pub const TBADADDR: i32 = 1;
pub const TBADOPT: i32 = 2;
pub const TACCES: i32 = 3;
pub const TBADF: i32 = 4;
pub const TNOADDR: i32 = 5;
pub const TOUTSTATE: i32 = 6;
pub const TBADSEQ: i32 = 7;
pub const TSYSERR: i32 = 8;
pub const TLOOK: i32 = 9;
pub const TBADDATA: i32 = 10;
pub const TBUFOVFLW: i32 = 11;
pub const TFLOW: i32 = 12;
pub const TNODATA: i32 = 13;
pub const TNODIS: i32 = 14;
pub const TNOUDERR: i32 = 15;
pub const TBADFLAG: i32 = 16;
pub const TNOREL: i32 = 17;
pub const TNOTSUPPORT: i32 = 18;
pub const TSTATECHNG: i32 = 19;
pub const TNOSTRUCTYPE: i32 = 20;
pub const TBADNAME: i32 = 21;
pub const TBADQLEN: i32 = 22;
pub const TADDRBUSY: i32 = 23;
pub const TINDOUT: i32 = 24;
pub const TPROVMISMATCH: i32 = 25;
pub const TRESQLEN: i32 = 26;
pub const TRESADDR: i32 = 27;
pub const TQFULL: i32 = 28;
pub const TPROTO: i32 = 29;

/// Why a provider does not do what was asked: the two numbers of a T_ERROR_ACK. `unix` counts only with TSYSERR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub tli: i32,
    pub unix: i32,
}

impl Refusal {
    pub const fn new(tli: i32) -> Refusal {
        Refusal { tli, unix: 0 }
    }

    /// TSYSERR with this errno.
    pub const fn system(errno: i32) -> Refusal {
        Refusal {
            tli: TSYSERR,
            unix: errno,
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tli {
            TSYSERR => write!(out, "{} (errno {})", strerror(self.tli), self.unix),
            code => out.write_str(&strerror(code)),
        }
    }
}

impl std::error::Error for Refusal {}

/// The text of t_strerror(3), with a NUL; `None`: there is no such code.
pub fn text(code: i32) -> Option<&'static CStr> {
    entry(code).map(|(_, text)| *text)
}

/// The same for Rust; of an unknown code a text with its number.
pub fn strerror(code: i32) -> Cow<'static, str> {
    match entry(code) {
        Some((_, text)) => text.to_string_lossy(),
        None => Cow::Owned(format!("{code}: error unknown")),
    }
}

/// The name of a code, as in <xti.h>.
pub fn name(code: i32) -> Option<&'static str> {
    if code == 0 {
        None
    } else {
        entry(code).map(|(name, _)| *name)
    }
}

fn entry(code: i32) -> Option<&'static (&'static str, &'static CStr)> {
    usize::try_from(code)
        .ok()
        .and_then(|number| ERRORS.get(number))
}

/// Name and text of each, by number; with NULs, as `t_errlist` has them.
pub const ERRORS: [(&str, &CStr); 30] = [
    ("", c"no error"),
    ("TBADADDR", c"incorrect addr format"),
    ("TBADOPT", c"incorrect option format"),
    ("TACCES", c"incorrect permissions"),
    ("TBADF", c"illegal transport fd"),
    ("TNOADDR", c"couldn't allocate addr"),
    ("TOUTSTATE", c"out of state"),
    ("TBADSEQ", c"bad call sequence number"),
    ("TSYSERR", c"system error"),
    ("TLOOK", c"event requires attention"),
    ("TBADDATA", c"illegal amount of data"),
    ("TBUFOVFLW", c"buffer not large enough"),
    ("TFLOW", c"flow control"),
    ("TNODATA", c"no data"),
    ("TNODIS", c"discon_ind not found on queue"),
    ("TNOUDERR", c"unitdata error not found"),
    ("TBADFLAG", c"bad flags"),
    ("TNOREL", c"no ord rel found on queue"),
    ("TNOTSUPPORT", c"primitive/action not supported"),
    ("TSTATECHNG", c"state is in process of changing"),
    ("TNOSTRUCTYPE", c"unsupported struct-type requested"),
    ("TBADNAME", c"invalid transport provider name"),
    ("TBADQLEN", c"qlen is zero"),
    ("TADDRBUSY", c"address in use"),
    ("TINDOUT", c"outstanding connection indications"),
    ("TPROVMISMATCH", c"transport provider mismatch"),
    ("TRESQLEN", c"resfd specified to accept w/qlen >0"),
    ("TRESADDR", c"resfd not bound to same addr as fd"),
    ("TQFULL", c"incoming connection queue full"),
    ("TPROTO", c"XTI protocol error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_texts_of_the_header() {
        assert_eq!(strerror(TBADADDR), "incorrect addr format");
        assert_eq!(strerror(TLOOK), "event requires attention");
        assert_eq!(strerror(TADDRBUSY), "address in use");
        assert_eq!(strerror(TPROTO), "XTI protocol error");
        assert_eq!(name(TSTATECHNG), Some("TSTATECHNG"));
    }

    #[test]
    fn an_unknown_code_is_named_by_its_number() {
        for code in [30, 4711, -1, i32::MIN] {
            assert!(strerror(code).contains(&code.to_string()));
            assert_eq!(name(code), None);
        }
    }
}
