//! Threads that ptrace(2) has stopped.

use std::path::Path;

/// The stop at a system call, as PTRACE_O_TRACESYSGOOD marks it.
pub const CALL: i32 = libc::SIGTRAP | 0x80;

/// A system call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub nr: i64,
    pub args: [u64; 6],
    pub ip: u64,
    pub sp: u64,
}

pub enum At {
    Entry(Call),
    Exit(i64),
    Elsewhere,
}

/// Where the words of `user_regs_struct` are that hold the call's number and its result.
const ORIG_RAX: usize = 15 * 8;
const RAX: usize = 10 * 8;
/// And the one that says where it is.
const RIP: usize = 16 * 8;

pub fn trace_all(pid: i32) {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: `pid` is stopped; where it was killed since, this fails.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, options as usize) };
}

pub fn go_on(pid: i32, signal: i32) {
    // SAFETY: as above.
    unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, signal as usize) };
}

/// The next instruction only.
pub fn step(pid: i32) {
    // SAFETY: as above.
    unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) };
}

/// Why a thread got the signal at which it has stopped.
pub fn code(pid: i32) -> i32 {
    // SAFETY: all zeroes is valid, and the kernel fills it.
    let mut info: libc::siginfo_t = unsafe { core::mem::zeroed() };
    // SAFETY: info is writable.
    unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, pid, 0, &mut info as *mut _) };
    info.si_code
}

/// Its instruction and stack pointers.
pub fn pointers(pid: i32) -> Option<(u64, u64)> {
    // SAFETY: all zeroes is valid, and the kernel fills it.
    let mut regs: libc::user_regs_struct = unsafe { core::mem::zeroed() };
    // SAFETY: regs is writable.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &mut regs as *mut _) };
    (got == 0).then_some((regs.rip, regs.rsp))
}

/// Where it goes on.
pub fn go_to(pid: i32, ip: u64) {
    // SAFETY: `pid` is stopped.
    unsafe { libc::ptrace(libc::PTRACE_POKEUSER, pid, RIP, ip) };
}

/// The number that belongs to the event.
pub fn message(pid: i32) -> u64 {
    let mut word = 0u64;
    // SAFETY: word is writable.
    unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &mut word as *mut u64) };
    word
}

pub fn at(pid: i32) -> At {
    // SAFETY: all zeroes is valid, and the kernel fills it.
    let mut info: libc::ptrace_syscall_info = unsafe { core::mem::zeroed() };
    let size = size_of_val(&info);
    // SAFETY: info is writable for its size.
    let told = unsafe {
        libc::ptrace(
            libc::PTRACE_GET_SYSCALL_INFO,
            pid,
            size,
            &mut info as *mut _,
        )
    };
    match info.op {
        _ if told <= 0 => At::Elsewhere,
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: the kind says which it is.
            let entry = unsafe { info.u.entry };
            At::Entry(Call {
                nr: entry.nr as i64,
                args: entry.args,
                ip: info.instruction_pointer,
                sp: info.stack_pointer,
            })
        }
        // SAFETY: as above.
        libc::PTRACE_SYSCALL_INFO_EXIT => At::Exit(unsafe { info.u.exit }.sval),
        _ => At::Elsewhere,
    }
}

/// The call under way is none.
pub fn skip(pid: i32) {
    // SAFETY: `pid` is stopped at a call's entry.
    unsafe { libc::ptrace(libc::PTRACE_POKEUSER, pid, ORIG_RAX, -1i64) };
}

pub fn give(pid: i32, result: i64) {
    // SAFETY: `pid` is stopped at a call's exit.
    unsafe { libc::ptrace(libc::PTRACE_POKEUSER, pid, RAX, result) };
}

pub fn peek(pid: i32, at: u64) -> Option<u64> {
    // SAFETY: errno tells an error from a word.
    unsafe {
        *libc::__errno_location() = 0;
        let word = libc::ptrace(libc::PTRACE_PEEKDATA, pid, at, 0);
        (*libc::__errno_location() == 0).then_some(word as u64)
    }
}

pub fn poke(pid: i32, at: u64, word: u64) {
    // SAFETY: `pid` is stopped.
    let r = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, pid, at, word) };
    let error = std::io::Error::last_os_error();
    // Another process of the case may have killed it meanwhile.
    assert!(
        r == 0 || error.raw_os_error() == Some(libc::ESRCH),
        "{error}"
    );
}

/// The process of a thread.
pub fn group(task: i32) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(task)
}

/// Where a process has mapped `library` and its text.
pub fn text_of(pid: i32, library: &Path) -> Option<(u64, (u64, u64))> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (mut base, mut text) = (None, None);
    for line in maps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() < 6 || Path::new(words[5]) != library {
            continue;
        }
        let (from, to) = words[0].split_once('-')?;
        let from = u64::from_str_radix(from, 16).ok()?;
        base.get_or_insert(from);
        if words[1].contains('x') {
            text = Some((from, u64::from_str_radix(to, 16).ok()?));
        }
    }
    Some((base?, text?))
}

/// Words near the top of a stack that may be places in the text, less `base`.
pub fn stack(pid: i32, sp: u64, text: (u64, u64), base: u64) -> Vec<u64> {
    let words = (0..400).map_while(|i| peek(pid, sp + i * 8));
    let found = words.filter(|w| (text.0..text.1).contains(w));
    found.map(|w| w - base).take(30).collect()
}
