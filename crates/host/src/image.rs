//! What an exec is about to start: will the library be in it? As headwater(1) judges a program before it runs it, but by
//! what this process is about to do, without allocating, and in doubt with no.

use core::ffi::{CStr, c_char};

use crate::sync::{AtomicU64, Ordering};
use crate::sys;

/// What comes of an exec.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Image {
    /// It is preloaded with this very library.
    Ours,
    /// It runs without the library, as far as we can tell.
    Stranger,
    /// There is no such program: the exec fails.
    None,
}

/// Interpreters that are scripts themselves, as many as the kernel follows.
const DEPTH: u32 = 5;
const LINE: usize = 256;
/// Longer paths are not followed: all this must fit a small stack.
const PATH: usize = 512;

#[cfg(target_arch = "x86_64")]
pub const MACHINE: u16 = libc::EM_X86_64;
#[cfg(target_arch = "aarch64")]
pub const MACHINE: u16 = libc::EM_AARCH64;
const PROGRAM_HEADERS: usize = 64;

/// What each sanitizer's runtime defines and its programs ask for, whether it is linked into them or a library of its own.
pub const SANITIZERS: [(&CStr, &str); 4] = [
    (c"__asan_init", "AddressSanitizer"),
    (c"__hwasan_init", "HWAddressSanitizer"),
    (c"__msan_init", "MemorySanitizer"),
    (c"__tsan_init", "ThreadSanitizer"),
];

/// execve(2) of `path` with this environment.
///
/// # Safety
/// `envp` is null or a null-terminated array of C strings.
pub unsafe fn of(path: &CStr, envp: *const *const c_char) -> Image {
    let image = of_program(path);
    // SAFETY: the caller says what the environment is.
    if image == Image::Ours && !unsafe { preloads_us(envp) } {
        return Image::Stranger;
    }
    image
}

/// execvp(3) of `file`: which file that is, is said by `path`, the PATH of this process.
///
/// # Safety
/// As [`of`].
pub unsafe fn found(file: &CStr, path: Option<&CStr>, envp: *const *const c_char) -> Image {
    // SAFETY: the caller says what the environment is.
    let of = |path: &CStr| unsafe { of(path, envp) };
    let name = file.to_bytes();
    if name.contains(&b'/') {
        return of(file);
    }
    let folders = path.map_or(&b"/bin:/usr/bin"[..], CStr::to_bytes);
    for folder in folders.split(|&b| b == b':') {
        let mut room = [0u8; PATH];
        let mut text = sys::Cursor::new(&mut room[..PATH - 1]);
        let parts: [&[u8]; 3] = [if folder.is_empty() { b"." } else { folder }, b"/", name];
        if !parts.iter().all(|part| text.push(part)) {
            return Image::Stranger;
        }
        let Ok(candidate) = CStr::from_bytes_until_nul(&room) else {
            continue;
        };
        match of(candidate) {
            Image::None => {}
            image => return image,
        }
    }
    Image::None
}

/// The file alone: what it is if the environment preloads the library.
pub fn of_program(path: &CStr) -> Image {
    of_file(path, DEPTH)
}

fn of_file(path: &CStr, depth: u32) -> Image {
    match sys::access(path, libc::X_OK) {
        Err(libc::ENOENT | libc::ENOTDIR) => return Image::None,
        // That was the real user's answer.
        Err(_) if !changed_user() => return Image::None,
        _ => {}
    }
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let Ok(fd) = sys::open(path, flags, 0) else {
        // It can be run without being read.
        return Image::Stranger;
    };
    let image = of_open(fd, depth);
    let _ = sys::close(fd);
    image
}

fn of_open(fd: i32, depth: u32) -> Image {
    let Ok(st) = sys::fstat(fd) else {
        return Image::Stranger;
    };
    if st.st_mode & libc::S_IFMT != libc::S_IFREG {
        return Image::None;
    }
    let mut head = [0u8; LINE];
    let n = sys::read_at(fd, &mut head, 0).unwrap_or(0);
    let head = &head[..n];
    if let Some(line) = head.strip_prefix(b"#!") {
        return of_script(line, depth);
    }
    if gains_rights(fd, &st) || !is_dynamic(fd, head).unwrap_or(false) {
        return Image::Stranger;
    }
    Image::Ours
}

fn of_script(line: &[u8], depth: u32) -> Image {
    let line = line.split(|&b| b == b'\n').next().unwrap_or(line);
    let mut words = line.split(|b| b.is_ascii_whitespace());
    let mut room = [0u8; LINE];
    let Some(interpreter) = words.find(|w| !w.is_empty()).filter(|_| depth > 0) else {
        return Image::Stranger;
    };
    room[..interpreter.len()].copy_from_slice(interpreter);
    CStr::from_bytes_until_nul(&room).map_or(Image::Stranger, |path| of_file(path, depth - 1))
}

/// Would it run with other rights than ours, or do we with others than our user's? The loader then ignores preloading.
fn gains_rights(fd: i32, st: &libc::stat) -> bool {
    let (uid, gid) = (sys::getuid(), sys::getgid());
    let setgid = libc::S_ISGID | libc::S_IXGRP;
    changed_user()
        || st.st_mode & libc::S_ISUID != 0 && st.st_uid != uid
        || st.st_mode & setgid == setgid && st.st_gid != gid
        || uid != 0 && sys::has_attribute(fd, c"security.capability")
}

fn changed_user() -> bool {
    let [uid, effective_uid, gid, effective_gid] = sys::users_and_groups();
    uid != effective_uid || gid != effective_gid
}

/// Is it a program for this machine that glibc's loader loads? Go's run time makes its system calls itself in those, too.
fn is_dynamic(fd: i32, head: &[u8]) -> Option<bool> {
    let word = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
    if !head.starts_with(b"\x7fELF") || *head.get(4)? != libc::ELFCLASS64 || word(18)? != MACHINE {
        return Some(false);
    }
    let table = u64::from_le_bytes(head.get(32..40)?.try_into().ok()?);
    let (size, count) = (word(54)? as u64, word(56)? as usize);
    let mut dynamic = false;
    for i in 0..count.min(PROGRAM_HEADERS) as u64 {
        let mut header = [0u8; 56];
        read_at(fd, &mut header, table + i * size)?;
        let long = |at: usize| {
            let bytes = header[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        let (offset, len) = (long(8), long(32));
        let mut text = [0u8; 64];
        let text = &mut text[..(len as usize).min(64)];
        match u32::from_le_bytes(header[..4].try_into().expect("four bytes")) {
            libc::PT_INTERP => {
                read_at(fd, text, offset)?;
                let name = text.rsplit(|&b| b == b'/').next()?;
                dynamic = name.starts_with(b"ld-linux");
            }
            // {name's length, description's length, type, name}
            libc::PT_NOTE if len >= 16 => {
                read_at(fd, text, offset)?;
                if &text[12..16] == b"Go\0\0" {
                    return Some(false);
                }
            }
            _ => {}
        }
    }
    Some(dynamic)
}

fn read_at(fd: i32, to: &mut [u8], at: u64) -> Option<()> {
    (sys::read_at(fd, to, at as i64) == Ok(to.len())).then_some(())
}

/// Does LD_PRELOAD there name the file that this library was loaded from?
///
/// # Safety
/// As [`of`].
unsafe fn preloads_us(envp: *const *const c_char) -> bool {
    let own = own_inode();
    let mut at = envp;
    // SAFETY: `at` is not behind the null that ends the array, and before that there are C strings.
    let variable =
        |at: *const *const c_char| unsafe { (!(*at).is_null()).then(|| CStr::from_ptr(*at)) };
    while own != 0
        && !at.is_null()
        && let Some(variable) = variable(at)
    {
        let text = variable.to_bytes();
        if let Some(list) = text.strip_prefix(b"LD_PRELOAD=") {
            return list
                .split(|&b| b == b':' || b == b' ')
                .any(|name| is_file(name, own));
        }
        at = at.wrapping_add(1);
    }
    false
}

fn is_file(name: &[u8], inode: u64) -> bool {
    let mut room = [0u8; PATH];
    if !name.contains(&b'/') {
        // The loader finds it where it found us.
        return name.starts_with(b"libheadwater.so");
    }
    if name.len() >= PATH {
        return false;
    }
    room[..name.len()].copy_from_slice(name);
    CStr::from_bytes_until_nul(&room).is_ok_and(|path| sys::inode(path) == inode)
}

/// The inode of the file that this code was loaded from; 0: unknown.
fn own_inode() -> u64 {
    static OWN: AtomicU64 = AtomicU64::new(0);
    let known = OWN.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let found = mapped_at(own_inode as *const () as u64).unwrap_or(0);
    OWN.store(found, Ordering::Relaxed);
    found
}

/// The inode in the line of /proc/self/maps for this address.
fn mapped_at(address: u64) -> Option<u64> {
    let fd = sys::open(c"/proc/self/maps", libc::O_RDONLY | libc::O_CLOEXEC, 0).ok()?;
    let mut found = None;
    sys::each_line::<128>(fd, |line| {
        found = inode_of(line, address);
        found.is_some()
    });
    let _ = sys::close(fd);
    found
}

/// `begin-end rights offset device inode path`
fn inode_of(line: &str, address: u64) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    if !(number(begin)?..number(end)?).contains(&address) {
        return None;
    }
    words.nth(3)?.parse().ok().filter(|&inode| inode != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn c_path(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    /// What comes of `path` with LD_PRELOAD naming `library`.
    fn with(path: &Path, library: &Path) -> Image {
        let variable = [b"LD_PRELOAD=x.so:", library.as_os_str().as_bytes()].concat();
        let variable = CString::new(variable).unwrap();
        let envp = [c"A=b".as_ptr(), variable.as_ptr(), core::ptr::null()];
        // SAFETY: a terminated array of strings.
        unsafe { of(&c_path(path), envp.as_ptr()) }
    }

    /// Here this code is in the test's own program.
    fn own() -> std::path::PathBuf {
        std::env::current_exe().unwrap()
    }

    fn script(folder: &Path, text: &str) -> std::path::PathBuf {
        let path = folder.join("script");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_dynamic_program_is_ours_if_the_library_is_preloaded() {
        assert_eq!(with(&own(), &own()), Image::Ours);
        assert_eq!(with(&own(), Path::new("/bin/sh")), Image::Stranger);
        // SAFETY: no environment at all.
        let bare = unsafe { of(&c_path(&own()), core::ptr::null()) };
        assert_eq!(bare, Image::Stranger);
    }

    #[test]
    fn a_script_is_what_its_interpreter_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = script(dir.path(), &format!("#! {} -x\n", own().display()));
        assert_eq!(with(&path, &own()), Image::Ours);
        let path = script(dir.path(), "#!/no/such/interpreter\n");
        assert_eq!(with(&path, &own()), Image::None);
        let path = script(
            dir.path(),
            &format!("#!{}\n", dir.path().join("script").display()),
        );
        assert_eq!(with(&path, &own()), Image::Stranger);
        let path = script(dir.path(), "no program at all");
        assert_eq!(with(&path, &own()), Image::Stranger);
    }

    #[test]
    fn what_is_not_there_or_may_not_run_is_nothing() {
        assert_eq!(with(Path::new("/no/such/file"), &own()), Image::None);
        assert_eq!(with(Path::new("/etc/passwd"), &own()), Image::None);
        assert_eq!(with(Path::new("/"), &own()), Image::None);
    }

    #[test]
    fn a_name_is_looked_for_in_path() {
        let dir = tempfile::tempdir().unwrap();
        script(dir.path(), &format!("#!{}\n", own().display()));
        let path = CString::new(format!("/no/folder::{}", dir.path().display())).unwrap();
        // SAFETY: no environment.
        let image = |name: &CStr| unsafe { found(name, Some(&path), core::ptr::null()) };
        assert_eq!(image(c"script"), Image::Stranger);
        assert_eq!(image(c"scripts"), Image::None);
    }

    #[test]
    fn the_librarys_own_file_is_known_by_its_inode() {
        use std::os::unix::fs::MetadataExt;
        assert_eq!(own_inode(), std::fs::metadata(own()).unwrap().ino());
    }
}
