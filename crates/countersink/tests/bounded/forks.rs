//! Children that share a counter, or leave it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use countersink::{BatchCounter, BatchCounters, region};

use crate::common::child::alone;
use crate::common::cpus::wait_until;
use crate::common::fork::fork;
use crate::common::log::{self, Line};
use crate::common::random::Random;
use crate::storm::{Plan, amount};
use crate::truth::{additions, exact, logged};

const FORKS: u64 = 100;
const THREADS: usize = 3;
const SEED: u64 = 0xf04c_0004;
const ROUNDS: u64 = 500;
const PLAN: Plan = Plan {
    batch: 8,
    ..Plan::USUAL
};

static SHARED: BatchCounter = BatchCounter::new("bounded_forks").batch(8);
static MANY: BatchCounters = BatchCounter::many("bounded_forks_many", 20).batch(8);

fn add(line: &Line, random: &mut Random, round: u64) {
    let n = amount(random, round, &PLAN);
    logged(line, n, || {
        SHARED.add(n);
        true
    });
    let member = MANY.get(round as usize % MANY.len());
    member.expect("there are twenty").add(n);
}

/// A child counts, together with the others; in one of its own it then begins at 0.
fn in_child(line: &Line, number: u64, rest: u64) {
    let mut random = Random(SEED ^ number);
    for round in 0..ROUNDS {
        add(line, &mut random, round);
    }
    if !number.is_multiple_of(2) {
        return;
    }
    region::unshare().expect("a region of its own");
    assert_eq!((SHARED.sum(), SHARED.read(), SHARED.bound()), (0, 0, rest));
    let sum_of_many = |_: ()| {
        (0..MANY.len())
            .filter_map(|index| MANY.get(index))
            .map(|one| one.sum())
            .sum::<i64>()
    };
    assert_eq!(sum_of_many(()), 0);
    // The threads that were in the middle when it was forked are not here.
    assert!(SHARED.sync(), "nobody is in the middle");
    SHARED.add(1000);
    assert!(!SHARED.limited_add(1000, 1));
    assert!(SHARED.limited_add(1001 + 2 * rest as i64, 1));
    SHARED.sub(2000);
    assert_eq!((SHARED.sum(), SHARED.bound()), (-999, rest));
    let estimate = SHARED.estimate();
    assert!(estimate.value.abs_diff(-999) <= rest);
    assert_eq!(SHARED.set(5), -999);
}

#[test]
fn share_a_counter_or_leave_it() {
    alone("forks::share_a_counter_or_leave_it", || {
        SHARED.add(0);
        let rest = SHARED.bound();
        let logs = log::shared(THREADS + FORKS as usize);
        let (of_threads, of_children) = logs.split_at(THREADS);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for (thread, line) in of_threads.iter().enumerate() {
                let stop = &stop;
                scope.spawn(move || {
                    let mut random = Random(SEED + thread as u64);
                    let mut rounds = 0..;
                    while !stop.load(Relaxed) {
                        add(line, &mut random, rounds.next().unwrap_or_default());
                    }
                });
            }
            let mut random = Random(SEED);
            for (number, line) in of_children.iter().enumerate() {
                let until = additions(of_threads) + random.below(3_000);
                wait_until(|| additions(of_threads) >= until);
                fork(|| in_child(line, number as u64, rest)).wait_well();
            }
            stop.store(true, SeqCst);
        });
        let sum = exact(logs);
        println!(
            "seed {SEED:#x}: {} additions, {FORKS} forks, sum {sum}",
            additions(logs)
        );
        assert_eq!(SHARED.sum(), sum);
        let of_many = (0..MANY.len()).filter_map(|index| MANY.get(index));
        assert_eq!(of_many.map(|one| one.sum()).sum::<i64>(), sum);
        assert_eq!(SHARED.bound(), rest, "nothing is in the middle");
        assert!(sum.abs_diff(SHARED.read()) <= rest);
        assert_eq!(additions(of_children), FORKS * ROUNDS);
    });
}

/// Forks beside threads that are in the middle most of the time; when those have stopped, the child can sync.
fn syncs_in_child(number: u64) {
    let [words] = log::shared(1) else {
        panic!("one line");
    };
    let stop = AtomicBool::new(false);
    let child = std::thread::scope(|scope| {
        let lines = log::shared(THREADS);
        for (thread, line) in lines.iter().enumerate() {
            let stop = &stop;
            scope.spawn(move || {
                let mut random = Random(SEED + thread as u64);
                let mut rounds = 0..;
                while !stop.load(Relaxed) {
                    add(line, &mut random, rounds.next().unwrap_or_default());
                }
            });
        }
        wait_until(|| additions(lines) > 500 + 7 * number);
        let child = fork(|| {
            wait_until(|| words.get(0) == 1);
            assert!(SHARED.sync(), "its parent's threads are not in it");
            SHARED.add(100);
            assert!(SHARED.sync());
        });
        stop.store(true, SeqCst);
        child
    });
    words.set(0, 1);
    child.wait_well();
    assert!(SHARED.sync());
}

#[test]
fn of_a_program_with_threads_can_sync() {
    alone("forks::of_a_program_with_threads_can_sync", || {
        SHARED.add(0);
        let rest = SHARED.bound();
        (0..FORKS).for_each(syncs_in_child);
        assert_eq!(SHARED.bound(), rest);
    });
}
