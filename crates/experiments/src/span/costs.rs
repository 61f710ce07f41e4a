//! What counting and timing cost: a loop for each way.

use countersink::{Counter, Gauge, Histogram, Home, Span};
use countersink_harness::variant::{Point, Variant, Worker};

#[cfg(target_arch = "x86_64")]
use super::peers::RdtscPair;
use super::peers::{Atomic, Atomics, Bare, BareInTurn, ClockPair, InstantPair};

/// The pattern of one metric again and again.
pub const SAME: &str = "hot";
/// The pattern of 16 metrics in turn, whose words fill two cache lines.
pub const IN_TURN: &str = "rotating";
/// Bumping something.
pub const COUNT: &str = "count";
/// Timing nothing.
pub const TIME: &str = "time";

/// The grouping power of the span's histogram; those of values have the same.
const GROUPING: u32 = 3;
/// How many metrics are taken in turn.
pub(super) const TURN: usize = 16;

/// Everything that counts, one metric again and again.
pub(super) fn count(threads: usize) -> Point<'static> {
    Point::new(COUNT, SAME, threads)
        .with(Cost::<Bare>::default())
        .with(Cost::<OneCounter>::default())
        .with(Cost::<OneGauge>::default())
        .with(Cost::<OneHistogram>::default())
        .with(Cost::<SameValue>::default())
        .with(Cost::<WithSum>::default())
        .with(Cost::<Atomic>::default())
}

/// Counters in turn.
pub(super) fn in_turn(threads: usize) -> Point<'static> {
    Point::new(COUNT, IN_TURN, threads)
        .with(Cost::<BareInTurn>::default())
        .with(Cost::<CountersInTurn>::default())
}

/// Everything that times.
pub(super) fn time(threads: usize) -> Point<'static> {
    let point = Point::new(TIME, SAME, threads)
        .with(Cost::<ClockPair>::default())
        .with(Cost::<OneSpan>::default())
        .with(Cost::<SpanWithBytes>::default())
        .with(Cost::<SpanWithHistogram>::default())
        .with(Cost::<InstantPair>::default())
        .with(Cost::<Atomics>::default());
    #[cfg(target_arch = "x86_64")]
    let point = point.with(Cost::<RdtscPair>::default());
    point
}

/// Where the metrics count.
pub(super) fn home() -> String {
    match REQUESTS.home() {
        Home::Region => "in the region, where others can read them".to_owned(),
        Home::Private(reason) => format!("in private memory: {reason}"),
        _ => "nowhere, for want of memory".to_owned(),
    }
}

/// A way, with all the memory that its threads share.
pub(super) trait Way: Default + Send + Sync {
    /// What the variant is called.
    const NAME: &'static str;
    /// Does it so often.
    fn run(&self, operations: u64);
    /// How many operations there were since the last call, as the memory has it; `None` where nothing
    /// counts.
    fn counted(&self) -> Option<u64>;
}

#[derive(Default)]
struct Cost<W>(W);

impl<W: Way> Variant for Cost<W> {
    fn name(&self) -> &str {
        W::NAME
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Run(&self.0))
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let operations: u64 = operations.iter().sum();
        match self.0.counted() {
            Some(counted) if counted != operations => {
                Err(format!("{operations} operations, {counted} were counted"))
            }
            _ => Ok(()),
        }
    }
}

struct Run<'a, W>(&'a W);

impl<W: Way> Worker for Run<'_, W> {
    fn run(&mut self, operations: u64) {
        self.0.run(operations);
    }
}

static REQUESTS: Counter = Counter::new("bench_counter").help("Operations of bench span");

#[derive(Default)]
struct OneCounter;

impl Way for OneCounter {
    const NAME: &'static str = "counter";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            REQUESTS.inc();
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(REQUESTS.take())
    }
}

/// Whole turns, and the beginning of one.
#[inline(always)]
pub(super) fn in_turns(operations: u64, bump_first: impl Fn(usize)) {
    for _ in 0..operations / TURN as u64 {
        bump_first(TURN);
    }
    bump_first(operations as usize % TURN);
}

static COUNTERS: [Counter; TURN] = [
    Counter::new("bench_counter_0"),
    Counter::new("bench_counter_1"),
    Counter::new("bench_counter_2"),
    Counter::new("bench_counter_3"),
    Counter::new("bench_counter_4"),
    Counter::new("bench_counter_5"),
    Counter::new("bench_counter_6"),
    Counter::new("bench_counter_7"),
    Counter::new("bench_counter_8"),
    Counter::new("bench_counter_9"),
    Counter::new("bench_counter_10"),
    Counter::new("bench_counter_11"),
    Counter::new("bench_counter_12"),
    Counter::new("bench_counter_13"),
    Counter::new("bench_counter_14"),
    Counter::new("bench_counter_15"),
];

#[derive(Default)]
struct CountersInTurn;

impl Way for CountersInTurn {
    const NAME: &'static str = "counter";
    fn run(&self, operations: u64) {
        in_turns(operations, |count| {
            COUNTERS[..count].iter().for_each(Counter::inc);
        });
    }
    fn counted(&self) -> Option<u64> {
        Some(COUNTERS.iter().map(Counter::take).sum())
    }
}

static CONNECTIONS: Gauge = Gauge::new("bench_gauge").help("Operations of bench span");

/// A gauge that goes up, so that it can be checked.
#[derive(Default)]
struct OneGauge;

impl Way for OneGauge {
    const NAME: &'static str = "gauge";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            CONNECTIONS.inc();
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(CONNECTIONS.set(0) as u64)
    }
}

static SIZES: Histogram = Histogram::new("bench_histogram").help("Operations of bench span");

/// A value from 0 to 1023, another one each time.
#[inline(always)]
fn spread(operation: u64) -> u64 {
    operation.wrapping_mul(0x9e37_79b9) % 1024
}

/// Many values, so the buckets change.
#[derive(Default)]
struct OneHistogram;

impl Way for OneHistogram {
    const NAME: &'static str = "histogram";
    fn run(&self, operations: u64) {
        for operation in 0..operations {
            SIZES.record(spread(operation));
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(SIZES.take().count())
    }
}

static SAME_SIZES: Histogram =
    Histogram::new("bench_histogram_same").help("Operations of bench span");

/// One value, so it is the same bucket again and again.
#[derive(Default)]
struct SameValue;

impl Way for SameValue {
    const NAME: &'static str = "histogram-same";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            SAME_SIZES.record(1000);
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(SAME_SIZES.take().count())
    }
}

static SUMMED: Histogram = Histogram::new("bench_histogram_sum")
    .with_sum()
    .help("Operations of bench span");

/// The first values and their sum.
#[derive(Default)]
struct WithSum;

impl Way for WithSum {
    const NAME: &'static str = "histogram-sum";
    fn run(&self, operations: u64) {
        for operation in 0..operations {
            SUMMED.record(spread(operation));
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(SUMMED.take().count())
    }
}

static NOTHING: Span = Span::new("bench_span").help("Operations of bench span");

#[derive(Default)]
struct OneSpan;

impl Way for OneSpan {
    const NAME: &'static str = "span";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            NOTHING.start().stop();
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(recorded(&NOTHING))
    }
}

static WITH_BYTES: Span = Span::new("bench_span_bytes").help("Operations of bench span");

#[derive(Default)]
struct SpanWithBytes;

impl Way for SpanWithBytes {
    const NAME: &'static str = "span-bytes";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            WITH_BYTES.start().stop_bytes(4096);
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(recorded(&WITH_BYTES))
    }
}

static WITH_HISTOGRAM: Span = Span::new("bench_span_histogram")
    .with_histogram(GROUPING)
    .help("Operations of bench span");

#[derive(Default)]
struct SpanWithHistogram;

impl Way for SpanWithHistogram {
    const NAME: &'static str = "span-histogram";
    fn run(&self, operations: u64) {
        for _ in 0..operations {
            WITH_HISTOGRAM.start().stop();
        }
    }
    fn counted(&self) -> Option<u64> {
        Some(recorded(&WITH_HISTOGRAM))
    }
}

/// What a span has recorded or thrown away, which it does not do here unless it must.
fn recorded(span: &Span) -> u64 {
    let taken = span.take();
    taken.events + taken.skipped + taken.invalid
}
