//! Connections: made, accepted, ended.

use headwater_tpi::state::Call;
use headwater_xti::calls::{self, Connection};
use headwater_xti::{Outcome, Port, with};
use libc::c_int;

use super::{TCall, TDiscon, done, given, given_mut, optional, overflow};

/// What t_listen, t_connect and t_rcvconnect give.
unsafe fn fill_call(call: &mut TCall, c: &Connection) -> Outcome<()> {
    call.sequence = c.seq;
    let parts = [
        (&mut call.addr, &c.addr),
        (&mut call.opt, &c.opts),
        (&mut call.udata, &c.data),
    ];
    let mut fits = true;
    for (to, bytes) in parts {
        // SAFETY: the program's buffer.
        fits &= unsafe { to.fill(bytes) };
    }
    if fits { Ok(()) } else { overflow() }
}

/// # Safety
/// As t_listen(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_listen(fd: c_int, call: *mut TCall) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let call = given_mut(call)?;
            fill_call(call, &calls::listen(p)?)
        }))
    }
}

/// # Safety
/// As t_accept(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_accept(fd: c_int, resfd: c_int, call: *const TCall) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let call = given(call)?;
            let (opts, data) = (call.opt.bytes()?, call.udata.bytes()?);
            let ours = p.endpoint().map(core::ptr::from_ref);
            let accept = |on: &dyn Port| {
                // A copy of the descriptor is the same endpoint.
                let same = fd == resfd || ours == on.endpoint().map(core::ptr::from_ref);
                calls::accept(p, on, same, call.sequence, opts, data)
            };
            with(resfd, accept)
        }))
    }
}

/// # Safety
/// As t_connect(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_connect(
    fd: c_int,
    sent: *const TCall,
    received: *mut TCall,
) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let sent = given(sent)?;
            let received = optional(received)?;
            let (to, opts, data) = (sent.addr.bytes()?, sent.opt.bytes()?, sent.udata.bytes()?);
            let confirmed = calls::connect(p, to, opts, data)?;
            received.map_or(Ok(()), |call| fill_call(call, &confirmed))
        }))
    }
}

/// # Safety
/// As t_rcvconnect(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvconnect(fd: c_int, call: *mut TCall) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let call = optional(call)?;
            let confirmed = calls::rcvconnect(p)?;
            call.map_or(Ok(()), |call| fill_call(call, &confirmed))
        }))
    }
}

/// # Safety
/// As t_rcvdis(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvdis(fd: c_int, discon: *mut TDiscon) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let discon = optional(discon)?;
            let d = calls::rcvdis(p)?;
            let Some(discon) = discon else { return Ok(()) };
            discon.reason = d.reason;
            discon.sequence = d.seq;
            if discon.udata.fill(&d.data) {
                Ok(())
            } else {
                overflow()
            }
        }))
    }
}

/// # Safety
/// As t_snddis(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_snddis(fd: c_int, call: *const TCall) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| match optional(call.cast_mut())? {
            Some(call) => calls::snddis(p, Some(call.sequence), call.udata.bytes()?),
            None => calls::snddis(p, None, &[]),
        }))
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sndrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::sndrel(p, Call::SndRel, &[])))
}

/// # Safety
/// As t_sndreldata(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_sndreldata(fd: c_int, discon: *const TDiscon) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let discon = optional(discon.cast_mut())?;
            let data = discon.map_or(Ok(&[][..]), |d| d.udata.bytes())?;
            calls::sndrel(p, Call::SndRelData, data)
        }))
    }
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::rcvrel(p, Call::RcvRel).map(drop)))
}

/// # Safety
/// As t_rcvreldata(3) asks of its caller: what is not null is whole, and its buffers are as long as they say.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn t_rcvreldata(fd: c_int, discon: *mut TDiscon) -> c_int {
    // SAFETY: the program's structures, null or whole, and their buffers.
    unsafe {
        done(with(fd, |p| {
            let discon = optional(discon)?;
            let data = calls::rcvrel(p, Call::RcvRelData)?;
            let Some(discon) = discon else { return Ok(()) };
            discon.reason = 0;
            discon.sequence = -1;
            if discon.udata.fill(&data) {
                Ok(())
            } else {
                overflow()
            }
        }))
    }
}
