//! A reset of a region with every kind of metric, changed in a few places: resets map a region, and write
//! to it.
#![no_main]

use std::fs::File;
use std::sync::LazyLock;

use countersink::reader::{Labels, Region, Snapshot, Taken, Value};
use countersink_fuzz::change::change;
use countersink_fuzz::{build, look_at};
use libfuzzer_sys::fuzz_target;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

static REGION: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let bytes = build::region();
    let taken = region_of(&bytes).expect("a region").reset(&[]);
    assert_eq!(taken.expect("it can be reset").len(), 7);
    bytes
});

fn region_of(bytes: &[u8]) -> Option<Region> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("countersink", flags).expect("a memfd"));
    build::fill(&file, bytes).expect("memory");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("sealed");
    Region::of_descriptor(file.into()).ok()
}

/// A name, labels, and a value.
type Named<'a> = (&'a str, &'a Labels, &'a Value);

fn named(snapshot: &Snapshot) -> Vec<Named<'_>> {
    let metrics = snapshot.metrics.iter();
    metrics
        .map(|metric| (&*metric.name, &metric.labels, &metric.value))
        .collect()
}

/// What is counted in a value of a kind.
fn counts(value: &Value) -> Option<(u32, [u64; 4])> {
    match value {
        Value::Counter(count) => Some((1, [*count, 0, 0, 0])),
        Value::Span(span) => {
            let counts = [span.events, span.byte_events, span.bytes, span.skipped];
            Some((3, counts))
        }
        Value::Histogram(buckets) => Some((4, [buckets.count(), 0, 0, 0])),
        _ => None,
    }
}

/// The counts of the metrics with a name, labels and kind, added up.
fn sum(metrics: &[Named], name: &str, labels: &Labels, kind: u32) -> Option<[u64; 4]> {
    let these = metrics
        .iter()
        .filter(|metric| (metric.0, metric.1) == (name, labels));
    let counts = these
        .filter_map(|metric| counts(metric.2))
        .filter(|counts| counts.0 == kind);
    counts
        .map(|counts| counts.1)
        .reduce(|sum, counts| std::array::from_fn(|at| sum[at].wrapping_add(counts[at])))
}

/// What was there is what was taken and what is there still.
fn assert_conserved(before: &Snapshot, taken: &[Taken], after: &Snapshot) {
    let taken = taken
        .iter()
        .map(|taken| (&*taken.name, &taken.labels, &taken.value));
    let (before, taken, after) = (named(before), taken.collect::<Vec<_>>(), named(after));
    for (name, labels, value) in &before {
        let Some((kind, _)) = counts(value) else {
            continue;
        };
        let sum = |metrics: &[Named]| sum(metrics, name, labels, kind);
        // An entry that nobody else used is gone now.
        if let (Some(was), Some(took), Some(is)) = (sum(&before), sum(&taken), sum(&after)) {
            let all: [u64; 4] = std::array::from_fn(|at| took[at].wrapping_add(is[at]));
            assert_eq!(was, all, "{name} {took:?} {is:?}");
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut bytes = REGION.clone();
    let mut parts = build::PARTS.to_vec();
    parts.push(build::INDEX);
    change(&mut bytes, &parts, input);
    let Some(region) = region_of(&bytes) else {
        return;
    };
    let Ok(before) = region.snapshot() else {
        return;
    };
    if let Ok(taken) = region.reset(&[]) {
        let after = region.snapshot().expect("it is still there");
        assert_conserved(&before, &taken, &after);
    }
    look_at(&region);
});
