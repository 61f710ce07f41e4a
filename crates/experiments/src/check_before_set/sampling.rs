//! One sample: a writer, and a reader beside it, for a time.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use countersink_harness::clock::RealClock;
use countersink_harness::cpus::Topology;
use countersink_harness::runner::{self, ThreadSample};
use countersink_harness::surroundings::{Steal, Surroundings, Watch};

use super::Values;
use super::memory::{WORDS_OF_LINE, Words};

/// Lines between two looks at the clock: some microseconds.
const CHUNK: usize = 512;
/// What stays.
const CONSTANT: u64 = 0x5555;
/// All lines of a hash.
const ALL: u64 = 1 << 32;

/// Where the writer is: it goes on from sample to sample.
pub(super) struct Pass {
    line: usize,
    /// What it writes, where values change.
    value: u64,
    /// Lines whose hash is below stay as they are.
    below: u64,
    is_sweep: bool,
}

impl Pass {
    pub(super) fn new(values: Values) -> Self {
        let below = match values {
            Values::Change => 0,
            Values::Stay => ALL,
            Values::Share(percent) => ALL * u64::from(percent) / 100,
        };
        Pass {
            line: 0,
            value: CONSTANT + 1,
            below,
            is_sweep: matches!(values, Values::Share(_)),
        }
    }

    /// Writes the lines of a chunk; how many words.
    #[inline(never)]
    fn write<const CHECKED: bool, const SWEEP: bool>(&mut self, words: &[AtomicU64]) -> u64 {
        let lines = words.len() / WORDS_OF_LINE;
        let end = (self.line + CHUNK).min(lines);
        let constant = self.below == ALL;
        for line in self.line..end {
            // Scattered, as set bits are; all words of a line alike, as a line is what stays clean.
            let stays = if SWEEP {
                hash(line) < self.below
            } else {
                constant
            };
            let value = if stays { CONSTANT } else { self.value };
            for word in &words[line * WORDS_OF_LINE..][..WORDS_OF_LINE] {
                if !CHECKED || word.load(Relaxed) != value {
                    word.store(value, Relaxed);
                }
            }
        }
        let written = (end - self.line) * WORDS_OF_LINE;
        self.line = end;
        if end == lines {
            self.line = 0;
            self.value += 1;
        }
        written as u64
    }

    fn write_chunk(&mut self, words: &[AtomicU64], checked: bool) -> u64 {
        match (checked, self.is_sweep) {
            (false, false) => self.write::<false, false>(words),
            (true, false) => self.write::<true, false>(words),
            (false, true) => self.write::<false, true>(words),
            (true, true) => self.write::<true, true>(words),
        }
    }
}

fn hash(line: usize) -> u64 {
    (line as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// What is looked at.
pub(super) struct Look<'a> {
    pub(super) words: &'a Words,
    pub(super) length: Duration,
    pub(super) topology: &'a Topology,
    pub(super) together: bool,
}

/// What a sample gave.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Nanoseconds for each word that was written.
    pub(super) write_ns: f64,
    /// Nanoseconds for each word that was read; 0 if nobody read.
    pub(super) read_ns: f64,
    /// The CPUs that the threads were pinned to.
    pub(super) cpus: Vec<usize>,
    /// What happened meanwhile.
    pub(super) surroundings: Surroundings,
}

/// Takes a sample. Threads are new, as pinning is for ever.
pub(super) fn sample(look: &mut Look<'_>, pass: &mut Pass, checked: bool) -> Sample {
    let threads = if look.together { 2 } else { 1 };
    let placement = look.topology.place(threads);
    let (barrier, stop) = (Barrier::new(threads), AtomicBool::new(false));
    let words = look.words.get();
    // At least one pass, so that memory that misses does.
    let (length, least) = (look.length, words.len() as u64);
    let steal = Steal::begin(&placement.cpus);
    let threads: Vec<ThreadSample> = std::thread::scope(|scope| {
        let (placement, barrier, stop) = (&placement, &barrier, &stop);
        let writer = scope.spawn(move || {
            timed(placement.pin(0), barrier, || {
                let (start, mut written) = (Instant::now(), 0);
                while written < least || start.elapsed() < length {
                    written += pass.write_chunk(words, checked);
                }
                stop.store(true, Relaxed);
                written
            })
        });
        let read = move || timed(placement.pin(1), barrier, || read(stop, words));
        let reader = look.together.then(|| scope.spawn(read));
        // A panic of ours is passed on.
        let joined = [Some(writer), reader].into_iter().flatten().map(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect()
    });
    let ns = |at: usize| {
        let thread = threads.get(at);
        thread.map_or(0.0, |thread| {
            thread.elapsed_ns as f64 / thread.ops.max(1) as f64
        })
    };
    Sample {
        write_ns: ns(0),
        read_ns: ns(1),
        cpus: threads.iter().filter_map(|thread| thread.cpu).collect(),
        surroundings: Surroundings::of(&runner::Sample {
            elapsed_ns: threads[0].elapsed_ns,
            threads,
            oversubscribed: placement.oversubscribed,
            shared_cores: placement.shared_cores,
            steal_ns: steal.end(),
        }),
    }
}

/// Times what a thread does, from when all are there.
fn timed(cpu: Option<usize>, barrier: &Barrier, work: impl FnOnce() -> u64) -> ThreadSample {
    let clock = RealClock::new();
    // Until all have started, whoever is early sleeps; that is not to be seen later.
    barrier.wait();
    Watch::begin(&clock, cpu).time(&clock, |_| work()).thread
}

/// Reads until it is stopped; how many words.
fn read(stop: &AtomicBool, words: &[AtomicU64]) -> u64 {
    let (mut read, mut sum) = (0, 0_u64);
    while !stop.load(Relaxed) {
        for chunk in words.chunks(CHUNK * WORDS_OF_LINE) {
            sum = chunk
                .iter()
                .fold(sum, |sum, word| sum.wrapping_add(word.load(Relaxed)));
            read += chunk.len() as u64;
            if stop.load(Relaxed) {
                break;
            }
        }
    }
    black_box(sum);
    read
}
