//! What a reader outside sees of this process's region.

use countersink::reader::{Metric, Region, Snapshot, Span, Value};

/// The one region of a process.
pub(crate) fn region_of(pid: u32) -> Region {
    let mut regions = Region::of_process(pid).expect("a process with a region");
    assert_eq!(regions.len(), 1, "regions of process {pid}");
    regions.remove(0)
}

/// What all metrics of this process hold.
pub(crate) fn snapshot() -> Snapshot {
    snapshot_of(&region_of(std::process::id()))
}

/// The same of a region that is open; nothing may be wrong with it.
pub(crate) fn snapshot_of(region: &Region) -> Snapshot {
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, [""; 0]);
    snapshot
}

/// A metric without labels.
pub(crate) fn metric<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Metric {
    find(snapshot, name).unwrap_or_else(|| panic!("{name} is not there"))
}

pub(crate) fn find<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Metric> {
    let mut metrics = snapshot.metrics.iter();
    metrics.find(|metric| metric.name == name && metric.labels.is_empty())
}

/// The member of a family with one label.
pub(crate) fn member<'a>(snapshot: &'a Snapshot, name: &str, value: &str) -> &'a Metric {
    let mut metrics = snapshot.metrics.iter();
    let is_it = |metric: &&Metric| {
        metric.name == name && metric.labels.iter().any(|(_, held)| held == value)
    };
    metrics
        .find(is_it)
        .unwrap_or_else(|| panic!("{name} {value} is not there"))
}

#[track_caller]
pub(crate) fn count_of(metric: &Metric) -> u64 {
    match metric.value {
        Value::Counter(count) => count,
        ref other => panic!("{} is {other:?}", metric.name),
    }
}

/// A counter's value.
#[track_caller]
pub(crate) fn counter(snapshot: &Snapshot, name: &str) -> u64 {
    count_of(metric(snapshot, name))
}

/// A gauge's value, while nobody changes it.
#[track_caller]
pub(crate) fn gauge(snapshot: &Snapshot, name: &str) -> i64 {
    match &metric(snapshot, name).value {
        Value::Gauge(gauge) if gauge.low == gauge.high => gauge.low,
        other => panic!("{name} is {other:?}"),
    }
}

/// A span's values.
#[track_caller]
pub(crate) fn span<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Span {
    match &metric(snapshot, name).value {
        Value::Span(span) => span,
        other => panic!("{name} is {other:?}"),
    }
}
