//! What the program counts, and what has to come of it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use countersink::{
    BatchCounter, BatchCounters, Counter, Family, Gauge, Histogram, Span, TreeCounter, Unit,
    event_group,
};
use serde_json::{Value as Json, json};

use crate::common::cpus;
use crate::found;

const THREADS: u64 = 4;
const ROUNDS: u64 = 5_000;
const ALL: u64 = THREADS * ROUNDS;
/// What is recorded in every round.
const VALUES: [u64; 6] = [0, 1, 100, 12_345, 1 << 40, u64::MAX];

pub(crate) static REQUESTS: Counter =
    Counter::new("py_requests").help("Requests – \"all\" of them");
static SENT: Counter = Counter::new("py_sent").unit(Unit::Bytes);
pub(crate) static TAKEN: Counter = Counter::new("py_taken");
pub(crate) static LEVEL: Gauge = Gauge::new("py_level").help("Below zero");
static ANSWER: Span = Span::new("py_answer").help("With bytes");
pub(crate) static LOOKUP: Span = Span::new("py_lookup").with_histogram(3);
static TAKEN_SPAN: Span = Span::new("py_taken_span").with_histogram(0);
static UNUSED_SPAN: Span = Span::new("py_unused_span");
pub(crate) static SIZES: Histogram<5> = Histogram::new("py_sizes").with_sum().unit(Unit::Bytes);
static COARSE: Histogram<0> = Histogram::new("py_coarse");
static FINE: Histogram<7> = Histogram::new("py_fine");
static METHODS: Family<Counter, 2> = Family::new(Counter::new("py_methods"), ["method", "path"]);
static JOBS: BatchCounter = BatchCounter::new("py_jobs").batch(7);
static QUEUES: BatchCounters = BatchCounter::many("py_queues", 3);
static PAGES: TreeCounter = TreeCounter::new("py_pages");
static LOCAL: BatchCounter = BatchCounter::new("py_local");
static REFUSED: Counter = Counter::new("py-refused");

event_group! {
    static CACHE: CacheEvents = "py_cache" {
        /// Found
        hit,
        /// Not found
        miss,
    }
}

/// Label values with all that is escaped.
const ODD: [&str; 2] = ["say \"\\n\"\\", "ü\nn"];

/// Counts in threads, with takes in between; what the takes took of the counter.
pub(crate) fn count() -> u64 {
    let removed = METHODS.with(["PATCH", "/"]);
    removed.add(1_000_000);
    METHODS.remove(["PATCH", "/"]);
    drop(removed);
    let taken = AtomicU64::new(0);
    let cpus = cpus::allowed();
    thread::scope(|scope| {
        // Lanes of all CPUs are used.
        for (_, cpu) in (0..THREADS).zip(cpus.iter().cycle()) {
            scope.spawn(|| {
                cpus::pin(*cpu);
                for number in 0..ROUNDS {
                    round(number);
                    if number % 100 == 50 {
                        taken.fetch_add(TAKEN.take(), Relaxed);
                        TAKEN_SPAN.take();
                    }
                }
            });
        }
    });
    // Of a last generation, the extremes are those of a single event.
    TAKEN_SPAN.take();
    TAKEN_SPAN.start().stop_bytes(77);
    UNUSED_SPAN.take();
    REFUSED.add(3);
    taken.into_inner()
}

fn round(number: u64) {
    REQUESTS.inc();
    SENT.add(number);
    TAKEN.add(2);
    LEVEL.add(1);
    LEVEL.sub(3);
    JOBS.add(5);
    JOBS.sub(7);
    PAGES.add(100);
    LOCAL.add_local(1);
    for index in 0..QUEUES.len() {
        QUEUES.get(index).expect("one of them").add(index as i64);
    }
    let running = ANSWER.start();
    LOOKUP.start().stop();
    TAKEN_SPAN.start().stop_bytes(1 + number);
    match number % 3 {
        0 => running.stop_bytes(number),
        1 => running.discard(),
        _ => running.stop(),
    }
    for value in VALUES {
        SIZES.record(value);
        COARSE.record(value);
        FINE.record(value);
    }
    METHODS.with(ODD).inc();
    METHODS.with(["GET", ""]).add(2);
    if number.is_multiple_of(2) {
        CACHE.hit.inc();
    } else {
        CACHE.miss.inc();
    }
}

/// Compares with what the program did, and with what it reads of its own.
pub(crate) fn compare(answer: &Json, taken: u64) {
    let value = |name| found(answer, name, None);
    assert_eq!(*value("py_requests"), json!({ "value": ALL }));
    assert_eq!(
        value("py_sent")["value"],
        THREADS * ROUNDS * (ROUNDS - 1) / 2
    );
    assert_eq!(value("py_taken")["value"], 2 * ALL - taken);
    let level = -2 * ALL.cast_signed();
    assert_eq!(*value("py_level"), json!({ "low": level, "high": level }));
    assert_eq!(value("py_cache_hit")["value"], ALL / 2);
    assert_eq!(value("py_cache_miss")["value"], ALL / 2);
    let of_method = |method| found(answer, "py_methods", Some(method));
    assert_eq!(of_method(ODD[0])["value"], ALL);
    assert_eq!(of_method(ODD[1])["value"], ALL);
    assert_eq!(of_method("GET")["value"], 2 * ALL);
    compare_bounded(answer);
    compare_spans(answer);
    compare_histograms(answer);
    let refusals = json!([{ "name": "py-refused", "reason": "bad name", "times": 1 }]);
    assert_eq!(answer["refusals"], refusals);
    assert_eq!(answer["refused"], 1);
}

fn compare_bounded(answer: &Json) {
    let sums = ALL.cast_signed();
    for (name, sum, estimate) in [
        ("py_jobs", -2 * sums, JOBS.estimate()),
        ("py_pages", 100 * sums, PAGES.estimate()),
    ] {
        let expected = json!({ "value": sum, "estimate": estimate.value, "bound": estimate.bound });
        assert_eq!(*found(answer, name, None), expected, "{name}");
    }
    for (index, sum) in [("0", 0), ("1", sums), ("2", 2 * sums)] {
        assert_eq!(found(answer, "py_queues", Some(index))["value"], sum);
    }
    let local = found(answer, "py_local", None);
    assert_eq!(
        (&local["value"], &local["bound"]),
        (&json!(sums), &Json::Null)
    );
}

fn compare_spans(answer: &Json) {
    let number = |span: &str, field: &str| found(answer, span, None)[field].as_u64();
    for (name, span) in [
        ("py_answer", &ANSWER),
        ("py_lookup", &LOOKUP),
        ("py_taken_span", &TAKEN_SPAN),
        ("py_unused_span", &UNUSED_SPAN),
    ] {
        let own = span.read();
        for (field, expected) in [
            ("events", own.events),
            ("time_ns", own.time),
            ("byte_events", own.byte_events),
            ("bytes", own.bytes),
            ("migrated", own.migrated),
            ("skipped", own.skipped),
            ("invalid", own.invalid),
        ] {
            assert_eq!(number(name, field), Some(expected), "{name} {field}");
        }
        assert_eq!(number(name, "min_ns"), own.times.map(|times| times.min));
        assert_eq!(number(name, "max_ns"), own.times.map(|times| times.max));
    }
    let kept = |name: &str| {
        let fields = ["events", "skipped", "invalid"];
        fields
            .map(|field| number(name, field).expect("a number"))
            .iter()
            .sum::<u64>()
    };
    let discarded = THREADS * (0..ROUNDS).filter(|number| number % 3 == 1).count() as u64;
    assert_eq!(kept("py_answer"), ALL - discarded);
    assert_eq!(kept("py_lookup"), ALL);
    assert_eq!(kept("py_taken_span"), 1);
    let times = &found(answer, "py_lookup", None)["times_ns"];
    assert_eq!(times["count"].as_u64(), number("py_lookup", "events"));
    // Where the clocks of CPUs differ, an event may have been thrown away.
    if number("py_taken_span", "events") == Some(1) {
        assert_eq!(number("py_taken_span", "min_bytes"), Some(77));
        assert_eq!(number("py_taken_span", "max_bytes"), Some(77));
        let only = number("py_taken_span", "time_ns");
        assert_eq!(number("py_taken_span", "min_ns"), only);
        assert_eq!(number("py_taken_span", "max_ns"), only);
    }
}

fn compare_histograms(answer: &Json) {
    let sizes = found(answer, "py_sizes", None);
    let sum = VALUES
        .iter()
        .fold(0_u64, |sum, value| sum.wrapping_add(*value));
    assert_eq!(sizes["sum"], sum.wrapping_mul(ALL));
    for name in ["py_sizes", "py_coarse", "py_fine"] {
        let histogram = found(answer, name, None);
        assert_eq!(histogram["count"], ALL * VALUES.len() as u64, "{name}");
        // The median of all is the third of six values, 100, within the error.
        let width = match name {
            "py_coarse" => 64..=127,
            "py_sizes" => 100..=101,
            _ => 100..=100,
        };
        let median = histogram["p50"].as_u64().expect("a number");
        assert!(width.contains(&median), "{name} {median}");
    }
}
