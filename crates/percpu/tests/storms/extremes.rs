//! Minimum and maximum in a storm: what a lane has held, it does not fall behind again.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use countersink_percpu::{Lane, Segment, Slot};

use crate::counter::Counter;
use crate::exact::SIGNALS;
use crate::storm::{Plan, storm};

/// Stores values that rise, or fall, and come late: between drawing one and storing it a thread may
/// be interrupted by a handler that stores a later one.
struct Extreme<'a> {
    name: &'static str,
    slot: Slot<'a>,
    store: fn(&Slot<'_>, u64) -> bool,
    /// Makes the order of values rising.
    rank: fn(u64) -> u64,
    drawn: AtomicU64,
    /// The highest rank stored on each CPU lane, as far as those know that stored it.
    reached: Vec<AtomicU64>,
    behind: AtomicU64,
}

impl Extreme<'_> {
    fn new<'a>(
        name: &'static str,
        slot: Slot<'a>,
        store: fn(&Slot<'_>, u64) -> bool,
        rank: fn(u64) -> u64,
        lanes: u32,
    ) -> Extreme<'a> {
        Extreme {
            name,
            slot,
            store,
            rank,
            drawn: AtomicU64::new(1),
            reached: (0..lanes).map(|_| AtomicU64::new(0)).collect(),
            behind: AtomicU64::new(0),
        }
    }

    /// The rank of what a lane holds.
    fn rank_in(&self, cpu: usize) -> u64 {
        let held = self.slot.load(Lane::Cpu(cpu as u32));
        (self.rank)(held.expect("a lane for each CPU"))
    }
}

impl Counter for Extreme<'_> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn count(&self, _: u64) -> u64 {
        let rank = self.drawn.fetch_add(1, SeqCst);
        (self.store)(&self.slot, (self.rank)(rank));
        for (cpu, reached) in self.reached.iter().enumerate() {
            // In this order: what is read as reached has been in the lane before.
            let reached_before = reached.load(SeqCst);
            let rank = self.rank_in(cpu);
            if rank < reached_before {
                self.behind.fetch_add(1, SeqCst);
            }
            reached.fetch_max(rank, SeqCst);
        }
        0
    }

    /// Nothing is counted here.
    fn total(&self) -> u64 {
        0
    }

    fn violations(&self) -> u64 {
        self.behind.swap(0, SeqCst)
    }
}

/// Ranks of minima: the lower, the later. A lane of zeros is below all, so it is filled first.
fn falling(rank: u64) -> u64 {
    u64::MAX - rank
}

fn rising(rank: u64) -> u64 {
    rank
}

/// The violations that a storm finds.
fn violations(extreme: &Extreme<'_>) -> u64 {
    let plan = Plan {
        operations: 400_000,
        ..SIGNALS
    };
    // The last ones come after the storm has looked for the last time.
    storm(extreme, &plan).violations + extreme.violations()
}

#[test]
fn maximum_and_minimum() {
    let segment = Segment::private().expect("memory");
    let slot = |index| segment.slot(index).expect("a word");
    let cpus = segment.cpus();
    let maximum = Extreme::new(
        "store_max",
        slot(0),
        |slot, v| slot.store_max(v),
        rising,
        cpus,
    );
    assert_eq!(violations(&maximum), 0);
    fill(&segment, 1);
    let minimum = Extreme::new(
        "store_min",
        slot(1),
        |slot, v| slot.store_min(v),
        falling,
        cpus,
    );
    assert_eq!(violations(&minimum), 0);
}

#[test]
#[cfg(not(countersink_portable))]
fn a_maximum_compared_outside_is_found() {
    let segment = Segment::private().expect("memory");
    let slot = segment.slot(0).expect("a word");
    let store = |slot: &Slot<'_>, v: u64| {
        let here = crate::common::cpus::current();
        let before = slot.load(Lane::Cpu(here)).unwrap_or(0);
        let better = v > before;
        if better {
            slot.exchange(v);
        }
        better
    };
    let mutant = Extreme::new(
        "max by load and exchange",
        slot,
        store,
        rising,
        segment.cpus(),
    );
    assert!((0..20).any(|_| violations(&mutant) > 0));
}

/// Puts the highest value into every CPU lane of a word.
fn fill(segment: &Segment, index: usize) {
    for cpu in 0..segment.cpus() {
        crate::common::lanes::word(segment, Lane::Cpu(cpu), index).store(u64::MAX, SeqCst);
    }
}
