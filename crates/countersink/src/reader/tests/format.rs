//! Headers and entries that are not as they should be.

use crate::layout::{ENTRY, entry, header};
use crate::reader::testing::{Builder, CPU, Spec, count, counter, histogram, life, named, span};
use crate::reader::{Kind, Mechanism, OpenError, Region};

#[test]
fn a_header_is_read() {
    let mut builder = Builder::new();
    builder.put(header::REFUSALS + 8 * 5, &7_u64.to_ne_bytes());
    builder.put(
        header::REFUSED,
        &[2_u32.to_ne_bytes(), 5_u32.to_ne_bytes()].concat(),
    );
    builder.put(header::REFUSED + 8, &3_u64.to_ne_bytes());
    builder.put(header::REFUSED + header::REFUSED_NAME, b"wanted");
    let region = builder.region();
    let info = region.info();
    assert_eq!((info.pid, info.library), (4711, [1, 2, 3]));
    assert_eq!((info.mechanism, info.kind), (Mechanism::Rseq, Kind::Memfd));
    assert_eq!(
        (
            info.program.as_str(),
            format!("{}, {}", info.mechanism_reason, info.hindrance).as_str()
        ),
        ("program", "because, full")
    );
    assert_eq!((info.cpus, info.entries, info.segments), (2, 128, 2));
    let snapshot = region.snapshot().expect("a snapshot");
    assert_eq!(snapshot.refused, 7);
    let refusal = &snapshot.refusals[0];
    assert_eq!((refusal.name.as_str(), refusal.times), ("wanted", 3));
    assert_eq!(refusal.reason, "no room for another metric");
    assert_eq!(snapshot.problems, [""; 0]);
}

#[test]
fn every_field_that_others_depend_on_is_checked() {
    for (at, size) in [
        (header::MAGIC, 8),
        (header::VERSION, 4),
        (header::BYTE_ORDER, 4),
        (header::SIZE, 8),
        (header::READY, 4),
        (header::CPUS, 4),
        (header::STRIDE, 4),
        (header::MECHANISM, 4),
        (header::ENTRIES, 4),
        (header::SEGMENTS, 4),
        (header::GROUPS, 4),
        (header::ENTRY_SIZE, 4),
        (header::INDEX_OFFSET, 8),
        (header::ENTRIES_OFFSET, 8),
        (header::SEGMENTS_OFFSET, 8),
        (header::SEGMENT_SIZE, 8),
        (header::CLOCK, 4),
        (header::KIND, 4),
    ] {
        for byte in 0..size {
            for flip in [0x80, 0xff] {
                let mut builder = Builder::new();
                builder.bytes[at + byte] ^= flip;
                let result = Region::of_bytes(builder.bytes);
                assert!(result.is_err(), "field at {at}, byte {byte} ^ {flip:#x}");
            }
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let opened = |at, bytes: &[u8]| {
        let mut builder = Builder::new();
        builder.put(at, bytes);
        Region::of_bytes(builder.bytes).expect_err("no region")
    };
    assert!(matches!(
        opened(header::READY, &[0; 4]),
        OpenError::NotReady { .. }
    ));
    let version = opened(header::VERSION, &9_u32.to_ne_bytes());
    assert!(matches!(
        version,
        OpenError::OtherVersion { version: 9, .. }
    ));
    let order = opened(header::BYTE_ORDER, &0x0403_0201_u32.to_ne_bytes());
    assert!(order.to_string().contains("another byte order"), "{order}");
    let magic = opened(header::MAGIC, b"CSINKREX");
    assert!(magic.to_string().contains("is not a region"), "{magic}");
}

#[test]
fn what_was_cut_off_is_missing_or_an_error() {
    let mut builder = Builder::new();
    builder.entry(&counter("first", 0));
    builder.entry(&Spec {
        segment: 1,
        ..counter("second", 0)
    });
    builder.words(CPU, 0, &[5]);
    let at = builder.word_at(1, CPU + 1, 0);
    builder.put(at, &8_u64.to_ne_bytes());
    let layout = builder.layout;
    let parts = [
        0,
        1,
        8,
        4095,
        4096,
        layout.index(),
        layout.entries_offset(),
        layout.entries_offset() + ENTRY as u64,
        layout.entries_offset() + ENTRY as u64 + 1,
        layout.segments_offset(),
        layout.segments_offset() + layout.segment_size(),
        at as u64,
        at as u64 + 7,
        at as u64 + 8,
        layout.size() - 1,
        layout.size(),
    ];
    for length in parts {
        let bytes = builder.bytes[..length as usize].to_vec();
        let Ok(region) = Region::of_bytes(bytes) else {
            assert!(length < 4096, "{length}");
            continue;
        };
        let snapshot = region.snapshot().expect("a snapshot");
        assert_eq!(
            snapshot.problems.is_empty(),
            length == layout.size(),
            "{length}"
        );
        for metric in &snapshot.metrics {
            let expected = if metric.name == "first" { 5 } else { 8 };
            assert_eq!(count(&snapshot, &metric.name), expected, "{length}");
        }
        assert_eq!(
            snapshot.metrics.len() == 2,
            length >= at as u64 + 8,
            "{length}"
        );
    }
}

#[test]
fn longer_than_said_is_no_region() {
    let mut builder = Builder::new();
    builder.bytes.push(0);
    assert!(matches!(
        Region::of_bytes(builder.bytes),
        Err(OpenError::NotRegion { .. })
    ));
}

#[test]
fn texts_of_entries_are_read() {
    let mut builder = Builder::new();
    builder.entry(&Spec {
        group: 5,
        labels: br#"cpu="1",path="C:\\""#.to_vec(),
        help: "hélp".into(),
        unit: 1,
        ..counter("rwsem_wake", 0)
    });
    let snapshot = builder.snapshot();
    let metric = named(&snapshot, "rwsem_wake");
    assert_eq!(metric.group.as_deref(), Some("rwsem"));
    let labels: Vec<_> = metric
        .labels
        .iter()
        .map(|(name, value)| (&name[..], &value[..]))
        .collect();
    assert_eq!(labels, [("cpu", "1"), ("path", "C:\\")]);
    assert_eq!((metric.help.as_str(), metric.unit), ("hélp", "bytes"));
    assert_eq!((metric.entry, metric.generation), (0, 1));
}

#[test]
fn impossible_entries_are_left_out_and_reported() {
    let good = counter("good", 0);
    let bad = |change: fn(&mut Spec)| {
        let mut spec = counter("bad_name", 100);
        change(&mut spec);
        spec
    };
    let specs = [
        bad(|spec| spec.name = vec![b'a', 0xff]),
        bad(|spec| spec.name.clear()),
        bad(|spec| spec.name = vec![b'a'; 256]),
        bad(|spec| spec.labels = b"x".to_vec()),
        bad(|spec| spec.labels = vec![0xff]),
        bad(|spec| spec.help = vec![0xc3]),
        bad(|spec| spec.group = 2),
        bad(|spec| spec.group = 9),
        bad(|spec| spec.words = 2),
        bad(|spec| spec.words = 0),
        bad(|spec| spec.word = 8192),
        bad(|spec| spec.word = u32::MAX),
        bad(|spec| spec.segment = 2),
        bad(|spec| spec.segment = u32::MAX),
        bad(|spec| spec.unit = 4),
        bad(|spec| spec.grouping = 1),
        bad(|spec| {
            *spec = Spec {
                grouping: 8,
                ..histogram("bad_name", 100)
            }
        }),
        bad(|spec| {
            *spec = Spec {
                grouping: 0,
                ..histogram("bad_name", 100)
            }
        }),
        bad(|spec| {
            *spec = Spec {
                grouping: 2,
                ..histogram("bad_name", 100)
            }
        }),
        bad(|spec| {
            *spec = Spec {
                words: 15,
                ..span("bad_name", 100, false)
            }
        }),
        bad(|spec| {
            *spec = Spec {
                word: 8191,
                ..span("bad_name", 100, false)
            }
        }),
        bad(|spec| spec.kind = 5),
        bad(|spec| spec.kind = 0),
    ];
    for spec in specs {
        let mut builder = Builder::new();
        builder.entry(&good);
        builder.entry(&spec);
        builder.words(CPU, 0, &[3]);
        let snapshot = builder.snapshot();
        assert_eq!(count(&snapshot, "good"), 3);
        assert_eq!(snapshot.metrics.len(), 1, "{spec:?}");
        assert_eq!(
            snapshot.problems.len(),
            1,
            "{spec:?}: {:?}",
            snapshot.problems
        );
    }
}

#[test]
fn lengths_that_reach_beyond_the_entry_are_refused() {
    for (field, length) in [
        (entry::NAME_LENGTH, 449),
        (entry::LABELS_LENGTH, 449),
        (entry::HELP_LENGTH, 449),
        (entry::HELP_LENGTH, u16::MAX),
    ] {
        let mut builder = Builder::new();
        let number = builder.entry(&counter("a", 0));
        let at = builder.entry_at(number, field);
        builder.put(at, &length.to_ne_bytes());
        let snapshot = builder.snapshot();
        assert_eq!((snapshot.metrics.len(), snapshot.problems.len()), (0, 1));
    }
}

#[test]
fn what_is_not_ready_is_no_metric() {
    for state in [0, 1, 3, 4, 0xff] {
        let mut builder = Builder::new();
        builder.entry(&Spec {
            life: life(state, 1),
            ..counter("a", 0)
        });
        let snapshot = builder.snapshot();
        assert_eq!(
            (snapshot.metrics.len(), snapshot.problems.len()),
            (0, 0),
            "{state}"
        );
    }
}

#[test]
fn overlapping_words_belong_to_nobody() {
    for (first, second) in [
        (counter("a", 7), counter("b", 7)),
        (histogram("a", 0), counter("b", 66)),
        (counter("a", 66), histogram("b", 0)),
        (span("a", 0, false), span("b", 15, false)),
    ] {
        let mut builder = Builder::new();
        builder.entry(&first);
        builder.entry(&second);
        builder.entry(&counter("good", 500));
        builder.words(CPU, 500, &[9]);
        let snapshot = builder.snapshot();
        assert_eq!((snapshot.metrics.len(), count(&snapshot, "good")), (1, 9));
        assert_eq!(snapshot.problems.len(), 2);
    }
}

#[test]
fn one_long_entry_overlaps_several() {
    let mut builder = Builder::new();
    builder.entry(&histogram("long", 0));
    builder.entry(&counter("a", 1));
    builder.entry(&counter("b", 50));
    builder.entry(&counter("good", 67));
    let snapshot = builder.snapshot();
    assert_eq!(snapshot.metrics.len(), 1);
    assert_eq!(named(&snapshot, "good").entry, 3);
}

#[test]
fn problems_are_few_however_many_entries_are_wrong() {
    let mut builder = Builder::new();
    for word in 0..100 {
        builder.entry(&Spec {
            unit: 9 + word,
            ..counter("a", word)
        });
    }
    let problems = builder.snapshot().problems;
    assert_eq!(problems.len(), 33);
    assert_eq!(
        problems.last().map(String::as_str),
        Some("and 68 problems more")
    );
}

#[test]
fn more_entries_than_there_is_room_for_are_reported() {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.put(header::ENTRIES_USED, &u64::MAX.to_ne_bytes());
    let snapshot = builder.snapshot();
    assert_eq!((snapshot.metrics.len(), snapshot.problems.len()), (1, 1));
}
