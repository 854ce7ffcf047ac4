//! Copies between a ring and memory that somebody else names, and names wrongly at times.
//!
//! The kernel answers EFAULT to a wrong pointer. Here a fault in such a copy may be turned into a panic with the payload [`Fault`],
//! by a signal handler that asks [`recovery`]. Where there is none, the fault is a fault.

/// What a panic carries that stands for a fault in a copy.
pub struct Fault;

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod by_call {
    // memcpy is a leaf: where it faults, its return address is on top of the stack, and ours alone. Few bytes are copied
    // here, between two labels, without a call: that is a nanosecond less, of the forty that a small message takes. All is
    // loaded before anything is stored, from both ends to the middle.
    core::arch::global_asm!(
        ".pushsection .text.headwater_copy,\"ax\",@progbits",
        ".hidden headwater_copy",
        ".hidden headwater_copy_called",
        ".hidden headwater_copy_few",
        ".hidden headwater_copy_few_faulted",
        ".hidden headwater_copy_returns",
        ".hidden headwater_copy_faulted",
        ".globl headwater_copy",
        ".globl headwater_copy_called",
        ".globl headwater_copy_few",
        ".globl headwater_copy_few_faulted",
        ".globl headwater_copy_returns",
        ".globl headwater_copy_faulted",
        ".type headwater_copy,@function",
        "headwater_copy:",
        ".cfi_startproc",
        "cmp rdx, 128",
        "ja headwater_copy_called",
        "headwater_copy_few:",
        "cmp edx, 32",
        "ja 5f",
        "cmp edx, 16",
        "ja 4f",
        "cmp edx, 8",
        "ja 3f",
        "cmp edx, 4",
        "jb 2f",
        "mov eax, dword ptr [rsi]",
        "mov ecx, dword ptr [rsi + rdx - 4]",
        "mov dword ptr [rdi], eax",
        "mov dword ptr [rdi + rdx - 4], ecx",
        "xor eax, eax",
        "ret",
        // One byte, two, or three: the first, the last, and the one in the middle, which may be either of them.
        "2:",
        "test edx, edx",
        "jz 6f",
        "mov r9d, edx",
        "shr r9d",
        "movzx eax, byte ptr [rsi]",
        "movzx ecx, byte ptr [rsi + rdx - 1]",
        "movzx r8d, byte ptr [rsi + r9]",
        "mov byte ptr [rdi], al",
        "mov byte ptr [rdi + r9], r8b",
        "mov byte ptr [rdi + rdx - 1], cl",
        "6:",
        "xor eax, eax",
        "ret",
        "3:",
        "mov rax, qword ptr [rsi]",
        "mov rcx, qword ptr [rsi + rdx - 8]",
        "mov qword ptr [rdi], rax",
        "mov qword ptr [rdi + rdx - 8], rcx",
        "xor eax, eax",
        "ret",
        "4:",
        "movups xmm0, xmmword ptr [rsi]",
        "movups xmm1, xmmword ptr [rsi + rdx - 16]",
        "movups xmmword ptr [rdi], xmm0",
        "movups xmmword ptr [rdi + rdx - 16], xmm1",
        "xor eax, eax",
        "ret",
        "5:",
        "movups xmm0, xmmword ptr [rsi]",
        "movups xmm1, xmmword ptr [rsi + 16]",
        "movups xmm2, xmmword ptr [rsi + rdx - 32]",
        "movups xmm3, xmmword ptr [rsi + rdx - 16]",
        "cmp edx, 64",
        "ja 7f",
        "movups xmmword ptr [rdi], xmm0",
        "movups xmmword ptr [rdi + 16], xmm1",
        "movups xmmword ptr [rdi + rdx - 32], xmm2",
        "movups xmmword ptr [rdi + rdx - 16], xmm3",
        "xor eax, eax",
        "ret",
        "7:",
        "movups xmm4, xmmword ptr [rsi + 32]",
        "movups xmm5, xmmword ptr [rsi + 48]",
        "movups xmm6, xmmword ptr [rsi + rdx - 64]",
        "movups xmm7, xmmword ptr [rsi + rdx - 48]",
        "movups xmmword ptr [rdi], xmm0",
        "movups xmmword ptr [rdi + 16], xmm1",
        "movups xmmword ptr [rdi + 32], xmm4",
        "movups xmmword ptr [rdi + 48], xmm5",
        "movups xmmword ptr [rdi + rdx - 64], xmm6",
        "movups xmmword ptr [rdi + rdx - 48], xmm7",
        "movups xmmword ptr [rdi + rdx - 32], xmm2",
        "movups xmmword ptr [rdi + rdx - 16], xmm3",
        "xor eax, eax",
        "ret",
        "headwater_copy_few_faulted:",
        "mov eax, 1",
        "ret",
        "headwater_copy_called:",
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
        #[cfg(any(asan, fuzzing))]
        pub fn headwater_copy_called(to: *mut u8, from: *const u8, n: usize) -> u32;
        pub static headwater_copy_few: u8;
        pub static headwater_copy_few_faulted: u8;
        pub static headwater_copy_returns: u8;
        pub static headwater_copy_faulted: u8;
    }
}

/// # Safety
/// As `copy_nonoverlapping`; or a handler turns faults into panics.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    // AddressSanitizer looks at what memcpy copies, and at nothing that assembly does.
    #[cfg(all(target_arch = "x86_64", not(miri), not(any(asan, fuzzing))))]
    use by_call::headwater_copy;
    #[cfg(all(target_arch = "x86_64", not(miri), any(asan, fuzzing)))]
    use by_call::headwater_copy_called as headwater_copy;
    // SAFETY: the caller says that both may be copied between, or that a fault on the way is told here by the answer.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if unsafe { headwater_copy(to, from, n) } != 0 {
        faulted();
    }
    // SAFETY: the caller says that both may be copied between; no handler turns faults into panics here.
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    unsafe {
        core::ptr::copy_nonoverlapping(from, to, n)
    };
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[cold]
#[inline(never)]
fn faulted() -> ! {
    std::panic::resume_unwind(Box::new(Fault))
}

/// Where a thread that has faulted at this instruction, with this stack pointer, goes on to have its copy panic: instruction
/// and stack pointer. `None`: it was in no copy.
///
/// # Safety
/// A word can be read at `stack`.
pub unsafe fn recovery(at: usize, stack: usize) -> Option<(usize, usize)> {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let few = &raw const by_call::headwater_copy_few as usize;
        let few_faulted = &raw const by_call::headwater_copy_few_faulted as usize;
        if (few..few_faulted).contains(&at) {
            return Some((few_faulted, stack));
        }
        let returns = &raw const by_call::headwater_copy_returns as usize;
        let faulted = &raw const by_call::headwater_copy_faulted as usize;
        // SAFETY: the caller says that a word can be read there.
        let top = unsafe { core::ptr::read_volatile(stack as *const usize) };
        (top == returns).then_some((faulted, stack + size_of::<usize>()))
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let _ = (at, stack);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn each_length_is_copied_and_nothing_else() {
        let from: [u8; 152] = core::array::from_fn(|i| i as u8 + 1);
        for (n, at) in (0..=136).flat_map(|n| (0..8).map(move |at| (n, at))) {
            let mut to = [0; 152];
            // SAFETY: 136 bytes from the eighth at most, of 152 each.
            unsafe { copy(from[at..].as_ptr(), to[7 - at..].as_mut_ptr(), n) };
            let (before, rest) = to.split_at(7 - at);
            let (copied, after) = rest.split_at(n);
            assert_eq!(copied, &from[at..at + n]);
            assert!(before.iter().chain(after).all(|b| *b == 0), "{n} bytes");
        }
    }
}
