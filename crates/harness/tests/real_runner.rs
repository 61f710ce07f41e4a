//! The real runner does exactly the operations that it reports, on real threads. Nothing here
//! depends on how fast they are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use countersink_harness::clock::{Clock, MockClock};
use countersink_harness::cpus::Topology;
use countersink_harness::machine::Machine;
use countersink_harness::measure::{self, MeasureError};
use countersink_harness::progress::{Progress, Silent};
use countersink_harness::result::Results;
use countersink_harness::runner::{RunError, Runner, Sample, Target};
use countersink_harness::schedule::Plan;
use countersink_harness::threads::ThreadRunner;
use countersink_harness::variant::{Experiment, Lent, PerThread, Point, Variant, Worker};

const WORDS: usize = 4096;

/// Each thread walks an array of its own.
#[derive(Default)]
struct Arrays {
    memory: PerThread<Vec<u64>>,
    warmed: AtomicU64,
    /// How many increments to leave out, once.
    forgotten: AtomicU64,
}

struct Walk<'a> {
    array: Lent<'a, Vec<u64>>,
    variant: &'a Arrays,
    next: usize,
}

impl Variant for Arrays {
    fn name(&self) -> &str {
        "arrays"
    }
    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Walk {
            array: self.memory.lend(thread_index, || vec![0; WORDS]),
            variant: self,
            next: 0,
        })
    }
    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let mut found = vec![0; operations.len()];
        self.memory
            .visit(|thread, array| found[thread] += array.iter().sum::<u64>());
        if found == operations {
            Ok(())
        } else {
            Err(format!("{found:?} of {operations:?}"))
        }
    }
}

impl Worker for Walk<'_> {
    fn warm(&mut self) {
        std::hint::black_box(self.array.iter().sum::<u64>());
        self.variant.warmed.fetch_add(1, Ordering::Relaxed);
    }
    fn run(&mut self, operations: u64) {
        let operations = operations - self.variant.forgotten.swap(0, Ordering::Relaxed);
        let (array, mut next) = (&mut self.array[..], self.next);
        for _ in 0..operations {
            array[next] += 1;
            next = (next + 1) % WORDS;
        }
        self.next = next;
    }
}

struct Walking {
    threads: Vec<usize>,
    forgotten: u64,
}

impl Experiment for Walking {
    fn name(&self) -> &str {
        "walking"
    }
    fn points(&self) -> Vec<Point<'_>> {
        let arrays = || Arrays {
            forgotten: AtomicU64::new(self.forgotten),
            ..Arrays::default()
        };
        let point = |&threads| {
            Point::new("inc", "strided", threads)
                .with(arrays())
                .with(arrays())
        };
        self.threads.iter().map(point).collect()
    }
}

#[derive(Default)]
struct Log(Vec<String>);

impl Progress for Log {
    fn at(&mut self, done: usize, total: usize, point: &str) {
        self.0.push(format!("{done}/{total} {point}"));
    }
}

fn plan() -> Plan {
    Plan::new(Duration::from_millis(1), 3).expect("a plan")
}

#[test]
fn every_operation_is_accounted_for() {
    let experiment = Walking {
        threads: vec![1, 2, 5],
        forgotten: 0,
    };
    let mut results = Results::new(Machine::detect());
    let mut log = Log::default();
    let mut runner = ThreadRunner::new();
    // The variants' checks compare every array with every operation asked for.
    measure::run(&experiment, &mut runner, &plan(), &mut log, &mut results).expect("a result");
    let points = &results.experiments[0].points;
    assert_eq!(points.len(), 6);
    for point in points {
        assert_eq!(point.samples.len(), 6);
        assert!(point.wall.min > 0.0);
        assert_eq!(
            point.oversubscribed,
            point.threads > runner.topology().cpus().len()
        );
    }
    assert_eq!(
        log.0,
        [
            "0/3 inc strided, 1 thread",
            "1/3 inc strided, 2 threads",
            "2/3 inc strided, 5 threads",
            "3/3 ",
        ]
    );
}

/// The test above finds a single lost increment.
#[test]
fn one_lost_increment_fails_the_point() {
    let experiment = Walking {
        threads: vec![2],
        forgotten: 1,
    };
    let mut results = Results::new(Machine::default());
    let mut runner = ThreadRunner::new();
    let error = measure::run(&experiment, &mut runner, &plan(), &mut Silent, &mut results);
    assert!(matches!(error, Err(MeasureError::Check { .. })));
    assert!(results.experiments.is_empty());
}

fn sample_of(variant: &dyn Variant, threads: usize, target: Target) -> Sample {
    ThreadRunner::new()
        .sample(variant, threads, target, &[])
        .expect("a sample")
}

const SHORT: Target = Target::Time(Duration::from_millis(1));

#[test]
fn every_thread_warms_once_and_does_whole_batches() {
    let arrays = Arrays::default();
    let sample = sample_of(&arrays, 3, SHORT);
    assert_eq!(arrays.warmed.load(Ordering::Relaxed), 3);
    for thread in &sample.threads {
        assert!(thread.ops >= thread.batch && thread.batch > 0);
        assert_eq!(thread.ops % thread.batch, 0);
        assert!(thread.elapsed_ns <= sample.elapsed_ns);
    }
}

#[test]
fn a_fixed_sample_does_exactly_its_operations() {
    let arrays = Arrays::default();
    let sample = sample_of(&arrays, 1, Target::Operations(12_345));
    assert_eq!(sample.operations(), 12_345);
    assert_eq!(sample.threads[0].untimed_ops, 0);
    assert_eq!(arrays.check(&[12_345]), Ok(()));
}

#[test]
fn time_is_taken_from_the_clock_that_was_given() {
    // Four readings, one step each: CPU time, time, time, CPU time.
    let mut runner = ThreadRunner::with(Topology::detect(), MockClock::new(100));
    let sample = runner.sample(&Arrays::default(), 1, Target::Operations(50), &[]);
    let sample = sample.expect("a sample");
    assert_eq!(sample.elapsed_ns, 100);
    assert_eq!(sample.threads[0].cpu_ns, Some(300));
    assert_eq!(sample.wall_ns_per_op(), 2.0);
}

/// A clock that always shows the same time must not make batches grow without end.
#[test]
fn a_clock_that_stands_still_ends_all_the_same() {
    struct Stopped;
    impl Clock for Stopped {
        fn now_ns(&self) -> u64 {
            7
        }
        fn thread_cpu_ns(&self) -> Option<u64> {
            None
        }
    }
    let arrays = Arrays::default();
    let sample = ThreadRunner::with(Topology::detect(), Stopped).sample(&arrays, 1, SHORT, &[]);
    let sample = sample.expect("a sample");
    let thread = sample.threads[0];
    assert_eq!(thread.batch, 1 << 20);
    assert_eq!(arrays.check(&[thread.ops + thread.untimed_ops]), Ok(()));
}

/// A batch is long enough when it takes 20 µs three times in a row.
#[test]
fn the_batch_size_follows_the_clock() {
    // Any batch takes one step of 25 µs.
    let mut runner = ThreadRunner::with(Topology::detect(), MockClock::new(25_000));
    let sample = runner
        .sample(&Arrays::default(), 1, SHORT, &[])
        .expect("a sample");
    assert_eq!(sample.threads[0].batch, 1);
    assert_eq!(sample.threads[0].untimed_ops, 3);
}

#[test]
fn impossible_samples_are_refused() {
    let arrays = Arrays::default();
    let mut runner = ThreadRunner::new();
    let none = runner.sample(&arrays, 0, SHORT, &[]);
    assert!(matches!(none, Err(RunError::NoThreads)));
    let many = runner.sample(&arrays, 2, Target::Operations(10), &[]);
    assert!(matches!(many, Err(RunError::FixedWithThreads(2))));
}

/// Panics in one thread at a chosen step.
struct Panics {
    when: &'static str,
}

struct PanicsWorker<'a> {
    panics: &'a Panics,
    index: usize,
}

impl PanicsWorker<'_> {
    fn at(&self, step: &str) {
        if self.index == 1 && self.panics.when == step {
            panic!("out of luck");
        }
    }
}

impl Variant for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn worker(&self, index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        let worker = PanicsWorker {
            panics: self,
            index,
        };
        worker.at("worker");
        Box::new(worker)
    }
}

impl Worker for PanicsWorker<'_> {
    fn warm(&mut self) {
        self.at("warm");
    }
    fn run(&mut self, operations: u64) {
        self.at(if operations == 1 { "first" } else { "later" });
        for i in 0..operations {
            std::hint::black_box(i);
        }
    }
}

#[test]
fn a_panic_at_any_step_ends_the_sample_with_its_message() {
    for when in ["worker", "warm", "first", "later"] {
        let result = ThreadRunner::new().sample(&Panics { when }, 3, SHORT, &[]);
        match result {
            Err(RunError::Panicked(message)) => assert_eq!(message, "out of luck"),
            other => panic!("{when}: {other:?}"),
        }
    }
}

/// Notes where its workers run.
#[derive(Default)]
struct Where(Mutex<Vec<Option<usize>>>);

struct Nothing;

impl Worker for Nothing {
    fn run(&mut self, operations: u64) {
        for i in 0..operations {
            std::hint::black_box(i);
        }
    }
}

impl Variant for Where {
    fn name(&self) -> &str {
        "where"
    }
    fn worker(&self, _index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        let parallelism = thread::available_parallelism().ok().map(usize::from);
        self.0.lock().expect("no panic").push(parallelism);
        Box::new(Nothing)
    }
}

#[test]
fn pinned_means_pinned_and_the_caller_stays_free() {
    let before = thread::available_parallelism().ok();
    let variant = Where::default();
    let sample = sample_of(&variant, 2, SHORT);
    let on_linux = cfg!(all(target_os = "linux", not(countersink_portable)));
    assert_eq!(sample.pinned(), on_linux);
    if on_linux {
        // On Linux, std counts the CPUs that the thread may use.
        assert_eq!(*variant.0.lock().expect("no panic"), [Some(1); 2]);
    }
    assert_eq!(thread::available_parallelism().ok(), before);
}

/// A CPU that cannot be used is said, not passed over in silence.
#[test]
fn a_thread_that_cannot_be_pinned_is_marked() {
    let nowhere = countersink_harness::cpus::Cpu {
        id: 100_000,
        core: None,
    };
    let mut runner = ThreadRunner::with(Topology::new(vec![nowhere]), MockClock::new(25_000));
    let sample = runner
        .sample(&Where::default(), 1, SHORT, &[])
        .expect("a sample");
    assert!(!sample.pinned());
}
