//! The region's entries: what its metrics are.

use std::io;

use super::header::{Fields, entry_offset};
use super::model::Labels;
use super::problems::Problems;
use super::source::{Source, fill};
use super::text::{escape, labels as parse_labels};
use crate::layout::{self, ENTRY, Layout, entry};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Entries in so many bytes.
const PER_CHUNK: u32 = (CHUNK / ENTRY) as u32;
/// The state of an entry that means something.
const READY: u64 = 2;

/// What a metric is, of the kinds that this reader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Counter,
    Gauge,
    /// With the grouping power of its histogram.
    Span(Option<u32>),
    /// With its grouping power, and whether its sum is kept.
    Histogram(u32, bool),
    /// How many batch counters.
    Batch(u32),
    Tree,
}

impl Form {
    /// Whether it publishes to the bias lane, which is no part of its sums then.
    pub(super) fn publishes(self) -> bool {
        matches!(self, Form::Batch(_) | Form::Tree)
    }

    /// Whether a reset from outside may take it: not what goes up and down.
    pub(super) fn can_be_taken(self) -> bool {
        self != Form::Gauge && !self.publishes()
    }

    fn words(self) -> usize {
        match self {
            Form::Counter => 1,
            Form::Gauge => 2,
            Form::Span(grouping) => layout::span::WORDS + grouping.map_or(0, layout::buckets),
            Form::Histogram(grouping, _) => layout::histogram::WORDS + layout::buckets(grouping),
            Form::Batch(count) => 2 + 2 * count as usize,
            Form::Tree => layout::tree::WORDS,
        }
    }
}

/// An entry that was ready and makes sense by itself.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) form: Form,
    pub(super) unit: &'static str,
    pub(super) segment: u32,
    pub(super) word: usize,
    pub(super) words: usize,
    pub(super) name: String,
    pub(super) group: Option<String>,
    pub(super) labels: Labels,
    pub(super) help: String,
}

/// Reads the entries that were ready with one generation before and while they were read.
pub(super) fn read(
    source: &dyn Source,
    layout: Layout,
    used: u64,
    problems: &mut Problems,
) -> io::Result<Vec<Entry>> {
    let most = u64::from(layout.entries);
    if used > most {
        problems.add(format!(
            "{used} entries are said to be in use, with room for {most}"
        ));
    }
    // Not more than the layout has, so it fits.
    let used = used.min(most) as u32;
    let mut found = Vec::with_capacity(used as usize);
    let mut unknown = 0_u64;
    let (mut before, mut chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
    for first in (0..used).step_by(PER_CHUNK as usize) {
        let length = (used - first).min(PER_CHUNK) as usize * ENTRY;
        let offset = entry_offset(layout, first);
        let there = fill(source, &mut before[..length], offset)?;
        let there = fill(source, &mut chunk[..length], offset)?.min(there);
        if there < length {
            problems.add("some entries are not there".to_owned());
        }
        let pairs = before[..there]
            .chunks_exact(ENTRY)
            .zip(chunk[..there].chunks_exact(ENTRY));
        for (number, (before, bytes)) in (first..).zip(pairs) {
            let life = Fields(bytes).u64(entry::LIFE);
            if life & 0xff != READY || !same_life(life, Fields(before).u64(entry::LIFE)) {
                continue;
            }
            match parse(number, Fields(bytes), layout) {
                Ok(entry) => found.push(entry),
                Err(Wrong::Kind) => unknown += 1,
                Err(Wrong::Entry(why)) => {
                    problems.add(format!("entry {number} is left out: {why}"))
                }
            }
        }
    }
    if unknown > 0 {
        problems.add(format!(
            "{unknown} metrics are of kinds that this reader does not know"
        ));
    }
    Ok(found)
}

/// Why an entry is left out.
enum Wrong {
    Kind,
    Entry(String),
}

impl From<&str> for Wrong {
    fn from(why: &str) -> Self {
        Wrong::Entry(why.to_owned())
    }
}

fn parse(number: u32, fields: Fields<'_>, layout: Layout) -> Result<Entry, Wrong> {
    let form = form(fields)?;
    let (segment, word, words) = (
        fields.u32(entry::SEGMENT),
        fields.u32(entry::WORD),
        fields.u32(entry::WORDS),
    );
    if words as usize != form.words() {
        return Err(Wrong::Entry(format!(
            "it has {words} words instead of {}",
            form.words()
        )));
    }
    if !layout.has_words(segment, word, words) {
        return Err("its words lie outside the segments".into());
    }
    let unit = match (form, fields.u32(entry::UNIT)) {
        (Form::Span(_), 0 | 3) => "nanoseconds",
        (_, 0) => "",
        (_, 1) => "bytes",
        (_, 2) => "nanoseconds",
        (_, 3) => "ticks",
        (_, other) => return Err(Wrong::Entry(format!("unit {other} is not known"))),
    };
    let (name, group, labels, help) = texts(fields)?;
    Ok(Entry {
        number,
        generation: (fields.u64(entry::LIFE) >> 32) as u32,
        form,
        unit,
        segment,
        word: word as usize,
        words: words as usize,
        name,
        group,
        labels,
        help,
    })
}

fn form(fields: Fields<'_>) -> Result<Form, Wrong> {
    let field = fields.u32(entry::GROUPING);
    match (fields.u32(entry::KIND), field) {
        (5, 1..=layout::MOST_BATCHES) => return Ok(Form::Batch(field)),
        (5, _) => return Err("it is no possible number of batch counters".into()),
        (6, 0) => return Ok(Form::Tree),
        (6, _) => return Err("it is a tree counter with a grouping power".into()),
        _ => {}
    }
    let sum = field & layout::histogram::SUM_KEPT != 0;
    let grouping = (field & !layout::histogram::SUM_KEPT).checked_sub(1);
    if grouping.is_some_and(|grouping| grouping > layout::MOST_GROUPING) {
        return Err("its grouping power is too large".into());
    }
    match (fields.u32(entry::KIND), grouping) {
        (1, None) => Ok(Form::Counter),
        (2, None) => Ok(Form::Gauge),
        (3, grouping) if !sum => Ok(Form::Span(grouping)),
        (4, Some(grouping)) => Ok(Form::Histogram(grouping, sum)),
        (4, None) => Err("it is a histogram without a grouping power".into()),
        (1..=3, _) => Err("it has a grouping power and no histogram".into()),
        _ => Err(Wrong::Kind),
    }
}

/// Name, group, labels, help text.
fn texts(fields: Fields<'_>) -> Result<(String, Option<String>, Labels, String), Wrong> {
    let length = |at| usize::from(fields.u16(at));
    let (name, labels) = (length(entry::NAME_LENGTH), length(entry::LABELS_LENGTH));
    let (group, help) = (length(entry::GROUP_LENGTH), length(entry::HELP_LENGTH));
    // Sums of three u16 do not overflow.
    if name == 0 || name > entry::MOST_NAME || name + labels + help > entry::TEXT_LENGTH {
        return Err("its texts have impossible lengths".into());
    }
    let text = |at, length| {
        let bytes = fields.bytes(entry::TEXT + at, length);
        std::str::from_utf8(bytes).map_err(|_| Wrong::from("its texts are not UTF-8"))
    };
    let (name, help, label_text) = (
        text(0, name)?,
        text(name + labels, help)?,
        text(name, labels)?,
    );
    let labels = parse_labels(label_text).ok_or("its labels are not valid")?;
    let group = match name.split_at_checked(group) {
        Some(("", _)) => None,
        Some((group, rest)) if rest.starts_with('_') => Some(group.to_owned()),
        _ => return Err("its group's name is not the beginning of its name".into()),
    };
    Ok((name.to_owned(), group, labels, help.to_owned()))
}

/// Takes out entries whose words overlap.
///
/// What was ready when it was read may have been retired since, and its words used again, so those
/// that overlap are looked at once more first.
pub(super) fn remove_overlaps(
    source: &dyn Source,
    layout: Layout,
    entries: &mut Vec<Entry>,
    problems: &mut Problems,
) -> io::Result<()> {
    entries.sort_by_key(|entry| (entry.segment, entry.word, entry.number));
    if overlaps(entries).contains(&true) {
        retain_alive(source, layout, entries, |entry| entry)?;
    }
    let mut overlapping = overlaps(entries).into_iter();
    entries.retain(|entry| {
        let overlaps = overlapping.next().unwrap_or(true);
        if overlaps {
            let name = escape(&entry.name);
            problems.add(format!(
                "{name} is left out: its words overlap those of another metric"
            ));
        }
        !overlaps
    });
    Ok(())
}

/// For each of the sorted entries, whether its words overlap another's.
fn overlaps(entries: &[Entry]) -> Vec<bool> {
    let mut found = vec![false; entries.len()];
    // The entry that reaches farthest so far.
    let mut farthest: Option<(usize, u32, usize)> = None;
    for (at, entry) in entries.iter().enumerate() {
        let end = entry.word + entry.words;
        match farthest {
            Some((owner, segment, reach)) if segment == entry.segment && entry.word < reach => {
                found[at] = true;
                found[owner] = true;
                if end > reach {
                    farthest = Some((at, segment, end));
                }
            }
            _ => farthest = Some((at, entry.segment, end)),
        }
    }
    found
}

fn same_life(one: u64, other: u64) -> bool {
    one & 0xff == other & 0xff && one >> 32 == other >> 32
}

/// Keeps the entries that are still ready with the same generation.
pub(super) fn retain_alive<T>(
    source: &dyn Source,
    layout: Layout,
    entries: &mut Vec<T>,
    of: impl Fn(&T) -> &Entry,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut at = None;
    let mut failure = None;
    entries.retain(|kept| {
        let entry = of(kept);
        let chunk = entry.number / PER_CHUNK;
        if at != Some(chunk) {
            buffer.fill(0);
            let offset = entry_offset(layout, chunk * PER_CHUNK);
            if let Err(error) = fill(source, &mut buffer, offset) {
                failure.get_or_insert(error);
            }
            at = Some(chunk);
        }
        let place = (entry.number % PER_CHUNK) as usize * ENTRY;
        let life = Fields(&buffer).u64(place + entry::LIFE);
        same_life(life, u64::from(entry.generation) << 32 | READY)
    });
    failure.map_or(Ok(()), Err)
}
