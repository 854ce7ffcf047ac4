//! I_STR and transparent ioctls: M_IOCTL goes down, the answer comes back up, with M_COPYIN and M_COPYOUT between.

use core::ffi::{c_char, c_int};

use headwater_host::sys::{self, Errno};

use super::{Head, is_bad, local};
use crate::ddi::*;
use crate::pipe::words::state;
use crate::tunables;

/// struct strioctl
#[repr(C)]
pub struct StrIoctl {
    pub cmd: c_int,
    pub timeout: c_int,
    pub len: c_int,
    pub data: *mut c_char,
}

/// Seconds that an I_STR with timeout 0 waits.
const DEFAULT_TIMEOUT: u64 = 15;

/// I_STR. Returns what the module or driver says. Errors: EINVAL (bad length or timeout; nobody knows the command), ENXIO
/// after a hangup, ETIME, EINTR, and the errno of the answer.
///
/// # Safety
/// As ioctl(2): `request` and the buffer it names are valid.
pub unsafe fn strioctl(head: &'static Head, request: *mut StrIoctl) -> Result<c_int, Errno> {
    // SAFETY: a strioctl of the program's, as the caller says, that nobody else refers to while the call lasts.
    let request = unsafe { &mut *request };
    if request.timeout < -1 || request.len < 0 || request.len as usize > tunables::get().strmsgsz {
        return Err(libc::EINVAL);
    }
    if request.len > 0 && is_bad(request.data) {
        return Err(libc::EFAULT);
    }
    check(head)?;
    if !head.is_queued() {
        // A pipe without modules: nobody answers.
        return Err(libc::EINVAL);
    }
    let data = match request.len {
        0 => &[][..],
        // SAFETY: the buffer holds `len` bytes, as the caller says, and is not in the first page.
        n => unsafe { core::slice::from_raw_parts(request.data as *const u8, n as usize) },
    };
    let message = ioctl_message(request.cmd, data, request.len as u32);
    let deadline = match request.timeout {
        -1 => u64::MAX,
        0 => sys::now() + DEFAULT_TIMEOUT * 1_000_000_000,
        seconds => sys::now() + seconds as u64 * 1_000_000_000,
    };
    let (answer, ioc) = ask(head, message, deadline)?;
    outcome(&answer, &ioc, libc::EINVAL)?;
    let bytes = answer.to_data();
    let n = bytes.len().min(ioc.ioc_count as usize);
    if n > 0 {
        if is_bad(request.data) {
            return Err(libc::EFAULT);
        }
        // SAFETY: the program's buffer has room for what its request is answered with, as streamio(7I) asks of the caller.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), request.data as *mut u8, n) };
    }
    request.len = n as c_int;
    Ok(ioc.ioc_rval)
}

/// A request that streamio(7I) does not define: a transparent M_IOCTL. Errors: ENOTTY where nobody knows it.
///
/// # Safety
/// `arg` is what the request wants: modules read and write there.
pub unsafe fn transparent(head: &'static Head, cmd: c_int, arg: usize) -> Result<c_int, Errno> {
    check(head)?;
    if !head.is_queued() {
        return Err(libc::ENOTTY);
    }
    let mut message = ioctl_message(cmd, &arg.to_ne_bytes(), TRANSPARENT);
    let id = begin(head, u64::MAX)?;
    let answered = move || -> Result<Message, Errno> {
        loop {
            let answer = exchange(head, id, message, u64::MAX)?;
            if !matches!(answer.kind(), M_COPYIN | M_COPYOUT) {
                return Ok(answer);
            }
            // SAFETY: by the caller a module that knows the request may read and write where its argument leads.
            let copied = unsafe { copied(answer) }?;
            if copied.failed {
                // Who asked for it frees what it has of the request, and need not answer.
                send(head, id, copied.response);
                local::after_call(head.forever());
                return Err(libc::EFAULT);
            }
            message = copied.response;
        }
    };
    let answer = answered();
    over(head);
    let answer = answer?;
    let ioc: iocblk = answer.read().ok_or(libc::EPROTO)?;
    outcome(&answer, &ioc, libc::ENOTTY).map(|()| ioc.ioc_rval)
}

/// The answer to an M_IOCTL.
pub fn ask(
    head: &'static Head,
    message: Message,
    deadline: u64,
) -> Result<(Message, iocblk), Errno> {
    let id = begin(head, deadline)?;
    let answer = exchange(head, id, message, deadline);
    over(head);
    let answer = answer?;
    let ioc = answer.read().ok_or(libc::EPROTO)?;
    Ok((answer, ioc))
}

pub fn outcome(answer: &Message, ioc: &iocblk, unknown: Errno) -> Result<(), Errno> {
    match (answer.kind(), ioc.ioc_error) {
        (M_IOCACK, 0) => Ok(()),
        (_, 0) => Err(unknown),
        (_, errno) => Err(errno),
    }
}

struct Copied {
    /// M_IOCDATA.
    response: Message,
    failed: bool,
}

/// M_COPYIN, M_COPYOUT: moves the bytes between the program and the message, and answers with M_IOCDATA.
///
/// # Safety
/// The program lets modules read and write what the request names.
unsafe fn copied(answer: Message) -> Result<Copied, Errno> {
    let request: copyreq = answer.read().ok_or(libc::EPROTO)?;
    let address = request.cq_addr as *mut u8;
    let size = request.cq_size as usize;
    let failed = is_bad(address) && size > 0;
    let response = copyresp {
        cp_cmd: request.cq_cmd,
        cp_cr: request.cq_cr,
        cp_id: request.cq_id,
        cp_rval: core::ptr::without_provenance_mut(if failed { libc::EFAULT as usize } else { 0 }),
        cp_private: request.cq_private,
        ..copyresp::zeroed()
    };
    let mut response = Message::from_struct(M_IOCDATA, response);
    if failed {
        return Ok(Copied { response, failed });
    }
    // SAFETY: `size` bytes of the program's, as the caller says, and not in the first page.
    unsafe {
        if answer.kind() == M_COPYIN {
            let bytes = match size {
                0 => &[][..],
                _ => core::slice::from_raw_parts(address, size),
            };
            response.append(Message::data(bytes));
        } else {
            let bytes = answer.to_data();
            let n = bytes.len().min(size);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), address, n);
        }
    }
    Ok(Copied { response, failed })
}

/// An M_IOCTL without its number.
pub fn ioctl_message(cmd: c_int, data: &[u8], count: u32) -> Message {
    // Room for the answer's structure, whichever it is.
    let mut message = Message::new(M_IOCTL, IOCTYPES);
    message.write(iocblk {
        ioc_cmd: cmd,
        ioc_count: count,
        ..iocblk::zeroed()
    });
    if !data.is_empty() {
        message.append(Message::data(data));
    }
    message
}

fn check(head: &Head) -> Result<(), Errno> {
    head.check_connected()?;
    if head.words().has(state::WRITE_ERROR) {
        return Err(head.take_error(false));
    }
    Ok(())
}

/// Waits for its turn: a stream has one request on its way at a time.
fn begin(head: &'static Head, deadline: u64) -> Result<u32, Errno> {
    headwater_host::signal::begin_wait();
    loop {
        let seen = head.version();
        match local::inside(head, |local| local.requests.borrow_mut().begin()) {
            None => return Err(libc::ENXIO),
            Some(Some(id)) => return Ok(id),
            Some(None) => {}
        }
        local::wait_for_change(head, seen, bounded(deadline), &mut [])?;
        check(head)?;
    }
}

/// Ends a request; the next one's turn.
fn over(head: &Head) {
    local::inside(head, |local| local.requests.borrow_mut().end());
    head.notify();
}

fn bounded(deadline: u64) -> Option<u64> {
    (deadline != u64::MAX).then_some(deadline)
}

/// Sends one message of a request down and waits for what comes back.
fn exchange(
    head: &'static Head,
    id: u32,
    message: Message,
    deadline: u64,
) -> Result<Message, Errno> {
    let mut seen = head.version();
    let mut answer = send(head, id, message);
    loop {
        if let Some(answer) = answer {
            return Ok(answer);
        }
        local::after_call(head.forever());
        check(head)?;
        local::wait_for_change(head, seen, bounded(deadline), &mut [])?;
        seen = head.version();
        answer = local::inside(head, |local| local.requests.borrow_mut().answer.take()).flatten();
    }
}

/// Sends one message of a request down; what has come back in the same call.
fn send(head: &Head, id: u32, mut message: Message) -> Option<Message> {
    let numbered = match message.kind() {
        M_IOCDATA => message.read::<copyresp>().map(|mut r| {
            r.cp_id = id;
            message.write(r)
        }),
        _ => message.read::<iocblk>().map(|mut r| {
            r.ioc_id = id;
            message.write(r)
        }),
    };
    debug_assert_eq!(numbered, Some(true));
    local::inside(head, |local| {
        local.requests.borrow_mut().answer = None;
        local.down().putnext(message);
        local.requests.borrow_mut().answer.take()
    })
    .flatten()
}
