//! From words to values.

use crate::layout::{bucket, header};
use crate::reader::testing::{
    BIAS, Builder, CPU, SHARED, Spec, count, counter, gauge, histogram, named, span,
};
use crate::reader::{Buckets, Extremes, Gauge, Per, Snapshot, Span, Value, growth};

const fn negative(value: u64) -> u64 {
    0_u64.wrapping_sub(value)
}

fn the_span(snapshot: &Snapshot, name: &str) -> Span {
    match &named(snapshot, name).value {
        Value::Span(span) => (**span).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn counters_are_summed_over_all_lanes() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.entry(&counter("z", 8191));
    builder
        .words(SHARED, 0, &[1])
        .words(CPU, 0, &[10])
        .words(CPU + 1, 0, &[100]);
    builder
        .words(BIAS, 0, &[negative(11)])
        .words(CPU, 8191, &[7]);
    let snapshot = builder.snapshot();
    assert_eq!((count(&snapshot, "a"), count(&snapshot, "z")), (100, 7));
    let lanes = [
        (Per::Cpu(0), Value::Counter(10)),
        (Per::Cpu(1), Value::Counter(100)),
        (Per::Shared, Value::Counter(1)),
    ];
    assert_eq!(named(&snapshot, "a").lanes, lanes);
    assert_eq!(
        named(&snapshot, "z").lanes,
        [(Per::Cpu(0), Value::Counter(7))]
    );
}

#[test]
fn the_unused_lane_is_not_summed() {
    // With two CPUs there is a fifth lane, which belongs to nobody.
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.words(CPU + 2, 0, &[1]);
    assert_eq!(count(&builder.snapshot(), "a"), 0);
}

#[test]
fn sums_wrap() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.words(CPU, 0, &[u64::MAX]).words(CPU + 1, 0, &[3]);
    assert_eq!(count(&builder.snapshot(), "a"), 2);
}

#[test]
fn gauges_are_ups_less_downs() {
    let mut builder = Builder::new();
    builder.entry(&gauge("a", 4));
    builder
        .words(CPU, 4, &[5, 100])
        .words(CPU + 1, 4, &[20, 0])
        .words(BIAS, 4, &[negative(1), negative(2)]);
    let snapshot = builder.snapshot();
    let metric = named(&snapshot, "a");
    assert_eq!(
        metric.value,
        Value::Gauge(Gauge {
            low: -74,
            high: -74
        })
    );
    assert_eq!(
        metric.lanes[0],
        (
            Per::Cpu(0),
            Value::Gauge(Gauge {
                low: -95,
                high: -95
            })
        )
    );
}

#[test]
fn extremes_of_other_generations_are_void() {
    let mut builder = Builder::new();
    builder.entry(&span("a", 0, false));
    builder.words(BIAS, 0, &[0, 0, 0, 0, 3, 12345]);
    builder.words(
        CPU,
        0,
        &[4, 1000, 2, 50, 3, 700, 3, 20, 3, 40, 3, 10, 1, 2, 3],
    );
    builder.words(CPU + 1, 0, &[1, 9999, 1, 9, 2, 9999, 2, 1, 2, 9999, 2, 1]);
    let snapshot = builder.snapshot();
    let span = the_span(&snapshot, "a");
    assert_eq!(
        (span.events, span.time, span.byte_events, span.bytes),
        (5, 10_999, 3, 59)
    );
    assert_eq!((span.migrated, span.skipped, span.invalid), (1, 2, 3));
    assert_eq!(span.times, Some(Extremes { min: 20, max: 700 }));
    assert_eq!(span.byte_extremes, Some(Extremes { min: 10, max: 40 }));
    let Value::Span(second) = &named(&snapshot, "a").lanes[1].1 else {
        panic!("no span");
    };
    assert_eq!(
        (second.events, second.times, second.byte_extremes),
        (1, None, None)
    );
}

#[test]
fn without_events_there_are_no_extremes_and_zero_is_an_extreme() {
    let mut builder = Builder::new();
    builder.entry(&span("none", 0, false));
    builder.entry(&span("zero", 16, false));
    // Sums were taken, and extremes not yet.
    builder.words(
        BIAS,
        0,
        &[negative(3), negative(30), negative(3), negative(9), 1],
    );
    builder
        .words(CPU, 0, &[3, 30, 3, 9, 1, 10, 1, 10, 1, 3, 1, 3])
        .words(BIAS, 20, &[1]);
    builder.words(CPU, 16, &[1, 0, 0, 0, 1, 0, 1, 0]);
    let snapshot = builder.snapshot();
    let none = the_span(&snapshot, "none");
    assert_eq!(
        (none.events, none.time, none.times, none.byte_extremes),
        (0, 0, None, None)
    );
    assert_eq!(
        the_span(&snapshot, "zero").times,
        Some(Extremes { min: 0, max: 0 })
    );
}

#[test]
fn times_are_in_nanoseconds_and_do_not_wrap() {
    let mut builder = Builder::new();
    builder.put(header::TICKS_PER_SECOND, &2_500_000_000_u64.to_ne_bytes());
    builder.entry(&span("a", 0, false));
    builder.words(BIAS, 4, &[1]);
    builder.words(CPU, 0, &[1 << 40, 25 << 50, 0, 0, 1, 25 << 50, 1, 5]);
    let snapshot = builder.snapshot();
    let span = the_span(&snapshot, "a");
    assert_eq!((span.events, span.time), (1 << 40, 10 << 50));
    assert_eq!(
        span.times,
        Some(Extremes {
            min: 2,
            max: 10 << 50
        })
    );
    assert_eq!(
        (named(&snapshot, "a").unit, snapshot.clock.ticks_per_second),
        ("nanoseconds", 2_500_000_000)
    );
}

#[test]
fn without_a_clock_rate_there_are_no_spans() {
    let mut builder = Builder::new();
    builder.put(header::TICKS_PER_SECOND, &[0; 8]);
    builder.entry(&span("a", 0, false));
    builder.entry(&counter("b", 16));
    let snapshot = builder.snapshot();
    assert_eq!((snapshot.metrics.len(), snapshot.problems.len()), (1, 1));
}

#[test]
fn a_spans_histogram_counts_its_events() {
    let mut builder = Builder::new();
    builder.entry(&span("a", 0, true));
    let add = |builder: &mut Builder, lane, value, times| {
        let word = 16 + bucket(0, value) as u64;
        builder.words(lane, word, &[times]);
    };
    builder
        .words(BIAS, 4, &[1])
        .words(CPU, 0, &[60, 10_050])
        .words(CPU + 1, 0, &[40, 4000])
        .words(CPU, 4, &[1, 1000, 1, 1])
        .words(CPU + 1, 4, &[1, 100, 1, 100]);
    add(&mut builder, CPU, 1, 50);
    add(&mut builder, CPU + 1, 100, 40);
    add(&mut builder, CPU, 1000, 10);
    let snapshot = builder.snapshot();
    let span = the_span(&snapshot, "a");
    assert_eq!((span.events, span.time), (100, 50 + 4000 + 10_000));
    let percentile = |q| span.percentile(q, &snapshot.clock);
    assert_eq!(
        [percentile(0.0), percentile(0.5), percentile(0.51)],
        [Some(1), Some(1), Some(95)]
    );
    assert_eq!(
        [percentile(0.9), percentile(0.91), percentile(1.0)],
        [Some(95), Some(767), Some(767)]
    );
    assert_eq!(
        [percentile(1.1), percentile(f64::NAN), percentile(-0.1)],
        [None; 3]
    );
}

#[test]
fn quantiles_stay_in_their_bucket() {
    let mut builder = Builder::new();
    builder.entry(&histogram("a", 0));
    builder.words(CPU, 2 + bucket(0, 40) as u64, &[1]);
    builder.words(CPU + 1, 2 + bucket(0, u64::MAX) as u64, &[2]);
    let snapshot = builder.snapshot();
    let Value::Histogram(buckets) = &named(&snapshot, "a").value else {
        panic!("no histogram");
    };
    assert_eq!(
        (
            buckets.count(),
            buckets.quantile(0.0),
            buckets.quantile(1.0)
        ),
        (3, Some(47), Some((1 << 63) + (1 << 62) - 1))
    );
    assert_eq!(buckets.bounds(64), Some((1 << 63, u64::MAX)));
    assert_eq!(buckets.bounds(65), None);
    // One of 47 and two of three quarters of all there are.
    let most = 3_u128 << 62;
    assert_eq!(
        buckets.mean().map(u128::from),
        Some((47 + 2 * (most - 1)) / 3)
    );
    let with_sum = Buckets {
        sum: Some(3001),
        ..buckets.clone()
    };
    assert_eq!(with_sum.mean(), Some(1000));
    assert_eq!(Buckets::default().mean(), None);
}

#[test]
fn equal_entries_are_added_up() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.entry(&span("s", 16, true));
    builder.entry(&span("s", 400, true));
    builder.entry(&Spec {
        labels: br#"x="1""#.to_vec(),
        ..counter("a", 1)
    });
    builder.entry(&counter("a", 2));
    builder
        .words(CPU, 0, &[1, 10, 100])
        .words(SHARED, 2, &[1000]);
    for (word, value) in [(16, 1), (400, 3)] {
        builder
            .words(BIAS, word + 4, &[1])
            .words(CPU, word, &[1, value])
            .words(CPU, word + 4, &[1, value, 1, value]);
        builder.words(CPU, word + 16 + bucket(0, value) as u64, &[1]);
    }
    let snapshot = builder.snapshot();
    let values: Vec<_> = snapshot
        .metrics
        .iter()
        .map(|metric| (metric.entry, metric.labels.len(), &metric.value))
        .collect();
    assert_eq!(values[0], (0, 0, &Value::Counter(1101)));
    assert_eq!(values[1], (3, 1, &Value::Counter(10)));
    let lanes = [
        (Per::Cpu(0), Value::Counter(101)),
        (Per::Shared, Value::Counter(1000)),
    ];
    assert_eq!(snapshot.metrics[0].lanes, lanes);
    let span = the_span(&snapshot, "s");
    assert_eq!(
        (span.events, span.time, span.times),
        (2, 4, Some(Extremes { min: 1, max: 3 }))
    );
    let numbers: Vec<_> = span
        .histogram
        .expect("a histogram")
        .buckets
        .iter()
        .map(|bucket| bucket.0)
        .collect();
    assert_eq!(numbers, [bucket(0, 1), bucket(0, 3)]);
    assert_eq!(snapshot.problems, [""; 0]);
}

#[test]
fn equal_names_of_other_kinds_are_kept_and_reported() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.entry(&gauge("a", 2));
    builder.entry(&Spec {
        unit: 1,
        ..counter("a", 4)
    });
    builder.words(CPU, 0, &[5]);
    let snapshot = builder.snapshot();
    assert_eq!(snapshot.metrics.len(), 3);
    assert_eq!(
        snapshot.problems,
        ["a is defined with different kinds or units"]
    );
}

fn grown(before: &Builder, after: &Builder) -> (Value, bool, bool) {
    let growth = growth(&before.snapshot(), &after.snapshot());
    assert_eq!(growth.len(), 1);
    (
        growth[0].metric.value.clone(),
        growth[0].reset,
        growth[0].new,
    )
}

#[test]
fn growth_is_what_was_added() {
    let mut before = Builder::new();
    before.entry(&counter("a", 0));
    before.words(CPU, 0, &[10]).words(BIAS, 0, &[negative(3)]);
    let mut after = before.clone();
    assert_eq!(grown(&before, &after), (Value::Counter(0), false, false));
    after.words(CPU, 0, &[15]).words(CPU + 1, 0, &[1]);
    assert_eq!(grown(&before, &after), (Value::Counter(6), false, false));
    // Reset at 12, so 4 now, and 6 in all.
    after.words(BIAS, 0, &[negative(12)]);
    assert_eq!(grown(&before, &after), (Value::Counter(6), true, false));
    // Reset, and more since than there was before.
    after.words(CPU, 0, &[1000]);
    assert_eq!(grown(&before, &after), (Value::Counter(991), true, false));
}

#[test]
fn without_lanes_growth_is_what_was_counted_since_the_reset() {
    let snapshot = |value: u64| {
        let mut builder = Builder::new();
        builder.entry(&counter("a", 0));
        builder.words(CPU, 0, &[value]);
        let mut snapshot = builder.snapshot();
        snapshot.metrics[0].lanes.clear();
        snapshot
    };
    let grown = |before: u64, after: u64| {
        let growth = growth(&snapshot(before), &snapshot(after));
        (growth[0].metric.value.clone(), growth[0].reset)
    };
    assert_eq!(grown(10, 15), (Value::Counter(5), false));
    assert_eq!(grown(10, 4), (Value::Counter(4), true));
}

#[test]
fn growth_does_not_wrap_where_one_of_equal_entries_is_gone() {
    let mut before = Builder::new();
    before.entry(&counter("a", 0));
    before.entry(&counter("a", 1));
    before.words(CPU, 0, &[10, 20]);
    let mut after = before.clone();
    let at = after.entry_at(1, 0);
    after.put(at, &crate::reader::testing::life(3, 1).to_ne_bytes());
    assert_eq!(grown(&before, &after), (Value::Counter(10), true, false));
}

#[test]
fn another_generation_is_another_metric() {
    let mut before = Builder::new();
    before.entry(&counter("a", 0));
    before.words(CPU, 0, &[10]);
    let mut after = before.clone();
    let at = after.entry_at(0, 4);
    after.put(at, &2_u32.to_ne_bytes());
    after.words(CPU, 0, &[12]);
    assert_eq!(grown(&before, &after), (Value::Counter(12), false, true));
    assert_eq!(
        growth(&before.snapshot(), &after.snapshot())[0]
            .metric
            .lanes
            .len(),
        1
    );
    // The other one's counts were taken off the sum, and are still in the lanes.
    after.words(BIAS, 0, &[negative(10)]);
    assert_eq!(grown(&before, &after), (Value::Counter(2), false, true));
    assert_eq!(
        growth(&before.snapshot(), &after.snapshot())[0]
            .metric
            .lanes,
        []
    );
}

#[test]
fn a_counter_that_wraps_has_grown() {
    let mut before = Builder::new();
    before.entry(&counter("a", 0));
    before.words(CPU, 0, &[u64::MAX - 5]);
    let mut after = before.clone();
    after.words(CPU, 0, &[4]);
    assert_eq!(grown(&before, &after), (Value::Counter(10), false, false));
}

#[test]
fn growth_of_spans_and_gauges() {
    let mut before = Builder::new();
    before.entry(&span("a", 0, true));
    let word = 16 + bucket(0, 100) as u64;
    before
        .words(BIAS, 4, &[1])
        .words(CPU, 0, &[3, 300])
        .words(CPU, 4, &[1, 100, 1, 100])
        .words(CPU, word, &[3]);
    let mut after = before.clone();
    after
        .words(CPU + 1, 0, &[2, 210])
        .words(CPU + 1, word, &[2])
        .words(CPU, 12, &[1]);
    let (Value::Span(span), false, false) = grown(&before, &after) else {
        panic!("no span");
    };
    assert_eq!(
        (span.events, span.time, span.migrated, span.times),
        (2, 210, 1, None)
    );
    let histogram = span.histogram.expect("a histogram");
    assert_eq!(histogram.buckets, [(bucket(0, 100), 2)]);

    let mut before = Builder::new();
    before.entry(&gauge("g", 0));
    before.words(CPU, 0, &[5, 1]);
    let mut after = before.clone();
    after.words(CPU + 1, 0, &[0, 6]);
    assert_eq!(
        grown(&before, &after),
        (Value::Gauge(Gauge { low: -6, high: -6 }), false, false)
    );
}
