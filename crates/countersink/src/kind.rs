//! What kinds of metrics there are.

use crate::layout;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Span,
    Histogram,
    /// One batch counter, or many.
    Batch,
    Tree,
}

impl Kind {
    /// The number in an entry.
    pub(crate) const fn code(self) -> u32 {
        match self {
            Kind::Counter => 1,
            Kind::Gauge => 2,
            Kind::Span => 3,
            Kind::Histogram => 4,
            Kind::Batch => 5,
            Kind::Tree => 6,
        }
    }

    /// The kind of a number.
    pub(crate) const fn of(code: u32) -> Option<Self> {
        match code {
            1 => Some(Kind::Counter),
            2 => Some(Kind::Gauge),
            3 => Some(Kind::Span),
            4 => Some(Kind::Histogram),
            5 => Some(Kind::Batch),
            6 => Some(Kind::Tree),
            _ => None,
        }
    }

    /// Whether words that were used are used again for the same kind only: their bias lane is no part of a sum.
    pub(crate) const fn keeps_words(self) -> bool {
        matches!(self, Kind::Batch | Kind::Tree)
    }

    /// The words of a metric; `grouping` is the field of its entry, which says how many counters there are
    /// where that can be many.
    pub(crate) const fn words(self, grouping: u32) -> usize {
        match self {
            Kind::Counter => 1,
            Kind::Gauge => 2,
            Kind::Span => layout::span::WORDS + buckets(grouping),
            Kind::Histogram => layout::histogram::WORDS + buckets(grouping),
            Kind::Batch => 2 + 2 * grouping as usize,
            Kind::Tree => layout::tree::WORDS,
        }
    }
}

/// The buckets of a histogram, whose grouping power and one are in the lowest bits of the field.
const fn buckets(grouping: u32) -> usize {
    match grouping & 0xff {
        0 => 0,
        grouping => layout::buckets(grouping - 1),
    }
}

/// What a metric's values are measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// They are just counted.
    #[default]
    None,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Ticks of the clock that spans use; what spans themselves are kept in.
    Ticks,
}

impl Unit {
    /// The number in an entry.
    pub(crate) const fn code(self) -> u32 {
        match self {
            Unit::None => 0,
            Unit::Bytes => 1,
            Unit::Nanoseconds => 2,
            Unit::Ticks => 3,
        }
    }
}
