//! netperf's classic output, as its manual shows it: a banner, heads in several lines, and fixed columns.

use crate::experiment::Sample;
use crate::experiments::xti::pair;

/// Both ends of all tests are on this host.
const FROM_TO: &str =
    "from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 (127.0.0.1) port 0 AF_INET";

const STREAM: &str = include_str!("../../../tables/netperf-stream.txt");
const DATAGRAMS: &str = include_str!("../../../tables/netperf-datagrams.txt");
const TRANSACTIONS: &str = include_str!("../../../tables/netperf-transactions.txt");

/// The figures of one test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub size: usize,
    /// Seconds.
    pub elapsed: f64,
    pub sent: u64,
    pub received: u64,
    /// Send and receive buffers, in bytes.
    pub local: [u64; 2],
    pub remote: [u64; 2],
}

impl Run {
    /// None where the sample was taken without buffers of a given size.
    pub fn of(sample: &Sample, size: usize) -> Option<Run> {
        let value = |name: &str| sample.values.get(name).copied();
        let count = |name: &str| value(name).map(|value| value as u64);
        Some(Run {
            size,
            elapsed: value(pair::ELAPSED)?,
            sent: count(pair::SENT)?,
            received: count(pair::RECEIVED)?,
            local: [count(pair::LOCAL_SEND)?, count(pair::LOCAL_RECEIVE)?],
            remote: [count(pair::REMOTE_SEND)?, count(pair::REMOTE_RECEIVE)?],
        })
    }

    /// Of so many messages.
    pub fn megabits(&self, messages: u64) -> f64 {
        (messages as f64 * self.size as f64 * 8.0) / self.elapsed.max(1e-9) / 1e6
    }

    pub fn transactions_per_second(&self) -> f64 {
        self.received as f64 / self.elapsed.max(1e-9)
    }

    /// TCP_STREAM and its kin; what counts is what was received.
    pub fn stream(&self, protocol: &str) -> String {
        let ([send, _], [_, receive]) = (self.local, self.remote);
        format!(
            "{protocol} STREAM TEST {FROM_TO}\n{STREAM}\n{receive:6} {send:6} {:6}    {:<6.2}   {:7.2}\n",
            self.size,
            self.elapsed,
            self.megabits(self.received)
        )
    }

    /// UDP_STREAM: a line of the sender, a line of the receiver. A send that fails ends our test, so that there are no errors.
    pub fn datagrams(&self) -> String {
        let ([send, _], [_, receive]) = (self.local, self.remote);
        let (elapsed, sent, received) = (self.elapsed, self.sent, self.received);
        format!(
            "UDP UNIDIRECTIONAL SEND TEST {FROM_TO}\n{DATAGRAMS}\n\
             {send:6}  {:6}   {elapsed:<7.2}   {sent:7} {:6}    {:7.2}\n\
             {receive:6}  {:6}   {elapsed:<7.2}   {received:7} {:6}    {:7.2}\n",
            self.size,
            0,
            self.megabits(sent),
            "",
            "",
            self.megabits(received)
        )
    }

    /// TCP_RR, with requests and responses of one size.
    pub fn transactions(&self) -> String {
        let ([send, receive], size) = (self.local, self.size);
        let [remote_send, remote_receive] = self.remote;
        format!(
            "TCP REQUEST/RESPONSE TEST {FROM_TO} : first burst 0\n{TRANSACTIONS}\n\
             {send:<6} {receive:<6} {size:<6}   {size:<6}  {:<6.2}   {:7.2}\n\
             {remote_send:<6} {remote_receive:<6}\n",
            self.elapsed,
            self.transactions_per_second()
        )
    }
}

#[cfg(test)]
mod tests;
