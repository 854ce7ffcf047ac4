//! Connections: made, accepted, ended.

use headwater_tpi::state::Call;
use headwater_xti::calls::{self, Connection};
use headwater_xti::{Outcome, Port, with};
use libc::c_int;

use super::{TCall, TDiscon, done, fits, given, optional, optionally_given, place};
use crate::given::{Given, Place};

/// What t_listen, t_connect and t_rcvconnect give.
fn fill_call(call: &mut TCall, c: &Connection) -> Outcome<()> {
    call.sequence = c.seq;
    let all = call.addr.fill(&c.addr) & call.opt.fill(&c.opts) & call.udata.fill(&c.data);
    fits(all)
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_listen(fd: c_int, call: Place<TCall>) -> c_int {
    done(with(fd, |p| {
        let call = place(call)?;
        fill_call(call, &calls::listen(p)?)
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_accept(fd: c_int, resfd: c_int, call: Given<TCall>) -> c_int {
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

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_connect(fd: c_int, sent: Given<TCall>, received: Place<TCall>) -> c_int {
    done(with(fd, |p| {
        let sent = given(sent)?;
        let received = optional(received)?;
        let (to, opts, data) = (sent.addr.bytes()?, sent.opt.bytes()?, sent.udata.bytes()?);
        let confirmed = calls::connect(p, to, opts, data)?;
        received.map_or(Ok(()), |call| fill_call(call, &confirmed))
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvconnect(fd: c_int, call: Place<TCall>) -> c_int {
    done(with(fd, |p| {
        let call = optional(call)?;
        let confirmed = calls::rcvconnect(p)?;
        call.map_or(Ok(()), |call| fill_call(call, &confirmed))
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvdis(fd: c_int, discon: Place<TDiscon>) -> c_int {
    done(with(fd, |p| {
        let discon = optional(discon)?;
        let d = calls::rcvdis(p)?;
        let Some(discon) = discon else { return Ok(()) };
        discon.reason = d.reason;
        discon.sequence = d.seq;
        fits(discon.udata.fill(&d.data))
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_snddis(fd: c_int, call: Given<TCall>) -> c_int {
    done(with(fd, |p| match optionally_given(call)? {
        Some(call) => calls::snddis(p, Some(call.sequence), call.udata.bytes()?),
        None => calls::snddis(p, None, &[]),
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sndrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::sndrel(p, Call::SndRel, &[])))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_sndreldata(fd: c_int, discon: Given<TDiscon>) -> c_int {
    done(with(fd, |p| {
        let discon = optionally_given(discon)?;
        let data = discon.map_or(Ok(&[][..]), |d| d.udata.bytes())?;
        calls::sndrel(p, Call::SndRelData, data)
    }))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvrel(fd: c_int) -> c_int {
    done(with(fd, |p| calls::rcvrel(p, Call::RcvRel).map(drop)))
}

#[unsafe(no_mangle)]
pub extern "C-unwind" fn t_rcvreldata(fd: c_int, discon: Place<TDiscon>) -> c_int {
    done(with(fd, |p| {
        let discon = optional(discon)?;
        let data = calls::rcvrel(p, Call::RcvRelData)?;
        let Some(discon) = discon else { return Ok(()) };
        discon.reason = 0;
        discon.sequence = -1;
        fits(discon.udata.fill(&data))
    }))
}
