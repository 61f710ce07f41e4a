//! What a task did and met, as words that it shares with its starter.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use countersink_harness::runner::ThreadSample;
use countersink_harness::surroundings::Met;

/// Nothing that is counted or timed gets there.
const UNKNOWN: u64 = u64::MAX;

const WORDS: usize = 9;

/// A task's share of a sample. Set by the task when it ends.
#[derive(Debug)]
pub(super) struct Seen([AtomicU64; WORDS]);

impl Seen {
    pub(super) fn nothing() -> Self {
        Seen(std::array::from_fn(|_| AtomicU64::new(UNKNOWN)))
    }

    pub(super) fn set(&self, thread: &ThreadSample) {
        let known = |value: Option<u64>| value.unwrap_or(UNKNOWN);
        let [before, after] = match thread.met.clock_ghz {
            Some(ghz) => ghz.map(f64::to_bits),
            None => [UNKNOWN; 2],
        };
        let words: [u64; WORDS] = [
            thread.elapsed_ns,
            known(thread.cpu_ns),
            known(thread.cpu.map(|cpu| cpu as u64)),
            known(thread.met.waited_ns),
            known(thread.met.involuntary),
            known(thread.met.voluntary),
            known(thread.met.migrations),
            before,
            after,
        ];
        for (word, value) in self.0.iter().zip(words) {
            // Whoever sees it sees what the task did before.
            word.store(value, Release);
        }
    }

    /// What was set. Page faults are not told: some workloads are made of them.
    pub(super) fn get(&self) -> ThreadSample {
        let words = self.0.each_ref().map(|word| word.load(Acquire));
        let [elapsed, rest @ ..] = words;
        let [
            cpu_ns,
            cpu,
            waited_ns,
            involuntary,
            voluntary,
            migrations,
            before,
            after,
        ] = rest.map(|word| (word != UNKNOWN).then_some(word));
        ThreadSample {
            elapsed_ns: if elapsed == UNKNOWN { 0 } else { elapsed },
            cpu_ns,
            cpu: cpu.map(|cpu| cpu as usize),
            met: Met {
                waited_ns,
                involuntary,
                voluntary,
                migrations,
                faults: None,
                clock_ghz: before
                    .zip(after)
                    .map(|(before, after)| [before, after].map(f64::from_bits)),
            },
            ..ThreadSample::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_got_and_the_rest_is_unknown() {
        let seen = Seen::nothing();
        assert_eq!(seen.get(), ThreadSample::default());
        let thread = ThreadSample {
            elapsed_ns: 9,
            cpu_ns: Some(8),
            cpu: Some(1),
            met: Met {
                waited_ns: Some(0),
                involuntary: Some(7),
                voluntary: None,
                migrations: Some(2),
                faults: None,
                clock_ghz: Some([2.5, 3.5]),
            },
            ..ThreadSample::default()
        };
        seen.set(&thread);
        assert_eq!(seen.get(), thread);
        let faulted = ThreadSample {
            met: Met {
                faults: Some(5),
                ..thread.met
            },
            ..thread
        };
        seen.set(&faulted);
        assert_eq!(seen.get(), thread);
    }
}
