//! Setting, beside additions and beside others that set.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::RwLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64};

use countersink::{BatchCounter, Estimate};

use crate::common::child::alone;
use crate::common::cpus::pause;
use crate::common::random::Random;
use crate::storm::{Plan, storm};
use crate::truth::{Counts, counter};

const SEED: u64 = 0x5e70_0004;
const SETTERS: u64 = 2;
const SETS: u64 = 200_000;

type Set = fn(&BatchCounter, i64) -> i64;

/// Values that nobody else sets, up to about 2^61 on both sides.
fn value(setter: u64, number: u64, random: &mut Random) -> i64 {
    let size = random.next() >> (random.below(60) + 3);
    let unique = (size & !0xff_ffff | number << 4 | setter) as i64;
    if random.below(2) == 0 {
        unique
    } else {
        -unique
    }
}

/// Threads that set and nothing else: each value but the last has been what another set found. How many were not.
fn lost(counter: &BatchCounter, set: Set) -> usize {
    let begin = counter.sum();
    let setter = |setter| {
        let mut random = Random(SEED + setter);
        let sets = (0..SETS).map(|number| {
            let value = value(setter, number + 1, &mut random);
            (value, set(counter, value))
        });
        sets.collect::<Vec<_>>()
    };
    let sets: Vec<_> = std::thread::scope(|scope| {
        let setter = &setter;
        let threads: Vec<_> = (0..SETTERS)
            .map(|number| scope.spawn(move || setter(number)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("nobody panics"))
            .collect()
    });
    let mut were: Vec<_> = sets
        .iter()
        .map(|(value, _)| *value)
        .chain([begin])
        .collect();
    let mut found: Vec<_> = sets
        .iter()
        .map(|(_, found)| *found)
        .chain([counter.sum()])
        .collect();
    were.sort_unstable();
    found.sort_unstable();
    were.iter()
        .zip(&found)
        .filter(|(was, found)| was != found)
        .count()
}

#[test]
fn one_of_two_wins() {
    println!("seed {SEED:#x}");
    for batch in [1, 32] {
        let counter = counter(&format!("sets_{batch}"), batch);
        assert_eq!(lost(counter, BatchCounter::set), 0);
    }
    let lost = lost(counter("sets_wrong", 32), |counter, value| {
        let found = counter.sum();
        pause();
        counter.add(value.wrapping_sub(found));
        found
    });
    println!("by sum and add: {lost} were not what another had found");
    assert!(lost > 0, "not found");
}

/// A counter without what was set: what its adders have added.
struct Added {
    counter: &'static BatchCounter,
    /// By how much sets have changed it.
    changed: AtomicI64,
    /// Shared by those that set, so that whoever takes the difference is not between a set and what is noted of it.
    setting: RwLock<()>,
}

impl Added {
    fn set(&self, set: Set, value: i64) {
        let _setting = self.setting.read().expect("nobody panics");
        let found = set(self.counter, value);
        self.changed.fetch_add(value - found, SeqCst);
    }
}

impl Counts for Added {
    fn add(&self, _: usize, n: i64) {
        self.counter.add(n);
    }

    fn estimate(&self) -> Estimate {
        self.counter.estimate()
    }

    fn sum(&self) -> i64 {
        let _nobody_sets = self.setting.write().expect("nobody panics");
        self.counter.sum() - self.changed.load(SeqCst)
    }
}

/// Two set while others add: the storm compares what is left with what was added.
fn beside_additions(name: &str, set: Set) {
    let added: &'static Added = Box::leak(Box::new(Added {
        counter: counter(name, 8),
        changed: AtomicI64::new(0),
        setting: RwLock::new(()),
    }));
    let plan = Plan {
        batch: 8,
        ..Plan::USUAL
    };
    let stop = AtomicBool::new(false);
    let sets = std::thread::scope(|scope| {
        let setter = scope.spawn(|| {
            let mut random = Random(SEED);
            let mut sets = 0_u64;
            while !stop.load(Relaxed) {
                added.set(set, random.below(100_000) as i64 - 50_000);
                sets += 1;
            }
            sets
        });
        let mut random = Random(!SEED);
        let result = catch_unwind(AssertUnwindSafe(|| {
            storm(added, plan, |_| {
                added.set(set, random.below(100_000) as i64 - 50_000);
            })
        }));
        stop.store(true, SeqCst);
        let sets = setter.join().expect("nobody panics");
        result
            .map(|_| sets)
            .unwrap_or_else(|what| resume_unwind(what))
    });
    println!("{sets} sets by one of two");
    assert!(sets > 100, "not a storm");
}

#[test]
fn lose_no_additions() {
    alone("sets::lose_no_additions", || {
        println!("seed {SEED:#x}");
        beside_additions("sets_beside", BatchCounter::set);
    });
}

/// Where what it was is asked before, additions in between are in neither.
#[test]
fn that_ask_before_lose_additions() {
    alone("sets::that_ask_before_lose_additions", || {
        let ask_before: Set = |counter, value| {
            let found = counter.sum();
            pause();
            counter.set(value);
            found
        };
        let result = catch_unwind(|| beside_additions("sets_ask_before", ask_before));
        assert!(result.is_err(), "not found");
    });
}
