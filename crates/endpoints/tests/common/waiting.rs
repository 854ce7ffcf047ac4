//! Waiting for what comes.

use std::time::{Duration, Instant};

/// Asks until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < end, "no {what} within ten seconds");
        std::thread::yield_now();
    }
}
