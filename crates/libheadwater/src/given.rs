//! What the program gives a function that it calls: addresses, of which the manual says what is there. Each type here says it once, so that
//! functions with such arguments are safe: in Rust nobody can make one up, and who calls from C answers for what is there, as the manual
//! asks. `'a` is the call.

use core::ffi::CStr;
use core::marker::PhantomData;

use headwater_streams::head::is_bad;
use libc::{c_char, c_void, wchar_t};

/// A string.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text<'a> {
    at: *const c_char,
    lasts: PhantomData<&'a CStr>,
}

impl<'a> Text<'a> {
    /// # Safety
    /// `at` is null, or a string that lasts for `'a`. As in all of these, an address in the first page, where nothing is, is like null.
    pub const unsafe fn new(at: *const c_char) -> Text<'a> {
        Text {
            at,
            lasts: PhantomData,
        }
    }

    pub const fn of(text: &'a CStr) -> Text<'a> {
        // SAFETY: it is one.
        unsafe { Text::new(text.as_ptr()) }
    }

    /// `None`: there is none, which is EFAULT to the kernel.
    #[inline]
    pub fn get(self) -> Option<&'a CStr> {
        // SAFETY: whoever has made it says that there is a string, unless the address is bad.
        (!is_bad(self.at)).then(|| unsafe { CStr::from_ptr(self.at) })
    }

    /// Nothing where there is none.
    pub fn bytes(self) -> &'a [u8] {
        self.get().map_or(b"", CStr::to_bytes)
    }

    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    pub fn as_ptr(self) -> *const c_char {
        self.at
    }
}

/// A text of wide characters that ends.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct WideText<'a> {
    at: *const wchar_t,
    lasts: PhantomData<&'a wchar_t>,
}

impl<'a> WideText<'a> {
    pub fn get(self) -> &'a [wchar_t] {
        // SAFETY: whoever has made it says that it ends.
        unsafe {
            let mut n = 0;
            while self.at.add(n).read() != 0 {
                n += 1;
            }
            core::slice::from_raw_parts(self.at, n)
        }
    }

    pub fn as_ptr(self) -> *const wchar_t {
        self.at
    }
}

/// Strings, and a null behind the last: arguments, or an environment.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    at: *const *const c_char,
    last: PhantomData<&'a CStr>,
}

impl<'a> Texts<'a> {
    /// # Safety
    /// `at` is null, or an array of strings with a null behind the last, all of which last for `'a`.
    pub const unsafe fn new(at: *const *const c_char) -> Texts<'a> {
        Texts {
            at,
            last: PhantomData,
        }
    }

    pub fn as_ptr(self) -> *const *const c_char {
        self.at
    }
}

/// A structure that is read, and that nobody changes meanwhile.
#[repr(transparent)]
pub struct Given<'a, T> {
    at: *const T,
    lasts: PhantomData<&'a T>,
}

impl<T> Clone for Given<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Given<'_, T> {}

impl<'a, T> Given<'a, T> {
    pub const NULL: Given<'a, T> = Given {
        at: core::ptr::null(),
        lasts: PhantomData,
    };

    #[inline]
    pub fn get(self) -> Option<&'a T> {
        // SAFETY: whoever has made it says that there is one, unless the address is bad.
        (!is_bad(self.at)).then(|| unsafe { &*self.at })
    }

    pub fn is_null(self) -> bool {
        self.at.is_null()
    }

    pub fn as_ptr(self) -> *const T {
        self.at
    }
}

impl<'a, T> From<&'a T> for Given<'a, T> {
    fn from(it: &'a T) -> Given<'a, T> {
        Given {
            at: it,
            lasts: PhantomData,
        }
    }
}

impl<'a, T> From<Option<&'a T>> for Given<'a, T> {
    fn from(it: Option<&'a T>) -> Given<'a, T> {
        it.map_or(Given::NULL, Given::from)
    }
}

/// A place for an answer, or for what is changed.
#[repr(transparent)]
pub struct Place<'a, T> {
    at: *mut T,
    lasts: PhantomData<&'a mut T>,
}

impl<'a, T> Place<'a, T> {
    pub const NULL: Place<'a, T> = Place {
        at: core::ptr::null_mut(),
        lasts: PhantomData,
    };

    /// # Safety
    /// `at` is null, or room for a `T` that nobody else uses for `'a`. What is there by now is a `T`, too, as any bits are of what C has.
    pub const unsafe fn new(at: *mut T) -> Place<'a, T> {
        Place {
            at,
            lasts: PhantomData,
        }
    }

    #[inline]
    pub fn get(self) -> Option<&'a mut T> {
        // SAFETY: whoever has made it says that there is one, which nobody else uses, unless the address is bad.
        (!is_bad(self.at)).then(|| unsafe { &mut *self.at })
    }

    /// For one of several calls.
    #[inline]
    pub fn again(&mut self) -> Place<'_, T> {
        Place {
            at: self.at,
            lasts: PhantomData,
        }
    }

    pub fn is_null(&self) -> bool {
        self.at.is_null()
    }

    pub fn as_ptr(&self) -> *mut T {
        self.at
    }
}

impl<'a, T> From<&'a mut T> for Place<'a, T> {
    fn from(it: &'a mut T) -> Place<'a, T> {
        Place {
            at: it,
            lasts: PhantomData,
        }
    }
}

impl<'a, T> From<Option<&'a mut T>> for Place<'a, T> {
    fn from(it: Option<&'a mut T>) -> Place<'a, T> {
        it.map_or(Place::NULL, Place::from)
    }
}

/// What the C library alone looks at, and has made, or says how it is to be: a request, attributes, actions.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Opaque<'a> {
    at: *mut c_void,
    lasts: PhantomData<&'a c_void>,
}

impl Opaque<'_> {
    pub fn as_ptr(self) -> *mut c_void {
        self.at
    }

    pub fn is_null(self) -> bool {
        self.at.is_null()
    }
}

/// A handler of signals, or SIG_DFL and the like.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handler(usize);

impl Handler {
    pub const ERROR: Handler = Handler(libc::SIG_ERR);
    /// Of sigset(3) alone.
    pub const HOLD: Handler = Handler(2);

    /// # Safety
    /// It does what handlers may (signal-safety(7)).
    pub const unsafe fn new(address: usize) -> Handler {
        Handler(address)
    }

    pub fn address(self) -> usize {
        self.0
    }
}
