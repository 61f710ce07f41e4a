//! `show --watch`: what metrics grow by in a second.

use std::collections::HashMap;
use std::time::Duration;

use countersink::reader::{Labels, Metric, Snapshot, Value};

use super::lines::{Look, mean};
use super::select::{Sort, choose};
use crate::names::{self, Filter};
use crate::table::table;
use crate::units::{self, average, scaled};

const COLUMNS: [&str; 6] = ["metric", "per second", "value", "time/s", "avg", "bytes/s"];

/// What passed between two snapshots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval<'a> {
    /// What each metric grew by.
    pub(super) growth: &'a [Metric],
    /// The later one.
    pub(super) now: &'a Snapshot,
    /// How long it was.
    pub(super) passed: Duration,
}

/// A row for each metric, sorted by growth.
pub(super) fn render(interval: &Interval<'_>, filter: Option<&Filter>, sort: Sort) -> String {
    let look = Look {
        migrated: false,
        clock: interval.now.clock,
    };
    let values: HashMap<_, _> = (interval.now.metrics.iter())
        .map(|metric| (key(metric), value(&metric.value)))
        .collect();
    let row = |grown: &&Metric| {
        let now = values.get(&key(grown)).cloned().unwrap_or_default();
        row(grown, now, interval.passed, look)
    };
    let chosen = choose(interval.growth, filter, sort);
    let rows: Vec<Vec<String>> = chosen.iter().map(row).collect();
    table(&COLUMNS, &rows, 1..COLUMNS.len())
}

fn key(metric: &Metric) -> (&str, &Labels, &str) {
    (&metric.name, &metric.labels, metric.unit)
}

fn row(grown: &Metric, now: String, passed: Duration, look: Look) -> Vec<String> {
    let rate = |amount| per_second(amount, passed);
    let blank = String::new;
    let [rate, time, avg, bytes] = match &grown.value {
        Value::Counter(by) => {
            let rate = look.scaled(rate(*by), grown.unit);
            [rate, blank(), blank(), blank()]
        }
        Value::Span(span) => [
            scaled(rate(span.events), units::EVENTS),
            scaled(rate(span.time), units::TIME),
            known(span.events, || {
                scaled(average(span.time, span.events), units::TIME)
            }),
            known(span.byte_events, || scaled(rate(span.bytes), units::BYTES)),
        ],
        Value::Histogram(values) => {
            let avg = mean(values).map_or(blank(), |mean| look.scaled(mean, grown.unit));
            let rate = scaled(rate(values.count()), units::EVENTS);
            [rate, blank(), avg, blank()]
        }
        // What a gauge is says more than what it changed by.
        _ => [blank(), blank(), blank(), blank()],
    };
    vec![names::of(grown), rate, now, time, avg, bytes]
}

fn known(count: u64, text: impl Fn() -> String) -> String {
    if count == 0 { String::new() } else { text() }
}

fn value(value: &Value) -> String {
    match value {
        Value::Counter(value) => value.to_string(),
        Value::Gauge(gauge) if gauge.low == gauge.high => gauge.low.to_string(),
        Value::Gauge(gauge) => format!("{}..{}", gauge.low, gauge.high),
        Value::Batch(value) | Value::Tree(value) => value.sum.to_string(),
        Value::Span(span) => span.events.to_string(),
        Value::Histogram(values) => values.count().to_string(),
        _ => String::new(),
    }
}

/// A rate, rounded.
fn per_second(amount: u64, passed: Duration) -> u64 {
    let nanoseconds = passed.as_nanos().max(1);
    let rate = (u128::from(amount) * 1_000_000_000 + nanoseconds / 2) / nanoseconds;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;
    use countersink::reader::Span;

    #[test]
    fn rates_are_per_second_and_values_are_totals() {
        let growth = [
            counter("requests", 30),
            gauge("in_flight", -2, -2),
            span(
                "read",
                Span {
                    events: 3_000,
                    time: 1_500_000_000,
                    byte_events: 1,
                    bytes: 6_000_000,
                    ..Span::default()
                },
            ),
            span("idle", Span::default()),
            metric("size", Value::Histogram(buckets())),
        ];
        let now = snapshot(vec![
            counter("requests", 1_000),
            gauge("in_flight", 3, 3),
            span("read", published()),
            span("idle", published()),
            metric("size", Value::Histogram(buckets())),
        ]);
        let interval = Interval {
            growth: &growth,
            now: &now,
            passed: Duration::from_secs(3),
        };
        insta::assert_snapshot!(render(&interval, None, Sort::Name), @r#"
        metric     per second   value  time/s    avg  bytes/s
        requests           10    1000
        in_flight                   3
        read               1K  598430   500ms  500us      2mb
        idle                0  598430     0ns
        size               33     100              6
        "#);
    }

    #[test]
    fn rates_never_overflow() {
        assert_eq!(per_second(u64::MAX, Duration::ZERO), u64::MAX);
        assert_eq!(per_second(5, Duration::from_secs(2)), 3);
        assert_eq!(per_second(1, Duration::MAX), 0);
    }
}
