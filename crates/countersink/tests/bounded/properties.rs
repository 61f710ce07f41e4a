//! All operations on one thread, against a model: a sum that wraps, and the widest batch that there was.

use std::cmp::Ordering;

use countersink::BatchCounter;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

use crate::common::child::alone;

const SEED: u64 = 0x90de_0004;
const CASES: u32 = 3_000;

/// What is done to a counter.
#[derive(Clone, Copy, Debug)]
enum Op {
    Add(i64),
    Sub(i64),
    Inc,
    Dec,
    AddBatch(i64, u32),
    AddLocal(i64),
    SubLocal(i64),
    Set(i64),
    Sync,
    /// So far beyond the sum and what is added is the limit; and what is added.
    LimitedNear(i64, i64),
    Limited(i64, i64),
    /// So far from the sum.
    CompareNear(i64),
    Compare(i64),
    CompareBatch(i64, u32),
}

fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -3..=3_i64,
        4 => -40..=40_i64,
        4 => -2_100..=2_100_i64,
        1 => -(1_i64 << 34)..1_i64 << 34,
        1 => any::<i64>(),
        1 => prop::sample::select(vec![i64::MAX, i64::MIN, i64::MIN + 1, i64::MAX - 1]),
    ]
}

fn batch() -> impl Strategy<Value = u32> {
    prop_oneof![
        1 => Just(0_u32),
        4 => Just(1),
        4 => 2..40_u32,
        4 => Just(32),
        2 => Just(1000),
        1 => Just(u32::MAX),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => amount().prop_map(Op::Add),
        4 => amount().prop_map(Op::Sub),
        8 => Just(Op::Inc),
        8 => Just(Op::Dec),
        2 => (amount(), 0..50_u32).prop_map(|(n, batch)| Op::AddBatch(n, batch)),
        1 => (amount(), batch()).prop_map(|(n, batch)| Op::AddBatch(n, batch)),
        2 => amount().prop_map(Op::Set),
        1 => Just(Op::Sync),
        8 => (-200..200_i64, amount()).prop_map(|(room, n)| Op::LimitedNear(room, n)),
        2 => (amount(), amount()).prop_map(|(limit, n)| Op::Limited(limit, n)),
        4 => (-200..200_i64).prop_map(Op::CompareNear),
        2 => amount().prop_map(Op::Compare),
        2 => (-200..200_i64, batch()).prop_map(|(rhs, batch)| Op::CompareBatch(rhs, batch)),
    ]
}

/// Additions that are never published make everything after them a matter of sums, so they are in few cases, and late.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let local = prop_oneof![
        amount().prop_map(Op::AddLocal),
        amount().prop_map(Op::SubLocal),
    ];
    let all = prop::collection::vec(op(), 1..80);
    let late = prop::collection::vec(prop_oneof![1 => local, 4 => op()], 1..20);
    (all, prop::option::weighted(0.2, late)).prop_map(|(mut all, late)| {
        all.extend(late.unwrap_or_default());
        all
    })
}

/// What a counter must be.
struct Model {
    lanes: u64,
    sum: i64,
    widest: u32,
    /// Something was added that is never published.
    is_local: bool,
}

impl Model {
    fn add(&mut self, n: i64) {
        self.sum = self.sum.wrapping_add(n);
    }

    /// How much all lanes may have that is not published.
    fn slack(&self) -> u64 {
        match self.is_local {
            true => u64::MAX,
            false => self.lanes * u64::from(self.widest - 1),
        }
    }

    /// Whether what is published can have wrapped where the sum has not, or the other way round. Nothing is promised of limits and
    /// comparisons there.
    fn is_at_the_ends(&self, n: i64) -> bool {
        let near = 2 * i128::from(self.lanes) * i128::from(self.widest) + i128::from(n).abs();
        let sum = i128::from(self.sum);
        sum - near < i128::from(i64::MIN) || sum + near > i128::from(i64::MAX)
    }

    /// Both promises of limited additions: what was done had room, and what was refused had less than twice the slack.
    fn limited(&mut self, limit: i64, n: i64, added: bool) -> Result<(), TestCaseError> {
        let room = i128::from(limit) - i128::from(self.sum) - i128::from(n);
        let room = if n < 0 { -room } else { room };
        if n == 0 {
            // Nothing is added, so nothing is passed.
            prop_assert!(added);
        } else if self.is_local {
            prop_assert!(!added, "nothing is known, limit {limit}");
        } else if !self.is_at_the_ends(n) {
            prop_assert!(room >= 0 || !added, "passed {limit} with {n}");
            let far = 2 * i128::from(self.slack());
            prop_assert!(
                room < far || added,
                "{limit} and {n}: {room} left, not within {far}"
            );
        }
        if added {
            self.add(n);
        }
        Ok(())
    }

    fn compared(&self, rhs: i64, found: Ordering) -> Result<(), TestCaseError> {
        if !self.is_at_the_ends(0) || self.is_local {
            prop_assert_eq!(found, self.sum.cmp(&rhs));
        }
        Ok(())
    }

    /// Everything that a counter says of itself.
    fn check(&self, counter: &BatchCounter) -> Result<(), TestCaseError> {
        prop_assert_eq!(counter.sum(), self.sum);
        prop_assert_eq!(counter.sum_positive(), self.sum.max(0));
        let estimate = counter.estimate();
        prop_assert_eq!(counter.read(), estimate.value);
        prop_assert_eq!(counter.read_positive(), estimate.value.max(0));
        prop_assert_eq!(estimate.bound, self.slack(), "nothing is in the middle");
        prop_assert_eq!(counter.bound(), estimate.bound);
        let off = self.sum.wrapping_sub(estimate.value).unsigned_abs();
        prop_assert!(off <= estimate.bound, "{off} off: {estimate:?}");
        let (low, high) = estimate.range();
        prop_assert!(self.is_at_the_ends(0) || (low..=high).contains(&self.sum));
        Ok(())
    }
}

fn apply(op: Op, counter: &BatchCounter, model: &mut Model) -> Result<(), TestCaseError> {
    let near = |sum: i64, n: i64, room: i64| {
        sum.saturating_add(n)
            .saturating_add(if n < 0 { -room } else { room })
    };
    match op {
        Op::Add(n) => counter.add(n),
        Op::Sub(n) => counter.sub(n),
        Op::Inc => counter.inc(),
        Op::Dec => counter.dec(),
        Op::AddBatch(n, batch) => counter.add_batch(n, batch),
        Op::AddLocal(n) => counter.add_local(n),
        Op::SubLocal(n) => counter.sub_local(n),
        Op::Set(value) => prop_assert_eq!(counter.set(value), model.sum),
        Op::Sync => prop_assert!(counter.sync()),
        Op::LimitedNear(room, n) => {
            let limit = near(model.sum, n, room);
            return model.limited(limit, n, counter.limited_add(limit, n));
        }
        Op::Limited(limit, n) => return model.limited(limit, n, counter.limited_add(limit, n)),
        Op::CompareNear(rhs) => {
            let rhs = model.sum.saturating_add(rhs);
            return model.compared(rhs, counter.compare(rhs));
        }
        Op::Compare(rhs) => return model.compared(rhs, counter.compare(rhs)),
        Op::CompareBatch(rhs, batch) => {
            let rhs = model.sum.saturating_add(rhs);
            return model.compared(rhs, counter.compare_batch(rhs, batch));
        }
    }
    match op {
        Op::Add(n) => model.add(n),
        Op::Sub(n) => model.add(n.wrapping_neg()),
        Op::Inc => model.add(1),
        Op::Dec => model.add(-1),
        Op::AddBatch(n, batch) => {
            model.widest = model.widest.max(batch);
            model.add(n);
        }
        Op::AddLocal(n) | Op::SubLocal(n) => {
            model.is_local = true;
            model.add(if matches!(op, Op::AddLocal(_)) {
                n
            } else {
                n.wrapping_neg()
            });
        }
        Op::Set(value) => model.sum = value,
        _ => {}
    }
    Ok(())
}

/// Runs all cases; what is wrong is told with its smallest case.
fn run(
    check: impl Fn(&BatchCounter, &Model) -> Result<(), TestCaseError>,
) -> Result<(), TestError<(u32, Vec<Op>)>> {
    let lanes = BatchCounter::new("properties_lanes").batch(2).bound();
    let mut runner = TestRunner::new(Config {
        cases: CASES,
        rng_seed: RngSeed::Fixed(SEED),
        failure_persistence: None,
        ..Config::default()
    });
    println!("seed {SEED:#x}, {CASES} cases, {lanes} lanes");
    runner.run(&(batch(), ops()), |(batch, ops)| {
        let counter = BatchCounter::new("properties").batch(batch);
        let mut model = Model {
            lanes,
            sum: 0,
            widest: batch.max(1),
            is_local: false,
        };
        check(&counter, &model)?;
        for op in ops {
            apply(op, &counter, &mut model)?;
            check(&counter, &model)?;
        }
        Ok(())
    })
}

#[test]
fn every_operation_is_as_its_model() {
    alone("properties::every_operation_is_as_its_model", || {
        if let Err(wrong) = run(|counter, model| model.check(counter)) {
            panic!("{wrong}");
        }
    });
}

/// A bound that is one less does not hold for the one lane that one thread fills.
#[test]
fn the_bound_is_reached() {
    alone("properties::the_bound_is_reached", || {
        let found = run(|counter, model| {
            let off = counter.sum().wrapping_sub(counter.read()).unsigned_abs();
            let widest = u64::from(model.widest - 1);
            prop_assert!(widest == 0 || model.is_local || off < widest, "{off}");
            Ok(())
        });
        println!("{found:?}");
        assert!(found.is_err(), "a lane is never full");
    });
}
