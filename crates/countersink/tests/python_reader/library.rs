//! What the library's reader says, as the script would say it.

use std::collections::BTreeMap;

use countersink::reader::{Buckets, Clock, Metric, Region, Snapshot, Value};
use serde_json::{Value as Json, json};

use crate::common::read::snapshot_of;

/// Compares with the library's reader: all metrics, all of their numbers. Nobody counts meanwhile.
pub(crate) fn compare(answer: &Json, region: &Region) {
    let snapshot = snapshot_of(region);
    let info = region.info();
    assert_eq!(answer["pid"], info.pid);
    assert_eq!(answer["program"], info.program);
    assert_eq!(answer["why"], info.mechanism_reason);
    assert_eq!(answer["cpus"], info.cpus);
    assert_eq!(answer["ticks_per_second"], snapshot.clock.ticks_per_second);
    assert_eq!(answer["resets"], snapshot.resets);
    assert_eq!(answer["refused"], snapshot.refused);
    let metrics = answer["metrics"].as_array().expect("metrics");
    let expected = said_of_all(&snapshot);
    assert_eq!(metrics.len(), expected.len());
    for (metric, expected) in metrics.iter().zip(&expected) {
        assert_eq!(metric, expected);
    }
}

fn said_of_all(snapshot: &Snapshot) -> Vec<Json> {
    let metrics = snapshot.metrics.iter();
    metrics
        .map(|metric| said(metric, &snapshot.clock))
        .collect()
}

/// A metric as the script would say it.
fn said(metric: &Metric, clock: &Clock) -> Json {
    let labels = metric.labels.iter().map(|(name, value)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{}\"", value.replace('\n', "\\n"))
    });
    let (kind, value) = match &metric.value {
        Value::Counter(value) => ("counter", json!({ "value": value })),
        Value::Gauge(gauge) => ("gauge", json!({ "low": gauge.low, "high": gauge.high })),
        Value::Span(span) => ("span", said_of_span(span, clock)),
        Value::Histogram(buckets) => {
            let mut value = said_of_buckets(buckets, |value| value);
            value["sum"] = json!(buckets.sum);
            ("histogram", value)
        }
        Value::Batch(value) => ("batch", said_of_bounded(value)),
        Value::Tree(value) => ("tree", said_of_bounded(value)),
        other => panic!("{} is {other:?}", metric.name),
    };
    json!({
        "name": metric.name,
        "group": metric.group.as_deref().unwrap_or_default(),
        "labels": labels.collect::<Vec<_>>().join(","),
        "label_values": metric.labels.iter().cloned().collect::<BTreeMap<_, _>>(),
        "help": metric.help,
        "unit": metric.unit,
        "entry": metric.entry,
        "generation": metric.generation,
        "torn": metric.torn,
        "kind": kind,
        "value": value,
    })
}

fn said_of_bounded(value: &countersink::reader::Bounded) -> Json {
    json!({ "value": value.sum, "estimate": value.estimate, "bound": value.bound })
}

fn said_of_span(span: &countersink::reader::Span, clock: &Clock) -> Json {
    let mut value = json!({
        "events": span.events,
        "time_ns": span.time,
        "min_ns": span.times.map(|times| times.min),
        "max_ns": span.times.map(|times| times.max),
        "byte_events": span.byte_events,
        "bytes": span.bytes,
        "min_bytes": span.byte_extremes.map(|bytes| bytes.min),
        "max_bytes": span.byte_extremes.map(|bytes| bytes.max),
        "migrated": span.migrated,
        "skipped": span.skipped,
        "invalid": span.invalid,
    });
    if let Some(times) = &span.histogram {
        value["times_ns"] = said_of_buckets(times, |ticks| clock.nanoseconds_of(ticks));
    }
    value
}

fn said_of_buckets(buckets: &Buckets, scale: impl Fn(u64) -> u64) -> Json {
    let quantile = |q| buckets.quantile(q).map(&scale);
    json!({
        "count": buckets.count(),
        "mean": buckets.mean().map(&scale),
        "p50": quantile(0.5),
        "p90": quantile(0.9),
        "p99": quantile(0.99),
        "buckets": buckets.buckets,
    })
}
