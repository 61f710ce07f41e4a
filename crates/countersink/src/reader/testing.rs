//! Regions for tests, made of bytes.

use std::io;
use std::sync::{Arc, Mutex};

use super::model::{Metric, Snapshot, Value};
use super::os::Holder;
use super::snapshot::Region;
use super::source::{Bytes, Source};
use crate::layout::{BYTE_ORDER, ENTRY, Layout, MAGIC, UNIT, VERSION, entry, header};

/// The shared lane.
pub(super) const SHARED: u64 = 0;
/// The bias lane.
pub(super) const BIAS: u64 = 1;
/// The lane of CPU 0.
pub(super) const CPU: u64 = 2;

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) kind: u32,
    pub(super) unit: u32,
    pub(super) segment: u32,
    pub(super) word: u32,
    pub(super) words: u32,
    pub(super) grouping: u32,
    pub(super) name: Vec<u8>,
    pub(super) group: u16,
    pub(super) labels: Vec<u8>,
    pub(super) help: Vec<u8>,
    pub(super) life: u64,
}

/// A counter that is ready.
pub(super) fn counter(name: &str, word: u32) -> Spec {
    Spec {
        kind: 1,
        unit: 0,
        segment: 0,
        word,
        words: 1,
        grouping: 0,
        name: name.into(),
        group: 0,
        labels: Vec::new(),
        help: Vec::new(),
        life: life(2, 1),
    }
}

/// A gauge that is ready.
pub(super) fn gauge(name: &str, word: u32) -> Spec {
    Spec {
        kind: 2,
        words: 2,
        ..counter(name, word)
    }
}

/// A span without a histogram, or with one of grouping power 0, of 65 buckets.
pub(super) fn span(name: &str, word: u32, histogram: bool) -> Spec {
    Spec {
        kind: 3,
        unit: 3,
        words: if histogram { 16 + 65 } else { 16 },
        grouping: u32::from(histogram),
        ..counter(name, word)
    }
}

/// A histogram of grouping power 0.
pub(super) fn histogram(name: &str, word: u32) -> Spec {
    Spec {
        kind: 4,
        words: 2 + 65,
        grouping: 1,
        ..counter(name, word)
    }
}

/// The life of an entry with one user.
pub(super) fn life(state: u64, generation: u64) -> u64 {
    state | 1 << 8 | generation << 32
}

/// A region in the making.
#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) layout: Layout,
    pub(super) bytes: Vec<u8>,
    entries: u32,
}

impl Builder {
    /// Two CPUs, 128 entries, two segments.
    pub(super) fn new() -> Self {
        Builder::with(Layout::new(2, 128, 2).expect("allowed"))
    }

    /// A region of any layout.
    pub(super) fn with(layout: Layout) -> Self {
        let size = usize::try_from(layout.size()).expect("fits");
        let mut builder = Builder {
            layout,
            bytes: vec![0; size],
            entries: 0,
        };
        builder.describe();
        builder
    }

    /// Fills in the header.
    pub(super) fn describe(&mut self) {
        let layout = self.layout;
        self.put(header::MAGIC, &MAGIC);
        for (at, value) in [
            (header::VERSION, VERSION),
            (header::BYTE_ORDER, BYTE_ORDER),
            (header::READY, 1),
            (header::CPUS, layout.cpus),
            (header::STRIDE, UNIT as u32),
            (header::MECHANISM, 1),
            (header::ENTRIES, layout.entries),
            (header::SEGMENTS, layout.segments),
            (header::GROUPS, layout.groups()),
            (header::ENTRY_SIZE, ENTRY as u32),
            (header::CLOCK, 3),
            (header::KIND, 1),
            (header::PID, 4711),
            (header::LIBRARY, 0x0001_0203),
        ] {
            self.put(at, &value.to_ne_bytes());
        }
        for (at, value) in [
            (header::SIZE, layout.size()),
            (header::INDEX_OFFSET, layout.index()),
            (header::ENTRIES_OFFSET, layout.entries_offset()),
            (header::SEGMENTS_OFFSET, layout.segments_offset()),
            (header::SEGMENT_SIZE, layout.segment_size()),
            (header::TICKS_PER_SECOND, 1_000_000_000),
        ] {
            self.put(at, &value.to_ne_bytes());
        }
        self.put(header::PROGRAM, b"program");
        self.put(header::REASON, b"because");
        self.put(header::HINDRANCE, b"full");
    }

    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Where an entry's field is.
    pub(super) fn entry_at(&self, number: u32, field: usize) -> usize {
        self.layout.entries_offset() as usize + number as usize * ENTRY + field
    }

    /// Adds an entry.
    pub(super) fn entry(&mut self, spec: &Spec) -> u32 {
        let number = self.entries;
        self.entries += 1;
        let at = |field| self.layout.entries_offset() as usize + number as usize * ENTRY + field;
        let fields = [
            (entry::KIND, spec.kind),
            (entry::UNIT, spec.unit),
            (entry::SEGMENT, spec.segment),
            (entry::WORD, spec.word),
            (entry::WORDS, spec.words),
            (entry::GROUPING, spec.grouping),
        ];
        let lengths = [
            (entry::NAME_LENGTH, spec.name.len() as u16),
            (entry::GROUP_LENGTH, spec.group),
            (entry::LABELS_LENGTH, spec.labels.len() as u16),
            (entry::HELP_LENGTH, spec.help.len() as u16),
        ];
        let text = [&spec.name[..], &spec.labels, &spec.help].concat();
        let places = (
            fields.map(|field| (at(field.0), field.1)),
            lengths.map(|length| (at(length.0), length.1)),
        );
        let (life_at, text_at) = (at(entry::LIFE), at(entry::TEXT));
        for (at, value) in places.0 {
            self.put(at, &value.to_ne_bytes());
        }
        for (at, value) in places.1 {
            self.put(at, &value.to_ne_bytes());
        }
        self.put(life_at, &spec.life.to_ne_bytes());
        self.put(text_at, &text);
        self.put(header::ENTRIES_USED, &u64::from(self.entries).to_ne_bytes());
        number
    }

    /// Where a word is.
    pub(super) fn word_at(&self, segment: u64, lane: u64, word: u64) -> usize {
        (self.layout.segments_offset()
            + segment * self.layout.segment_size()
            + lane * UNIT
            + 8 * word) as usize
    }

    /// Sets words of a lane of the first segment.
    pub(super) fn words(&mut self, lane: u64, word: u64, values: &[u64]) -> &mut Self {
        let at = self.word_at(0, lane, word);
        for (number, value) in values.iter().enumerate() {
            self.put(at + 8 * number, &value.to_ne_bytes());
        }
        self
    }

    pub(super) fn region(&self) -> Region {
        Region::of_bytes(self.bytes.clone()).expect("a region")
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.region().snapshot().expect("a snapshot")
    }
}

/// The metric with a name.
pub(super) fn named<'a>(snapshot: &'a Snapshot, name: &str) -> &'a Metric {
    let mut found = snapshot.metrics.iter().filter(|metric| metric.name == name);
    let metric = found.next().expect("a metric of that name");
    assert!(found.next().is_none(), "several are called {name}");
    metric
}

/// The value of the counter with a name.
pub(super) fn count(snapshot: &Snapshot, name: &str) -> u64 {
    match named(snapshot, name).value {
        Value::Counter(count) => count,
        ref other => panic!("{name} is {other:?}"),
    }
}

/// What happens to a region, at each read of an offset.
type Event = dyn FnMut(&mut Vec<u8>, u64) + Send;

/// A region to which something happens before every read.
pub(super) struct Live {
    state: Mutex<(Vec<u8>, Box<Event>)>,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}

impl Live {
    pub(super) fn source(
        bytes: Vec<u8>,
        event: impl FnMut(&mut Vec<u8>, u64) + Send + 'static,
    ) -> Arc<dyn Source> {
        Arc::new(Live {
            state: Mutex::new((bytes, Box::new(event))),
        })
    }

    /// The region. Its header was read once when it is opened.
    pub(super) fn region(
        bytes: Vec<u8>,
        event: impl FnMut(&mut Vec<u8>, u64) + Send + 'static,
    ) -> Region {
        let source = Live::source(bytes, event);
        Region::new(Box::new(source), "live".to_owned(), None, Holder::Nobody).expect("a region")
    }
}

impl Source for Live {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state.lock().expect("not poisoned");
        let (bytes, event) = &mut *state;
        event(bytes, offset);
        let copy = Bytes(std::mem::take(bytes));
        let result = copy.read_at(buffer, offset);
        *bytes = copy.0;
        result
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.state.lock().expect("not poisoned").0.len() as u64)
    }
}

/// A word in bytes.
pub(super) fn word(bytes: &mut [u8], at: usize) -> &mut [u8; 8] {
    (&mut bytes[at..at + 8]).try_into().expect("eight bytes")
}

/// Adds to a word.
pub(super) fn bump(bytes: &mut [u8], at: usize, by: u64) {
    let word = word(bytes, at);
    *word = u64::from_ne_bytes(*word).wrapping_add(by).to_ne_bytes();
}

/// Numbers that look random: a linear congruential generator's upper bits.
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
