//! A small region and a core file with it, the same everywhere, so that an input means the same
//! everywhere. Built from `docs/region-format.md`.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const UNIT: usize = 65_536;
const ENTRIES: usize = 2 * UNIT;
const ENTRY: usize = 512;
const SEGMENT: usize = 3 * UNIT;
/// CPUs of the region. With the shared and the bias lane there are three.
const CPUS: usize = 1;
const SIZE: usize = SEGMENT + (CPUS + 2) * UNIT;

/// What is used of the region: both parts of the header, the entries, the words of each lane.
pub const PARTS: [Range<usize>; 6] = [
    0..448,
    1024..2560,
    ENTRIES..ENTRIES + METRICS.len() * ENTRY,
    SEGMENT..SEGMENT + 4096,
    SEGMENT + UNIT..SEGMENT + UNIT + 4096,
    SEGMENT + 2 * UNIT..SEGMENT + 2 * UNIT + 4096,
];

/// The index, which only those look at who write.
pub const INDEX: Range<usize> = UNIT..ENTRIES;

/// Name, labels, kind, unit, grouping field, first word, words.
type Entry = (&'static str, &'static str, u32, u32, u32, u32, u32);

/// Two of them are one metric.
const METRICS: [Entry; 11] = [
    ("counter", "", 1, 0, 0, 0, 1),
    ("counter", "", 1, 0, 0, 1, 1),
    ("family", r#"a="1\n",b="\"""#, 1, 1, 0, 2, 1),
    ("gauge", "", 2, 0, 0, 4, 2),
    ("span", "", 3, 3, 0, 16, 16),
    ("times", "", 3, 3, 1, 32, 16 + 65),
    ("sizes", "", 4, 1, 1 << 8 | 1, 128, 2 + 65),
    ("group_event", "", 4, 2, 2, 200, 2 + 128),
    ("batch", "", 5, 0, 1, 336, 4),
    ("batches", "", 5, 0, 3, 340, 8),
    ("tree", "", 6, 0, 0, 352, 20),
];

fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    bytes[at..at + new.len()].copy_from_slice(new);
}

fn put_u32s(bytes: &mut [u8], fields: &[(usize, u32)]) {
    for (at, value) in fields {
        put(bytes, *at, &value.to_ne_bytes());
    }
}

fn put_u64s(bytes: &mut [u8], fields: &[(usize, u64)]) {
    for (at, value) in fields {
        put(bytes, *at, &value.to_ne_bytes());
    }
}

/// A region with one CPU, 128 entries, one segment.
pub fn region() -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    put_header(&mut bytes);
    for (number, metric) in METRICS.iter().enumerate() {
        put_entry(&mut bytes, ENTRIES + number * ENTRY, metric);
    }
    put_words(&mut bytes);
    bytes
}

fn put_header(bytes: &mut [u8]) {
    put(bytes, 0, b"CSINKREG");
    let u32s = [
        (8, 1),
        (12, 0x0102_0304),
        (24, 1),
        (28, CPUS as u32),
        (32, UNIT as u32),
        (36, 1),
        (40, 128),
        (44, 1),
        (48, 512),
        (52, ENTRY as u32),
        (88, 1),
        (92, 1),
        (120, 4711),
        (160, 0x0001_0203),
    ];
    put_u32s(bytes, &u32s);
    let u64s = [
        (16, SIZE as u64),
        (56, UNIT as u64),
        (64, ENTRIES as u64),
        (72, SEGMENT as u64),
        (80, ((CPUS + 2) * UNIT) as u64),
        (96, 1_000_000),
        (104, 500_000),
        (1024, METRICS.len() as u64),
        (1032, 400),
        (1040, 1),
        (1056, 2_000_000_000),
        (1344 + 8, 3),
        (1536 + 8, 3),
    ];
    put_u64s(bytes, &u64s);
    put(bytes, 192, b"program");
    put(bytes, 256, b"because");
    put_u32s(bytes, &[(1536, 2), (1540, 1)]);
    put(bytes, 1536 + 16, b"1bad");
}

fn put_entry(bytes: &mut [u8], at: usize, metric: &Entry) {
    let (name, labels, kind, unit, grouping, word, words) = *metric;
    let help = "What it counts";
    put_u64s(bytes, &[(at, 2 | 1 << 8 | 1 << 32)]);
    let fields = [
        (at + 8, kind),
        (at + 12, unit),
        (at + 20, word),
        (at + 24, words),
        (at + 28, grouping),
    ];
    put_u32s(bytes, &fields);
    let group = if name.starts_with("group") { 5 } else { 0 };
    let lengths = [name.len(), group, labels.len(), help.len()];
    for (number, length) in lengths.into_iter().enumerate() {
        put(bytes, at + 36 + 2 * number, &(length as u16).to_ne_bytes());
    }
    put(bytes, at + 64, [name, labels, help].concat().as_bytes());
}

/// Small numbers in every lane, and extremes of the present generations.
fn put_words(bytes: &mut [u8]) {
    for lane in [0, 2] {
        for word in 0..400 {
            put_u64s(
                bytes,
                &[(SEGMENT + lane * UNIT + 8 * word, word as u64 % 7)],
            );
        }
        for span in [16, 32] {
            let pairs = SEGMENT + lane * UNIT + 8 * (span + 4);
            for (pair, value) in [900, 10, 4096, 1].into_iter().enumerate() {
                put_u64s(
                    bytes,
                    &[(pairs + 16 * pair, 1), (pairs + 16 * pair + 8, value)],
                );
            }
        }
    }
    let bias = SEGMENT + UNIT;
    put_u64s(
        bytes,
        &[
            (bias + 8 * 20, 1),
            (bias + 8 * 36, 1),
            (bias, 1_u64.wrapping_neg()),
        ],
    );
}

/// Where the region begins in the core file.
const MEMORY: usize = 4096;
/// Where the core file's notes begin, and how long they are.
const NOTES: Range<usize> = 64 + 3 * 56..64 + 3 * 56 + 20 + NOTE;
const NAMES: &[u8] = b"/memfd:countersink (deleted)\0/memfd:countersink (deleted)\0";
const NOTE: usize = 16 + 2 * 24 + NAMES.len();
const ADDRESS: u64 = 0x7f00_0000_0000;

/// What is used of the core file: headers and notes, and the parts of the region.
pub fn core_parts() -> Vec<Range<usize>> {
    let region = PARTS.map(|part| part.start + MEMORY..part.end + MEMORY);
    [0..64, 64..NOTES.start, NOTES]
        .into_iter()
        .chain(region)
        .collect()
}

/// A core file with that region, which was mapped in two parts.
pub fn core() -> Vec<u8> {
    let mut bytes = vec![0; MEMORY];
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    put(&mut bytes, 0, &[0x7f, b'E', b'L', b'F', 2, order, 1]);
    for (at, value) in [(16, 4_u16), (54, 56), (56, 3)] {
        put(&mut bytes, at, &value.to_ne_bytes());
    }
    put_u64s(&mut bytes, &[(32, 64)]);
    let (first, rest) = (SEGMENT as u64, (SIZE - SEGMENT) as u64);
    let loads = [
        (ADDRESS, MEMORY as u64, first),
        (ADDRESS + first, MEMORY as u64 + first, rest),
    ];
    put_u32s(&mut bytes, &[(64, 4)]);
    put_u64s(
        &mut bytes,
        &[(64 + 8, NOTES.start as u64), (64 + 32, NOTES.len() as u64)],
    );
    for (number, (address, at, size)) in loads.into_iter().enumerate() {
        let header = 64 + 56 * (number + 1);
        put_u32s(&mut bytes, &[(header, 1)]);
        let fields = [(8, at), (16, address), (32, size), (40, size)];
        put_u64s(
            &mut bytes,
            &fields.map(|(field, value)| (header + field, value)),
        );
    }
    put_note(&mut bytes, first, rest);
    bytes.extend(region());
    bytes
}

fn put_note(bytes: &mut [u8], first: u64, rest: u64) {
    let note = NOTES.start;
    put_u32s(
        bytes,
        &[(note, 5), (note + 4, NOTE as u32), (note + 8, 0x4649_4c45)],
    );
    put(bytes, note + 12, b"CORE\0");
    let files = [
        2,
        4096,
        ADDRESS,
        ADDRESS + first,
        0,
        ADDRESS + first,
        ADDRESS + first + rest,
        first / 4096,
    ];
    for (number, value) in files.into_iter().enumerate() {
        put_u64s(bytes, &[(note + 20 + 8 * number, value)]);
    }
    put(bytes, note + 20 + 8 * files.len(), NAMES);
}

/// Fills an empty file, in which pages of zeros become holes.
///
/// # Errors
///
/// Those of the file system.
pub fn fill(file: &File, bytes: &[u8]) -> io::Result<()> {
    file.set_len(bytes.len() as u64)?;
    for (number, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|byte| *byte != 0) {
            file.write_all_at(page, number as u64 * 4096)?;
        }
    }
    Ok(())
}
