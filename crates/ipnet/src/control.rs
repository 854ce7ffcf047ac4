//! Control messages of a datagram (cmsg(3)).

use libc::cmsghdr;

#[repr(C, align(8))]
pub struct Control(pub [u8; 128]);

/// Appends a control message; gives the new length.
pub fn put_control(control: &mut Control, at: usize, level: i32, name: i32, value: &[u8]) -> usize {
    // SAFETY: the caller puts at most four short ones into 128 aligned bytes.
    unsafe {
        let header = control.0.as_mut_ptr().add(at) as *mut cmsghdr;
        (*header).cmsg_level = level;
        (*header).cmsg_type = name;
        (*header).cmsg_len = libc::CMSG_LEN(value.len() as u32) as _;
        core::ptr::copy_nonoverlapping(value.as_ptr(), libc::CMSG_DATA(header), value.len());
        at + libc::CMSG_SPACE(value.len() as u32) as usize
    }
}

/// Level, type and value of each control message.
pub fn controls(mut left: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    core::iter::from_fn(move || {
        const HEADER: usize = size_of::<cmsghdr>();
        let header = left.get(..HEADER)?;
        // SAFETY: as many bytes as a cmsghdr has, which may be any; unaligned.
        let header = unsafe { (header.as_ptr() as *const cmsghdr).read_unaligned() };
        let len: usize = header.cmsg_len as _;
        let value = left.get(HEADER..len)?;
        left = left.get(len.next_multiple_of(8)..).unwrap_or(&[]);
        Some((header.cmsg_level, header.cmsg_type, value))
    })
}
