//! What the targets have in common.

pub mod build;
pub mod change;

use countersink::reader::{Region, Snapshot, Value, escape, growth};

/// Does everything that can be done with bytes.
pub fn look_at_bytes(bytes: Vec<u8>) {
    if let Ok(region) = Region::of_bytes(bytes) {
        look_at(&region);
    }
}

/// Makes sure that what the targets change is valid before: otherwise they would test little.
pub fn assert_valid(region: &Region) {
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.problems, [""; 0]);
    assert_eq!((snapshot.metrics.len(), snapshot.refused), (12, 3));
    // Words 0 and 1 of two lanes, less the bias.
    let mut metrics = snapshot.metrics.iter();
    let counter = metrics.find(|metric| metric.name == "counter");
    assert_eq!(counter.expect("a counter").value, Value::Counter(1));
}

/// Does everything that a reader can do with a region that does not change.
pub fn look_at(region: &Region) {
    let _ = (region.state(), region.id(), region.info().creator());
    let Ok(snapshot) = region.snapshot() else {
        return;
    };
    check(&snapshot);
    let again = Snapshot {
        taken: snapshot.taken,
        ..region.snapshot().expect("it could be read before")
    };
    assert!(snapshot == again, "nothing has changed");
    for metric in growth(&snapshot, &again) {
        assert!(!metric.new && !metric.reset);
        if let Value::Counter(grown) = metric.metric.value {
            assert_eq!(grown, 0);
        }
    }
    assert!(
        growth(
            &Snapshot {
                metrics: Vec::new(),
                ..again
            },
            &snapshot
        )
        .iter()
        .all(|metric| metric.new)
    );
}

/// What holds for every snapshot, whatever it was made of.
fn check(snapshot: &Snapshot) {
    assert!(snapshot.problems.len() <= 100);
    for metric in &snapshot.metrics {
        assert!(!metric.name.is_empty() && !metric.torn);
        for text in [&metric.name, &metric.help] {
            assert!(!escape(text).to_string().contains(char::is_control));
        }
        for value in [&metric.value]
            .into_iter()
            .chain(metric.lanes.iter().map(|lane| &lane.1))
        {
            check_value(value, snapshot);
        }
    }
}

fn check_value(value: &Value, snapshot: &Snapshot) {
    let parts = [0.0, 0.5, 0.9, 1.0];
    match value {
        Value::Gauge(gauge) => assert_eq!(gauge.low, gauge.high, "nobody counts"),
        Value::Span(span) => {
            for extremes in [span.times, span.byte_extremes].into_iter().flatten() {
                assert!(extremes.min <= extremes.max);
            }
            let times = parts.map(|part| span.percentile(part, &snapshot.clock));
            assert!(times.is_sorted(), "{times:?}");
        }
        Value::Histogram(buckets) => {
            let values = parts.map(|part| buckets.quantile(part));
            assert!(values.is_sorted(), "{values:?}");
            assert_eq!(buckets.mean().is_some(), values[0].is_some());
        }
        _ => {}
    }
}
