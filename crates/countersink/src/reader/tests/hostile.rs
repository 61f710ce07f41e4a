//! Any bytes at all.

use proptest::prelude::*;

use crate::layout::{Layout, MOST_CPUS};
use crate::reader::testing::{BIAS, Builder, CPU, Spec, count, counter, gauge, histogram, span};
use crate::reader::{Region, Value, escape, growth};

/// A region with one metric of each kind.
fn full() -> Builder {
    let mut builder = Builder::new();
    for spec in [
        counter("c", 0),
        gauge("g", 2),
        span("s", 16, true),
        histogram("h", 200),
        span("t", 400, false),
    ] {
        builder.entry(&spec);
    }
    builder.words(BIAS, 20, &[1]).words(CPU, 0, &[1, 2, 3, 4]);
    builder.words(CPU, 32, &(0..300).collect::<Vec<u64>>());
    builder
}

/// Does everything that can be done with a region.
fn look_at(bytes: Vec<u8>) {
    let Ok(region) = Region::of_bytes(bytes) else {
        return;
    };
    let snapshot = region.snapshot().expect("bytes can be read");
    assert!(snapshot.problems.len() <= 33);
    for metric in &snapshot.metrics {
        let _ = escape(&metric.name);
        if let Value::Span(span) = &metric.value {
            let _ = span.percentile(0.5, &snapshot.clock);
        }
    }
    let _ = growth(&snapshot, &snapshot);
}

proptest! {
    #[test]
    fn random_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..8192)) {
        look_at(bytes);
    }

    #[test]
    fn changed_regions_are_survived(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0..8_u32), 1..8),
        length in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = full().bytes;
        // The parts where there is something: header, first entries, first words of the lanes.
        let layout = Builder::new().layout;
        let parts: Vec<usize> = (0..1600)
            .chain(0..5 * 512)
            .chain((0..10 * 8192).map(|at| at / 8192 * 65_536 + at % 8192))
            .collect();
        let (entries, segments) = (layout.entries_offset() as usize, layout.segments_offset() as usize);
        for (index, value, kind) in changes {
            let chosen = index.index(parts.len());
            let at = parts[chosen] + match chosen {
                0..1600 => 0,
                1600..4160 => entries,
                _ => segments,
            };
            let value = match kind {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (value % 64),
                3 => value % 300,
                _ => value,
            };
            let size = 1 << (kind % 4);
            if let Some(place) = bytes.get_mut(at..at + size) {
                place.copy_from_slice(&value.to_ne_bytes()[..size]);
            }
        }
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len() + 1));
        }
        look_at(bytes);
    }

    #[test]
    fn changed_entries_are_survived(
        bytes in proptest::collection::vec(any::<u8>(), 64 * 8),
        lengths in proptest::collection::vec(0..200_u16, 32),
    ) {
        let mut builder = full();
        for (number, bytes) in (0..8).zip(bytes.chunks(64)) {
            let at = builder.entry_at(number, 12);
            builder.put(at, &bytes[..24]);
            for (length, field) in lengths[4 * number as usize..][..4].iter().zip([36, 38, 40, 42]) {
                let at = builder.entry_at(number, field);
                builder.put(at, &length.to_ne_bytes());
            }
        }
        look_at(builder.bytes);
    }
}

/// All entries claim all words: without checking overlaps first, this takes days.
#[test]
fn overlapping_claims_take_no_time() {
    let layout = Layout::new(64, 65_536, 1).expect("allowed");
    let mut builder = Builder::with(layout);
    for _ in 0..65_536 {
        builder.entry(&Spec {
            grouping: 7,
            words: 7552,
            ..histogram("h", 0)
        });
    }
    let snapshot = builder.snapshot();
    assert!(snapshot.metrics.is_empty());
    assert!(!snapshot.problems.is_empty());
}

/// As many CPUs as there can be, in a file that is a hole.
#[cfg(unix)]
#[test]
fn the_largest_region_is_read() {
    use std::os::unix::fs::FileExt;

    let layout = Layout::new(MOST_CPUS, 128, 256).expect("allowed");
    let mut header = Builder::with(Layout::new(1, 128, 1).expect("allowed"));
    header.layout = layout;
    header.bytes.truncate(layout.segments_offset() as usize);
    header.describe();
    header.entry(&Spec {
        segment: 255,
        ..counter("last", 8191)
    });
    let file = tempfile::Builder::new()
        .suffix(".countersink")
        .tempfile()
        .expect("a file");
    file.as_file()
        .write_all_at(&header.bytes, 0)
        .expect("written");
    if file.as_file().set_len(layout.size()).is_err() {
        // The file system does not take such files.
        return;
    }
    let last = layout.segments_offset()
        + 255 * layout.segment_size()
        + (u64::from(MOST_CPUS) + 1) * 65_536;
    file.as_file()
        .write_all_at(&7_u64.to_ne_bytes(), last + 8 * 8191)
        .expect("written");
    let region = Region::open_file(file.path()).expect("a region");
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(count(&snapshot, "last"), 7, "{:?}", snapshot.problems);
}
