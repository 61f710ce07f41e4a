//! What a counter says of itself in a storm, by the adders' logs.

use std::cmp::Ordering;

use countersink::BatchCounter;

use crate::common::child::alone;
use crate::common::log::Line;
use crate::common::random::Random;
use crate::storm::{Plan, TRIES, adders, storm};
use crate::truth::{Bracket, Counts, bracket, counter, logged};
use crate::wrong::Kernel;

const BATCHES: [u32; 4] = [1, 8, 32, 1000];
const SEED: u64 = 0xe571_0004;

/// What samples have shown.
#[derive(Debug, Default)]
struct Seen {
    samples: u64,
    /// Those where the bracket was narrower than what is tested.
    sharp: u64,
    /// Those that cannot be right.
    wrong: u64,
}

impl Seen {
    fn note(&mut self, right: bool, sharp: bool) {
        self.samples += 1;
        self.sharp += u64::from(sharp);
        self.wrong += u64::from(!right);
    }

    fn assert_right(&self, what: &str) {
        println!("{what}: {self:?}");
        assert_eq!(self.wrong, 0, "{what}: {self:?}");
        assert!(self.sharp > 100, "{what}: not watched: {self:?}");
    }
}

/// Samples estimates as fast as it can.
fn estimates(counts: &'static dyn Counts, plan: Plan) -> Seen {
    let mut seen = Seen::default();
    storm(counts, plan, |lines| {
        let (bracket, estimate) = bracket(lines, || counts.estimate());
        // With a batch of 1 nothing is unpublished, and the bound is what is under way.
        let sharp = bracket.width() <= estimate.bound.max(100);
        seen.note(bracket.agrees(estimate), sharp);
    });
    seen
}

#[test]
fn are_within_the_bound() {
    alone("estimates::are_within_the_bound", || {
        for batch in BATCHES {
            let counter = counter(&format!("estimates_{batch}"), batch);
            let rest = counter.bound();
            estimates(
                counter,
                Plan {
                    batch,
                    ..Plan::USUAL
                },
            )
            .assert_right("estimates");
            assert_eq!(counter.bound(), rest, "nothing is in the middle");
        }
    });
}

/// Something wrong is found, by a storm or by one of several: it depends on who is preempted where. Each has a counter of its own,
/// of the name given.
fn finds(what: &str, storm: impl Fn(&str) -> Seen) {
    let found = (0..TRIES).any(|number| {
        let seen = storm(&format!("{}_{number}", what.replace(' ', "_")));
        println!("{what}: {seen:?}");
        seen.wrong > 0
    });
    assert!(found, "{what}: not found");
}

/// The storm finds what is wrong, and nothing in what is right.
#[test]
fn of_a_counter_with_a_misplaced_parenthesis_are_not() {
    alone(
        "estimates::of_a_counter_with_a_misplaced_parenthesis_are_not",
        || {
            let plan = Plan {
                additions: 100_000,
                ..Plan::USUAL
            };
            estimates(Kernel::new(adders(), 32, false), plan).assert_right("kernel");
            finds("misplaced parenthesis", |_| {
                estimates(Kernel::new(adders(), 32, true), plan)
            });
        },
    );
}

/// A comparison is right if no value of the bracket is compared otherwise.
fn is_right(bracket: Bracket, rhs: i64, found: Ordering) -> bool {
    (bracket.low..=bracket.high).contains(&rhs)
        || (bracket.high < rhs && found.is_lt())
        || (bracket.low > rhs && found.is_gt())
}

/// Compares with values about as far away as the bound, by `compare`.
fn comparisons(
    counter: &'static BatchCounter,
    compare: fn(&BatchCounter, i64) -> Ordering,
) -> Seen {
    let (mut seen, mut random) = (Seen::default(), Random(SEED));
    storm(counter, Plan::USUAL, |lines| {
        let estimate = counter.estimate();
        let rhs = estimate.value + random.below(4 * estimate.bound + 2) as i64
            - 2 * estimate.bound as i64;
        let (bracket, found) = bracket(lines, || compare(counter, rhs));
        seen.note(is_right(bracket, rhs, found), !bracket.holds(rhs));
    });
    seen
}

#[test]
fn comparisons_are_right() {
    alone("estimates::comparisons_are_right", || {
        println!("seed {SEED:#x}");
        let plain = counter("comparisons", 32);
        comparisons(plain, |counter, rhs| counter.compare(rhs)).assert_right("compare");
        let batch = counter("comparisons_batch", 32);
        comparisons(batch, |counter, rhs| counter.compare_batch(rhs, 100))
            .assert_right("compare_batch");
        // As if an estimate were the sum.
        finds("by read", |name| {
            comparisons(counter(name, 32), |counter, rhs| counter.read().cmp(&rhs))
        });
    });
}

/// Takes sums, or what is to be one; of a counter that only goes up each is at least the one before.
fn sums(name: &str, up_only: bool, sum: fn(&BatchCounter) -> i64) -> Seen {
    let (mut seen, mut before) = (Seen::default(), 0);
    let counter = counter(name, 32);
    let plan = Plan {
        up_only,
        ..Plan::USUAL
    };
    storm(counter, plan, |lines| {
        let (bracket, sum) = bracket(lines, || sum(counter));
        let right = bracket.holds(sum) && !(up_only && sum < before);
        before = sum;
        seen.note(right, bracket.width() <= counter.bound());
    });
    seen
}

#[test]
fn sums_are_some_that_there_were() {
    alone("estimates::sums_are_some_that_there_were", || {
        sums("sums_up", true, BatchCounter::sum).assert_right("sums of ups");
        sums("sums_both", false, BatchCounter::sum).assert_right("sums");
        finds("by read", |name| sums(name, true, BatchCounter::read));
    });
}

/// Adds up to limits that are about where the sum is, beside plain additions; the same by another way of adding.
fn limited(name: &str, limited_add: fn(&BatchCounter, i64, i64) -> bool) -> (Seen, [u64; 2]) {
    let (mut seen, mut random) = (Seen::default(), Random(SEED));
    let (counter, mut outcomes) = (counter(name, 8), [0; 2]);
    let plan = Plan {
        batch: 8,
        ..Plan::USUAL
    };
    storm(counter, plan, |lines| {
        let (own, others) = lines.split_last().expect("the last is ours");
        let n = 1 + random.below(20) as i64;
        let limit = counter.read() + random.below(400) as i64 - 150;
        // Who watches is not in the middle of anything itself.
        let [up, down] = [own.get(2), own.get(3)].map(|word| word as i64);
        let (bracket, added) =
            bracket(others, || logged(own, n, || limited_add(counter, limit, n)));
        outcomes[usize::from(added)] += 1;
        let possible = bracket.low + up - down + n <= limit;
        seen.note(possible || !added, bracket.width() <= 100);
    });
    (seen, outcomes)
}

#[test]
fn limited_additions_were_possible() {
    alone("estimates::limited_additions_were_possible", || {
        let (seen, [refused, added]) =
            limited("limited", |counter, limit, n| counter.limited_add(limit, n));
        println!("{added} added, {refused} refused");
        seen.assert_right("limited additions");
        assert!(refused > 100 && added > 100);
        finds("without a limit", |name| {
            let always = |counter: &BatchCounter, _, n| {
                counter.add(n);
                true
            };
            limited(name, always).0
        });
    });
}

/// Syncs all the time, and samples in between.
fn syncs(name: &str, batch: u32) -> (Seen, u64) {
    let (mut seen, mut done) = (Seen::default(), 0);
    let counter = counter(name, batch);
    let sync_and_look = |lines: &'static [Line]| {
        done += u64::from(counter.sync());
        let (bracket, estimate) = bracket(lines, || counter.estimate());
        seen.note(
            bracket.agrees(estimate),
            bracket.width() <= estimate.bound.max(100),
        );
    };
    storm(
        counter,
        Plan {
            batch,
            ..Plan::USUAL
        },
        sync_and_look,
    );
    assert!(counter.sync(), "nobody is in the middle");
    assert!(counter.estimate().value.abs_diff(counter.sum()) <= counter.bound());
    (seen, done)
}

#[test]
fn stay_right_beside_syncs() {
    alone("estimates::stay_right_beside_syncs", || {
        for batch in [1, 8] {
            // Nothing is done for as long as one that is in the middle does not run.
            let often = (0..TRIES).any(|number| {
                let (seen, done) = syncs(&format!("syncs_{batch}_{number}"), batch);
                println!("batch {batch}: {done} syncs done");
                seen.assert_right("beside syncs");
                done > 100
            });
            assert!(often, "never done");
        }
    });
}
