//! Statistics of a few samples, without the assumption that they are normal.
//!
//! Intervals are *order-statistic* (binomial) intervals of the median: from the k-th smallest to
//! the k-th largest value, where k is the largest rank that still covers the median with 95 %. A
//! value is below the median with probability 1/2, whatever the distribution, so the interval
//! misses with probability 2·P(Binomial(n, 1/2) < k). It needs 6 values: 1 − 2/2⁶ = 96.9 %, but
//! 1 − 2/2⁵ = 93.8 %. The true coverage is at least 95 %, and more for few values. Samples are
//! taken to be independent; those of one run share its memory layout, so an interval speaks for
//! the run, not for the machine.
//!
//! Nothing here panics. What has no answer (no values, values that are not finite) is `None`.

use serde::{Deserialize, Serialize};
use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};
use statrs::statistics::Statistics;

/// A set of values in brief, in the values' unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle value, or the mean of the middle two.
    pub median: f64,
    /// The sample standard deviation, with n − 1; 0 for a single value, which has none.
    pub stddev: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
    /// The order-statistic interval of the median with at least 95 % coverage. `None` for fewer than
    /// 6 values.
    #[serde(default)]
    pub ci95: Option<[f64; 2]>,
}

impl Summary {
    /// Sums up the values. `None` if there are none, if any is not finite (a summary that left some
    /// out would look better than it is), or if they are too large to be summed.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let sorted = sorted(values)?;
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        // Rounding may carry a mean of equal values past them.
        let mean = values.mean().max(min).min(max);
        let stddev = if min == max { 0.0 } else { values.std_dev() };
        let summary = Summary {
            mean,
            median: median_of_sorted(&sorted)?,
            stddev,
            min,
            max,
            ci95: interval_of_sorted(&sorted),
        };
        (mean.is_finite() && stddev.is_finite() && summary.median.is_finite()).then_some(summary)
    }
}

impl Summary {
    /// Sums up values that come in so many groups of equal size, such as one for each process. The interval is that of the groups'
    /// medians, since values of one group are not independent; with fewer than 6 groups, of all values.
    pub fn of_groups(values: &[f64], groups: usize) -> Option<Summary> {
        let mut summary = Summary::of(values)?;
        if groups > 1 && values.len().is_multiple_of(groups) {
            let medians = values.chunks(values.len() / groups).map(median);
            let medians: Vec<f64> = medians.collect::<Option<_>>()?;
            summary.ci95 = median_interval(&medians).or(summary.ci95);
        }
        Some(summary)
    }
}

/// The median. `None` if there are no values or one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values)?)
}

/// The order-statistic interval of the median, with at least 95 % coverage. `None` if there are
/// fewer than 6 values or one is not finite.
pub fn median_interval(values: &[f64]) -> Option<[f64; 2]> {
    interval_of_sorted(&sorted(values)?)
}

/// The largest k such that the k-th smallest and the k-th largest of n values enclose the median with
/// at least 95 % coverage. `None` for fewer than 6 values.
pub fn median_interval_rank(n: usize) -> Option<usize> {
    let below = Binomial::new(0.5, u64::try_from(n).ok()?).ok()?;
    let covers = |k: &usize| 2.0 * below.cdf(*k as u64 - 1) <= 0.05;
    (1..=n / 2).take_while(covers).last()
}

/// How two variants compare: the first one's time divided by the second one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the two medians.
    pub of_medians: f64,
    /// The order-statistic interval of the ratios of each round. `None` for fewer than 6 rounds. Being
    /// of another statistic, it need not enclose `of_medians`, though it nearly always does.
    pub ci95: Option<[f64; 2]>,
    /// How likely rounds as unequal as these, or more so, are of two that are alike: a paired t-test of the logarithms of the rounds'
    /// ratios, two-sided. Within a round either of two that are alike may come out ahead by as much, so the logarithms are symmetric
    /// whatever the noise, and that is what the test needs. `None` for a single round.
    pub p: Option<f64>,
    /// How many rounds there were.
    pub rounds: usize,
}

impl Ratio {
    /// Compares samples that were taken in rounds: `per_round` successive ones of each variant
    /// belong to the same round, and their mean stands for it. A drift from round to round drops
    /// out, as both variants of a round met the same conditions.
    ///
    /// `None` if the two differ in length, do not fill their rounds, are empty, or hold a value that
    /// is not finite and above 0.
    pub fn paired(a: &[f64], b: &[f64], per_round: usize) -> Option<Ratio> {
        let usable = |values: &[f64]| values.iter().all(|v| v.is_finite() && *v > 0.0);
        if a.len() != b.len() || per_round == 0 || !a.len().is_multiple_of(per_round) {
            return None;
        }
        if !usable(a) || !usable(b) {
            return None;
        }
        let rounds = a.chunks(per_round).zip(b.chunks(per_round));
        let ratios: Vec<f64> = rounds.map(|(a, b)| a.mean() / b.mean()).collect();
        let of_medians = median(a)? / median(b)?;
        of_medians.is_finite().then_some(Ratio {
            of_medians,
            ci95: median_interval(&ratios),
            p: p_of_no_difference(&ratios),
            rounds: ratios.len(),
        })
    }

    /// Whether a target "at most `limit`" is met: the upper end of the interval meets it. Without
    /// an interval nothing is met.
    pub fn is_at_most(&self, limit: f64) -> bool {
        self.ci95.is_some_and(|[_, high]| high <= limit)
    }
}

/// How likely the ratios' logarithms are as far from 0 if their mean is 0.
fn p_of_no_difference(ratios: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let count = logarithms.len() as f64;
    let mean = logarithms.iter().mean();
    let error = (logarithms.len() > 1).then(|| logarithms.iter().std_dev() / count.sqrt())?;
    if error == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some(2.0 * t.sf((mean / error).abs()))
}

/// The values in ascending order, if all are finite.
fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let high = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(high);
    }
    let low = sorted[sorted.len() / 2 - 1];
    Some(low.midpoint(high))
}

fn interval_of_sorted(sorted: &[f64]) -> Option<[f64; 2]> {
    let rank = median_interval_rank(sorted.len())?;
    Some([*sorted.get(rank - 1)?, *sorted.get(sorted.len() - rank)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_case_computed_by_hand() {
        // Deviations from 5: −3 −1 −1 −1 0 0 2 4; squares sum to 32; 32 / 7.
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("a summary");
        assert_eq!((s.mean, s.median, s.min, s.max), (5.0, 4.5, 2.0, 9.0));
        assert!((s.stddev - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        // n = 8: rank 1 has 2/256, rank 2 has 2·9/256 = 7 %, too much.
        assert_eq!(s.ci95, Some([2.0, 9.0]));
    }

    #[test]
    fn few_values() {
        let one = Summary::of(&[3.0]).expect("a summary");
        assert_eq!(
            (one.mean, one.median, one.stddev, one.ci95),
            (3.0, 3.0, 0.0, None)
        );
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(
            median_interval(&[6.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
            Some([1.0, 6.0])
        );
    }

    #[test]
    fn what_has_no_answer_is_none() {
        for values in [&[][..], &[f64::NAN], &[1.0, f64::INFINITY], &[f64::MAX; 7]] {
            if values.first() != Some(&f64::MAX) {
                assert_eq!(Summary::of(values), None);
                assert_eq!(median(values), None);
            }
            let _ = Summary::of(values);
        }
        assert_eq!(Summary::of(&[f64::MAX, -f64::MAX]), None);
        assert_eq!(Ratio::paired(&[], &[], 1), None);
        assert_eq!(Ratio::paired(&[1.0], &[0.0], 1), None);
        assert_eq!(Ratio::paired(&[1.0], &[f64::NAN], 1), None);
        assert_eq!(Ratio::paired(&[1.0], &[1.0, 2.0], 1), None);
        assert_eq!(Ratio::paired(&[1.0; 3], &[1.0; 3], 2), None);
        assert_eq!(Ratio::paired(&[1.0; 3], &[1.0; 3], 0), None);
    }

    /// 2·P(Binomial(n, 1/2) < k) in whole numbers: of 2ⁿ outcomes, so many miss the median.
    fn misses(n: u32, k: u32) -> u128 {
        let mut choose = 1_u128;
        let mut sum = 0;
        for i in 0..k {
            sum += choose;
            choose = choose * u128::from(n - i) / u128::from(i + 1);
        }
        2 * sum
    }

    #[test]
    fn ranks_are_the_largest_that_cover_in_exact_arithmetic() {
        for n in 0..=100_u32 {
            let enough = |k: u32| misses(n, k) * 20 <= 1_u128 << n;
            let largest = (1..=n / 2).filter(|&k| enough(k)).max();
            let rank = median_interval_rank(n as usize);
            assert_eq!(rank, largest.map(|k| k as usize), "n = {n}");
        }
        // Known from tables of the sign test.
        let known = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (10, Some(2)),
        ];
        for (n, rank) in known {
            assert_eq!(median_interval_rank(n), rank);
        }
        assert_eq!(median_interval_rank(20), Some(6));
        assert_eq!(median_interval_rank(100), Some(40));
    }

    /// The share of intervals over `n` skewed values (exponential, median ln 2) that enclose the
    /// median.
    fn coverage(n: usize, interval: impl Fn(&[f64]) -> [f64; 2]) -> f64 {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64; // The seed.
        let mut exponential = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            -(((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).ln()
        };
        let runs = 20_000;
        let hits = (0..runs).filter(|_| {
            let values: Vec<f64> = (0..n).map(|_| exponential()).collect();
            let [low, high] = interval(&values);
            (low..=high).contains(&std::f64::consts::LN_2)
        });
        hits.count() as f64 / f64::from(runs)
    }

    #[test]
    fn intervals_of_skewed_values_cover_the_median() {
        for n in [6, 9, 12, 20, 30] {
            let found = coverage(n, |v| median_interval(v).expect("an interval"));
            // Three standard errors of 20,000 runs are 0.5 %.
            assert!(found > 0.945, "{found} for n = {n}");
        }
    }

    /// The test above finds an interval that is one rank too narrow, and the textbook interval of
    /// a mean, which is not one of the median.
    #[test]
    fn the_coverage_test_finds_wrong_intervals() {
        let narrow = coverage(12, |v| {
            let sorted = sorted(v).expect("finite");
            let rank = median_interval_rank(12).expect("a rank") + 1;
            [sorted[rank - 1], sorted[12 - rank]]
        });
        assert!(narrow < 0.9, "{narrow}");
        let of_mean = coverage(30, |v| {
            let half = 1.96 * v.std_dev() / (v.len() as f64).sqrt();
            [v.mean() - half, v.mean() + half]
        });
        assert!(of_mean < 0.9, "{of_mean}");
    }

    #[test]
    fn a_ratio_by_hand() {
        let a = [2.0, 2.0, 4.0, 4.0, 6.0, 6.0, 2.0, 2.0, 4.0, 4.0, 6.0, 6.0];
        let b = [1.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 5.0, 3.0];
        // Rounds of two: 2/2, 4/4, 6/4, 2/4, 4/4, 6/4; medians 4 and 4.
        let ratio = Ratio::paired(&a, &b, 2).expect("a ratio");
        assert_eq!(ratio.of_medians, 1.0);
        assert_eq!(ratio.ci95, Some([0.5, 1.5]));
        assert_eq!(ratio.rounds, 6);
        assert!(ratio.is_at_most(1.5));
        assert!(!ratio.is_at_most(1.4));
    }

    #[test]
    fn a_target_needs_an_interval() {
        let ratio = Ratio::paired(&[1.0; 5], &[2.0; 5], 1).expect("a ratio");
        assert_eq!((ratio.of_medians, ratio.ci95), (0.5, None));
        assert!(!ratio.is_at_most(1.0));
    }

    proptest! {
        #[test]
        fn summaries_are_ordered(values in prop::collection::vec(-1e9..1e9_f64, 1..60)) {
            let s = Summary::of(&values).expect("a summary");
            prop_assert!(s.min <= s.median && s.median <= s.max);
            prop_assert!(s.min <= s.mean && s.mean <= s.max);
            prop_assert!(s.stddev >= 0.0);
            prop_assert_eq!(s.ci95.is_some(), values.len() >= 6);
            if let Some([low, high]) = s.ci95 {
                prop_assert!(s.min <= low && low <= s.median && s.median <= high && high <= s.max);
            }
        }

        #[test]
        fn order_does_not_matter(mut values in prop::collection::vec(0.1..1e6_f64, 6..40)) {
            let before = (median(&values), median_interval(&values));
            values.reverse();
            prop_assert_eq!(before, (median(&values), median_interval(&values)));
        }

        #[test]
        fn no_values_panic(values in prop::collection::vec(any::<f64>(), 0..20), n in 0..4_usize) {
            let _ = Summary::of(&values);
            let _ = Ratio::paired(&values, &values, n);
        }

        #[test]
        fn a_variant_against_itself_is_one(values in prop::collection::vec(0.1..1e6_f64, 6..40)) {
            let ratio = Ratio::paired(&values, &values, 1).expect("a ratio");
            prop_assert_eq!(ratio.of_medians, 1.0);
            prop_assert_eq!(ratio.ci95, Some([1.0, 1.0]));
        }

        #[test]
        fn drift_between_rounds_drops_out(factors in prop::collection::vec(0.5..2.0_f64, 6..30)) {
            // Twice as slow in every round, however rounds differ.
            let a: Vec<f64> = factors.iter().map(|f| 2.0 * f).collect();
            let ratio = Ratio::paired(&a, &factors, 1).expect("a ratio");
            prop_assert_eq!(ratio.ci95, Some([2.0, 2.0]));
        }
    }
}
