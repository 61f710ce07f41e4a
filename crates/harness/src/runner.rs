//! The measuring seam: a [`Runner`] takes one sample of one variant. Everything above it is
//! arithmetic, and is tested with a runner whose time is invented ([`crate::mock::MockRunner`]).

use std::time::Duration;

use crate::surroundings::Met;
use crate::variant::Variant;

/// When a sample ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// After this long.
    Time(Duration),
    /// After exactly so many operations of a single thread.
    Operations(u64),
}

/// Takes samples.
pub trait Runner {
    /// Takes one sample with so many threads. `batches` are those of an earlier sample of the same,
    /// by thread, and save the search for them; empty if there is none.
    ///
    /// # Errors
    /// See [`RunError`].
    fn sample(
        &mut self,
        variant: &dyn Variant,
        threads: usize,
        target: Target,
        batches: &[u64],
    ) -> Result<Sample, RunError>;

    /// The smallest step of its clock, in ns; 0 if time is invented.
    fn resolution_ns(&self) -> u64 {
        0
    }
}

/// What one sample gave, before any arithmetic.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// From the start of the first thread to the end of the last one, as measured.
    pub elapsed_ns: u64,
    /// One entry for each thread.
    pub threads: Vec<ThreadSample>,
    /// Whether there were more threads than allowed CPUs.
    pub oversubscribed: bool,
    /// Whether threads ran on SMT siblings of one core; `None`: unknown.
    pub shared_cores: Option<bool>,
    /// What the hypervisor took of the sample's CPUs meanwhile; `None`: unknown.
    pub steal_ns: Option<u64>,
}

/// One thread's part in a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadSample {
    /// Operations done while being timed.
    pub ops: u64,
    /// Operations done outside of the timed part, to find the batch size or to try it.
    pub untimed_ops: u64,
    /// Operations done between two looks at the stop flag.
    pub batch: u64,
    /// The thread's own measured time.
    pub elapsed_ns: u64,
    /// The thread's CPU time meanwhile; `None` where the system does not tell.
    pub cpu_ns: Option<u64>,
    /// The CPU that the thread was pinned to; `None` if it was not pinned.
    pub cpu: Option<usize>,
    /// What it met meanwhile.
    pub met: Met,
}

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A sample needs a thread.
    #[error("a sample needs at least one thread")]
    NoThreads,
    /// A fixed number of operations is for one thread: several would overlap for an unknown part
    /// of the time.
    #[error("a fixed number of operations is timed with one thread, not {0}")]
    FixedWithThreads(usize),
    /// The system refused a thread.
    #[error("cannot start a thread: {0}")]
    Spawn(std::io::Error),
    /// The variant's code panicked.
    #[error("the variant panicked: {0}")]
    Panicked(String),
}

impl Sample {
    /// All timed operations.
    pub fn operations(&self) -> u64 {
        self.threads.iter().map(|t| t.ops).sum()
    }

    /// Whether every thread was pinned.
    pub fn pinned(&self) -> bool {
        self.threads.iter().all(|t| t.cpu.is_some())
    }

    /// Wall ns/op: elapsed × threads ÷ all operations. What one operation takes the thread that
    /// does it, waiting included; the same at any number of threads if the operation scales. Not
    /// finite without operations.
    pub fn wall_ns_per_op(&self) -> f64 {
        self.elapsed_ns as f64 * self.threads.len() as f64 / self.operations() as f64
    }

    /// Thread ns/op: the threads' CPU time ÷ all operations. `None` where CPU time is unknown.
    pub fn thread_ns_per_op(&self) -> Option<f64> {
        let cpu_ns: Option<u64> = self.threads.iter().map(|t| t.cpu_ns).sum();
        Some(cpu_ns? as f64 / self.operations() as f64)
    }

    /// The slowest thread's rate ÷ the fastest one's: 1 is fair, 0 means that one did nothing.
    /// Exactly 1 for a single thread.
    pub fn fairness(&self) -> f64 {
        let rate = |t: &ThreadSample| t.ops as f64 / (t.elapsed_ns.max(1)) as f64;
        let rates = || self.threads.iter().map(rate);
        let (slowest, fastest) = (
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        );
        if self.threads.len() < 2 {
            1.0
        } else if fastest > 0.0 {
            slowest / fastest
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(ops: u64, elapsed_ns: u64, cpu_ns: Option<u64>) -> ThreadSample {
        ThreadSample {
            ops,
            elapsed_ns,
            cpu_ns,
            ..ThreadSample::default()
        }
    }

    fn sample(elapsed_ns: u64, threads: Vec<ThreadSample>) -> Sample {
        Sample {
            elapsed_ns,
            threads,
            oversubscribed: false,
            shared_cores: None,
            steal_ns: None,
        }
    }

    #[test]
    fn metrics_by_hand() {
        let s = sample(
            1000,
            vec![thread(100, 1000, Some(900)), thread(400, 1000, Some(600))],
        );
        assert_eq!(s.wall_ns_per_op(), 4.0);
        assert_eq!(s.thread_ns_per_op(), Some(3.0));
        assert_eq!(s.fairness(), 0.25);
        assert!(!s.pinned());
    }

    #[test]
    fn fairness_is_of_rates_not_of_counts() {
        let s = sample(1000, vec![thread(100, 500, None), thread(200, 1000, None)]);
        assert_eq!(s.fairness(), 1.0);
        assert_eq!(s.thread_ns_per_op(), None);
    }

    #[test]
    fn corner_cases() {
        assert_eq!(sample(5, vec![thread(0, 0, None)]).fairness(), 1.0);
        assert_eq!(sample(5, vec![thread(0, 5, None); 2]).fairness(), 0.0);
        let starved = sample(5, vec![thread(0, 5, None), thread(9, 5, None)]);
        assert_eq!(starved.fairness(), 0.0);
        assert!(
            !sample(5, vec![thread(0, 5, None)])
                .wall_ns_per_op()
                .is_finite()
        );
    }
}
