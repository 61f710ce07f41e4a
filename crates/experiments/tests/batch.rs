//! The experiment `batch` with invented times: what it measures and that its totals are checked; that the kernel's
//! algorithms keep their bound; and that the bound catches the seed's misplaced parenthesis, which the total does not.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use countersink_experiments::batch::accuracy::{Accuracy, watch, watch_all};
use countersink_experiments::batch::kernel::{Kernel, Masked, Nested};
use countersink_experiments::batch::sizes::sizes;
use countersink_experiments::batch::{
    ADD, AIMED, Amounts, Atomic, BATCHES, BatchExperiment, Carry, READ, Tree, Way,
};
use countersink_harness::machine::Machine;
use countersink_harness::measure;
use countersink_harness::mock::{MockRunner, even_sample};
use countersink_harness::progress::Silent;
use countersink_harness::result::{PointResult, Results};
use countersink_harness::schedule::{MIN_ROUNDS, Plan};
use countersink_harness::variant::Experiment;
use countersink_percpu::{Segment, Slot};

/// Counters of one batch share a name, so tests go one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The seed as it was quoted: `unlikely(abs(count + amount)) >= batch`, where `unlikely(x)` is `!!x`, a truth value.
struct Misplaced {
    segment: Segment,
    folded: Mutex<i64>,
    batch: i64,
}

impl Way for Misplaced {
    const NAME: &'static str = "misplaced";
    type Handle<'a> = &'a Misplaced;

    fn new(batch: u32) -> Result<Self, String> {
        Ok(Misplaced {
            segment: Segment::private().map_err(|error| error.to_string())?,
            folded: Mutex::new(0),
            batch: i64::from(batch),
        })
    }

    fn handle(&self) -> &Misplaced {
        self
    }

    fn add(handle: &Misplaced, n: i64) {
        let word = handle.word();
        let mut count = word.compare_exchange(0, 0).unwrap_or_else(|held| held);
        loop {
            let unlikely = i64::from((count + n).abs() != 0);
            if unlikely >= handle.batch {
                let mut folded = handle.folded.lock().expect("nobody panicked");
                *folded += word.exchange(0) + n;
                return;
            }
            match word.compare_exchange(count, count + n) {
                Ok(_) => return,
                Err(held) => count = held,
            }
        }
    }

    fn read(handle: &Misplaced) -> i64 {
        *handle.folded.lock().expect("nobody panicked")
    }

    fn sum(&self) -> i64 {
        Self::read(self) + self.word().sum()
    }

    fn bound(&self) -> Option<u64> {
        Some((u64::from(self.segment.cpus()) + 1) * self.batch.unsigned_abs())
    }
}

impl Misplaced {
    fn word(&self) -> Slot<'_, i64> {
        self.segment.slot(0).expect("a segment has words")
    }
}

/// Adds by one thread, so that the sum is known after each addition: the farthest that a read was from it, and the first
/// that was further than promised.
fn farthest<W: Way>(batch: u32, amounts: &[i64]) -> (u64, Option<usize>) {
    let way = W::new(batch).expect("memory");
    let held = way.sum();
    let (mut sum, mut worst, mut broken) = (0, 0, None);
    for (at, n) in amounts.iter().enumerate() {
        W::add(way.handle(), *n);
        sum += n;
        let (read, bound) = way.estimate();
        let off = (read - held).abs_diff(sum);
        worst = worst.max(off);
        if bound.is_some_and(|bound| off > bound) {
            broken = broken.or(Some(at));
        }
    }
    assert_eq!(way.sum() - held, sum, "{} with batch {batch}", W::NAME);
    (worst, broken)
}

/// Ones; ups and downs; across the batch in both directions; amounts larger than it.
fn series(batch: u32) -> Vec<Vec<i64>> {
    let batch = i64::from(batch);
    let turn = [
        batch - 1,
        1,
        -1,
        -batch,
        1 - batch,
        batch,
        -1,
        2 - 2 * batch,
    ];
    vec![
        vec![1; 10_000],
        vec![-1; 10_000],
        (0..10_000).map(|n: i64| n * 7919 % 16 - 3).collect(),
        turn.repeat(1000),
        [3 * batch + 1, -5 * batch].repeat(1000),
    ]
}

fn assert_within<W: Way>() {
    for batch in BATCHES {
        for amounts in series(batch) {
            let (worst, broken) = farthest::<W>(batch, &amounts);
            let first = &amounts[..2];
            assert_eq!(
                broken,
                None,
                "{}, batch {batch}, {first:?}: {worst}",
                W::NAME
            );
        }
    }
}

#[test]
fn one_thread_finds_every_read_within_the_bound() {
    let _alone = alone();
    assert_within::<Carry>();
    assert_within::<Kernel>();
    assert_within::<Nested>();
    assert_within::<Masked>();
    assert_within::<Atomic>();
    assert_within::<Tree>();
}

#[test]
fn the_kernels_ways_fold_at_the_batch() {
    let _alone = alone();
    fn reads<W: Way>(batch: u32, amounts: &[i64]) -> Vec<i64> {
        let way = W::new(batch).expect("memory");
        let read = |n: &i64| {
            W::add(way.handle(), *n);
            W::read(way.handle())
        };
        amounts.iter().map(read).collect()
    }
    // Each is folded at once, on whatever CPU.
    for read in [reads::<Kernel>, reads::<Nested>, reads::<Masked>] {
        assert_eq!(read(1, &[1, 1, -1]), [1, 2, 1]);
        assert_eq!(
            read(8, &[8, -8, 100, i64::MIN]),
            [8, 0, 100, i64::MIN + 100]
        );
        // Less than the batch stays in the lane.
        assert_eq!(read(8, &[7]), [0]);
        assert_eq!(read(8, &[-7]), [0]);
    }
}

#[test]
fn the_misplaced_parenthesis_is_caught_by_the_bound() {
    let _alone = alone();
    for batch in BATCHES.into_iter().filter(|batch| *batch > 1) {
        let (worst, broken) = farthest::<Misplaced>(batch, &vec![1; 100_000]);
        assert_eq!(worst, 100_000, "nothing was ever folded");
        assert!(broken.is_some(), "batch {batch}: within the bound");
    }
    // With a batch of 1 the truth value is as good.
    assert_eq!(farthest::<Misplaced>(1, &[1; 1000]), (0, None));
}

#[test]
fn an_observer_finds_every_read_within_the_bound() {
    let _alone = alone();
    const TIME: Duration = Duration::from_millis(100);
    for threads in [1, 3] {
        for batch in [1, AIMED] {
            let seen = watch_all(batch, threads, TIME).expect("exact totals");
            assert_eq!(seen.len(), 6);
            for Accuracy {
                way, reads, broken, ..
            } in seen
            {
                assert!(reads > 0, "{way}");
                assert_eq!(broken, 0, "{way}, batch {batch}, {threads} threads");
            }
        }
    }
    // The same observer catches who does not fold, once the adders have had a turn.
    let caught = |_| {
        watch::<Misplaced>(AIMED, 2, TIME)
            .expect("exact totals")
            .broken
            > 0
    };
    assert!((0..50).any(caught), "an observer that sees nothing");
}

const OPERATIONS: u64 = 1000;

fn measured(experiment: &BatchExperiment) -> Vec<PointResult> {
    let mut runner = MockRunner::new(|call| even_sample(call.threads, OPERATIONS, OPERATIONS));
    let plan = Plan::new(Duration::from_millis(1), MIN_ROUNDS).expect("a plan");
    let mut results = Results::new(Machine::default());
    measure::run(experiment, &mut runner, &plan, &mut Silent, &mut results).expect("results");
    assert!(results.machine.conditions.contains_key("mechanism"));
    results.experiments.remove(0).points
}

#[test]
fn every_variant_stands_in_its_points() {
    let _alone = alone();
    let points = measured(&BatchExperiment::new(&[1, 3]));
    let variants = |op: &str, pattern: &str, threads: usize| {
        let here = points.iter().filter(|point| {
            (point.op.as_str(), point.pattern.as_str(), point.threads) == (op, pattern, threads)
        });
        here.map(|point| point.variant.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let ways = "percpu carry carry-static kernel kernel-nested masked atomic tree";
    for threads in [1, 3] {
        for batch in BATCHES {
            let [ones, mixed] = Amounts::ALL.map(|amounts| amounts.pattern(batch));
            assert_eq!(variants(ADD, &ones, threads), ways);
            assert_eq!(variants(ADD, &mixed, threads), format!("{ways} loop"));
        }
        let pattern = Amounts::Ones.pattern(AIMED);
        assert_eq!(
            variants(READ, &pattern, threads),
            "percpu carry kernel atomic tree"
        );
    }
}

#[test]
fn an_addition_that_is_not_counted_is_found() {
    let _alone = alone();
    for point in BatchExperiment::new(&[2]).points() {
        for variant in &point.variants {
            // Not a multiple of the table of amounts, so that its rest is checked, too.
            let operations = [1000, 1300];
            for (thread, operations) in operations.into_iter().enumerate() {
                variant.worker(thread, 2).run(operations);
            }
            let name = format!("{}, {}", variant.name(), point.label());
            assert_eq!(variant.check(&operations), Ok(()), "{name}");
            let is_counted = point.op == ADD && variant.name() != "loop";
            assert_eq!(variant.check(&[1000, 1301]).is_err(), is_counted, "{name}");
        }
    }
}

#[test]
fn sizes_need_symbols() {
    assert_eq!(sizes(&BTreeMap::new()), None);
}
