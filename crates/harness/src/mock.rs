//! A runner whose operations are real and whose time is invented, so that everything above the
//! measuring seam can be tested to the last digit.

use crate::runner::{RunError, Runner, Sample, Target, ThreadSample};
use crate::surroundings::Met;
use crate::variant::Variant;

/// What a script is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// How many samples were taken before this one: the time, for a script that drifts.
    pub index: usize,
    /// The variant's name.
    pub variant: &'a str,
    /// How many threads.
    pub threads: usize,
    /// When the sample should end.
    pub target: Target,
    /// The threads' batches, where they are known.
    pub batches: &'a [u64],
}

/// Runs each worker's operations on the calling thread, one worker after the other, and takes
/// everything else from a script. So a variant's check holds, while no clock is read.
#[derive(Debug)]
pub struct MockRunner<F> {
    script: F,
    calls: Vec<String>,
}

impl<F: FnMut(Call<'_>) -> Sample> MockRunner<F> {
    /// A runner that asks the script for every sample.
    pub fn new(script: F) -> MockRunner<F> {
        MockRunner {
            script,
            calls: Vec::new(),
        }
    }

    /// The variants' names, in the order in which they were sampled.
    pub fn calls(&self) -> &[String] {
        &self.calls
    }
}

impl<F: FnMut(Call<'_>) -> Sample> Runner for MockRunner<F> {
    fn sample(
        &mut self,
        variant: &dyn Variant,
        threads: usize,
        target: Target,
        batches: &[u64],
    ) -> Result<Sample, RunError> {
        let sample = (self.script)(Call {
            index: self.calls.len(),
            variant: variant.name(),
            threads,
            target,
            batches,
        });
        self.calls.push(variant.name().to_owned());
        for (index, thread) in sample.threads.iter().enumerate() {
            let mut worker = variant.worker(index, threads);
            worker.warm();
            worker.run(thread.untimed_ops);
            worker.run(thread.ops);
        }
        Ok(sample)
    }
}

/// A sample in which every thread did `ops` operations in `elapsed_ns`, all of it on the CPU.
pub fn even_sample(threads: usize, ops: u64, elapsed_ns: u64) -> Sample {
    let thread = |cpu| ThreadSample {
        ops,
        untimed_ops: 0,
        batch: ops,
        elapsed_ns,
        cpu_ns: Some(elapsed_ns),
        cpu: Some(cpu),
        met: Met::default(),
    };
    Sample {
        elapsed_ns,
        threads: (0..threads).map(thread).collect(),
        oversubscribed: false,
        shared_cores: Some(false),
        steal_ns: None,
    }
}
