use super::*;
use crate::mock::{Call, MockRunner, even_sample};
use crate::progress::Silent;
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

/// The first point of an experiment.
fn measure_point(
    point: &Point<'_>,
    runner: &mut dyn Runner,
    plan: &Plan,
) -> Result<Vec<PointResult>, MeasureError> {
    ended(super::measure_point(point, runner, plan, 0, &mut Silent))
}

fn ended(found: Result<Found, Ended>) -> Result<Vec<PointResult>, MeasureError> {
    match found {
        Ok(found) => Ok(found.points),
        Err(Ended::Failed(error)) => Err(error),
        Err(Ended::Stopped) => panic!("nobody stopped it"),
    }
}

#[test]
fn the_order_is_a_b_b_a_once_warm() {
    let mut runner = MockRunner::new(drifting);
    let point = a_and_b().noted();
    let points = measure_point(&point, &mut runner, &plan(3)).expect("a result");
    assert_eq!(runner.calls().concat(), "ab".to_owned() + &"abba".repeat(3));
    assert_eq!(points[0].samples.len(), 6);
    // The two samples to warm up are not among them.
    assert_eq!(points[0].samples[0], 1.0 + 2.0 / 16.0);
}

/// The batch size is searched for once for each variant at a point.
#[test]
fn batches_are_those_of_the_sample_before() {
    let mut known = Vec::new();
    let mut runner = MockRunner::new(|call| {
        known.push((call.variant.to_owned(), call.batches.to_vec()));
        even_sample(call.threads, 100 + call.index as u64, 100_000)
    });
    measure_point(&a_and_b().noted(), &mut runner, &plan(3)).expect("a result");
    let of = |name: &str| -> Vec<u64> {
        let of_name = known.iter().filter(|(variant, _)| variant == name);
        of_name.flat_map(|(_, batches)| batches.clone()).collect()
    };
    let first = known.iter().take(2).all(|(_, batches)| batches.is_empty());
    assert!(first, "{known:?}");
    assert_eq!(of("a")[..3], [100, 102, 105]);
    assert_eq!(of("b")[..3], [101, 103, 104]);
}

#[test]
fn linear_drift_is_no_difference() {
    let mut runner = MockRunner::new(drifting);
    let points = measure_point(&a_and_b().noted(), &mut runner, &plan(6)).expect("a result");
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
        let order = order.into_iter();
        let points = measure_in_order(&a_and_b(), &mut runner, &plan(6), None, order, &mut Silent);
        let points = ended(points).expect("a result");
        let ratio = points[0].ratio_to(&points[1]).expect("a ratio");
        assert!(ratio.of_medians < 1.0);
        let [_, high] = ratio.ci95.expect("an interval");
        assert!(high < 1.0, "a false difference");
    }
}

/// The variant that stands for itself comes last, so over a round it has the same mean position as the others.
#[test]
fn variants_are_measured_against_themselves_in_turn() {
    for (number, order) in [(0, "abaaba"), (1, "abbbba"), (2, "abaaba")] {
        let mut runner = MockRunner::new(drifting);
        let found = super::measure_point(&a_and_b(), &mut runner, &plan(3), number, &mut Silent);
        let Ok(found) = found else {
            panic!("no result")
        };
        assert_eq!(runner.calls().concat(), "ab".to_owned() + &order.repeat(3));
        let noise = found.noise.expect("noise");
        assert_eq!(noise.variant, ["a", "b", "a"][number]);
        assert_eq!((noise.samples.len(), found.points[0].samples.len()), (6, 6));
    }
    let mut runner = MockRunner::new(drifting);
    let alone = Point::new("inc", "hot", 1).with(counting("a"));
    let found = super::measure_point(&alone, &mut runner, &plan(3), 0, &mut Silent);
    assert!(found.is_ok_and(|found| found.noise.is_none()));
}

/// One in so many samples was disturbed.
fn disturbed(call: Call<'_>, every: usize) -> Sample {
    let mut sample = even_sample(call.threads, 100, 100_000);
    if call.index.is_multiple_of(every) {
        sample.threads[0].met.migrations = Some(1);
    }
    sample
}

#[test]
fn disturbed_samples_are_taken_again_up_to_a_limit() {
    let mut runner = MockRunner::new(|call| disturbed(call, 9));
    let points = measure_point(&a_and_b(), &mut runner, &plan(6)).expect("a result");
    for point in &points {
        assert_eq!((point.samples.len(), point.disturbed()), (12, 0));
        assert!(point.is_sound() && point.surroundings.len() == 12);
    }
    assert!(points[0].repeated + points[1].repeated > 1);
    let mut runner = MockRunner::new(|call| disturbed(call, 1));
    let points = measure_point(&a_and_b(), &mut runner, &plan(6)).expect("a result");
    for point in &points {
        assert_eq!(
            (point.samples.len(), point.repeated),
            (12, plan(6).repeats())
        );
        assert!(point.disturbed() == 12 && !point.is_sound());
    }
    // Where variants note samples themselves, each is taken once.
    let mut runner = MockRunner::new(|call| disturbed(call, 4));
    let points = measure_point(&a_and_b().noted(), &mut runner, &plan(6)).expect("a result");
    assert_eq!(runner.calls().len(), 2 + 24);
    assert_eq!(points[0].disturbed() + points[1].disturbed(), 6);
}

/// A runner with a clock of 100 ns.
struct Coarse<R>(R);

impl<R: Runner> Runner for Coarse<R> {
    fn sample(
        &mut self,
        variant: &dyn Variant,
        threads: usize,
        target: Target,
        batches: &[u64],
    ) -> Result<Sample, RunError> {
        self.0.sample(variant, threads, target, batches)
    }
    fn resolution_ns(&self) -> u64 {
        100
    }
}

#[test]
fn samples_that_the_clock_cannot_time_are_refused() {
    for (elapsed_ns, is_enough) in [(99_999, false), (100_000, true)] {
        let runner = MockRunner::new(|call| even_sample(call.threads, 10, elapsed_ns));
        let found = measure_point(&a_and_b(), &mut Coarse(runner), &plan(3));
        match found {
            Ok(_) => assert!(is_enough),
            Err(error) => assert_eq!(
                error.to_string(),
                "a, inc hot, 1 thread: a sample took 99999 ns, and with this clock it must take \
                 100000 to be known to 0.1 %"
            ),
        }
    }
}

/// Three points; stops after so many samples.
struct Three;

impl Experiment for Three {
    fn name(&self) -> &str {
        "three"
    }
    fn points(&self) -> Vec<Point<'_>> {
        let point = |threads| {
            let point = Point::new("inc", "hot", threads);
            point.with(counting("a")).with(counting("b"))
        };
        [1, 2, 3].map(point).into()
    }
}

struct StopAfter(usize, Vec<String>);

impl Progress for StopAfter {
    fn at(&mut self, done: usize, _total: usize, point: &str) {
        self.1.push(format!("{done} {point}"));
    }
    fn is_stopped(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

#[test]
fn a_run_that_was_ended_goes_on_where_it_was() {
    let mut results = Results::new(crate::machine::Machine::default());
    let mut whole = Results::new(crate::machine::Machine::default());
    let steady = |call: Call<'_>| even_sample(call.threads, 100, 100_000);
    let run = |progress: &mut dyn Progress, results: &mut Results| {
        super::run(
            &Three,
            &mut MockRunner::new(steady),
            &plan(3),
            progress,
            results,
        )
        .expect("a result");
    };
    // 18 samples at each point: in the middle of the second.
    run(&mut StopAfter(25, Vec::new()), &mut results);
    let partial = &results.experiments[0];
    assert_eq!(
        (partial.partial, partial.points.len(), partial.noise.len()),
        (true, 2, 1)
    );
    let mut rest = StopAfter(usize::MAX, Vec::new());
    run(&mut rest, &mut results);
    assert_eq!(
        rest.1,
        ["1 inc hot, 2 threads", "2 inc hot, 3 threads", "3 "]
    );
    run(&mut Silent, &mut whole);
    assert_eq!(results, whole);
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
