//! Whether verdicts keep their promise: variants that are alike, held against each other, and variants that differ by a known amount.
//!
//! [`compare`] takes a runner, so the same comparisons are made under invented noise, where the outcome is the same each time and a test can
//! assert it, and on the machine. What is called different of what is alike must be at most [`PROMISED`](crate::verdict::PROMISED); what is
//! planted must be found.

pub mod noise;
mod overhead;
mod work;

pub use overhead::{Overhead, TOLERATED_OVERHEAD, overhead};

use crate::machine::Machine;
use crate::measure::{self, MeasureError};
use crate::mock::{MockRunner, even_sample};
use crate::progress::Progress;
use crate::result::{ExperimentResult, Results};
use crate::runner::Runner;
use crate::schedule::Plan;
use crate::stats::Ratio;
use crate::verdict::{Verdict, judge};

use noise::Noise;

/// Comparisons of variants that are alike.
pub const ALIKE: usize = 200;
/// Comparisons for each planted difference.
pub const PLANTED: usize = 50;
/// The differences that are planted.
pub const DIFFERENCES: [f64; 4] = [0.01, 0.02, 0.05, 0.10];
/// The share of them that is found where samples vary by 1 %, with 8 rounds: what is promised.
pub const POWER: [f64; 4] = [0.1, 0.6, 0.98, 0.98];

/// What came of comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// How many there were.
    pub comparisons: usize,
    /// Of how many the second was called slower, each judged by itself.
    pub slower: usize,
    /// And faster.
    pub faster: usize,
    /// And the same.
    pub same: usize,
    /// How many were called different when they were judged as one table.
    pub in_table: usize,
    /// The noise floor.
    pub floor: f64,
}

impl Tally {
    /// The share that was called different, each by itself.
    pub fn different(&self) -> f64 {
        (self.slower + self.faster) as f64 / self.comparisons.max(1) as f64
    }

    /// The share of which the second was found to be slower.
    pub fn found(&self) -> f64 {
        self.slower as f64 / self.comparisons.max(1) as f64
    }
}

/// Compares two variants so many times, of which the second does so much more: 0.05 is 5 %.
///
/// # Errors
/// As [`measure::run`]; a run that was ended has fewer comparisons.
pub fn compare(
    comparisons: usize,
    difference: f64,
    runner: &mut dyn Runner,
    plan: &Plan,
    progress: &mut dyn Progress,
) -> Result<Tally, MeasureError> {
    let experiment = work::Pairs::new(comparisons, difference);
    let mut results = Results::new(Machine::default());
    measure::run(&experiment, runner, plan, progress, &mut results)?;
    Ok(results.experiments.first().map(tally).unwrap_or_default())
}

/// As [`compare`], with invented time and noise.
///
/// # Errors
/// None, in practice.
pub fn compare_invented(
    comparisons: usize,
    difference: f64,
    (noise, seed): (Noise, u64),
    plan: &Plan,
    progress: &mut dyn Progress,
) -> Result<Tally, MeasureError> {
    // They are done, and take no invented time: few are enough.
    const OPERATIONS: u64 = 10;
    let sample_ns = plan.sample().as_nanos() as f64;
    let mut source = noise.source(seed);
    let mut runner = MockRunner::new(|call| {
        let more = if call.variant == work::SECOND {
            1.0 + difference
        } else {
            1.0
        };
        let elapsed = sample_ns * more * source.factor();
        even_sample(call.threads, OPERATIONS, elapsed as u64)
    });
    compare(comparisons, difference, &mut runner, plan, progress)
}

fn tally(measured: &ExperimentResult) -> Tally {
    let floor = measured.noise_floor(1);
    let pairs = measured.points.chunks(2);
    let ratios: Vec<(Ratio, Option<f64>)> = pairs
        .filter_map(|pair| match pair {
            [first, second] => Some((second.ratio_to(first)?, floor)),
            _ => None,
        })
        .collect();
    let alone = ratios.iter().flat_map(|pair| judge(&[*pair]));
    let alone: Vec<Verdict> = alone.collect();
    let count = |wanted| alone.iter().filter(|verdict| **verdict == wanted).count();
    let is_called = |verdict: &&Verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
    Tally {
        comparisons: ratios.len(),
        slower: count(Verdict::Slower),
        faster: count(Verdict::Faster),
        same: count(Verdict::Same),
        in_table: judge(&ratios).iter().filter(is_called).count(),
        floor: floor.unwrap_or(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use crate::verdict::PROMISED;

    fn invented(comparisons: usize, difference: f64, noise: Noise, seed: u64) -> Tally {
        let plan = Plan::default();
        let noise = (noise, seed);
        compare_invented(comparisons, difference, noise, &plan, &mut Silent).expect("a tally")
    }

    /// Of 200 comparisons of what is alike, at most 5 % are called different by themselves, and none in a table, with any seed here.
    #[test]
    fn what_is_alike_is_seldom_called_different() {
        for noise in noise::ALL {
            for seed in 1..=5 {
                let tally = invented(ALIKE, 0.0, noise, seed);
                assert_eq!(tally.comparisons, ALIKE);
                assert!(
                    tally.different() <= PROMISED,
                    "{noise:?}, seed {seed}: {tally:?}"
                );
                assert!(tally.in_table <= 1, "{noise:?}, seed {seed}: {tally:?}");
            }
        }
    }

    #[test]
    fn what_was_planted_is_found_as_promised() {
        for (difference, power) in DIFFERENCES.into_iter().zip(POWER) {
            for seed in 1..=3 {
                let tally = invented(200, difference, Noise::Normal(0.01), seed);
                assert!(
                    tally.found() >= power,
                    "{difference}, seed {seed}: {tally:?}"
                );
                assert_eq!(tally.faster, 0, "{difference}, seed {seed}: {tally:?}");
            }
        }
    }

    /// The first test finds a test that is too easily content: here without the floor and with any difference of the medians.
    #[test]
    fn without_test_and_floor_what_is_alike_is_called_different() {
        let experiment = work::Pairs::new(ALIKE, 0.0);
        let mut source = Noise::Normal(0.02).source(1);
        let mut runner = MockRunner::new(|_| even_sample(1, 10, (1e6 * source.factor()) as u64));
        let mut results = Results::new(Machine::default());
        let plan = Plan::default();
        measure::run(&experiment, &mut runner, &plan, &mut Silent, &mut results).expect("results");
        let differ = |pair: &[crate::result::PointResult]| {
            let ratio = pair[1].ratio_to(&pair[0]).expect("a ratio");
            Verdict::of(ratio.of_medians, ratio.ci95, Some(0.0), 0.0) != Verdict::CannotTell
        };
        let points = &results.experiments[0].points;
        let called = points.chunks(2).filter(|pair| differ(pair)).count();
        assert!(called > ALIKE / 2, "{called}");
    }
}
