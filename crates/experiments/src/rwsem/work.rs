//! Work inside and outside of the lock.

use std::hint::black_box;
use std::time::Instant;

/// How much is done with the lock, and between one lock and the next: in additions, each of which needs the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// With the lock.
    pub load: u32,
    /// Without.
    pub gap: u32,
}

/// So many additions, each of which needs the one before and goes through memory, so that the compiler keeps them.
#[inline(always)]
pub(super) fn work(additions: u32) {
    let mut sum = 0_u64;
    for _ in 0..additions {
        sum = black_box(sum).wrapping_add(1);
    }
    if additions > 0 {
        black_box(sum);
    }
}

/// How long so many additions take here, in nanoseconds: the fastest of several times that they were done a thousand times.
pub fn work_ns(additions: u32) -> f64 {
    const TIMES: u32 = 1000;
    let once = || {
        let start = Instant::now();
        (0..TIMES).for_each(|_| work(black_box(additions)));
        start.elapsed().as_nanos() as f64 / f64::from(TIMES)
    };
    (0..10).map(|_| once()).fold(f64::INFINITY, f64::min)
}
