//! Associations between processes of one host. No queue of a network holds their packets, only the receiving socket's buffer,
//! and what does not fit there is lost, whole batches at a time. So the associations of a process share a budget of bytes
//! on their way, on top of the congestion control that they have; and their packets are as large as the budget lets them be
//! without any of them having only a few.

use core::time::Duration;
use std::sync::Arc;

use headwater_host::sync::{AtomicUsize, Ordering};
use headwater_sctp::{CongestionControl, Time};

/// Packets that an association may have on their way at least, for its packets to be that large.
const PACKETS: usize = 32;
/// As everywhere.
const SMALLEST: usize = 1452;

#[derive(Debug)]
pub struct Share {
    budget: usize,
    /// Paths that share it.
    count: AtomicUsize,
}

impl Share {
    /// `buffer`: as the kernel counts it, with its own overhead.
    pub fn of_buffer(buffer: usize) -> Arc<Share> {
        Arc::new(Share {
            budget: buffer / 4,
            count: AtomicUsize::new(0),
        })
    }

    /// What one path may have on its way.
    fn each(&self) -> usize {
        self.budget / self.count.load(Ordering::Relaxed).max(1)
    }

    /// The largest packet of one more path, where the link takes `most`.
    pub fn packet(&self, most: usize) -> usize {
        let paths = self.count.load(Ordering::Relaxed) + 1;
        (self.budget / paths / PACKETS).max(SMALLEST).min(most) & !3
    }
}

/// With fewer packets on its way an association would wait for delayed acknowledgements.
const FEWEST: usize = 3;

#[derive(Debug)]
pub struct OnHost {
    within: Box<dyn CongestionControl>,
    mtu: usize,
    share: Arc<Share>,
}

impl OnHost {
    pub fn new(within: Box<dyn CongestionControl>, mtu: usize, share: &Arc<Share>) -> OnHost {
        share.count.fetch_add(1, Ordering::Relaxed);
        OnHost {
            within,
            mtu,
            share: share.clone(),
        }
    }
}

impl Drop for OnHost {
    fn drop(&mut self) {
        self.share.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CongestionControl for OnHost {
    fn window(&self) -> usize {
        self.within
            .window()
            .min(self.share.each().max(FEWEST * self.mtu))
    }

    fn threshold(&self) -> usize {
        self.within.threshold()
    }

    fn on_ack(
        &mut self,
        now: Time,
        acked: usize,
        flight_before: usize,
        advanced: bool,
        recovering: bool,
    ) {
        self.within
            .on_ack(now, acked, flight_before, advanced, recovering);
    }

    fn on_loss(&mut self, flight: usize) {
        self.within.on_loss(flight);
    }

    fn on_timeout(&mut self) {
        self.within.on_timeout();
    }

    fn on_idle(&mut self, now: Time, idle: Duration, rto: Duration) {
        self.within.on_idle(now, idle, rto);
    }

    fn set_mtu(&mut self, mtu: usize) {
        self.mtu = mtu;
        self.within.set_mtu(mtu);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_sctp::congestion::Rfc9260;

    #[test]
    fn the_budget_is_shared_and_given_back() {
        let share = Share::of_buffer(4 << 20);
        let path = || OnHost::new(Box::new(Rfc9260::new(1452)), 1452, &share);
        assert_eq!(share.packet(65_504), 32 << 10);
        let mut alone = path();
        let whole = 1 << 20;
        alone.on_ack(Time(0), whole, alone.window(), true, false);
        assert_eq!(alone.window(), whole);
        let others: Vec<_> = (0..999).map(|_| path()).collect();
        assert_eq!(alone.window(), FEWEST * 1452);
        assert_eq!(share.packet(65_504), 1452);
        drop(others);
        assert_eq!(alone.window(), whole);
    }
}
