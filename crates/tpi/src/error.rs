//! The error codes of XTI and TLI (t_errno, TLI_error), and what a provider answers when it refuses.

use std::borrow::Cow;
use std::ffi::CStr;

macro_rules! codes {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        $(pub const $name: i32 = $number;)*

        /// The text of each, by number; with NULs, as `t_errlist` has them.
        pub const ERRORS: [&CStr; 30] = [c"no error", $($text),*];
    };
}

codes! {
    TBADADDR = 1, c"incorrect addr format";
    TBADOPT = 2, c"incorrect option format";
    TACCES = 3, c"incorrect permissions";
    TBADF = 4, c"illegal transport fd";
    TNOADDR = 5, c"couldn't allocate addr";
    TOUTSTATE = 6, c"out of state";
    TBADSEQ = 7, c"bad call sequence number";
    TSYSERR = 8, c"system error";
    TLOOK = 9, c"event requires attention";
    TBADDATA = 10, c"illegal amount of data";
    TBUFOVFLW = 11, c"buffer not large enough";
    TFLOW = 12, c"flow control";
    TNODATA = 13, c"no data";
    TNODIS = 14, c"discon_ind not found on queue";
    TNOUDERR = 15, c"unitdata error not found";
    TBADFLAG = 16, c"bad flags";
    TNOREL = 17, c"no ord rel found on queue";
    TNOTSUPPORT = 18, c"primitive/action not supported";
    TSTATECHNG = 19, c"state is in process of changing";
    TNOSTRUCTYPE = 20, c"unsupported struct-type requested";
    TBADNAME = 21, c"invalid transport provider name";
    TBADQLEN = 22, c"qlen is zero";
    TADDRBUSY = 23, c"address in use";
    TINDOUT = 24, c"outstanding connection indications";
    TPROVMISMATCH = 25, c"transport provider mismatch";
    TRESQLEN = 26, c"resfd specified to accept w/qlen >0";
    TRESADDR = 27, c"resfd not bound to same addr as fd";
    TQFULL = 28, c"incoming connection queue full";
    TPROTO = 29, c"XTI protocol error";
}

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

/// Err with this TLI error.
pub fn refuse<T>(tli: i32) -> Result<T, Refusal> {
    Err(Refusal::new(tli))
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
    ERRORS.get(usize::try_from(code).ok()?).copied()
}

/// The same for Rust; of an unknown code a text with its number.
pub fn strerror(code: i32) -> Cow<'static, str> {
    match text(code) {
        Some(text) => text.to_string_lossy(),
        None => Cow::Owned(format!("{code}: error unknown")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_texts_of_the_header() {
        assert_eq!(strerror(TBADADDR), "incorrect addr format");
        assert_eq!(strerror(TLOOK), "event requires attention");
        assert_eq!(strerror(TADDRBUSY), "address in use");
        assert_eq!(strerror(TPROTO), "XTI protocol error");
    }

    #[test]
    fn an_unknown_code_is_named_by_its_number() {
        for code in [30, 4711, -1, i32::MIN] {
            assert!(strerror(code).contains(&code.to_string()));
            assert_eq!(text(code), None);
        }
    }
}
