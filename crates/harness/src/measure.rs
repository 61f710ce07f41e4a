//! Measures experiments: takes the samples in order, checks the operations, sums up.

use crate::progress::Progress;
use crate::result::{ExperimentResult, ModeName, PointResult, Results, UNIT};
use crate::runner::{RunError, Runner, Sample, Target};
use crate::schedule::{self, Plan};
use crate::stats::{self, Summary};
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
}

/// Measures all points of an experiment, and adds them and the experiment's conditions to the
/// results.
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
    let mut measured = Vec::new();
    for (done, point) in points.into_iter().enumerate() {
        progress.at(done, total, &point.label());
        measured.extend(measure_point(&point, runner, plan)?);
    }
    progress.at(total, total, "");
    results.experiments.push(ExperimentResult {
        name: experiment.name().to_owned(),
        points: measured,
    });
    results.machine.conditions.extend(experiment.conditions());
    Ok(())
}

/// Measures one point: a warm-up round that is not counted, then the plan's rounds.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure_point(
    point: &Point<'_>,
    runner: &mut dyn Runner,
    plan: &Plan,
) -> Result<Vec<PointResult>, MeasureError> {
    let order = schedule::sequence(point.variants.len(), plan.rounds());
    measure_in_order(point, runner, plan, order)
}

/// As [`measure_point`], with the counted samples in a given order.
fn measure_in_order(
    point: &Point<'_>,
    runner: &mut dyn Runner,
    plan: &Plan,
    order: impl Iterator<Item = usize>,
) -> Result<Vec<PointResult>, MeasureError> {
    let mut columns: Vec<Column<'_>> = point
        .variants
        .iter()
        .map(|variant| Column::new(point, &**variant))
        .collect();
    for index in schedule::sequence(columns.len(), 1) {
        columns[index].take_sample(runner, plan)?;
    }
    for index in order {
        let sample = columns[index].take_sample(runner, plan)?;
        columns[index].samples.push(sample);
    }
    columns.iter().map(Column::sum_up).collect()
}

/// What has been gathered of one variant.
struct Column<'a> {
    point: &'a Point<'a>,
    variant: &'a dyn Variant,
    /// All operations that each thread was asked for.
    operations: Vec<u64>,
    samples: Vec<Sample>,
}

impl<'a> Column<'a> {
    fn new(point: &'a Point<'a>, variant: &'a dyn Variant) -> Column<'a> {
        Column {
            point,
            variant,
            operations: vec![0; point.threads],
            samples: Vec::new(),
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
            .sample(self.variant, self.point.threads, target)
            .map_err(|error| MeasureError::Run {
                variant: self.variant.name().to_owned(),
                point: self.point.label(),
                error,
            })?;
        let wall = sample.wall_ns_per_op();
        if sample.threads.len() != self.point.threads || !wall.is_finite() || wall <= 0.0 {
            return Err(self.empty_sample());
        }
        for (sum, thread) in self.operations.iter_mut().zip(&sample.threads) {
            *sum += thread.ops + thread.untimed_ops;
        }
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
        let samples: Vec<f64> = self.samples.iter().map(Sample::wall_ns_per_op).collect();
        let thread_samples: Option<Vec<f64>> =
            self.samples.iter().map(Sample::thread_ns_per_op).collect();
        let fairness_samples: Vec<f64> = self.samples.iter().map(Sample::fairness).collect();
        let (mode, iterations) = match self.point.mode {
            Mode::Timed => (ModeName::Timed, None),
            Mode::Fixed(operations) => (ModeName::Fixed, Some(operations)),
        };
        let first = self.samples.first().ok_or_else(|| self.empty_sample())?;
        Ok(PointResult {
            variant: self.variant.name().to_owned(),
            op: self.point.op.clone(),
            pattern: self.point.pattern.clone(),
            threads: self.point.threads,
            unit: UNIT.to_owned(),
            mode,
            iterations,
            pinned: self.samples.iter().all(Sample::pinned),
            oversubscribed: self.samples.iter().any(|s| s.oversubscribed),
            shared_cores: first.shared_cores,
            cpus: first.threads.iter().filter_map(|t| t.cpu).collect(),
            wall: Summary::of(&samples).ok_or_else(|| self.empty_sample())?,
            thread: thread_samples.as_deref().and_then(Summary::of),
            fairness: stats::median(&fairness_samples).unwrap_or(0.0),
            samples,
            thread_samples: thread_samples.unwrap_or_default(),
            fairness_samples,
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
mod tests {
    use super::*;
    use crate::mock::{Call, MockRunner, even_sample};
    use crate::variant::Worker;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Counts what it is asked for, or one less.
    struct Counting {
        name: &'static str,
        count: AtomicU64,
        loses: u64,
    }

    fn counting(name: &'static str) -> Counting {
        Counting {
            name,
            count: AtomicU64::new(0),
            loses: 0,
        }
    }

    impl Variant for Counting {
        fn name(&self) -> &str {
            self.name
        }
        fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
            Box::new(CountingWorker(self))
        }
        fn check(&self, operations: &[u64]) -> Result<(), String> {
            let counted = self.count.load(Ordering::Relaxed);
            let asked: u64 = operations.iter().sum();
            if counted == asked {
                Ok(())
            } else {
                Err(format!("{counted} of {asked}"))
            }
        }
    }

    struct CountingWorker<'a>(&'a Counting);

    impl Worker for CountingWorker<'_> {
        fn run(&mut self, operations: u64) {
            let counted = operations.saturating_sub(self.0.loses);
            self.0.count.fetch_add(counted, Ordering::Relaxed);
        }
    }

    fn plan(rounds: usize) -> Plan {
        Plan::new(std::time::Duration::from_millis(1), rounds).expect("a plan")
    }

    fn a_and_b() -> Point<'static> {
        Point::new("inc", "hot", 1)
            .with(counting("a"))
            .with(counting("b"))
    }

    /// Both variants take 1024 ns for 1024 operations at first, and 64 ns more each time.
    fn drifting(call: Call<'_>) -> Sample {
        even_sample(call.threads, 1024, 1024 + 64 * call.index as u64)
    }

    #[test]
    fn the_order_is_a_b_b_a_after_a_warm_up_round() {
        let mut runner = MockRunner::new(drifting);
        let points = measure_point(&a_and_b(), &mut runner, &plan(3)).expect("a result");
        assert_eq!(runner.calls().concat(), "abba".repeat(4));
        assert_eq!(points[0].samples.len(), 6);
        // The warm-up's four samples are not among them.
        assert_eq!(points[0].samples[0], 1.0 + 4.0 / 16.0);
    }

    #[test]
    fn linear_drift_is_no_difference() {
        let mut runner = MockRunner::new(drifting);
        let points = measure_point(&a_and_b(), &mut runner, &plan(6)).expect("a result");
        let ratio = points[0].ratio_to(&points[1]).expect("a ratio");
        assert_eq!(ratio.of_medians, 1.0);
        assert_eq!(ratio.ci95, Some([1.0, 1.0]));
    }

    /// The test above finds a schedule that does not interleave, and one that goes A B A B.
    #[test]
    fn other_orders_make_drift_a_difference() {
        let all_a_then_all_b = [[0; 12], [1; 12]].concat();
        let a_b_a_b = [0, 1].repeat(12);
        for order in [all_a_then_all_b, a_b_a_b] {
            let mut runner = MockRunner::new(drifting);
            let points = measure_in_order(&a_and_b(), &mut runner, &plan(6), order.into_iter());
            let points = points.expect("a result");
            let ratio = points[0].ratio_to(&points[1]).expect("a ratio");
            assert!(ratio.of_medians < 1.0);
            let [_, high] = ratio.ci95.expect("an interval");
            assert!(high < 1.0, "a false difference");
        }
    }

    #[test]
    fn numbers_are_exact_end_to_end() {
        let mut runner = MockRunner::new(|call| {
            let mut sample = even_sample(2, 100, if call.variant == "a" { 200 } else { 800 });
            sample.threads[1].ops = 300;
            sample.threads[1].untimed_ops = 7;
            sample
        });
        let point = Point::new("inc", "shared", 2)
            .with(counting("a"))
            .with(counting("b"));
        let points = measure_point(&point, &mut runner, &plan(3)).expect("a result");
        let a = &points[0];
        assert_eq!(
            (a.variant.as_str(), a.wall.median, a.wall.stddev),
            ("a", 1.0, 0.0)
        );
        assert_eq!(a.wall.ci95, Some([1.0, 1.0]));
        assert_eq!(a.thread.map(|t| t.mean), Some(1.0));
        assert_eq!(a.fairness, 1.0 / 3.0);
        assert_eq!(
            (a.pinned, a.oversubscribed, a.cpus.as_slice()),
            (true, false, &[0, 1][..])
        );
        assert_eq!(points[1].wall.mean, 4.0);
    }

    #[test]
    fn a_fixed_point_asks_for_operations_and_is_marked() {
        let mut runner = MockRunner::new(|call| {
            assert_eq!(call.target, Target::Operations(500));
            even_sample(1, 500, 1000)
        });
        let point = a_and_b().fixed(500);
        let points = measure_point(&point, &mut runner, &plan(3)).expect("a result");
        assert_eq!(
            (points[0].mode, points[0].iterations),
            (ModeName::Fixed, Some(500))
        );
        assert_eq!(points[0].wall.median, 2.0);
    }

    #[test]
    fn a_lost_operation_is_an_error() {
        let mut losing = counting("loses");
        losing.loses = 1;
        let point = Point::new("inc", "hot", 1).with(losing);
        let error = measure_point(&point, &mut MockRunner::new(drifting), &plan(3));
        let error = error.expect_err("a failed check");
        assert!(matches!(error, MeasureError::Check { .. }), "{error}");
    }

    #[test]
    fn a_sample_without_operations_time_or_threads_is_an_error() {
        for bad in [
            even_sample(1, 0, 100),
            even_sample(1, 100, 0),
            even_sample(2, 1, 1),
        ] {
            let mut runner = MockRunner::new(|_| bad.clone());
            let error = measure_point(&a_and_b(), &mut runner, &plan(3)).expect_err("an error");
            assert!(matches!(error, MeasureError::EmptySample { .. }), "{error}");
        }
    }

    #[test]
    fn missing_cpu_time_and_a_thread_that_was_not_pinned_are_said() {
        let mut runner = MockRunner::new(|_| {
            let mut sample = even_sample(1, 10, 10);
            sample.threads[0].cpu = None;
            sample.threads[0].cpu_ns = None;
            sample
        });
        let points = measure_point(&a_and_b(), &mut runner, &plan(3)).expect("a result");
        assert_eq!((points[0].pinned, points[0].thread), (false, None));
    }
}
