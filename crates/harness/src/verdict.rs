//! Whether a difference is one.
//!
//! A difference has to clear two hurdles: the **test** (the paired t-test of [`Ratio::p`], made stricter by Holm for all comparisons of a
//! table together) and the **noise floor**, by which variants differ from themselves on this machine. Only then it is called faster or
//! slower. Two are the same where the whole 95 % interval of their ratio is within the floor, or 1 % where that is less. Of everything else it
//! cannot be told, and that is said.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::result::{ExperimentResult, PointResult};
use crate::stats::Ratio;

/// The share of tables of differences that are none in which any is called one.
pub const PROMISED: f64 = 0.05;
/// Differences of less are the same, however quiet the machine.
const SAME: f64 = 0.01;

/// What can be said of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The first takes less time.
    Faster,
    /// The first takes more time.
    Slower,
    /// What differs is less than noise.
    Same,
    /// Neither.
    CannotTell,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::CannotTell => "cannot tell",
        }
    }

    /// By the ratio of times, its interval, the adjusted p, and the floor.
    pub fn of(ratio: f64, ci95: Option<[f64; 2]>, p: Option<f64>, floor: f64) -> Verdict {
        let (low, high) = limits(floor);
        let differs = p.is_some_and(|p| p < PROMISED);
        let (low_same, high_same) = limits(floor.max(SAME));
        match ci95 {
            _ if differs && ratio < low => Verdict::Faster,
            _ if differs && ratio > high => Verdict::Slower,
            Some([from, to]) if from >= low_same && to <= high_same => Verdict::Same,
            _ => Verdict::CannotTell,
        }
    }
}

/// What is as far below 1 and above.
fn limits(floor: f64) -> (f64, f64) {
    (1.0 / (1.0 + floor), 1.0 + floor)
}

/// Holm's adjustment: what each p is worth among all. `None` stays away and counts for nothing.
pub fn holm(ps: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> = ps
        .iter()
        .enumerate()
        .filter_map(|(at, p)| Some((at, (*p)?)))
        .collect();
    order.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut adjusted = vec![None; ps.len()];
    let mut highest: f64 = 0.0;
    for (rank, (at, p)) in order.iter().enumerate() {
        highest = highest.max((p * (order.len() - rank) as f64).min(1.0));
        adjusted[*at] = Some(highest);
    }
    adjusted
}

/// The verdicts on the ratios of one table, each with the noise floor where it was measured; `None`: no noise was measured, so
/// nothing but an interval within 1 % can be told.
pub fn judge(ratios: &[(Ratio, Option<f64>)]) -> Vec<Verdict> {
    let ps: Vec<Option<f64>> = ratios
        .iter()
        .map(|(ratio, floor)| floor.and(ratio.p))
        .collect();
    let adjusted = holm(&ps);
    let verdict = |((ratio, floor), p): (&(Ratio, Option<f64>), &Option<f64>)| {
        Verdict::of(ratio.of_medians, ratio.ci95, *p, floor.unwrap_or(0.0))
    };
    ratios.iter().zip(&adjusted).map(verdict).collect()
}

/// Two variants of one point, and what can be said of them.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The variant.
    pub point: &'a PointResult,
    /// What it is held against: the first variant of its point.
    pub base: &'a PointResult,
    /// Its time ÷ the base's.
    pub ratio: Ratio,
    /// The noise floor there.
    pub floor: Option<f64>,
    /// The verdict on the variant.
    pub verdict: Verdict,
}

/// Holds every variant of an experiment against the first of its point, all in one table. Of a point without enough good samples
/// it cannot be told.
pub fn against_first(experiment: &ExperimentResult) -> Vec<Judged<'_>> {
    let mut judged: Vec<Judged<'_>> = Vec::new();
    let mut firsts: HashMap<_, &PointResult> = HashMap::new();
    let mut floors: HashMap<usize, Option<f64>> = HashMap::new();
    for point in &experiment.points {
        let base = match firsts.entry((&point.op, &point.pattern, point.threads, point.mode)) {
            Entry::Occupied(first) => *first.get(),
            Entry::Vacant(place) => {
                place.insert(point);
                continue;
            }
        };
        let Some(ratio) = point.ratio_to(base) else {
            continue;
        };
        let floor = floors
            .entry(point.threads)
            .or_insert_with(|| experiment.noise_floor(point.threads));
        judged.push(Judged {
            point,
            base,
            ratio,
            floor: *floor,
            verdict: Verdict::CannotTell,
        });
    }
    let ratios: Vec<_> = judged.iter().map(|one| (one.ratio, one.floor)).collect();
    for (one, verdict) in judged.iter_mut().zip(judge(&ratios)) {
        if one.point.is_sound() && one.base.is_sound() {
            one.verdict = verdict;
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Noise;

    #[test]
    fn a_difference_clears_the_test_and_the_floor() {
        let of = |ratio: f64, reach: f64, p: f64, floor: f64| {
            Verdict::of(ratio, Some([ratio - reach, ratio + reach]), Some(p), floor)
        };
        assert_eq!(of(0.9, 0.02, 0.001, 0.05), Verdict::Faster);
        assert_eq!(of(1.1, 0.02, 0.001, 0.05), Verdict::Slower);
        // Below the floor, though the test says that it is no chance.
        assert_eq!(of(0.97, 0.01, 0.001, 0.05), Verdict::Same);
        // Beyond the floor, though chance may have done it.
        assert_eq!(of(0.9, 0.2, 0.2, 0.05), Verdict::CannotTell);
        assert_eq!(of(1.0, 0.06, 0.9, 0.05), Verdict::CannotTell);
        // Without noise, one percent is the same still.
        assert_eq!(of(1.0, 0.009, 0.9, 0.0), Verdict::Same);
        assert_eq!(Verdict::of(0.5, None, None, 0.0), Verdict::CannotTell);
    }

    #[test]
    fn holm_by_hand() {
        // Sorted: 0.01 x 4, 0.02 x 3, 0.03 x 2, 0.04 x 1, and none is below the one before.
        let ps = [Some(0.04), Some(0.01), None, Some(0.03), Some(0.02)];
        let adjusted = holm(&ps);
        let near = |found: Option<f64>, p: f64| (found.expect("a p") - p).abs() < 1e-12;
        assert!(near(adjusted[1], 0.04) && near(adjusted[4], 0.06));
        assert!(near(adjusted[3], 0.06) && near(adjusted[0], 0.06));
        assert_eq!(adjusted[2], None);
        assert_eq!(holm(&[Some(0.7), Some(0.9)]), [Some(1.0), Some(1.0)]);
    }

    /// 0.02 alone is a difference, but not the only one of five.
    #[test]
    fn one_of_many_has_to_be_clearer() {
        let ratio = |p| Ratio {
            of_medians: 0.5,
            ci95: Some([0.4, 0.6]),
            p: Some(p),
            rounds: 8,
        };
        assert_eq!(judge(&[(ratio(0.02), Some(0.01))]), [Verdict::Faster]);
        let five = [0.02, 0.5, 0.6, 0.7, 0.8].map(|p| (ratio(p), Some(0.01)));
        assert_eq!(judge(&five), [Verdict::CannotTell; 5]);
        // Without a measured floor nothing is called different.
        assert_eq!(judge(&[(ratio(0.001), None)]), [Verdict::CannotTell]);
    }

    fn experiment() -> ExperimentResult {
        let mut experiment = ExperimentResult::new("some");
        for (variant, around) in [("a", 10.0), ("b", 5.0), ("c", 10.0)] {
            // Rounds differ by a hundredth, and so do pairs.
            let sample = |at: usize| around * (1.0 + 0.001 * (at % 7) as f64 * around / 10.0);
            let samples = (0..16).map(sample).collect();
            let point = PointResult::of(variant, ("op", "p", 1), samples).expect("a point");
            experiment.points.push(point);
        }
        let samples = experiment.points[0].samples.iter();
        experiment.noise.push(Noise {
            variant: "a".to_owned(),
            op: "op".to_owned(),
            pattern: "p".to_owned(),
            threads: 1,
            processes: 1,
            samples: samples.map(|sample| sample * 1.02).collect(),
        });
        experiment
    }

    #[test]
    fn variants_are_held_against_the_first() {
        let experiment = experiment();
        let floor = experiment.noise_floor(1).expect("a floor");
        assert!((floor - 0.02).abs() < 1e-9, "{floor}");
        // With other threads too, as nothing better is known.
        assert_eq!(experiment.noise_floor(2), Some(floor));
        let found = against_first(&experiment);
        let verdicts: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.point.variant.as_str(),
                    one.base.variant.as_str(),
                    one.verdict,
                )
            })
            .collect();
        assert_eq!(
            verdicts,
            [("b", "a", Verdict::Faster), ("c", "a", Verdict::Same)]
        );
    }

    #[test]
    fn of_disturbed_points_nothing_is_told() {
        use crate::surroundings::{Disturbance, Surroundings};
        let mut experiment = experiment();
        let disturbed = Surroundings {
            disturbed: vec![Disturbance::Steal],
            ..Surroundings::default()
        };
        experiment.points[1].surroundings = vec![disturbed; 5];
        assert_eq!(
            (
                experiment.points[1].disturbed(),
                experiment.points[1].is_sound()
            ),
            (5, false)
        );
        assert_eq!(against_first(&experiment)[0].verdict, Verdict::CannotTell);
    }
}
