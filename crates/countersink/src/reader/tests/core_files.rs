//! Core files.

use std::io::Write;

use proptest::prelude::*;

use crate::reader::testing::{Builder, CPU, Spec, count, counter};
use crate::reader::{OpenError, Region, State};

/// Where the region was mapped.
const ADDRESS: u64 = 0x7f00_0000_0000;

/// A mapping: its part of the region, and how much of it was dumped.
#[derive(Clone, Copy)]
struct Part {
    start: usize,
    end: usize,
    dumped: usize,
}

/// A core file, with a mapping of something else first.
fn core(region: &[u8], parts: &[Part], name: &str) -> Vec<u8> {
    let mut table = Vec::new();
    let mut add = |numbers: [u64; 3]| table.extend(numbers.map(u64::to_ne_bytes).concat());
    add([0x1000, 0x2000, 0]);
    for part in parts {
        let (start, end) = (part.start as u64, part.end as u64);
        add([ADDRESS + start, ADDRESS + end, start / 4096]);
    }
    let mut note = [parts.len() as u64 + 1, 4096]
        .map(u64::to_ne_bytes)
        .concat();
    note.extend(table);
    note.extend(b"/bin/program\0");
    for _ in parts {
        note.extend(name.as_bytes());
        note.push(0);
    }
    let mut notes = Vec::new();
    for (kind, content) in [(1_u32, &[0; 6][..]), (0x4649_4c45, &note)] {
        notes.extend(
            [5, content.len() as u32, kind]
                .map(u32::to_ne_bytes)
                .concat(),
        );
        notes.extend(b"CORE\0\0\0\0");
        notes.extend(content);
        notes.resize(notes.len().next_multiple_of(4), 0);
    }
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(&[
        0x7f,
        b'E',
        b'L',
        b'F',
        2,
        if cfg!(target_endian = "little") { 1 } else { 2 },
    ]);
    bytes[16..18].copy_from_slice(&4_u16.to_ne_bytes());
    bytes[32..40].copy_from_slice(&64_u64.to_ne_bytes());
    bytes[54..56].copy_from_slice(&56_u16.to_ne_bytes());
    bytes[56..58].copy_from_slice(&(parts.len() as u16 + 1).to_ne_bytes());
    let data = 64 + 56 * (parts.len() + 1);
    let mut header = |kind: u32, offset: usize, address: u64, file: usize, memory: usize| {
        bytes.extend([kind, 0].map(u32::to_ne_bytes).concat());
        let numbers = [offset as u64, address, 0, file as u64, memory as u64, 0];
        bytes.extend(numbers.map(u64::to_ne_bytes).concat());
    };
    header(4, data, 0, notes.len(), 0);
    let mut at = data + notes.len();
    for part in parts {
        header(
            1,
            at,
            ADDRESS + part.start as u64,
            part.dumped,
            part.end - part.start,
        );
        at += part.dumped;
    }
    bytes.extend(notes);
    for part in parts {
        bytes.extend(&region[part.start..part.start + part.dumped]);
    }
    bytes
}

/// The regions of a core file.
fn opened(bytes: &[u8]) -> Result<Vec<Region>, OpenError> {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    Region::in_core(file.path())
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.entry(&counter("a", 0));
    builder.entry(&Spec {
        segment: 1,
        ..counter("b", 3)
    });
    builder.words(CPU, 0, &[5]);
    let at = builder.word_at(1, CPU, 3);
    builder.put(at, &6_u64.to_ne_bytes());
    builder
}

/// The region as two mappings, the second one of the second segment.
fn parts(builder: &Builder) -> [Part; 2] {
    let middle = builder.word_at(1, 0, 0);
    let end = builder.bytes.len();
    let part = |start, end| Part {
        start,
        end,
        dumped: end - start,
    };
    [part(0, middle), part(middle, end)]
}

#[test]
fn a_dumped_region_is_read() {
    let builder = builder();
    for name in ["/memfd:countersink (deleted)", "/tmp/x.countersink"] {
        let regions = opened(&core(&builder.bytes, &parts(&builder), name)).expect("a core file");
        assert_eq!(
            (regions.len(), regions[0].id(), regions[0].state()),
            (1, None, State::Dead)
        );
        let snapshot = regions[0].snapshot().expect("a snapshot");
        assert_eq!((count(&snapshot, "a"), count(&snapshot, "b")), (5, 6));
        assert_eq!(snapshot.problems, [""; 0]);
    }
}

#[test]
fn what_was_not_dumped_is_missing_and_not_zero() {
    let builder = builder();
    let all = parts(&builder);
    for dumped in [0, 4096, 3 * 65_536 + 8] {
        let parts = [all[0], Part { dumped, ..all[1] }];
        let regions = opened(&core(
            &builder.bytes,
            &parts,
            "/memfd:countersink (deleted)",
        ))
        .expect("a core file");
        let snapshot = regions[0].snapshot().expect("a snapshot");
        assert_eq!(
            (snapshot.metrics.len(), count(&snapshot, "a")),
            (1, 5),
            "{dumped}"
        );
        assert_eq!(
            snapshot.problems,
            ["b is left out: its words are not all there"]
        );
    }
}

#[test]
fn a_region_that_was_left_out_is_told() {
    let builder = builder();
    let none = parts(&builder).map(|part| Part { dumped: 0, ..part });
    for (name, said) in [
        (
            "/tmp/x.countersink",
            " does not hold the region: it is in the file /tmp/x.countersink, which core files leave out",
        ),
        (
            "/memfd:countersink (deleted)",
            " does not hold the region: it was dumped without shared anonymous memory, bit 1 of \
             /proc/PID/coredump_filter",
        ),
    ] {
        let error = opened(&core(&builder.bytes, &none, name)).expect_err("nothing was dumped");
        assert!(error.to_string().ends_with(said), "{error}");
    }
}

#[test]
fn files_without_a_region_say_so() {
    let builder = builder();
    let good = core(
        &builder.bytes,
        &parts(&builder),
        "/memfd:countersink (deleted)",
    );
    for (at, value) in [(0, 0), (4, 1), (5, 9), (16, 2), (54, 1)] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert!(
            matches!(opened(&bytes), Err(OpenError::NoCore { .. })),
            "{at}"
        );
    }
    assert!(matches!(opened(b""), Err(OpenError::NoCore { .. })));
    assert!(matches!(
        opened(&good[..100]),
        Err(OpenError::NoCore { .. })
    ));
    let other = core(&builder.bytes, &parts(&builder), "/memfd:other (deleted)");
    let error = opened(&other).expect_err("no region");
    assert!(
        error
            .to_string()
            .ends_with("is a core file without a region"),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_core_files_are_survived(changes in proptest::collection::vec((0..700_usize, any::<u8>()), 1..6)) {
        let builder = builder();
        let mut bytes = core(&builder.bytes, &parts(&builder), "/memfd:countersink (deleted)");
        for (at, value) in changes {
            bytes[at] = value;
        }
        if let Ok(regions) = opened(&bytes) {
            for region in regions {
                let _ = region.snapshot().expect("files can be read");
            }
        }
    }
}
