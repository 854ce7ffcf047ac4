//! The sender takes back what a pinned receiver has not read, and sends it by the kernel.

use headwater_host::counters::{self, Counter};
use headwater_host::sync::Ordering;
use headwater_host::sys;

use crate::conn::Conn;
use crate::segment::{PIN, View, WITHDRAWS};
use crate::switch::wake_own_writers;
use crate::{look, tcp_counts};

/// If the peer reads only the kernel from here on, lets it have what it has not read. Asked at every call and at every
/// ring of the bell, since the peer may wait for just these bytes. True while some are left.
#[inline]
pub fn help_withdraw(c: &Conn, v: &View<'_>) -> bool {
    must_withdraw(v) && !withdraw(c, v)
}

#[inline]
pub fn must_withdraw(v: &View<'_>) -> bool {
    let w = v.out().tx();
    w.by_ring() && w.has(PIN)
}

/// The peer reads only the kernel from here on: send what it has not read by the kernel, then go on there for good. False
/// when the kernel is full for now.
pub fn withdraw(c: &Conn, v: &View<'_>) -> bool {
    c.shadow()
        .is_none_or(|shadow| withdraw_to(c, v, shadow.fd()))
}

/// The same by a number of the caller's.
pub fn withdraw_to(c: &Conn, v: &View<'_>, shadow: i32) -> bool {
    if !must_withdraw(v) {
        return true;
    }
    // Signal handlers may have little stack.
    withdraw_by(c, v, shadow, &mut vec![0u8; 16384])
}

/// The same by way of `buf`.
pub fn withdraw_by(c: &Conn, v: &View<'_>, shadow: i32, buf: &mut [u8]) -> bool {
    let d = v.out();
    let done = {
        let _section = v.lock_out();
        let w = loop {
            let w = d.tx();
            if !(w.by_ring() && w.has(PIN) && w.generation() == v.generation) {
                return true;
            }
            let begun = w.0 | WITHDRAWS;
            if d.change(w, begun) {
                break w;
            }
        };
        let ring = v.out_ring();
        // Out of the peer's reach: it could have the same bytes sent over and over.
        let progress = &v.record.sending;
        let [sending, sent_all] = [1, 2].map(|phase| (w.epoch() as u32) << 16 | phase);
        let phase = progress.withdrawing.load(Ordering::Relaxed);
        if phase == sent_all {
            // Only its count may be missing.
        } else if phase != sending {
            progress.withdrawn.store(0, Ordering::Relaxed);
            progress.withdrawing.store(sending, Ordering::Release);
        } else if let Ok(written) = tcp_counts::written(shadow, v.end == 0) {
            // Who began it may have been killed between a send and its count.
            let by_kernel = d.send.ksent.load(Ordering::Relaxed);
            progress
                .withdrawn
                .store(written.wrapping_sub(by_kernel), Ordering::Release);
        }
        let done = phase == sent_all
            || loop {
                let skip = progress.withdrawn.load(Ordering::Relaxed) as usize;
                let Ok(n) = ring.copy_peek(buf, skip, None) else {
                    break true;
                };
                // Where nobody is there to read, the error stays with the kernel: whoever has the descriptor next is told it.
                if n == 0 || look::is_over(shadow) {
                    break true;
                }
                let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
                match sys::send_bytes(shadow, &buf[..n], flags) {
                    Ok(sent) => {
                        progress.withdrawn.fetch_add(sent as u64, Ordering::Release);
                    }
                    Err(libc::EINTR) => {}
                    Err(e) if sys::passes(e) => break false,
                    // Nobody is there since a moment ago: the program's next call learns it from here, since the kernel tells
                    // a reset but once.
                    Err(e) => {
                        if e != libc::EPIPE {
                            c.record().error.store(e, Ordering::Relaxed);
                        }
                        break true;
                    }
                }
            };
        if done {
            // What was sent counts among the kernel's bytes from here on.
            progress.withdrawing.store(sent_all, Ordering::Release);
            if phase != sent_all {
                let sent = progress.withdrawn.load(Ordering::Relaxed);
                d.send.taken_back.fetch_add(sent, Ordering::Release);
                d.send.ksent.fetch_add(sent, Ordering::Release);
            } else if let Ok(written) = tcp_counts::written(shadow, v.end == 0) {
                // Who had come so far was killed, before the count or after it.
                d.send.ksent.store(written, Ordering::Release);
            }
            d.send.tx.fetch_add(1, Ordering::AcqRel);
            progress.withdrawing.store(0, Ordering::Release);
            counters::add(Counter::Unswitches, 1);
        }
        done
    };
    wake_own_writers(v);
    done
}

/// The same for as long as `patience` at most: where nobody else can. True when nothing is left.
pub fn finish_withdrawal(c: &Conn, v: &View<'_>, shadow: i32, patience: u64) -> bool {
    let begun = sys::now();
    while must_withdraw(v) && !withdraw_to(c, v, shadow) {
        let left = patience.saturating_sub(sys::now() - begun);
        let told = sys::poll_for(shadow, libc::POLLOUT, left.min(100_000_000));
        if told & (libc::POLLERR | libc::POLLHUP) != 0 {
            break;
        }
        if left == 0 {
            return false;
        }
    }
    true
}
