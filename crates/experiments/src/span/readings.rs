//! What spans showed, sample by sample.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use countersink::clock::{self, Source};
use countersink::reader::{Buckets, Extremes, Span};
use countersink_harness::schedule::{SAMPLES_PER_ROUND, WARM_UP_SAMPLES};
use countersink_harness::stats::{self, Ratio};

/// What one span showed of one variant, after each sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The variant.
    pub variant: String,
    /// The operation.
    pub op: String,
    /// The pattern.
    pub pattern: String,
    /// The span after each sample, those to warm up included.
    pub all: Vec<Span>,
}

/// The grouping power of the histograms that these spans have: 3 % of a time, and exact for short ones.
pub(super) const GROUPING: u32 = 5;

/// A figure of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The shortest time of a sample.
    Min,
    /// The average time of a sample.
    Average,
    /// The average of a sample without the longest hundredth of its events.
    Trimmed,
    /// The longest time of a sample.
    Max,
}

/// By how many ns one thing takes longer than another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The median over the rounds.
    pub median: f64,
    /// Its 95 % interval; `None` for fewer than 6 rounds.
    pub ci95: Option<[f64; 2]>,
}

impl Reading {
    /// The samples without those to warm up.
    pub fn samples(&self) -> &[Span] {
        self.all.get(WARM_UP_SAMPLES..).unwrap_or_default()
    }

    /// All samples as one span.
    pub fn total(&self) -> Span {
        self.samples().iter().fold(Span::default(), plus)
    }

    /// Everything that was recorded or thrown away, also to warm up.
    pub fn recorded(&self) -> u64 {
        let of = |span: &Span| span.events + span.skipped + span.invalid;
        self.all.iter().map(of).sum()
    }

    /// A figure of each sample, in ns. Samples without events have none.
    pub fn figures(&self, figure: Figure) -> Vec<f64> {
        let of = |span: &Span| match figure {
            Figure::Min => span.times.map(|times| times.min as f64),
            Figure::Average => (span.events > 0).then(|| span.time as f64 / span.events as f64),
            Figure::Trimmed => trimmed(span),
            Figure::Max => span.times.map(|times| times.max as f64),
        };
        self.samples().iter().filter_map(of).collect()
    }

    /// A figure of this variant divided by the other one's, paired by round.
    pub fn ratio_to(&self, other: &Reading, figure: Figure) -> Option<Ratio> {
        let (ours, theirs) = (self.figures(figure), other.figures(figure));
        Ratio::paired(&ours, &theirs, SAMPLES_PER_ROUND)
    }

    /// By how much a figure of this one exceeds the other one's, paired by round.
    pub fn excess_over(&self, other: &Reading, figure: Figure) -> Option<Difference> {
        let (ours, theirs) = (self.figures(figure), other.figures(figure));
        if ours.len() != theirs.len() {
            return None;
        }
        let mean = |round: &[f64]| round.iter().sum::<f64>() / round.len() as f64;
        let rounds = ours
            .chunks(SAMPLES_PER_ROUND)
            .zip(theirs.chunks(SAMPLES_PER_ROUND));
        let differences: Vec<f64> = rounds.map(|(a, b)| mean(a) - mean(b)).collect();
        Some(Difference {
            median: stats::median(&differences)?,
            ci95: stats::median_interval(&differences),
        })
    }
}

fn plus(sum: Span, sample: &Span) -> Span {
    let times = match (sum.times, sample.times) {
        (Some(a), Some(b)) => Some(Extremes {
            min: a.min.min(b.min),
            max: a.max.max(b.max),
        }),
        (a, b) => a.or(b),
    };
    Span {
        events: sum.events + sample.events,
        skipped: sum.skipped + sample.skipped,
        migrated: sum.migrated + sample.migrated,
        invalid: sum.invalid + sample.invalid,
        time: sum.time + sample.time,
        times,
        histogram: match (sum.histogram, &sample.histogram) {
            (Some(a), Some(b)) => Some(merged(&a, b)),
            (a, b) => a.or_else(|| b.clone()),
        },
        ..sum
    }
}

/// The buckets of two histograms of one grouping power.
fn merged(a: &Buckets, b: &Buckets) -> Buckets {
    let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
    for (bucket, count) in a.buckets.iter().chain(&b.buckets) {
        *buckets.entry(*bucket).or_default() += count;
    }
    Buckets {
        grouping: a.grouping,
        sum: None,
        buckets: buckets.into_iter().collect(),
    }
}

/// The time that so large a part of the events does not exceed, in ns. `None` without a histogram, and
/// without events.
pub fn quantile(span: &Span, part: f64) -> Option<f64> {
    let ticks = span.histogram.as_ref()?.quantile(part)?;
    Some(ticks as f64 * tick())
}

/// The average time of all events but the longest hundredth, in ns, each taken to be in the middle of its
/// bucket.
fn trimmed(span: &Span) -> Option<f64> {
    let histogram = span.histogram.as_ref()?;
    let wanted = 0.99 * histogram.count() as f64;
    let mut left = wanted;
    let mut sum = 0.0;
    for (bucket, count) in &histogram.buckets {
        let taken = left.min(*count as f64);
        let (low, high) = histogram.bounds(*bucket)?;
        sum += taken * low.midpoint(high) as f64;
        left -= taken;
    }
    (wanted > 0.0).then(|| sum / wanted * tick())
}

/// Nanoseconds of a tick, which buckets count.
fn tick() -> f64 {
    const LONG_ENOUGH: Duration = Duration::from_millis(2);
    static TICK: OnceLock<f64> = OnceLock::new();
    *TICK.get_or_init(|| {
        if clock::source() == Source::Monotonic {
            return 1.0;
        }
        let (start, ticks) = (Instant::now(), clock::now().ticks);
        loop {
            let (passed, ticked) = (start.elapsed(), clock::now().ticks.wrapping_sub(ticks));
            if passed >= LONG_ENOUGH {
                return passed.as_nanos() as f64 / ticked.max(1) as f64;
            }
        }
    })
}

/// The readings of an experiment while it runs.
#[derive(Debug, Default)]
pub(super) struct Readings(Mutex<Vec<Reading>>);

impl Readings {
    /// Adds a sample.
    pub(super) fn push(&self, (variant, op, pattern): (&str, &str, &str), sample: Span) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |reading: &&mut Reading| {
            (
                reading.variant.as_str(),
                reading.op.as_str(),
                reading.pattern.as_str(),
            ) == (variant, op, pattern)
        };
        if let Some(reading) = all.iter_mut().find(same) {
            reading.all.push(sample);
            return;
        }
        all.push(Reading {
            variant: variant.to_owned(),
            op: op.to_owned(),
            pattern: pattern.to_owned(),
            all: vec![sample],
        });
    }

    /// All of them so far.
    pub(super) fn get(&self) -> Vec<Reading> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.clone()
    }
}

/// The reading of a variant.
pub fn find<'a>(
    readings: &'a [Reading],
    (variant, op, pattern): (&str, &str, &str),
) -> Option<&'a Reading> {
    readings.iter().find(|reading| {
        reading.variant == variant && reading.op == op && reading.pattern == pattern
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(events: u64, time: u64, min: u64, max: u64) -> Span {
        Span {
            events,
            time,
            times: Some(Extremes { min, max }),
            // All but one event take 20 ticks.
            histogram: Some(Buckets {
                grouping: GROUPING,
                sum: None,
                buckets: vec![(20, events - 1), (60, 1)],
            }),
            ..Span::default()
        }
    }

    fn reading(variant: &str, nanoseconds: u64) -> Reading {
        let readings = Readings::default();
        // One to warm up, then six rounds.
        for round in [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6] {
            let taken = sample(10, 10 * nanoseconds, nanoseconds - 1, nanoseconds * round);
            readings.push((variant, "op", "hot"), taken);
        }
        readings.get().remove(0)
    }

    #[test]
    fn the_warm_up_is_recorded_but_not_shown() {
        let mut reading = reading("a", 5);
        reading.all[0].skipped = 3;
        reading.all[12].invalid = 4;
        assert_eq!(reading.recorded(), 13 * 10 + 7);
        let total = reading.total();
        assert_eq!((total.events, total.time, total.skipped), (120, 600, 0));
        assert_eq!(total.invalid, 4);
        assert_eq!(total.times, Some(Extremes { min: 4, max: 30 }));
    }

    #[test]
    fn figures_are_compared_by_round() {
        let (slow, fast) = (reading("slow", 20), reading("fast", 10));
        for figure in [Figure::Average, Figure::Max] {
            let ratio = slow.ratio_to(&fast, figure).expect("a ratio");
            assert_eq!((ratio.of_medians, ratio.rounds), (2.0, 6));
            assert_eq!(ratio.ci95, Some([2.0, 2.0]));
        }
        let min = slow.ratio_to(&fast, Figure::Min).expect("a ratio");
        assert_eq!(min.of_medians, 19.0 / 9.0);
        let excess = slow
            .excess_over(&fast, Figure::Average)
            .expect("a difference");
        assert_eq!((excess.median, excess.ci95), (10.0, Some([10.0, 10.0])));
    }

    #[test]
    fn quantiles_are_those_of_all_samples() {
        let reading = reading("a", 20);
        let total = reading.total();
        // 12 samples of 9 events of 20 ticks, and one of 60.
        for (part, ticks) in [
            (0.0, 20.0),
            (0.5, 20.0),
            (0.9, 20.0),
            (0.91, 60.0),
            (1.0, 60.0),
        ] {
            assert_eq!(quantile(&total, part), Some(ticks * tick()), "{part}");
        }
        assert_eq!(total.histogram.as_ref().map(Buckets::count), Some(120));
        // Of 10 events 9.9 are left.
        let trimmed = reading.figures(Figure::Trimmed)[0] / tick();
        assert!(
            (trimmed - (9.0 * 20.0 + 0.9 * 60.0) / 9.9).abs() < 1e-9,
            "{trimmed}"
        );
        assert_eq!(quantile(&Span::default(), 0.5), None);
        assert_eq!(super::trimmed(&Span::default()), None);
    }

    #[test]
    fn nothing_is_said_of_a_sample_without_events() {
        let mut broken = reading("broken", 20);
        broken.all[5] = Span::default();
        let fast = reading("fast", 10);
        assert_eq!(broken.ratio_to(&fast, Figure::Average), None);
        assert_eq!(broken.excess_over(&fast, Figure::Trimmed), None);
        assert_eq!(broken.total().events, 110);
        let none = Reading {
            all: Vec::new(),
            ..broken
        };
        assert_eq!(none.total(), Span::default());
        assert_eq!(none.ratio_to(&none, Figure::Min), None);
    }
}
