//! What the lanes hold: read so that each sum is one that a metric had.
//!
//! Bias words first, then all other lanes, then the bias words again. If a reset came in between, all
//! of it is repeated. Lanes before bias would give sums below zero: what is counted and taken after
//! the lane was read is in the bias, and not in the lane.

use std::io;

use super::entries::{Entry, Form};
use super::header::Fields;
use super::problems::Problems;
use super::source::{Source, fill};
use super::text::escape;
use crate::layout::{Layout, UNIT, span};

/// The lane that everyone may count on.
const SHARED: u32 = 0;
/// The lane that resets write.
const BIAS: u32 = 1;
/// The lane of CPU 0.
pub(super) const FIRST_CPU: u32 = 2;
/// How often a metric is read again that was being reset.
const MOST_REPEATS: u32 = 8;
/// The most bytes that are read for one snapshot: above what thousands of metrics use on hundreds of CPUs.
const MOST_BYTES: u64 = 4 << 30;
/// What a read counts for at least, so that their number is bounded, too.
const LEAST_BYTES: u64 = 4096;
/// The most words, over all lanes, of metrics that are read together, unless it is a single one.
const WORDS_TOGETHER: u64 = 4 << 20;
/// The most words that are kept for one snapshot.
const MOST_WORDS: usize = 16 << 20;

/// A metric's words in the lanes where they are not all zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    width: usize,
    lanes: Vec<u32>,
    words: Vec<u64>,
}

impl Lanes {
    fn new(width: usize) -> Self {
        Lanes {
            width,
            ..Lanes::default()
        }
    }

    /// Each lane's number and words, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u64])> {
        let words = self.words.chunks_exact(self.width.max(1));
        self.lanes.iter().copied().zip(words)
    }

    /// A word of a lane.
    pub(super) fn word(&self, lane: u32, word: usize) -> u64 {
        let words = self
            .lanes
            .binary_search(&lane)
            .ok()
            .filter(|_| word < self.width)
            .and_then(|at| self.words.get(at * self.width + word));
        words.copied().unwrap_or(0)
    }

    /// The sum of a word over all lanes.
    pub(super) fn sum(&self, word: usize) -> u64 {
        self.iter().fold(0, |sum, (_, words)| {
            sum.wrapping_add(words.get(word).copied().unwrap_or(0))
        })
    }
}

/// What was read of a metric.
#[derive(Debug)]
pub(super) struct Reading {
    /// Its bias words, which did not change unless it is torn.
    pub(super) bias: Vec<u64>,
    /// The bias words of a metric that publishes, read after its lanes.
    pub(super) bias_after: Vec<u64>,
    /// The words that are read before the others, too.
    pub(super) first: Lanes,
    /// All words.
    pub(super) lanes: Lanes,
    /// The words that are read after the others, too.
    pub(super) last: Lanes,
    /// Resets kept coming in between.
    pub(super) torn: bool,
}

/// Reads words, within bounds.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    source: &'a dyn Source,
    layout: Layout,
    bytes_left: u64,
    /// How many words are kept by now.
    kept: usize,
    buffer: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a dyn Source, layout: Layout) -> Self {
        Reader {
            source,
            layout,
            bytes_left: MOST_BYTES,
            kept: 0,
            buffer: vec![0; UNIT as usize],
        }
    }

    /// Reads the words of entries, which are sorted by segment and word and do not overlap. What
    /// cannot be read is left out.
    pub(super) fn read(
        &mut self,
        entries: Vec<Entry>,
        problems: &mut Problems,
    ) -> io::Result<Vec<(Entry, Reading)>> {
        let mut readings = Vec::with_capacity(entries.len());
        while let Some(rest) = entries
            .get(readings.len()..)
            .filter(|rest| !rest.is_empty())
        {
            let together = rest.get(..self.how_many(rest)).unwrap_or(rest);
            readings.extend(self.read_together(together)?);
        }
        let mut done = Vec::with_capacity(entries.len());
        for (entry, reading) in entries.into_iter().zip(readings) {
            match reading {
                Ok(reading) => done.push((entry, reading)),
                Err(why) => problems.add(format!(
                    "{} is left out: {}",
                    escape(&entry.name),
                    why.sentence()
                )),
            }
        }
        Ok(done)
    }

    /// How many of the next entries are read together: at least one, and of one segment.
    fn how_many(&self, entries: &[Entry]) -> usize {
        let lanes = u64::from(self.layout.cpus) + 1;
        let segment = entries.first().map(|first| first.segment);
        let mut words = 0;
        let fitting = entries.iter().take_while(|entry| {
            words += entry.words as u64;
            Some(entry.segment) == segment && words * lanes <= WORDS_TOGETHER
        });
        fitting.count().max(1)
    }

    /// Reads the words of entries in one segment.
    fn read_together(&mut self, entries: &[Entry]) -> io::Result<Vec<Result<Reading, Missing>>> {
        let segment = entries.first().map_or(0, |first| first.segment);
        let mut readings: Vec<_> = entries.iter().map(|_| Err(Missing::NotThere)).collect();
        let mut pending: Vec<usize> = (0..entries.len()).collect();
        for repeat in 0..=MOST_REPEATS {
            let wanted: Vec<Wanted> = pending
                .iter()
                .filter_map(|at| entries.get(*at))
                .map(Wanted::all)
                .collect();
            let round = self.round(segment, &wanted)?;
            let mut changed = Vec::new();
            for (at, reading) in pending.into_iter().zip(round) {
                let torn = matches!(reading, Ok(Reading { torn: true, .. }));
                if torn && repeat < MOST_REPEATS {
                    changed.push(at);
                } else if let Some(place) = readings.get_mut(at) {
                    *place = reading;
                }
            }
            pending = changed;
            if pending.is_empty() {
                break;
            }
        }
        Ok(readings)
    }

    /// Reads everything once; torn is what a reset changed meanwhile.
    fn round(
        &mut self,
        segment: u32,
        wanted: &[Wanted],
    ) -> io::Result<Vec<Result<Reading, Missing>>> {
        let before: Vec<Wanted> = wanted.iter().map(Wanted::before).collect();
        let after: Vec<Wanted> = wanted.iter().map(Wanted::after).collect();
        let bias = self.sweep(segment, wanted, &[BIAS])?;
        let cpus: Vec<u32> = [SHARED]
            .into_iter()
            .chain((0..self.layout.cpus).map(|cpu| cpu + FIRST_CPU))
            .collect();
        let first = self.sweep(segment, &before, &cpus)?;
        let lanes = self.sweep(segment, wanted, &cpus)?;
        let last = self.sweep(segment, &after, &cpus)?;
        let bias_after = self.sweep(segment, wanted, &[BIAS])?;
        let parts = bias
            .into_iter()
            .zip(bias_after)
            .zip(first)
            .zip(lanes)
            .zip(last);
        let readings =
            parts
                .zip(wanted)
                .map(|(((((bias, after), first), lanes), last), wanted)| {
                    let (bias, after) = (bias?.words_of(BIAS), after?.words_of(BIAS));
                    Ok(Reading {
                        torn: bias != after && !wanted.publishes,
                        bias,
                        bias_after: if wanted.publishes { after } else { Vec::new() },
                        first: first?,
                        lanes: lanes?,
                        last: last?,
                    })
                });
        Ok(readings.collect())
    }
}

/// Why words could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    NotThere,
    TooMuch,
}

impl Missing {
    fn sentence(self) -> &'static str {
        match self {
            Missing::NotThere => "its words are not all there",
            Missing::TooMuch => "the region holds more than a reader looks at",
        }
    }
}

/// Words of each lane that are to be read.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    word: usize,
    words: usize,
    /// Words, from the first one on, that are read before all: what a gauge went down.
    before: usize,
    /// Words, from the first one on, that are read after all: what a gauge went down, and a span's
    /// extremes.
    after: usize,
    /// The bias words change while it counts.
    publishes: bool,
}

impl Wanted {
    fn all(entry: &Entry) -> Self {
        let (before, after) = match entry.form {
            Form::Counter | Form::Histogram(..) | Form::Batch(_) | Form::Tree => (0, 0),
            Form::Gauge => (entry.words, entry.words),
            Form::Span(_) => (0, span::WORDS),
        };
        Wanted {
            word: entry.word,
            words: entry.words,
            before,
            after,
            publishes: entry.form.publishes(),
        }
    }

    fn before(&self) -> Self {
        Wanted {
            words: self.before,
            ..*self
        }
    }

    fn after(&self) -> Self {
        Wanted {
            words: self.after,
            ..*self
        }
    }

    fn bytes(&self) -> std::ops::Range<usize> {
        self.word * 8..(self.word + self.words) * 8
    }
}

impl Lanes {
    /// The words of one lane, zeros too.
    fn words_of(&self, lane: u32) -> Vec<u64> {
        (0..self.width).map(|word| self.word(lane, word)).collect()
    }

    fn push(&mut self, lane: u32, bytes: &[u8]) {
        if bytes.iter().any(|byte| *byte != 0) {
            let words = bytes.chunks_exact(8).map(|word| Fields(word).u64(0));
            self.lanes.push(lane);
            self.words.extend(words);
        }
    }
}

impl Reader<'_> {
    /// Reads the wanted words of some ascending lanes.
    fn sweep(
        &mut self,
        segment: u32,
        wanted: &[Wanted],
        lanes: &[u32],
    ) -> io::Result<Vec<Result<Lanes, Missing>>> {
        let mut found: Vec<_> = wanted
            .iter()
            .map(|wanted| Ok(Lanes::new(wanted.words)))
            .collect();
        let used = || {
            wanted
                .iter()
                .filter(|wanted| wanted.words > 0)
                .map(Wanted::bytes)
        };
        let (Some(start), Some(end)) = (
            used().map(|bytes| bytes.start).min(),
            used().map(|bytes| bytes.end).max(),
        ) else {
            return Ok(found);
        };
        let segment_offset =
            self.layout.segments_offset() + u64::from(segment) * self.layout.segment_size();
        // Up to here, this sweep has seen nothing but zeros.
        let mut data = 0;
        for lane in lanes {
            let lane_offset = segment_offset + u64::from(*lane) * UNIT;
            let (from, to) = (lane_offset + start as u64, lane_offset + end as u64);
            if data < from {
                data = self.source.next_data(from)?.unwrap_or(u64::MAX);
            }
            if data >= to {
                continue;
            }
            // Words are not split: a page or a block is a multiple of them, and so is this.
            let skipped = usize::try_from(data.saturating_sub(from)).unwrap_or(0) & !7;
            let begin = start + skipped;
            let there = match self.take(end - begin) {
                true => begin + self.read_lane(begin..end, lane_offset)?,
                false => return Ok(vec![Err(Missing::TooMuch); wanted.len()]),
            };
            for (wanted, found) in wanted.iter().zip(&mut found) {
                let Ok(lanes) = found else { continue };
                let before = lanes.words.len();
                let bytes = wanted.bytes();
                if bytes.is_empty() {
                } else if bytes.end > there {
                    *found = Err(Missing::NotThere);
                } else if let Some(bytes) = self.buffer.get(bytes) {
                    lanes.push(*lane, bytes);
                    self.kept += lanes.words.len() - before;
                    if self.kept > MOST_WORDS {
                        *found = Err(Missing::TooMuch);
                    }
                }
            }
        }
        self.check_size(segment_offset, wanted, lanes, &mut found)?;
        Ok(found)
    }

    /// Reads a part of a lane to its place in the buffer, what comes before it being zeros.
    fn read_lane(&mut self, bytes: std::ops::Range<usize>, lane_offset: u64) -> io::Result<usize> {
        let offset = lane_offset + bytes.start as u64;
        if let Some(before) = self.buffer.get_mut(..bytes.start) {
            before.fill(0);
        }
        match self.buffer.get_mut(bytes) {
            Some(buffer) => fill(self.source, buffer, offset),
            None => Ok(0),
        }
    }

    /// Takes bytes from those that may still be read.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.bytes_left.checked_sub(LEAST_BYTES.max(bytes as u64));
        self.bytes_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Beyond the end of a file there are no zeros, although it says that there is no data.
    fn check_size(
        &self,
        segment_offset: u64,
        wanted: &[Wanted],
        lanes: &[u32],
        found: &mut [Result<Lanes, Missing>],
    ) -> io::Result<()> {
        let size = self.source.size()?;
        let last = segment_offset + u64::from(lanes.last().copied().unwrap_or(0)) * UNIT;
        for (wanted, found) in wanted.iter().zip(found) {
            if found.is_ok() && wanted.words > 0 && last + wanted.bytes().end as u64 > size {
                *found = Err(Missing::NotThere);
            }
        }
        Ok(())
    }
}
