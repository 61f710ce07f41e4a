//! What storms need to know of a counter.

/// Something that counts.
pub(crate) trait Counter: Sync {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Counts `n`, and returns what it has counted: `n`, or 0 if it was not to.
    fn count(&self, n: u64) -> u64;

    /// Counts 1 so many times; returns the sum.
    fn count_ones(&self, times: u64) -> u64 {
        (0..times).map(|_| self.count(1)).sum()
    }

    /// All that was counted.
    fn total(&self) -> u64;

    /// How many impossible states it has seen just now; asked again and again meanwhile.
    fn violations(&self) -> u64 {
        0
    }
}
