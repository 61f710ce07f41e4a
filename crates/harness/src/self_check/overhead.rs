//! What measuring takes besides what is measured.

use std::time::{Duration, Instant};

use crate::measure::MeasureError;
use crate::runner::{Runner, Target};
use crate::threads::BATCH_NS;
use crate::variant::{Variant, Worker};

/// The share of a timed part that the harness may take.
pub const TOLERATED_OVERHEAD: f64 = 0.01;

/// The harness's own time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overhead {
    /// The share of the timed part that is not operations: the call of a batch and the look at the flag after it.
    pub inside: f64,
    /// What a sample takes outside of its timed part, in ns: threads, their warming up, the batch size, what the kernel is asked.
    pub outside_ns: f64,
}

/// Operations that take no time, so what is left is the harness.
struct Nothing;

impl Worker for Nothing {
    #[inline(never)]
    fn run(&mut self, operations: u64) {
        std::hint::black_box(operations);
    }
}

impl Variant for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Nothing)
    }
}

/// Operations that take time, so that the batch size is found as usual.
struct Loop;

impl Worker for Loop {
    fn run(&mut self, operations: u64) {
        for operation in 0..operations {
            std::hint::black_box(operation);
        }
    }
}

impl Variant for Loop {
    fn name(&self) -> &str {
        "loop"
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Loop)
    }
}

/// Measures it, by the best of several samples of this length on one thread.
///
/// # Errors
/// If a sample cannot be taken.
pub fn overhead(runner: &mut dyn Runner, length: Duration) -> Result<Overhead, MeasureError> {
    const SAMPLES: usize = 9;
    let mut found = Overhead {
        inside: f64::INFINITY,
        outside_ns: f64::INFINITY,
    };
    let failed = |error| MeasureError::Run {
        variant: "nothing".to_owned(),
        point: "the harness's own time".to_owned(),
        error,
    };
    let mut batches = Vec::new();
    for _ in 0..SAMPLES {
        let nothing = runner
            .sample(&Nothing, 1, Target::Time(length), &[])
            .map_err(failed)?;
        for thread in &nothing.threads {
            let batches = thread.ops as f64 / thread.batch.max(1) as f64;
            let of_batch = thread.elapsed_ns as f64 / batches;
            found.inside = found.inside.min(of_batch / (BATCH_NS as f64));
        }
        let begun = Instant::now();
        let looped = runner
            .sample(&Loop, 1, Target::Time(length), &batches)
            .map_err(failed)?;
        let outside = begun.elapsed().as_nanos() as f64 - looped.elapsed_ns as f64;
        found.outside_ns = found.outside_ns.min(outside);
        batches = looped.threads.iter().map(|thread| thread.batch).collect();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::{RunError, Sample, ThreadSample};

    /// Batches of two operations that take 200 ns.
    struct Slow;

    impl Runner for Slow {
        fn sample(
            &mut self,
            _: &dyn Variant,
            _: usize,
            _: Target,
            _: &[u64],
        ) -> Result<Sample, RunError> {
            Ok(Sample {
                elapsed_ns: 1000,
                threads: vec![ThreadSample {
                    ops: 10,
                    batch: 2,
                    elapsed_ns: 1000,
                    ..ThreadSample::default()
                }],
                oversubscribed: false,
                shared_cores: None,
                steal_ns: None,
            })
        }
    }

    #[test]
    fn what_a_batch_of_nothing_takes_is_the_harness() {
        let found = overhead(&mut Slow, Duration::from_millis(1)).expect("samples");
        assert!((found.inside - 200.0 / 20_000.0).abs() < 1e-12, "{found:?}");
        assert!(found.outside_ns > -1000.0 && found.outside_ns.is_finite());
    }
}
