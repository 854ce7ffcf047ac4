//! Chance that can be repeated.

use std::time::SystemTime;

/// The number that a variable of the environment gives.
///
/// # Panics
/// If it is none.
pub fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

/// What HEADWATER_SEED says, or the time.
pub fn seed() -> u64 {
    let now = || {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(1, |d| d.as_nanos() as u64)
    };
    variable("HEADWATER_SEED").unwrap_or_else(now)
}

/// splitmix64
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.number() % n
    }
}
