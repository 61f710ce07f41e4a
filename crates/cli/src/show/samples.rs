//! Snapshots by hand.

use std::time::Duration;

use countersink::reader::{
    Buckets, Clock, ClockKind, Extremes, Gauge, Info, Kind, Mechanism, Metric, Per, Snapshot, Span,
    Value,
};

pub(crate) fn clock() -> Clock {
    Clock {
        kind: ClockKind::Cycles,
        ticks_per_second: 2_000_000_000,
        ticks: 0,
        nanoseconds: 0,
    }
}

pub(crate) fn info() -> Info {
    Info {
        pid: 4242,
        uid: 1000,
        start_time: 12_345,
        pid_namespace: 4_026_531_836,
        boot: [7; 16],
        program: "demo".to_owned(),
        library: [0, 1, 0],
        mechanism: Mechanism::Rseq,
        mechanism_reason: "restartable sequences, registered by the C library".to_owned(),
        hindrance: String::new(),
        kind: Kind::Memfd,
        cpus: 2,
        entries: 1024,
        segments: 16,
        clock: clock(),
        created: Duration::from_secs(1_175_983_573),
    }
}

pub(crate) fn snapshot(metrics: Vec<Metric>) -> Snapshot {
    Snapshot {
        taken: Duration::from_secs(100),
        clock: clock(),
        metrics,
        refusals: Vec::new(),
        refused: 0,
        resets: 0,
        last_reset: Duration::ZERO,
        problems: Vec::new(),
    }
}

pub(crate) fn metric(name: &str, value: Value) -> Metric {
    Metric {
        name: name.to_owned(),
        group: None,
        labels: Vec::new(),
        help: String::new(),
        unit: if matches!(value, Value::Span(_)) {
            "nanoseconds"
        } else {
            ""
        },
        entry: 0,
        generation: 0,
        torn: false,
        value,
        lanes: Vec::new(),
    }
}

pub(crate) fn counter(name: &str, value: u64) -> Metric {
    metric(name, Value::Counter(value))
}

pub(crate) fn gauge(name: &str, low: i64, high: i64) -> Metric {
    metric(name, Value::Gauge(Gauge { low, high }))
}

/// A span as the mail of 2007 shows it.
pub(crate) fn published() -> Span {
    Span {
        events: 598_430,
        time: 5_600_000,
        times: extremes(3, 322),
        ..Span::default()
    }
}

pub(crate) fn span(name: &str, span: Span) -> Metric {
    metric(name, Value::Span(Box::new(span)))
}

pub(crate) fn extremes(min: u64, max: u64) -> Option<Extremes> {
    Some(Extremes { min, max })
}

/// The values 1 to 10, ten times each, in buckets of their own.
pub(crate) fn buckets() -> Buckets {
    Buckets {
        grouping: 5,
        sum: Some(550),
        buckets: (1..=10).map(|value| (value, 10)).collect(),
    }
}

pub(crate) fn on_lanes(mut metric: Metric, lanes: Vec<(Per, Value)>) -> Metric {
    metric.lanes = lanes;
    metric
}
