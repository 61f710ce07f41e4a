//! Measures experiments: takes the samples in order, checks the operations, sums up.

use crate::progress::Progress;
use crate::result::{ExperimentResult, ModeName, Noise, PointResult, Results};
use crate::runner::{RunError, Runner, Sample, Target};
use crate::schedule::{self, Plan, WARM_UP_SAMPLES};
use crate::stats::{self, Summary};
use crate::surroundings::Surroundings;
use crate::variant::{Experiment, Mode, Point, Variant};

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// A sample could not be taken.
    #[error("{variant}, {point}: {error}")]
    Run {
        /// The variant.
        variant: String,
        /// The point's label.
        point: String,
        /// What went wrong.
        error: RunError,
    },
    /// The variant's check failed, so its numbers mean nothing.
    #[error("{variant}, {point}: the operations were not all done: {reason}")]
    Check {
        /// The variant.
        variant: String,
        /// The point's label.
        point: String,
        /// What the variant said.
        reason: String,
    },
    /// A sample had no operations or no time, or not the threads asked for.
    #[error("{variant}, {point}: a sample without operations, time or threads")]
    EmptySample {
        /// The variant.
        variant: String,
        /// The point's label.
        point: String,
    },
    /// A sample that the clock cannot time.
    #[error(
        "{variant}, {point}: a sample took {elapsed_ns} ns, and with this clock it must take {shortest_ns} to be known to 0.1 %"
    )]
    TooShort {
        /// The variant.
        variant: String,
        /// The point's label.
        point: String,
        /// How long it took.
        elapsed_ns: u64,
        /// How long it would have to take.
        shortest_ns: u64,
    },
}

/// Samples take at least so many steps of the clock, so that these are at most 0.1 % of them.
const STEPS_PER_SAMPLE: u64 = 1000;

/// Why a point has no result: it failed, or the run was ended.
enum Ended {
    Failed(MeasureError),
    Stopped,
}

impl From<MeasureError> for Ended {
    fn from(error: MeasureError) -> Ended {
        Ended::Failed(error)
    }
}

/// Measures the points of an experiment, and adds them and the experiment's conditions to the
/// results. If the last experiment there has its name and is partial, it goes on with that: points of which it has all variants are not measured again.
///
/// When [`Progress::is_stopped`] says so, it ends with the points that are finished, marked as partial.
///
/// # Errors
/// See [`MeasureError`]. The results are then unchanged.
pub fn run(
    experiment: &dyn Experiment,
    runner: &mut dyn Runner,
    plan: &Plan,
    progress: &mut dyn Progress,
    results: &mut Results,
) -> Result<(), MeasureError> {
    let points = experiment.points();
    let total = points.len();
    let mut measured = ExperimentResult::new(experiment.name());
    let begun = results.experiments.last();
    let begun = begun.filter(|last| last.partial && last.name == measured.name);
    if let Some(begun) = begun {
        measured.points.clone_from(&begun.points);
        measured.noise.clone_from(&begun.noise);
    }
    measured.plan = Some(plan.into());
    for (done, point) in points.into_iter().enumerate() {
        if begun.is_some_and(|begun| has(begun, &point)) {
            continue;
        }
        progress.at(done, total, &point.label());
        match measure_point(&point, runner, plan, done, progress) {
            Ok(found) => found.add_to(&mut measured),
            Err(Ended::Failed(error)) => return Err(error),
            Err(Ended::Stopped) => {
                measured.partial = true;
                break;
            }
        }
    }
    if !measured.partial {
        progress.at(total, total, "");
    }
    if begun.is_some() {
        results.experiments.pop();
    }
    results.experiments.push(measured);
    results.machine.conditions.extend(experiment.conditions());
    Ok(())
}

/// Whether all variants of a point are there.
fn has(begun: &ExperimentResult, point: &Point<'_>) -> bool {
    let is_there = |name: &str| {
        begun.points.iter().any(|found| {
            found.variant == name
                && found.op == point.op
                && found.pattern == point.pattern
                && found.threads == point.threads
        })
    };
    point
        .variants
        .iter()
        .all(|variant| is_there(variant.name()))
}

/// What was measured at one point.
struct Found {
    points: Vec<PointResult>,
    noise: Option<Noise>,
}

impl Found {
    fn add_to(self, measured: &mut ExperimentResult) {
        measured.points.extend(self.points);
        measured.noise.extend(self.noise);
    }
}

/// Measures one point: a sample of each variant that is not counted, to warm up, then the plan's rounds. One of several variants, by the point's number, is
/// measured against itself.
fn measure_point(
    point: &Point<'_>,
    runner: &mut dyn Runner,
    plan: &Plan,
    number: usize,
    progress: &mut dyn Progress,
) -> Result<Found, Ended> {
    let variants = point.variants.len();
    let twin = (variants > 1 && !point.noted).then(|| number % variants);
    let order = schedule::sequence(variants + usize::from(twin.is_some()), plan.rounds());
    measure_in_order(point, runner, plan, twin, order, progress)
}

/// As [`measure_point`], with the counted samples in a given order. The variant that is measured against itself comes last.
fn measure_in_order(
    point: &Point<'_>,
    runner: &mut dyn Runner,
    plan: &Plan,
    twin: Option<usize>,
    order: impl Iterator<Item = usize>,
    progress: &mut dyn Progress,
) -> Result<Found, Ended> {
    let mut columns: Vec<Column<'_>> = point
        .variants
        .iter()
        .map(|variant| Column::new(point, &**variant, plan))
        .collect();
    for _ in 0..WARM_UP_SAMPLES {
        for column in &mut columns {
            column.take_sample(runner, plan)?;
        }
    }
    let mut twins = Vec::new();
    for index in order {
        if progress.is_stopped() {
            return Err(Ended::Stopped);
        }
        let (at, is_twin) = match twin {
            Some(twin) if index == point.variants.len() => (twin, true),
            _ => (index, false),
        };
        let sample = columns[at].take_good_sample(runner, plan)?;
        if is_twin {
            twins.push(sample.0.wall_ns_per_op());
        } else {
            columns[at].samples.push(sample);
        }
    }
    let noise = twin.and_then(|twin| columns.get(twin)).map(|column| Noise {
        variant: column.variant.name().to_owned(),
        op: point.op.clone(),
        pattern: point.pattern.clone(),
        threads: point.threads,
        processes: 1,
        samples: twins,
    });
    let points = columns.iter().map(Column::sum_up);
    Ok(Found {
        points: points.collect::<Result<_, MeasureError>>()?,
        noise,
    })
}

/// What has been gathered of one variant.
struct Column<'a> {
    point: &'a Point<'a>,
    variant: &'a dyn Variant,
    /// All operations that each thread was asked for.
    operations: Vec<u64>,
    /// Of its last sample.
    batches: Vec<u64>,
    samples: Vec<(Sample, Surroundings)>,
    repeated: usize,
    most_repeats: usize,
}

impl<'a> Column<'a> {
    fn new(point: &'a Point<'a>, variant: &'a dyn Variant, plan: &Plan) -> Column<'a> {
        Column {
            point,
            variant,
            operations: vec![0; point.threads],
            batches: Vec::new(),
            samples: Vec::new(),
            repeated: 0,
            most_repeats: if point.noted { 0 } else { plan.repeats() },
        }
    }

    /// A sample that was not disturbed, unless too many were.
    fn take_good_sample(
        &mut self,
        runner: &mut dyn Runner,
        plan: &Plan,
    ) -> Result<(Sample, Surroundings), MeasureError> {
        loop {
            let sample = self.take_sample(runner, plan)?;
            let surroundings = Surroundings::of(&sample);
            if surroundings.disturbed.is_empty() || self.repeated == self.most_repeats {
                return Ok((sample, surroundings));
            }
            self.repeated += 1;
        }
    }

    fn take_sample(
        &mut self,
        runner: &mut dyn Runner,
        plan: &Plan,
    ) -> Result<Sample, MeasureError> {
        let target = match self.point.mode {
            Mode::Timed => Target::Time(plan.sample()),
            Mode::Fixed(operations) => Target::Operations(operations),
        };
        let sample = runner
            .sample(self.variant, self.point.threads, target, &self.batches)
            .map_err(|error| MeasureError::Run {
                variant: self.variant.name().to_owned(),
                point: self.point.label(),
                error,
            })?;
        let wall = sample.wall_ns_per_op();
        if sample.threads.len() != self.point.threads || !wall.is_finite() || wall <= 0.0 {
            return Err(self.empty_sample());
        }
        let shortest_ns = STEPS_PER_SAMPLE * runner.resolution_ns();
        if sample.elapsed_ns < shortest_ns {
            return Err(MeasureError::TooShort {
                variant: self.variant.name().to_owned(),
                point: self.point.label(),
                elapsed_ns: sample.elapsed_ns,
                shortest_ns,
            });
        }
        for (sum, thread) in self.operations.iter_mut().zip(&sample.threads) {
            *sum += thread.ops + thread.untimed_ops;
        }
        self.batches = sample.threads.iter().map(|thread| thread.batch).collect();
        Ok(sample)
    }

    fn sum_up(&self) -> Result<PointResult, MeasureError> {
        self.variant
            .check(&self.operations)
            .map_err(|reason| MeasureError::Check {
                variant: self.variant.name().to_owned(),
                point: self.point.label(),
                reason,
            })?;
        let all = || self.samples.iter().map(|(sample, _)| sample);
        let samples: Vec<f64> = all().map(Sample::wall_ns_per_op).collect();
        let thread_samples: Option<Vec<f64>> = all().map(Sample::thread_ns_per_op).collect();
        let fairness_samples: Vec<f64> = all().map(Sample::fairness).collect();
        let (mode, iterations) = match self.point.mode {
            Mode::Timed => (ModeName::Timed, None),
            Mode::Fixed(operations) => (ModeName::Fixed, Some(operations)),
        };
        let first = all().next().ok_or_else(|| self.empty_sample())?;
        let key = (
            self.point.op.as_str(),
            self.point.pattern.as_str(),
            self.point.threads,
        );
        let point = PointResult::of(self.variant.name(), key, samples);
        Ok(PointResult {
            mode,
            iterations,
            pinned: all().all(Sample::pinned),
            oversubscribed: all().any(|sample| sample.oversubscribed),
            shared_cores: first.shared_cores,
            cpus: first.threads.iter().filter_map(|t| t.cpu).collect(),
            thread: thread_samples.as_deref().and_then(Summary::of),
            fairness: stats::median(&fairness_samples).unwrap_or(0.0),
            thread_samples: thread_samples.unwrap_or_default(),
            fairness_samples,
            repeated: self.repeated,
            surroundings: self.samples.iter().map(|(_, met)| met.clone()).collect(),
            ..point.ok_or_else(|| self.empty_sample())?
        })
    }

    fn empty_sample(&self) -> MeasureError {
        MeasureError::EmptySample {
            variant: self.variant.name().to_owned(),
            point: self.point.label(),
        }
    }
}

#[cfg(test)]
mod tests;
