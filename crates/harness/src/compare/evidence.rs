//! Verdicts between two runs of this crate.
//!
//! Rounds of two runs are no pairs, so this is Welch's t-test on the logarithms of the means of rounds, or of processes where there are several,
//! with Holm's correction for all points of the table. Two runs also differ as a whole, by where memory happened to lie and by what
//! the machine's other users did, and no run knows that of itself. So a difference has to clear the larger floor of both, and, where a run
//! was of fewer than [`ENOUGH_PROCESSES`] processes, also how far the points of its experiment lie from each other in general: three times the median, taken
//! as a normal deviation.

use std::collections::BTreeMap;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Sheet;
use crate::result::{ExperimentResult, PointResult};
use crate::schedule::{ENOUGH_PROCESSES, SAMPLES_PER_ROUND};
use crate::stats::median;
use crate::verdict::{Verdict, holm};

/// A normal deviation over the median of what is off.
const DEVIATION_OF_MEDIAN: f64 = 1.4826;
/// Points that are further off than so many deviations stand out.
const DEVIATIONS: f64 = 3.0;

/// What a file says of how far its values can be trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The experiment.
    pub experiment: String,
    /// The logarithm of the mean of each round, or process.
    pub groups: Vec<f64>,
    /// How many processes.
    pub processes: usize,
    /// The noise floor.
    pub floor: Option<f64>,
    /// Whether enough samples were undisturbed.
    pub is_sound: bool,
    /// Whether the run was ended before its end.
    pub is_partial: bool,
}

impl Evidence {
    /// Of a point, with its experiment's floor.
    pub fn of(experiment: &ExperimentResult, point: &PointResult, floor: Option<f64>) -> Evidence {
        let processes = point.processes.max(1);
        let per_group = match processes {
            1 => SAMPLES_PER_ROUND,
            processes => (point.samples.len() / processes).max(1),
        };
        let mean = |group: &[f64]| (group.iter().sum::<f64>() / group.len() as f64).ln();
        Evidence {
            experiment: experiment.name.clone(),
            groups: point.samples.chunks(per_group).map(mean).collect(),
            processes,
            floor,
            is_sound: point.is_sound(),
            is_partial: experiment.partial,
        }
    }

    /// Of a series that two files share.
    pub(super) fn joined(mut self, other: Evidence) -> Evidence {
        self.groups.extend(other.groups);
        self.processes = self.processes.saturating_add(other.processes);
        self.floor = self
            .floor
            .zip(other.floor)
            .map(|(one, other)| one.max(other));
        self.is_sound &= other.is_sound;
        self.is_partial |= other.is_partial;
        self
    }
}

/// What can be said of one series in two sheets.
#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    /// The series.
    pub name: String,
    /// The new time ÷ the base's, of the geometric means.
    pub ratio: f64,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
    /// What had to be cleared.
    pub floor: Option<f64>,
    /// Of the new one.
    pub verdict: Verdict,
}

/// The verdicts on all series of which both sheets have evidence, in the order of the base.
pub fn between(base: &Sheet, new: &Sheet) -> Vec<Between> {
    let places: BTreeMap<&str, usize> = new
        .series
        .iter()
        .enumerate()
        .map(|(at, series)| (series.name.as_str(), at))
        .collect();
    let mut pairs = Vec::new();
    for series in &base.series {
        let other = places.get(series.name.as_str()).map(|at| &new.series[*at]);
        let evidence =
            other.and_then(|other| series.evidence.as_ref().zip(other.evidence.as_ref()));
        if let Some((one, other)) = evidence {
            pairs.push((
                series.name.as_str(),
                one,
                other,
                Welch::of(&one.groups, &other.groups),
            ));
        }
    }
    let spreads = spreads(&pairs);
    let floor = |one: &Evidence, other: &Evidence| {
        let own = one.floor?.max(other.floor?);
        match one.processes.min(other.processes) {
            processes if processes >= ENOUGH_PROCESSES => Some(own),
            _ => Some(own.max(*spreads.get(one.experiment.as_str())?)),
        }
    };
    let floors: Vec<Option<f64>> = pairs
        .iter()
        .map(|(_, one, other, _)| floor(one, other))
        .collect();
    let ps: Vec<Option<f64>> = pairs
        .iter()
        .zip(&floors)
        .map(|((.., found), floor)| floor.and(found.p))
        .collect();
    let judged = pairs.iter().zip(&floors).zip(holm(&ps));
    let verdict =
        |((&(name, one, other, ref found), floor), p): ((&Pair<'_>, &Option<f64>), Option<f64>)| {
            let is_sound = one.is_sound && other.is_sound;
            Between {
                name: name.to_owned(),
                ratio: found.ratio,
                ci95: found.ci95,
                floor: *floor,
                verdict: match is_sound {
                    true => Verdict::of(found.ratio, found.ci95, p, floor.unwrap_or(0.0)),
                    false => Verdict::CannotTell,
                },
            }
        };
    judged.map(verdict).collect()
}

type Pair<'a> = (&'a str, &'a Evidence, &'a Evidence, Welch);

/// By experiment, how far points lie from each other where nothing in particular happened.
fn spreads<'a>(pairs: &[Pair<'a>]) -> BTreeMap<&'a str, f64> {
    let mut offs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (_, one, _, found) in pairs {
        if found.ratio.is_finite() && found.ratio > 0.0 {
            offs.entry(&one.experiment)
                .or_default()
                .push(found.ratio.ln().abs());
        }
    }
    let spread = |offs: &Vec<f64>| DEVIATIONS * DEVIATION_OF_MEDIAN * median(offs).unwrap_or(0.0);
    offs.iter()
        .map(|(name, offs)| (*name, spread(offs).exp_m1()))
        .collect()
}

/// Welch's t-test on logarithms.
struct Welch {
    ratio: f64,
    ci95: Option<[f64; 2]>,
    p: Option<f64>,
}

impl Welch {
    fn of(one: &[f64], other: &[f64]) -> Welch {
        let moments = |values: &[f64]| {
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (mean, squares / (count - 1.0) / count, count)
        };
        let ((m0, e0, n0), (m1, e1, n1)) = (moments(one), moments(other));
        let difference = m1 - m0;
        let ratio = difference.exp();
        let without = Welch {
            ratio,
            ci95: None,
            p: None,
        };
        if n0 < 2.0 || n1 < 2.0 {
            return without;
        }
        let error = (e0 + e1).sqrt();
        if error == 0.0 {
            let p = if difference == 0.0 { 1.0 } else { 0.0 };
            return Welch {
                ratio,
                ci95: Some([ratio, ratio]),
                p: Some(p),
            };
        }
        let freedom = (e0 + e1).powi(2) / (e0 * e0 / (n0 - 1.0) + e1 * e1 / (n1 - 1.0));
        let Ok(t) = StudentsT::new(0.0, 1.0, freedom) else {
            return without;
        };
        let reach = t.inverse_cdf(0.975) * error;
        Welch {
            ratio,
            ci95: Some([(difference - reach).exp(), (difference + reach).exp()]),
            p: Some(2.0 * t.sf((difference / error).abs())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Direction, Series};

    /// A run of points at these ns, each with twelve samples that vary by half a percent.
    fn sheet(points: &[f64], processes: usize) -> Sheet {
        let series = points.iter().enumerate().map(|(number, around)| {
            let sample = |at: usize| around * (1.0 + 0.001 * ((at * 7 + number) % 5) as f64);
            let values: Vec<f64> = (0..12).map(sample).collect();
            let mut point = PointResult::of("v", ("op", "p", 1), values.clone()).expect("a point");
            point.processes = processes;
            Series {
                name: format!("point {number}"),
                unit: "ns/op".to_owned(),
                direction: Direction::Less,
                values,
                evidence: Some(Evidence::of(
                    &ExperimentResult::new("some"),
                    &point,
                    Some(0.01),
                )),
            }
        });
        Sheet {
            name: "run".to_owned(),
            machine: None,
            times: None,
            series: series.collect(),
        }
    }

    fn verdicts(base: &Sheet, new: &Sheet) -> Vec<Verdict> {
        between(base, new)
            .iter()
            .map(|found| found.verdict)
            .collect()
    }

    /// 1, 2, 3 against 3, 4, 5: t is 2.449 with 4 degrees of freedom, p is 0.0705; 2 ± 2.776 x 0.8165.
    #[test]
    fn welch_by_hand() {
        let found = Welch::of(&[1.0, 2.0, 3.0], &[3.0, 4.0, 5.0]);
        assert!((found.ratio.ln() - 2.0).abs() < 1e-12);
        assert!((found.p.expect("p") - 0.0705).abs() < 1e-4, "{:?}", found.p);
        let [low, high] = found.ci95.expect("an interval").map(f64::ln);
        assert!(
            (low + 0.267).abs() < 1e-3 && (high - 4.267).abs() < 1e-3,
            "{low} {high}"
        );
        assert!(Welch::of(&[1.0], &[1.0, 2.0]).p.is_none());
    }

    #[test]
    fn what_stands_out_is_told() {
        let base = sheet(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0], 1);
        let new = sheet(&[10.0, 20.1, 30.0, 48.0, 50.1, 30.0], 1);
        let [one, two, three, slower, five, faster] = verdicts(&base, &new)[..] else {
            panic!("six");
        };
        assert_eq!([one, two, three, five], [Verdict::Same; 4]);
        assert_eq!((slower, faster), (Verdict::Slower, Verdict::Faster));
    }

    /// A whole run that is 4 % slower may be the machine's mood; if processes differ by less, it is not.
    #[test]
    fn a_shift_of_everything_needs_processes() {
        let base = [10.0, 20.0, 30.0, 40.0];
        let shifted = base.map(|ns| 1.04 * ns);
        let found = verdicts(&sheet(&base, 1), &sheet(&shifted, 1));
        assert!(!found.contains(&Verdict::Slower), "{found:?}");
        let found = verdicts(&sheet(&base, 6), &sheet(&shifted, 6));
        assert_eq!(found, [Verdict::Slower; 4]);
    }

    #[test]
    fn nothing_is_told_without_a_floor_or_of_disturbed_points() {
        let base = sheet(&[10.0, 20.0, 30.0, 40.0, 50.0], 1);
        let mut new = sheet(&[20.0, 20.0, 30.0, 40.0, 50.0], 1);
        assert_eq!(verdicts(&base, &new)[0], Verdict::Slower);
        new.series[0].evidence.as_mut().expect("evidence").is_sound = false;
        assert_eq!(verdicts(&base, &new)[0], Verdict::CannotTell);
        let evidence = new.series[0].evidence.as_mut().expect("evidence");
        (evidence.is_sound, evidence.floor) = (true, None);
        assert_eq!(verdicts(&base, &new)[0], Verdict::CannotTell);
        new.series[0].evidence = None;
        assert_eq!(between(&base, &new).len(), 4);
    }
}
