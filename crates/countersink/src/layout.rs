//! Where everything is in a region: the numbers of `docs/region-format.md`, which writer and reader share.

use countersink_percpu::{STRIDE, WORDS};

/// The first bytes of a region.
pub(crate) const MAGIC: [u8; 8] = *b"CSINKREG";
/// The version of the format.
pub(crate) const VERSION: u32 = 1;
/// How the byte order field reads.
pub(crate) const BYTE_ORDER: u32 = 0x0102_0304;
/// Parts begin at multiples of this.
pub(crate) const UNIT: u64 = STRIDE as u64;
/// The used bytes of the header.
pub(crate) const HEADER: usize = 4096;
/// Bytes of an entry.
pub(crate) const ENTRY: usize = 512;
/// Entries that fit a unit.
pub(crate) const ENTRIES_IN_UNIT: u32 = (UNIT / ENTRY as u64) as u32;
/// Slots of an index group.
pub(crate) const GROUP: usize = 16;
/// More CPUs than kernels are built for.
pub(crate) const MOST_CPUS: u32 = 8192;
/// The most entries that a region has room for.
pub(crate) const MOST_ENTRIES: u32 = 65_536;
/// The most segments.
pub(crate) const MOST_SEGMENTS: u32 = 256;

/// Offsets in the header.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const VERSION: usize = 8;
    pub(crate) const BYTE_ORDER: usize = 12;
    pub(crate) const SIZE: usize = 16;
    pub(crate) const READY: usize = 24;
    pub(crate) const CPUS: usize = 28;
    pub(crate) const STRIDE: usize = 32;
    pub(crate) const MECHANISM: usize = 36;
    pub(crate) const ENTRIES: usize = 40;
    pub(crate) const SEGMENTS: usize = 44;
    pub(crate) const GROUPS: usize = 48;
    pub(crate) const ENTRY_SIZE: usize = 52;
    pub(crate) const INDEX_OFFSET: usize = 56;
    pub(crate) const ENTRIES_OFFSET: usize = 64;
    pub(crate) const SEGMENTS_OFFSET: usize = 72;
    pub(crate) const SEGMENT_SIZE: usize = 80;
    pub(crate) const CLOCK: usize = 88;
    pub(crate) const KIND: usize = 92;
    pub(crate) const CLOCK_TICKS: usize = 96;
    pub(crate) const CLOCK_NANOSECONDS: usize = 104;
    pub(crate) const CREATED: usize = 112;
    pub(crate) const PID: usize = 120;
    pub(crate) const UID: usize = 124;
    pub(crate) const START_TIME: usize = 128;
    pub(crate) const PID_NAMESPACE: usize = 136;
    pub(crate) const BOOT: usize = 144;
    pub(crate) const LIBRARY: usize = 160;
    pub(crate) const PROGRAM: usize = 192;
    pub(crate) const PROGRAM_LENGTH: usize = 64;
    pub(crate) const REASON: usize = 256;
    pub(crate) const REASON_LENGTH: usize = 192;
    pub(crate) const HINDRANCE: usize = 448;
    pub(crate) const HINDRANCE_LENGTH: usize = 128;

    pub(crate) const ENTRIES_USED: usize = 1024;
    pub(crate) const WORDS_USED: usize = 1032;
    pub(crate) const RESETS: usize = 1040;
    pub(crate) const LAST_RESET: usize = 1048;
    pub(crate) const TICKS_PER_SECOND: usize = 1056;
    pub(crate) const KEPT: usize = 1064;
    pub(crate) const FREE_LISTS: usize = 1088;
    pub(crate) const FREE_LIST_COUNT: usize = 16;
    pub(crate) const REFUSALS: usize = 1344;
    pub(crate) const REFUSAL_REASONS: usize = 16;
    pub(crate) const REFUSED: usize = 1536;
    pub(crate) const REFUSED_COUNT: usize = 16;
    pub(crate) const REFUSED_SIZE: usize = 64;
    pub(crate) const REFUSED_NAME: usize = 16;
    pub(crate) const REFUSED_NAME_LENGTH: usize = 48;
}

/// Offsets in an entry.
pub(crate) mod entry {
    pub(crate) const LIFE: usize = 0;
    pub(crate) const KIND: usize = 8;
    pub(crate) const UNIT: usize = 12;
    pub(crate) const SEGMENT: usize = 16;
    pub(crate) const WORD: usize = 20;
    pub(crate) const WORDS: usize = 24;
    pub(crate) const GROUPING: usize = 28;
    pub(crate) const HASH: usize = 32;
    pub(crate) const NAME_LENGTH: usize = 36;
    pub(crate) const GROUP_LENGTH: usize = 38;
    pub(crate) const LABELS_LENGTH: usize = 40;
    pub(crate) const HELP_LENGTH: usize = 42;
    pub(crate) const NEXT: usize = 44;
    pub(crate) const CREATED: usize = 48;
    pub(crate) const PID: usize = 56;
    pub(crate) const TEXT: usize = 64;
    pub(crate) const TEXT_LENGTH: usize = super::ENTRY - TEXT;
    pub(crate) const MOST_NAME: usize = 255;
}

/// The words of a span.
pub(crate) mod span {
    /// Events and their time.
    pub(crate) const TIME: usize = 0;
    /// Events with bytes and their bytes.
    pub(crate) const BYTES: usize = 2;
    /// Generation and longest time; in the bias lane, the generation and when it began.
    pub(crate) const LONGEST: usize = 4;
    /// Generation and shortest time.
    pub(crate) const SHORTEST: usize = 6;
    /// Generation and most bytes.
    pub(crate) const MOST_BYTES: usize = 8;
    /// Generation and fewest bytes.
    pub(crate) const FEWEST_BYTES: usize = 10;
    /// Events counted although the CPU changed.
    pub(crate) const MIGRATED: usize = 12;
    /// Events thrown away because the CPU changed.
    pub(crate) const SKIPPED: usize = 13;
    /// Events thrown away because the time was negative or absurd.
    pub(crate) const INVALID: usize = 14;
    /// How many words there are, before the buckets.
    pub(crate) const WORDS: usize = 16;
}

/// The words of a histogram.
pub(crate) mod histogram {
    /// The sum of all values, where it is kept.
    pub(crate) const SUM: usize = 0;
    /// How many words there are, before the buckets.
    pub(crate) const WORDS: usize = 2;
    /// The bit of an entry's grouping field that says that the sum is kept.
    pub(crate) const SUM_KEPT: u32 = 1 << 8;
}

/// The most batch counters that one entry can have.
pub(crate) const MOST_BATCHES: u32 = (WORDS as u32 - 2) / 2;

/// The words of a tree counter, behind the pair of the lane and the root.
pub(crate) mod tree {
    /// Two pairs for each level of groups.
    pub(crate) const GROUPS: usize = 2;
    /// In the bias lane, how much the root may not know.
    pub(crate) const SLACK: usize = 18;
    /// How many words there are.
    pub(crate) const WORDS: usize = 20;
}

/// The largest grouping power: the most buckets that fit a lane.
pub(crate) const MOST_GROUPING: u32 = 7;

/// How many buckets a histogram has.
pub(crate) const fn buckets(grouping: u32) -> usize {
    (2 << grouping) + ((63 - grouping as usize) << grouping)
}

/// The bucket of a value.
#[inline(always)]
pub(crate) const fn bucket(grouping: u32, value: u64) -> usize {
    // The values with a bucket each look as if their highest bit were that of 2^(g+1) - 1.
    let highest = 63 - (value | (1 << grouping)).leading_zeros();
    let row = highest - grouping;
    // Rows above the first begin 2^g buckets after each other; the value's top bit is bit g of the
    // shifted value, so it adds the 2^g that the first row has more.
    ((row as usize) << grouping) + (value >> row) as usize
}

/// The smallest value of a bucket.
pub(crate) const fn bucket_start(grouping: u32, bucket: usize) -> u64 {
    if bucket < 2 << grouping {
        return bucket as u64;
    }
    let row = (bucket >> grouping) - 1;
    let within = bucket as u64 & ((1 << grouping) - 1);
    ((1 << grouping) | within) << row
}

/// The largest value of a bucket.
pub(crate) const fn bucket_end(grouping: u32, bucket: usize) -> u64 {
    if bucket + 1 >= buckets(grouping) {
        u64::MAX
    } else {
        bucket_start(grouping, bucket + 1) - 1
    }
}

/// What decides where things are in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) cpus: u32,
    pub(crate) entries: u32,
    pub(crate) segments: u32,
}

impl Layout {
    /// A layout, if the numbers are among those that the format allows.
    pub(crate) fn new(cpus: u32, entries: u32, segments: u32) -> Option<Self> {
        let allowed = (1..=MOST_CPUS).contains(&cpus)
            && (ENTRIES_IN_UNIT..=MOST_ENTRIES).contains(&entries)
            && entries.is_multiple_of(ENTRIES_IN_UNIT)
            && (1..=MOST_SEGMENTS).contains(&segments);
        allowed.then_some(Layout {
            cpus,
            entries,
            segments,
        })
    }

    /// Groups of the index: two slots for each entry, in whole units.
    pub(crate) fn groups(self) -> u32 {
        (self.entries * 2 / GROUP as u32)
            .next_power_of_two()
            .max((UNIT as usize / (GROUP * 8)) as u32)
    }

    pub(crate) fn index(self) -> u64 {
        UNIT
    }

    pub(crate) fn entries_offset(self) -> u64 {
        UNIT + u64::from(self.groups()) * (GROUP * 8) as u64
    }

    pub(crate) fn segments_offset(self) -> u64 {
        self.entries_offset() + u64::from(self.entries) * ENTRY as u64
    }

    pub(crate) fn lanes(self) -> u32 {
        (self.cpus + 2) | 1
    }

    pub(crate) fn segment_size(self) -> u64 {
        u64::from(self.lanes()) * UNIT
    }

    pub(crate) fn size(self) -> u64 {
        self.segments_offset() + u64::from(self.segments) * self.segment_size()
    }

    /// Whether an entry's words lie in one of the segments.
    pub(crate) fn has_words(self, segment: u32, word: u32, words: u32) -> bool {
        segment < self.segments
            && words > 0
            && word
                .checked_add(words)
                .is_some_and(|end| end as usize <= WORDS)
    }
}

/// The layout that a region's first bytes describe, if they are those of a whole region of this
/// version and this machine's byte order. The reader says more exactly what is wrong.
#[allow(dead_code, reason = "not every system can join regions")]
pub(crate) fn of_header(bytes: &[u8]) -> Option<Layout> {
    let u32_at = |offset: usize| {
        let field = bytes.get(offset..offset + 4)?;
        Some(u32::from_ne_bytes(field.try_into().ok()?))
    };
    let u64_at = |offset: usize| {
        let field = bytes.get(offset..offset + 8)?;
        Some(u64::from_ne_bytes(field.try_into().ok()?))
    };
    let layout = Layout::new(
        u32_at(header::CPUS)?,
        u32_at(header::ENTRIES)?,
        u32_at(header::SEGMENTS)?,
    )?;
    let agrees = bytes.starts_with(&MAGIC)
        && u32_at(header::VERSION)? == VERSION
        && u32_at(header::BYTE_ORDER)? == BYTE_ORDER
        && u32_at(header::READY)? == 1
        && u64_at(header::SIZE)? == layout.size()
        && u32_at(header::STRIDE)? == STRIDE as u32
        && u32_at(header::GROUPS)? == layout.groups()
        && u32_at(header::ENTRY_SIZE)? == ENTRY as u32
        && u64_at(header::INDEX_OFFSET)? == layout.index()
        && u64_at(header::ENTRIES_OFFSET)? == layout.entries_offset()
        && u64_at(header::SEGMENTS_OFFSET)? == layout.segments_offset()
        && u64_at(header::SEGMENT_SIZE)? == layout.segment_size();
    agrees.then_some(layout)
}

/// FNV-1a over name, a zero byte, and labels.
pub(crate) fn hash(name: &[u8], labels: &[u8]) -> u32 {
    let bytes = name.iter().chain(&[0]).chain(labels);
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket() {
        for grouping in 0..=MOST_GROUPING {
            let powers = (0..64).map(|power| 1_u64 << power);
            let around = powers.flat_map(|v| [v - 1, v, v + 1, v.wrapping_mul(3) / 2]);
            for value in (0..1000).chain(around).chain([u64::MAX]) {
                let found = bucket(grouping, value);
                assert!(found < buckets(grouping), "{grouping} {value}");
                assert!(bucket_start(grouping, found) <= value, "{grouping} {value}");
                assert!(value <= bucket_end(grouping, found), "{grouping} {value}");
            }
        }
    }

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        for grouping in 0..=MOST_GROUPING {
            let mut next = 0_u64;
            for at in 0..buckets(grouping) {
                let (start, end) = (bucket_start(grouping, at), bucket_end(grouping, at));
                assert_eq!(start, next, "{grouping} {at}");
                assert!(end - start <= start >> grouping, "{grouping} {at}");
                assert_eq!((bucket(grouping, start), bucket(grouping, end)), (at, at));
                next = end.wrapping_add(1);
            }
            assert_eq!(next, 0);
        }
        assert_eq!((buckets(3), buckets(5), buckets(6)), (496, 1920, 3776));
        assert!(buckets(MOST_GROUPING) + span::WORDS <= WORDS);
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        for cpus in [1, 2, 3, 64, MOST_CPUS] {
            let layout = Layout::new(cpus, MOST_ENTRIES, MOST_SEGMENTS).expect("allowed");
            assert!(layout.entries_offset().is_multiple_of(UNIT));
            assert!(layout.segments_offset().is_multiple_of(UNIT));
            assert_eq!(layout.segment_size() / UNIT % 2, 1);
        }
        assert_eq!(Layout::new(0, 128, 1), None);
        assert_eq!(Layout::new(1, 64, 1), None);
        assert_eq!(Layout::new(1, 129, 1), None);
        assert_eq!(Layout::new(1, 128, 257), None);
    }

    #[test]
    fn hashes_tell_name_and_labels_apart() {
        assert_eq!(hash(b"", b""), 0x811c_9dc5_u32.wrapping_mul(0x0100_0193));
        assert_ne!(hash(b"a", b"b"), hash(b"ab", b""));
    }
}
