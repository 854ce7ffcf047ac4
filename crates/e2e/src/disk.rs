//! Small file systems for tests.

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Mounts an empty tmpfs of 4 MiB on `at`, a folder that is made, for the calling thread and the programs that it starts
/// from then on. That takes root.
pub fn small(at: &Path) {
    std::fs::create_dir(at).expect("the lab's folder is writable");
    let path = CString::new(at.as_os_str().as_bytes()).expect("a path");
    // SAFETY: affects this thread alone; the strings end with a zero.
    let mounted = unsafe {
        let tmpfs = c"tmpfs".as_ptr();
        let options = c"size=4m,mode=1777".as_ptr();
        libc::unshare(libc::CLONE_NEWNS) == 0
            && at.ancestors().any(makes_private)
            && libc::mount(tmpfs, path.as_ptr(), tmpfs, 0, options.cast()) == 0
    };
    assert!(mounted, "{}", std::io::Error::last_os_error());
}

/// What is mounted below `folder` from here on is this thread's alone. False if nothing is mounted there: in a chroot(2) that may
/// be so of its root.
fn makes_private(folder: &Path) -> bool {
    let path = CString::new(folder.as_os_str().as_bytes()).expect("a path");
    let none = std::ptr::null();
    let private = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: the string ends with a zero; nothing else is read.
    unsafe { libc::mount(none, path.as_ptr(), none, private, none.cast()) == 0 }
}

/// Leaves no byte of the file system that `at` is on.
pub fn fill(at: &Path) {
    let mut file = std::fs::File::create(at.join("filler")).expect("an inode is left");
    while file.write(&[1; 4096]).is_ok() {}
}
