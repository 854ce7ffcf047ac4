//! The end of the process.

use headwater_host::sync::Ordering;

use crate::conn::{self, Phase};
use crate::ending::{goes_on, leaves_keeper, withdraw_for_others};
use crate::reset::reset_if_unread;
use crate::{pins, takeover};

/// Adds what is still open to the counters, before they are written.
#[unsafe(link_section = ".text.life")]
pub fn count_open() {
    for c in conn::all() {
        match c.phase() {
            Phase::Tracked => {
                takeover::count_kernel(c);
                takeover::count_left(c);
            }
            Phase::Carried => {
                c.settle_account();
                takeover::count_kernel(c);
                c.count_traffic();
                let looks = pins::entered();
                if let Some(v) = c.view(&looks) {
                    c.count_unused(goes_on(&v));
                }
            }
            _ => {}
        }
    }
}

/// The process ends: peers are told, as the kernel tells theirs.
#[unsafe(link_section = ".text.life")]
pub fn exiting() {
    for c in conn::all() {
        if c.phase() == Phase::Tracked {
            takeover::withdraw_if_offered(c);
        }
        c.record().holders.fetch_sub(1, Ordering::AcqRel);
        let looks = pins::entered();
        if let Some(v) = c.view(&looks) {
            if v.own().holders.fetch_sub(1, Ordering::AcqRel) <= 1 {
                if !leaves_keeper(c, &v, c.fd()) {
                    reset_if_unread(c, &v, c.fd());
                }
                takeover::withdraw_offer(c);
            } else {
                withdraw_for_others(c, &v, c.fd());
            }
            v.own().look.fetch_add(1, Ordering::Release);
        }
    }
}
