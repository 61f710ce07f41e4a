//! `show --json`: everything, as raw integers with their units.

use std::collections::BTreeMap;

use countersink::reader::{
    Bounded, Buckets, Clock, ClockKind, Info, Metric, Per, Refusal, Snapshot, Span, Value,
};
use serde::Serialize;

use super::select::lane_name;
use super::text::{kind, mechanism};

pub(super) const SCHEMA: &str = "countersink-show/1";

/// One region.
#[derive(Debug, Serialize)]
pub(super) struct Region<'a> {
    /// The processes that have it, and whether any is alive.
    pids: &'a [u32],
    state: &'a str,
    program: &'a str,
    /// What made it.
    pid: u32,
    uid: u32,
    library: String,
    mechanism: &'static str,
    mechanism_reason: &'a str,
    /// Why it is not where its program wanted it; empty if it is.
    hindrance: &'a str,
    kind: &'static str,
    cpus: u32,
    clock: JsonClock,
    created_unix_ns: u64,
    taken_monotonic_ns: u64,
    resets: u64,
    last_reset_unix_ns: Option<u64>,
    metrics: Vec<JsonMetric<'a>>,
    /// What they grew by since the line before.
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<Vec<JsonMetric<'a>>>,
    refused: u64,
    refusals: Vec<JsonRefusal<'a>>,
    problems: &'a [String],
}

#[derive(Debug, Serialize)]
struct JsonClock {
    kind: &'static str,
    ticks_per_second: u64,
}

#[derive(Debug, Serialize)]
struct JsonRefusal<'a> {
    name: &'a str,
    reason: &'a str,
    times: u64,
}

/// A metric.
#[derive(Debug, Serialize)]
pub(crate) struct JsonMetric<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, &'a str>,
    help: &'a str,
    /// Of counters, gauges and the values of histograms; times of spans say theirs.
    unit: &'static str,
    generation: u32,
    torn: bool,
    #[serde(flatten)]
    value: JsonValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<Vec<JsonLane>>,
}

#[derive(Debug, Serialize)]
struct JsonLane {
    lane: String,
    #[serde(flatten)]
    value: JsonValue,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum JsonValue {
    Counter { value: u64 },
    Gauge { low: i64, high: i64 },
    Batch(JsonBounded),
    Tree(JsonBounded),
    Span(JsonSpan),
    Histogram(JsonBuckets),
    Unknown,
}

#[derive(Debug, Serialize)]
struct JsonBounded {
    value: i64,
    estimate: i64,
    /// The farthest that the value may be from the estimate, if that is known.
    bound: Option<u64>,
}

#[derive(Debug, Serialize)]
struct JsonSpan {
    events: u64,
    skipped: u64,
    migrated: u64,
    invalid: u64,
    time_ns: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    byte_events: u64,
    bytes: u64,
    min_bytes: Option<u64>,
    max_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentiles_ns: Option<Percentiles>,
    /// In ticks of the region's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    histogram_ticks: Option<JsonBuckets>,
}

#[derive(Debug, Serialize)]
struct JsonBuckets {
    count: u64,
    /// `null` where it is not kept.
    sum: Option<u64>,
    percentiles: Option<Percentiles>,
    grouping: u32,
    /// Least value, largest value, how many; those that are not empty.
    buckets: Vec<[u64; 3]>,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    p50: u64,
    p90: u64,
    p99: u64,
}

fn percentiles(quantile: impl Fn(f64) -> Option<u64>) -> Option<Percentiles> {
    let [p50, p90, p99] = super::lines::percentiles(quantile)?;
    Some(Percentiles { p50, p90, p99 })
}

/// Puts a region into JSON's terms.
pub(super) fn region<'a>(
    (pids, state): (&'a [u32], &'a str),
    info: &'a Info,
    snapshot: &'a Snapshot,
    metrics: &[&'a Metric],
    with_lanes: bool,
) -> Region<'a> {
    let [major, minor, patch] = info.library;
    Region {
        pids,
        state,
        program: &info.program,
        pid: info.pid,
        uid: info.uid,
        library: format!("{major}.{minor}.{patch}"),
        mechanism: mechanism(info.mechanism),
        mechanism_reason: &info.mechanism_reason,
        hindrance: &info.hindrance,
        kind: kind(info.kind),
        cpus: info.cpus,
        clock: clock(&snapshot.clock),
        created_unix_ns: nanoseconds(info.created),
        taken_monotonic_ns: nanoseconds(snapshot.taken),
        resets: snapshot.resets,
        last_reset_unix_ns: (snapshot.resets > 0).then(|| nanoseconds(snapshot.last_reset)),
        metrics: metrics
            .iter()
            .map(|m| JsonMetric::of(m, &snapshot.clock, with_lanes))
            .collect(),
        growth: None,
        refused: snapshot.refused,
        refusals: snapshot.refusals.iter().map(refusal).collect(),
        problems: &snapshot.problems,
    }
}

impl<'a> Region<'a> {
    /// Adds what metrics grew by.
    pub(super) fn with_growth(mut self, grown: &[&'a Metric], snapshot: &Snapshot) -> Self {
        let grown = grown
            .iter()
            .map(|m| JsonMetric::of(m, &snapshot.clock, false));
        self.growth = Some(grown.collect());
        self
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn clock(clock: &Clock) -> JsonClock {
    let kind = match clock.kind {
        ClockKind::Cycles => "cycles",
        ClockKind::CyclesOfEachCpu => "cycles_of_each_cpu",
        ClockKind::Monotonic => "monotonic",
        _ => "unknown",
    };
    JsonClock {
        kind,
        ticks_per_second: clock.ticks_per_second,
    }
}

fn refusal(refusal: &Refusal) -> JsonRefusal<'_> {
    JsonRefusal {
        name: &refusal.name,
        reason: &refusal.reason,
        times: refusal.times,
    }
}

impl<'a> JsonMetric<'a> {
    /// Puts a metric into JSON's terms, with its lanes if asked for.
    pub(crate) fn of(metric: &'a Metric, clock: &Clock, with_lanes: bool) -> Self {
        let labels = metric.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        let lane = |(lane, of_lane): &(Per, Value)| JsonLane {
            lane: lane_name(*lane),
            value: value(of_lane, clock),
        };
        JsonMetric {
            name: &metric.name,
            group: metric.group.as_deref(),
            labels: labels.collect(),
            help: &metric.help,
            unit: metric.unit,
            generation: metric.generation,
            torn: metric.torn,
            value: value(&metric.value, clock),
            lanes: with_lanes.then(|| metric.lanes.iter().map(lane).collect()),
        }
    }
}

fn value(value: &Value, clock: &Clock) -> JsonValue {
    match value {
        Value::Counter(value) => JsonValue::Counter { value: *value },
        Value::Gauge(gauge) => JsonValue::Gauge {
            low: gauge.low,
            high: gauge.high,
        },
        Value::Batch(value) => JsonValue::Batch(bounded(value)),
        Value::Tree(value) => JsonValue::Tree(bounded(value)),
        Value::Span(value) => JsonValue::Span(span(value, clock)),
        Value::Histogram(values) => JsonValue::Histogram(buckets(values)),
        _ => JsonValue::Unknown,
    }
}

fn bounded(value: &Bounded) -> JsonBounded {
    JsonBounded {
        value: value.sum,
        estimate: value.estimate,
        bound: value.bound,
    }
}

fn span(span: &Span, clock: &Clock) -> JsonSpan {
    JsonSpan {
        events: span.events,
        skipped: span.skipped,
        migrated: span.migrated,
        invalid: span.invalid,
        time_ns: span.time,
        min_ns: span.times.map(|times| times.min),
        max_ns: span.times.map(|times| times.max),
        byte_events: span.byte_events,
        bytes: span.bytes,
        min_bytes: span.byte_extremes.map(|bytes| bytes.min),
        max_bytes: span.byte_extremes.map(|bytes| bytes.max),
        percentiles_ns: percentiles(|q| span.percentile(q, clock)),
        histogram_ticks: span.histogram.as_ref().map(buckets),
    }
}

fn buckets(values: &Buckets) -> JsonBuckets {
    let bounded = |(number, count): &(usize, u64)| {
        let (low, high) = values.bounds(*number)?;
        Some([low, high, *count])
    };
    JsonBuckets {
        count: values.count(),
        sum: values.sum,
        percentiles: percentiles(|q| values.quantile(q)),
        grouping: values.grouping,
        buckets: values.buckets.iter().filter_map(bounded).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{
        self, counter, extremes, gauge, info, on_lanes, published, snapshot,
    };
    use super::*;
    use serde_json::{Value as Json, json};

    fn render(metrics: Vec<Metric>, with_lanes: bool) -> Json {
        let (info, snapshot) = (info(), snapshot(metrics));
        let metrics: Vec<&Metric> = snapshot.metrics.iter().collect();
        let region = region((&[1, 2], "alive"), &info, &snapshot, &metrics, with_lanes);
        serde_json::to_value(region).expect("JSON")
    }

    #[test]
    fn integers_are_raw_and_whole() {
        let mut labelled = counter("requests", u64::MAX);
        labelled.labels = vec![("method".to_owned(), "GET".to_owned())];
        labelled.group = Some("http".to_owned());
        labelled.help = "answered".to_owned();
        let measured = Span {
            byte_events: 2,
            bytes: 3,
            byte_extremes: extremes(0, 3),
            histogram: Some(samples::buckets()),
            ..published()
        };
        let json = render(
            vec![
                labelled,
                gauge("level", i64::MIN, -1),
                samples::span("read", measured),
            ],
            false,
        );
        assert_eq!(
            json["metrics"][0],
            json!({
                "name": "requests", "group": "http", "labels": {"method": "GET"}, "help": "answered",
                "unit": "", "generation": 0, "torn": false, "kind": "counter", "value": u64::MAX,
            })
        );
        assert_eq!(json["metrics"][1]["low"], i64::MIN);
        let read = &json["metrics"][2];
        assert_eq!(
            (&read["kind"], &read["time_ns"]),
            (&json!("span"), &json!(5_600_000))
        );
        assert_eq!(
            (&read["min_ns"], &read["min_bytes"]),
            (&json!(3), &json!(0))
        );
        // 5 ticks of half a nanosecond each, within the shortest and the longest time.
        assert_eq!(
            read["percentiles_ns"],
            json!({"p50": 3, "p90": 5, "p99": 5})
        );
        let histogram = &read["histogram_ticks"];
        assert_eq!(
            (&histogram["count"], &histogram["percentiles"]["p50"]),
            (&json!(100), &json!(5))
        );
        assert_eq!(histogram["buckets"][9], json!([10, 10, 10]));
        assert_eq!(json["clock"]["ticks_per_second"], 2_000_000_000);
        assert_eq!(json["last_reset_unix_ns"], Json::Null);
    }

    #[test]
    fn nothing_measured_is_null_and_not_zero() {
        let json = render(vec![samples::span("never", Span::default())], false);
        let never = &json["metrics"][0];
        for field in ["min_ns", "max_ns", "min_bytes", "max_bytes"] {
            assert_eq!(never[field], Json::Null, "{field}");
            assert!(never.get(field).is_some(), "{field}");
        }
    }

    #[test]
    fn lanes_are_there_on_request() {
        let of = || {
            let lanes = vec![
                (Per::Cpu(1), Value::Counter(3)),
                (Per::Shared, Value::Counter(4)),
            ];
            vec![on_lanes(counter("a", 7), lanes)]
        };
        assert_eq!(render(of(), false)["metrics"][0].get("lanes"), None);
        assert_eq!(
            render(of(), true)["metrics"][0]["lanes"],
            json!([
                {"lane": "1", "kind": "counter", "value": 3},
                {"lane": "shared", "kind": "counter", "value": 4},
            ])
        );
    }
}
