//! Metrics that come and go by the million: memory stays as it is, and who reads meanwhile never takes one
//! metric's count for another's.
//!
//! What a metric counts are multiples of a prime of its own, so anything else is a mixture.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use countersink::clock::{Source, now, request};
use countersink::reader::{Metric, Region, Value};
use countersink::{Counter, Family, Gauge, Histogram, Span};

use crate::common::child::alone;
use crate::common::cpus::pause;
use crate::common::fork::fork;
use crate::common::log::{self, Line};
use crate::common::random::Random;
use crate::common::raw::{Entry, Raw};
use crate::common::read;
use crate::many::resident;

const CREATORS: u64 = 2;
/// Counters that a creator keeps.
const KEPT: usize = 8;
const SEED: u64 = 0xc403_0004;
const PRIMES: [u64; 16] = [
    101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179,
];

static FAMILY: Family<Counter> = Family::new(Counter::new("churn_family"), ["prime"]);

/// Names of each kind of metric, one for each prime.
#[derive(Debug)]
struct Names {
    counters: Vec<&'static str>,
    gauges: Vec<&'static str>,
    spans: Vec<&'static str>,
    histograms: Vec<&'static str>,
    labels: Vec<String>,
}

impl Names {
    fn new() -> Self {
        let names = |kind: &str| {
            let name = |prime: &u64| &*format!("churn_{kind}_{prime}").leak();
            PRIMES.iter().map(name).collect()
        };
        Names {
            counters: names("counter"),
            gauges: names("gauge"),
            spans: names("span"),
            histograms: names("histogram"),
            labels: PRIMES.iter().map(u64::to_string).collect(),
        }
    }

    /// One metric comes, counts, and goes; a counter stays until others have come.
    fn create(&self, random: &mut Random, kept: &mut VecDeque<Counter>) {
        let which = random.below(PRIMES.len() as u64) as usize;
        let prime = PRIMES[which];
        match random.below(64) {
            0..4 => {
                let gauge = Gauge::new(self.gauges[which]);
                gauge.add(3 * prime as i64);
                gauge.sub(prime as i64);
            }
            4..8 => {
                let span = Span::new(self.spans[which]);
                let stopped = now();
                let mut started = stopped;
                started.ticks -= prime;
                span.record(started, stopped);
                span.record(started, stopped);
            }
            8 => {
                let histogram = Histogram::<0>::new(self.histograms[which]).with_sum();
                histogram.record(prime);
                histogram.record(prime);
            }
            9..12 => {
                let label = [self.labels[which].as_str()];
                FAMILY.with(label).add(prime);
                FAMILY.remove(label);
            }
            _ => {
                let counter = Counter::new(self.counters[which]);
                counter.add(prime);
                counter.add(2 * prime);
                kept.push_back(counter);
                if kept.len() > KEPT {
                    kept.pop_front();
                }
            }
        }
    }
}

/// Whether a value is not one that the metric can have.
fn is_mixed(metric: &Metric) -> bool {
    let prime = metric.labels.first().map_or_else(
        || metric.name.rsplit('_').next().expect("a name"),
        |label| &label.1,
    );
    let prime: u64 = prime.parse().expect("a prime");
    let is_none_of_its = |value: u64| !value.is_multiple_of(prime);
    match &metric.value {
        Value::Counter(count) => is_none_of_its(*count),
        Value::Gauge(gauge) => [gauge.low, gauge.high]
            .iter()
            .any(|value| is_none_of_its(value.unsigned_abs())),
        Value::Span(span) => {
            let of_prime = |times: countersink::reader::Extremes| [times.min, times.max];
            is_none_of_its(span.time)
                || span
                    .times
                    .is_some_and(|times| of_prime(times) != [prime, prime])
        }
        Value::Histogram(buckets) => is_none_of_its(buckets.sum.expect("kept")),
        other => panic!("{other:?}"),
    }
}

/// Words of the readers' log.
const SNAPSHOTS: usize = 0;
const METRICS: usize = 1;
const MIXED: usize = 2;
const RAW: usize = 3;
const RAW_MIXED: usize = 4;
const WRONG_MIXED: usize = 5;

/// Reads as the library does, from another process, until it is told to stop.
fn read_on(parent: u32, log: &Line, stop: &AtomicU64) {
    let region: Region = read::region_of(parent);
    while stop.load(Relaxed) == 0 {
        let snapshot = read::snapshot_of(&region);
        for metric in snapshot.metrics.iter().filter(|metric| !metric.torn) {
            if is_mixed(metric) {
                println!("mixed: {metric:?}");
                log.add(MIXED, 1);
            }
            log.add(METRICS, 1);
        }
        log.add(SNAPSHOTS, 1);
    }
}

/// Reads counters one by one, with and without a second look at whose they are.
fn read_raw(raw: &Raw, log: &Line, stop: &AtomicU64) {
    let is_counter = |entry: &Entry| entry.is_ready() && entry.name.starts_with("churn_counter");
    while stop.load(Relaxed) == 0 {
        for entry in raw.entries().into_iter().filter(is_counter) {
            pause();
            let value = raw.sum(&entry, 0);
            let life = raw.life(entry.number);
            let prime: u64 = entry.name["churn_counter_".len()..]
                .parse()
                .expect("a prime");
            let mixed = u64::from(!value.is_multiple_of(prime));
            let same = life & 0xff == 2 && life >> 32 == entry.life >> 32;
            log.add(WRONG_MIXED, mixed);
            log.add(RAW_MIXED, mixed * u64::from(same));
            log.add(RAW, 1);
        }
    }
}

/// What must not grow.
fn sizes(raw: &Raw) -> [u64; 3] {
    [raw.entries_used(), raw.words_used(), resident()]
}

fn churn(metrics: u64) {
    request(Source::Monotonic).expect("every machine has it");
    let names = Names::new();
    // Makes the region, and all code and threads touch what they need.
    let mut random = Random(SEED);
    let mut kept = VecDeque::new();
    (0..10_000).for_each(|_| names.create(&mut random, &mut kept));
    let raw = Raw::own();
    let [read_log, raw_log, other] = log::shared(3) else {
        panic!("three lines");
    };
    let stop = other.word(0);
    let parent = std::process::id();
    let readers = [
        fork(|| read_on(parent, read_log, stop)),
        fork(|| read_raw(&raw, raw_log, stop)),
    ];
    let create = |count: u64| {
        std::thread::scope(|scope| {
            for creator in 0..CREATORS {
                let names = &names;
                scope.spawn(move || {
                    let mut random = Random(SEED + creator);
                    let mut kept = VecDeque::new();
                    (0..count / CREATORS).for_each(|_| names.create(&mut random, &mut kept));
                });
            }
        });
    };
    create(metrics / 10);
    let before = sizes(&raw);
    create(metrics - metrics / 10);
    let after = sizes(&raw);
    stop.store(1, Relaxed);
    readers.into_iter().for_each(|reader| reader.wait_well());
    println!("seed {SEED:#x}: {metrics} metrics, entries, words, bytes {before:?}, then {after:?}");
    let [snapshots, read, mixed] = [SNAPSHOTS, METRICS, MIXED].map(|word| read_log.get(word));
    let [one_by_one, raw_mixed, wrong] =
        [RAW, RAW_MIXED, WRONG_MIXED].map(|word| raw_log.get(word));
    println!(
        "{snapshots} snapshots of {read} metrics: {mixed} mixed; {one_by_one} read one by one: \
         {raw_mixed} mixed, {wrong} without the second look"
    );
    // What can be there at the same time, with one more of each kind where two creators meet.
    let most = KEPT as u64 + CREATORS * (KEPT as u64 + 4);
    assert!(after[0] <= most, "entries");
    assert!(after[1] <= most + 100 * CREATORS, "words");
    assert!(after[2] <= before[2] + (1 << 20), "memory");
    assert!(snapshots > 0 && read > 0);
    assert_eq!((mixed, raw_mixed), (0, 0), "mixed");
    assert!(wrong > 0, "not a storm");
}

#[test]
fn a_million_metrics_leave_memory_flat_and_are_not_mixed() {
    alone(
        "churn::a_million_metrics_leave_memory_flat_and_are_not_mixed",
        || churn(1_000_000),
    );
}

/// Half a minute where two CPUs have other work, too.
#[test]
#[ignore = "long; ci/storms runs it"]
fn ten_million_metrics_leave_memory_flat_and_are_not_mixed() {
    alone(
        "churn::ten_million_metrics_leave_memory_flat_and_are_not_mixed",
        || churn(10_000_000),
    );
}
