//! What counting and timing are held against.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use countersink::clock;
use countersink_percpu::Segment;

use super::costs::{TURN, Way, in_turns};
use super::instructions::observe;
#[cfg(target_arch = "x86_64")]
use super::instructions::rdtsc;

/// The operation of the ground floor, its handle in registers.
pub(super) struct Bare(Option<Segment>);

impl Default for Bare {
    fn default() -> Self {
        Bare(Segment::private().ok())
    }
}

impl Way for Bare {
    const NAME: &'static str = "percpu";
    fn run(&self, operations: u64) {
        // Without a segment nothing is counted, and the check says how much is missing.
        let slot = self.0.as_ref().and_then(|segment| segment.slot::<u64>(0));
        let Some(slot) = slot else { return };
        for _ in 0..operations {
            slot.inc();
        }
    }
    fn counted(&self) -> Option<u64> {
        let slot = self.0.as_ref().and_then(|segment| segment.slot::<u64>(0));
        Some(slot.map_or(0, |slot| slot.replace(0)))
    }
}

/// The same with adjacent words in turn.
#[derive(Default)]
pub(super) struct BareInTurn(Bare);

impl Way for BareInTurn {
    const NAME: &'static str = "percpu";
    fn run(&self, operations: u64) {
        let segment = self.0.0.as_ref();
        let slots = segment.and_then(|segment| segment.slots::<u64>(0, TURN));
        let Some(slots) = slots else { return };
        let all = |count: usize| {
            for slot in (0..count).filter_map(|word| slots.get(word)) {
                slot.inc();
            }
        };
        in_turns(operations, all);
    }
    fn counted(&self) -> Option<u64> {
        let segment = self.0.0.as_ref();
        let words = (0..TURN).filter_map(|word| segment?.slot::<u64>(word));
        Some(words.map(|slot| slot.replace(0)).sum())
    }
}

/// The usual counter, alone on its cache lines.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Atomic(AtomicU64);

impl Way for Atomic {
    const NAME: &'static str = "atomic";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            self.0.fetch_add(1, Relaxed);
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(self.0.swap(0, Relaxed))
    }
}

/// What a span cannot do without: time and CPU, twice.
#[derive(Default)]
pub(super) struct ClockPair;

impl Way for ClockPair {
    const NAME: &'static str = "clock-pair";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            let start = clock::now();
            let stop = clock::now();
            observe(stop.ticks.wrapping_sub(start.ticks) as usize);
            observe((start.cpu ^ stop.cpu) as usize);
        }
    }
    fn counted(&self) -> Option<u64> {
        None
    }
}

/// What std offers.
#[derive(Default)]
pub(super) struct InstantPair;

impl Way for InstantPair {
    const NAME: &'static str = "instant-pair";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            observe(nanoseconds(Instant::now()) as usize);
        }
    }
    fn counted(&self) -> Option<u64> {
        None
    }
}

#[inline(always)]
fn nanoseconds(start: Instant) -> u64 {
    let elapsed = start.elapsed();
    elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
}

/// The usual way: std's clock and four words that all threads share.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Atomics {
    events: AtomicU64,
    total: AtomicU64,
    longest: AtomicU64,
    /// The largest of what is left up to `u64::MAX`.
    shortest: AtomicU64,
}

impl Way for Atomics {
    const NAME: &'static str = "instant+atomics";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            let time = nanoseconds(Instant::now());
            self.events.fetch_add(1, Relaxed);
            self.total.fetch_add(time, Relaxed);
            self.longest.fetch_max(time, Relaxed);
            self.shortest.fetch_max(u64::MAX - time, Relaxed);
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(self.events.swap(0, Relaxed))
    }
}

/// The cycle counter read without waiting for anything, twice.
#[cfg(target_arch = "x86_64")]
#[derive(Default)]
pub(super) struct RdtscPair;

#[cfg(target_arch = "x86_64")]
impl Way for RdtscPair {
    const NAME: &'static str = "rdtsc-pair";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            let start = rdtsc();
            observe(rdtsc().wrapping_sub(start) as usize);
        }
    }
    fn counted(&self) -> Option<u64> {
        None
    }
}
