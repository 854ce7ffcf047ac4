//! Real processes for tests of streams: fork with the library's own handlers around it.

#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::MutexGuard;

use headwater_host::reclaim::enter;
use headwater_host::sync::Ordering;
use headwater_host::{process, table};
use headwater_streams::head::control::ioctl;
use headwater_streams::head::passing::StrRecvFd;
use headwater_streams::head::{self, Head, life};
use headwater_streams::{attach, open};
use headwater_testkit::processes;
pub use headwater_testkit::processes::Child;

pub const I_PUSH: u32 = (b'S' as u32) << 8 | 2;
pub const I_RECVFD: u32 = (b'S' as u32) << 8 | 14;
pub const I_SENDFD: u32 = (b'S' as u32) << 8 | 17;

pub type Errno = i32;

/// One test at a time, since a child inherits what the others have open; with a runtime folder of its own.
pub fn alone() -> MutexGuard<'static, ()> {
    processes::alone(|| {
        process::identify();
        headwater_streams::start();
    })
}

pub fn pause() -> ! {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

pub fn stream(fd: i32) -> &'static Head {
    table::stream(fd)
        .and_then(|h| head::get(h, &enter()))
        .expect("a stream")
}

pub fn pipe() -> [i32; 2] {
    life::pipe(0).unwrap()
}

pub fn close(fd: i32) {
    match table::stream(fd) {
        Some(h) => life::close(fd, h),
        // SAFETY: a descriptor of the test's own.
        None => drop(unsafe { libc::close(fd) }),
    }
}

pub fn nonblocking(fd: i32) {
    // The tests call the head itself, so the end's own flag counts, not that of one open of a name.
    stream(fd).words().nonblocking.store(1, Ordering::SeqCst);
}

pub fn write(fd: i32, text: &str) -> Result<usize, Errno> {
    stream(fd).write(text.as_bytes())
}

pub fn read(fd: i32) -> Result<String, Errno> {
    let mut buf = [0; 256];
    let n = stream(fd).read(&mut buf)?;
    Ok(String::from_utf8_lossy(&buf[..n]).into_owned())
}

pub fn send_fd(through: i32, fd: i32) -> Result<i32, Errno> {
    // SAFETY: the request takes a number.
    unsafe { ioctl(stream(through), I_SENDFD, fd as usize) }
}

pub fn receive(through: i32) -> Result<StrRecvFd, Errno> {
    let mut to = StrRecvFd {
        fd: -1,
        uid: 0,
        gid: 0,
        fill: [0; 8],
    };
    // SAFETY: the request writes a strrecvfd.
    unsafe { ioctl(stream(through), I_RECVFD, &raw mut to as usize) }.map(|_| to)
}

pub fn receive_fd(through: i32) -> Result<i32, Errno> {
    receive(through).map(|r| r.fd)
}

pub fn push(fd: i32, module: &str) {
    let name = CString::new(module).unwrap();
    // SAFETY: the request reads a C string.
    unsafe { ioctl(stream(fd), I_PUSH, name.as_ptr() as usize) }.unwrap();
}

pub fn attach(fd: i32, path: &Path) -> Result<(), Errno> {
    attach::fattach(stream(fd), fd, &c_path(path))
}

pub fn detach(path: &Path) -> Result<(), Errno> {
    attach::fdetach(&c_path(path))
}

/// `None`: the kernel's to open.
pub fn open_path(path: &Path) -> Option<Result<i32, Errno>> {
    open::open(&c_path(path), libc::O_RDWR)
}

pub fn open_stream(path: &Path) -> Result<i32, Errno> {
    open_path(path).expect("a stream is there")
}

pub fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// An empty file.
pub struct File {
    _dir: tempfile::TempDir,
    pub path: PathBuf,
}

pub fn file() -> File {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("name");
    std::fs::write(&path, "plain").unwrap();
    File { _dir: dir, path }
}
