//! One sample: a writer, and a reader beside it, for a time.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

use countersink_harness::cpus::{Placement, Topology};

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
}

/// Takes a sample. Threads are new, as pinning is for ever.
pub(super) fn sample(look: &mut Look<'_>, pass: &mut Pass, checked: bool) -> Sample {
    let threads = if look.together { 2 } else { 1 };
    let placement = look.topology.place(threads);
    let (barrier, stop) = (Barrier::new(threads), AtomicBool::new(false));
    let words = look.words.get();
    // At least one pass, so that memory that misses does.
    let (length, least) = (look.length, words.len() as u64);
    std::thread::scope(|scope| {
        let reader = look.together.then(|| {
            let (placement, barrier, stop) = (&placement, &barrier, &stop);
            scope.spawn(move || read(placement, barrier, stop, words))
        });
        let (placement, barrier, stop) = (&placement, &barrier, &stop);
        let writer = scope.spawn(move || {
            let cpu = placement.pin(0);
            barrier.wait();
            let (start, mut written) = (Instant::now(), 0);
            while written < least || start.elapsed() < length {
                written += pass.write_chunk(words, checked);
            }
            let elapsed = start.elapsed();
            stop.store(true, Relaxed);
            (elapsed.as_nanos() as f64 / written as f64, cpu)
        });
        // A panic of ours is passed on.
        let (write_ns, cpu) = writer
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (read_ns, other) = match reader.map(|reader| reader.join()) {
            Some(Ok(read)) => read,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => (0.0, None),
        };
        Sample {
            write_ns,
            read_ns,
            cpus: cpu.into_iter().chain(other).collect(),
        }
    })
}

fn read(
    placement: &Placement,
    barrier: &Barrier,
    stop: &AtomicBool,
    words: &[AtomicU64],
) -> (f64, Option<usize>) {
    let cpu = placement.pin(1);
    barrier.wait();
    let (start, mut read, mut sum) = (Instant::now(), 0, 0_u64);
    while !stop.load(Relaxed) {
        for chunk in words.chunks(CHUNK * WORDS_OF_LINE) {
            sum = chunk
                .iter()
                .fold(sum, |sum, word| sum.wrapping_add(word.load(Relaxed)));
            read += chunk.len();
            if stop.load(Relaxed) {
                break;
            }
        }
    }
    black_box(sum);
    (start.elapsed().as_nanos() as f64 / read.max(1) as f64, cpu)
}

/// The clock rate of this CPU at the moment, by a chain of an exclusive or and a multiplication, each of which needs the one before: one
/// cycle and three, on all that this was tried on. The fastest of several times.
pub fn clock_ghz() -> f64 {
    const STEPS: u64 = 100_000;
    const CYCLES: f64 = 4.0;
    let once = || {
        let start = Instant::now();
        let mut value = black_box(1_u64);
        for step in 0..STEPS {
            value = (value ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        black_box(value);
        CYCLES * STEPS as f64 / start.elapsed().as_nanos() as f64
    };
    (0..30).map(|_| once()).fold(0.0, f64::max)
}
