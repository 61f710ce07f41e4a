//! Numbers that look random and are the same in every run.

/// splitmix64. Whoever uses it prints the seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// The next number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// The numbers below `end` in an order of chance.
    pub(crate) fn shuffled(&mut self, end: usize) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..end).collect();
        for last in (1..end).rev() {
            numbers.swap(last, self.below(last as u64 + 1) as usize);
        }
        numbers
    }
}
