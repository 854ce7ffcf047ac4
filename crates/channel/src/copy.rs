//! Copies between a ring and memory that somebody else names, and names wrongly at times.
//!
//! The kernel answers EFAULT to a wrong pointer. Here a fault in such a copy may be turned into a panic with the payload [`Fault`],
//! by a signal handler that asks [`recovery`]. Where there is none, the fault is a fault.

/// What a panic carries that stands for a fault in a copy.
pub struct Fault;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod by_call {
    // memcpy is a leaf: where it faults, its return address is on top of the stack, and ours alone.
    core::arch::global_asm!(
        ".pushsection .text.headwater_copy,\"ax\",@progbits",
        ".hidden headwater_copy",
        ".hidden headwater_copy_returns",
        ".hidden headwater_copy_faulted",
        ".globl headwater_copy",
        ".globl headwater_copy_returns",
        ".globl headwater_copy_faulted",
        ".type headwater_copy,@function",
        "headwater_copy:",
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call qword ptr [rip + memcpy@GOTPCREL]",
        "headwater_copy_returns:",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "xor eax, eax",
        "ret",
        ".cfi_adjust_cfa_offset 8",
        "headwater_copy_faulted:",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov eax, 1",
        "ret",
        ".cfi_endproc",
        ".size headwater_copy, . - headwater_copy",
        ".popsection",
    );
    unsafe extern "C" {
        pub fn headwater_copy(to: *mut u8, from: *const u8, n: usize) -> u32;
        pub static headwater_copy_returns: u8;
        pub static headwater_copy_faulted: u8;
    }
}

/// # Safety
/// As `copy_nonoverlapping`; or a handler turns faults into panics.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if by_call::headwater_copy(to, from, n) != 0 {
        faulted();
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    core::ptr::copy_nonoverlapping(from, to, n);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
#[inline(never)]
fn faulted() -> ! {
    std::panic::resume_unwind(Box::new(Fault))
}

/// Where a thread that has faulted, with this stack pointer, goes on to have its copy panic: instruction and stack pointer.
/// `None`: it was in no copy.
///
/// # Safety
/// A word can be read at `stack`.
pub unsafe fn recovery(stack: usize) -> Option<(usize, usize)> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let returns = &raw const by_call::headwater_copy_returns as usize;
        let faulted = &raw const by_call::headwater_copy_faulted as usize;
        let top = core::ptr::read_volatile(stack as *const usize);
        (top == returns).then_some((faulted, stack + size_of::<usize>()))
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    None
}
