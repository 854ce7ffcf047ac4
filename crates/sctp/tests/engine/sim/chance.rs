//! Chance by seed: the same seed gives the same run on every machine.

/// Splitmix64.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed ^ 0x5c7b_0f1d_93a6_e241)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.word() % end.max(1) as u64) as usize
    }

    /// True so many times in a thousand.
    pub fn per_mille(&mut self, share: u32) -> bool {
        share > 0 && self.word() % 1000 < u64::from(share)
    }

    pub fn coin(&mut self) -> bool {
        self.word() & 1 == 1
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn seed(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes
            .chunks_mut(8)
            .for_each(|chunk| chunk.copy_from_slice(&self.word().to_le_bytes()));
        bytes
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let words = std::iter::repeat_with(|| self.word().to_le_bytes());
        words.flatten().take(len).collect()
    }
}

/// Runs `work` once for each of `usual` seeds (HEADWATER_SIM_SEEDS: so many times as many), and says which one failed.
/// HEADWATER_SIM_SEED runs but that one.
pub fn for_seeds(usual: u64, work: impl Fn(u64) + std::panic::RefUnwindSafe) {
    let number = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect("a number"))
    };
    let seeds = match number("HEADWATER_SIM_SEED") {
        Some(one) => one..one + 1,
        None => 0..usual * number("HEADWATER_SIM_SEEDS").unwrap_or(1),
    };
    for seed in seeds {
        if let Err(panic) = std::panic::catch_unwind(|| work(seed)) {
            eprintln!("failed with HEADWATER_SIM_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
