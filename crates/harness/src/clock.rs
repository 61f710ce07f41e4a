//! Time, as the measuring seam sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::os;

/// A source of time. All values are in ns.
pub trait Clock: Sync {
    /// Monotonic time since some fixed moment.
    fn now_ns(&self) -> u64;
    /// CPU time of the calling thread; `None` where the system does not offer it.
    fn thread_cpu_ns(&self) -> Option<u64>;
}

/// The smallest step that a clock was seen to make, in ns: a time is known to about twice that.
pub fn resolution_ns(clock: &dyn Clock) -> u64 {
    const READINGS: usize = 1000;
    let mut last = clock.now_ns();
    let steps = (0..READINGS).map(|_| {
        let before = last;
        last = clock.now_ns();
        last.saturating_sub(before)
    });
    // A clock that stands still for so long makes steps that nobody waits for.
    steps.filter(|step| *step > 0).min().unwrap_or(1_000_000)
}

/// The system's clocks: `CLOCK_MONOTONIC` and `CLOCK_THREAD_CPUTIME_ID` on Linux. Elsewhere
/// there is no thread CPU time.
#[derive(Clone, Copy, Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that starts now.
    pub fn new() -> RealClock {
        RealClock {
            start: Instant::now(),
        }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn thread_cpu_ns(&self) -> Option<u64> {
        os::thread_cpu_ns()
    }
}

/// A clock for tests: every reading of either kind advances it by a step. The CPU time is the time.
#[derive(Debug, Default)]
pub struct MockClock {
    now: AtomicU64,
    step: u64,
}

impl MockClock {
    /// A clock at 0 that advances by `step` ns when read.
    pub fn new(step: u64) -> MockClock {
        MockClock {
            now: AtomicU64::new(0),
            step,
        }
    }

    /// Lets time go by.
    pub fn advance(&self, ns: u64) {
        self.now.fetch_add(ns, Ordering::Relaxed);
    }
}

impl Clock for MockClock {
    fn now_ns(&self) -> u64 {
        // Relaxed: the count itself is all that matters.
        self.now.fetch_add(self.step, Ordering::Relaxed) + self.step
    }

    fn thread_cpu_ns(&self) -> Option<u64> {
        Some(self.now_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_does_not_go_back() {
        let clock = RealClock::new();
        let (a, b) = (clock.now_ns(), clock.now_ns());
        assert!(a <= b);
        if let (Some(a), Some(b)) = (clock.thread_cpu_ns(), clock.thread_cpu_ns()) {
            assert!(a <= b);
        }
    }

    #[test]
    fn the_resolution_is_the_smallest_step() {
        assert_eq!(resolution_ns(&MockClock::new(40)), 40);
        assert_eq!(resolution_ns(&MockClock::new(0)), 1_000_000);
        assert!(resolution_ns(&RealClock::new()) > 0);
    }

    #[test]
    fn mock_time_goes_by_steps_and_on_demand() {
        let clock = MockClock::new(10);
        assert_eq!(clock.now_ns(), 10);
        clock.advance(100);
        assert_eq!(clock.thread_cpu_ns(), Some(120));
    }
}
