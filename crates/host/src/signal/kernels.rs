//! What the kernel does at a signal: struct sigaction as it has it, which the C library's call would show in its own way.

use syscalls::{Sysno, syscall};

use super::{Action, wrapper};

#[derive(Default)]
#[repr(C)]
pub struct Kernels {
    pub handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

impl Kernels {
    pub fn of(signal: i32) -> Kernels {
        let mut k = Kernels::default();
        let none = core::ptr::null::<Kernels>();
        // SAFETY: k is writable.
        let _ = unsafe { syscall!(Sysno::rt_sigaction, signal, none, &mut k as *mut Kernels, 8) };
        k
    }

    /// Does the signal come to us?
    pub fn is_ours(&self) -> bool {
        self.handler == wrapper as *const () as usize
    }

    /// The default action, with the flags that the program gave.
    pub fn set_default(self, signal: i32, action: Action) {
        self.set(signal, libc::SIG_DFL, action);
    }

    /// `handler` is called by the kernel itself, with the flags that the program gave.
    pub fn set(mut self, signal: i32, handler: usize, action: Action) {
        self.handler = handler;
        self.flags = self.flags & !0xffff_ffff | action.flags(self.flags as i32) as u32 as u64;
        let (new, none) = (&raw const self, core::ptr::null_mut::<Kernels>());
        // SAFETY: self is readable.
        let _ = unsafe { syscall!(Sysno::rt_sigaction, signal, new, none, 8) };
    }
}
