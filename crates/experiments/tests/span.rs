//! The experiment `span` with invented times: what it measures, and that all events are checked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use countersink_experiments::span::readings::{Figure, find};
use countersink_experiments::span::{
    COLD, COUNT, FIRST_USE, HOT, IN_TURN, LOOK_UP, SAME, SpanExperiment, TIME, add_readings,
};
use countersink_harness::machine::Machine;
use countersink_harness::measure;
use countersink_harness::mock::{MockRunner, even_sample};
use countersink_harness::progress::Silent;
use countersink_harness::result::{ExperimentResult, Results};
use countersink_harness::schedule::{MIN_ROUNDS, Plan};
use countersink_harness::variant::Experiment;

/// Metrics are statics, so experiments of one process go one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const OPERATIONS: u64 = 1000;

fn measured(experiment: &SpanExperiment) -> ExperimentResult {
    let mut runner = MockRunner::new(|call| even_sample(call.threads, OPERATIONS, OPERATIONS));
    let plan = Plan::new(std::time::Duration::from_millis(1), MIN_ROUNDS).expect("a plan");
    let mut results = Results::new(Machine::default());
    measure::run(experiment, &mut runner, &plan, &mut Silent, &mut results).expect("results");
    for condition in ["mechanism", "span clock"] {
        assert!(results.machine.conditions.contains_key(condition));
    }
    results.experiments.remove(0)
}

/// Whether cold look-ups are measured.
const EVICTS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

#[test]
fn every_variant_stands_in_its_points() {
    let _alone = alone();
    let measured = measured(&SpanExperiment::new(&[1, 3]));
    let variants = |op: &str, pattern: &str, threads: usize| {
        let here = measured.points.iter().filter(|point| {
            (point.op.as_str(), point.pattern.as_str(), point.threads) == (op, pattern, threads)
        });
        here.map(|point| point.variant.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    };
    for pattern in if EVICTS { &[HOT, COLD][..] } else { &[HOT] } {
        let tables = "virtual-memmap sparsemem";
        assert_eq!(variants(LOOK_UP, pattern, 1), format!("{tables} empty"));
        assert_eq!(variants(FIRST_USE, pattern, 1), tables);
    }
    for threads in [1, 3] {
        assert_eq!(
            variants(COUNT, SAME, threads),
            "percpu counter gauge histogram histogram-same histogram-sum atomic"
        );
        assert_eq!(variants(COUNT, IN_TURN, threads), "percpu counter");
        let times = variants(TIME, SAME, threads);
        let all = "clock-pair span span-bytes span-histogram instant-pair instant+atomics";
        assert!(times.starts_with(all), "{times}");
    }
}

#[test]
fn each_look_up_is_an_event() {
    let _alone = alone();
    let experiment = SpanExperiment::new(&[]);
    let mut measured = measured(&experiment);
    let readings = experiment.readings();
    let before = measured.points.len();
    assert_eq!(readings.len(), before);
    for reading in &readings {
        // One to warm up, and two in each of three rounds.
        assert_eq!(reading.all.len(), 7);
        assert!(reading.all.iter().all(|sample| sample.events == OPERATIONS));
        assert_eq!(reading.total().events, 6 * OPERATIONS);
        let [min, average, max] =
            [Figure::Min, Figure::Average, Figure::Max].map(|figure| reading.figures(figure)[0]);
        // The average is of whole nanoseconds, too.
        assert!(min <= average + 1.0 && average <= max + 1.0, "{reading:?}");
    }
    add_readings(&mut measured, &readings);
    assert_eq!(measured.points.len(), 2 * before);
    let (added, reading) = (&measured.points[before], &readings[0]);
    assert_eq!(added.pattern, "hot-span");
    assert_eq!(added.samples, reading.figures(Figure::Average));
    assert_eq!(
        find(&readings, ("sparsemem", LOOK_UP, HOT)),
        Some(&readings[1])
    );
    assert_eq!(find(&readings, ("sparsemem", LOOK_UP, "lukewarm")), None);
}

#[test]
fn an_operation_that_is_not_counted_is_found() {
    let _alone = alone();
    let experiment = SpanExperiment::new(&[2]);
    let mut counting = 0;
    for point in experiment.points() {
        for variant in &point.variants {
            for thread in 0..2 {
                variant.worker(thread, 2).run(OPERATIONS);
            }
            let name = format!("{}, {}", variant.name(), point.label());
            assert_eq!(variant.check(&[OPERATIONS; 2]), Ok(()), "{name}");
            // Whatever is counted now, nobody asked for; look-ups add up.
            variant.worker(0, 2).run(1);
            let operations = if point.threads == 1 {
                2 * OPERATIONS
            } else {
                0
            };
            let counts = !variant.name().ends_with("-pair");
            assert_eq!(variant.check(&[operations]).is_err(), counts, "{name}");
            counting += usize::from(counts);
        }
    }
    assert_eq!(counting, if EVICTS { 10 } else { 5 } + 7 + 2 + 4);
}
