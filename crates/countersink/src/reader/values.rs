//! From words to values.

use super::arithmetic::{add_metric, same_form};
use super::entries::{Entry, Form};
use super::model::{Bounded, Buckets, Clock, Extremes, Gauge, Metric, Per, Span, Value};
use super::problems::Problems;
use super::text::escape;
use super::words::{FIRST_CPU, Reading};
use crate::bounded::Estimate;
use crate::layout::{histogram, span, tree};

/// The most values of single lanes in a snapshot, a histogram's buckets counted each.
const MOST_LANE_VALUES: usize = 1 << 20;

/// Makes values of what was read, sorted by name and labels, equal metrics added up.
pub(super) fn metrics(
    read: Vec<(Entry, Reading)>,
    clock: &Clock,
    problems: &mut Problems,
) -> Vec<Metric> {
    let mut left = MOST_LANE_VALUES;
    let mut metrics: Vec<Metric> = read
        .into_iter()
        .flat_map(|(entry, reading)| {
            let members = match entry.form {
                Form::Batch(count) => count as usize,
                _ => 1,
            };
            let mut member = |index| metric(&entry, index, &reading, clock, &mut left, problems);
            (0..members).filter_map(&mut member).collect::<Vec<_>>()
        })
        .collect();
    metrics.sort_by(|one, other| {
        let key = |metric: &Metric| (rank(&metric.value), metric.unit, metric.entry);
        let texts = (&one.name, &one.labels).cmp(&(&other.name, &other.labels));
        texts.then_with(|| key(one).cmp(&key(other)))
    });
    metrics.dedup_by(|metric, last| {
        let same = is_same(last, metric);
        if same {
            add_metric(last, metric);
        } else if last.name == metric.name && !is_same_kind(last, metric) {
            let name = escape(&metric.name);
            problems.add(format!("{name} is defined with different kinds or units"));
        }
        same
    });
    metrics
}

fn is_same(one: &Metric, other: &Metric) -> bool {
    one.name == other.name && one.labels == other.labels && is_same_kind(one, other)
}

fn is_same_kind(one: &Metric, other: &Metric) -> bool {
    one.unit == other.unit && same_form(&one.value, &other.value)
}

/// Sorts kinds, and histograms by grouping power and whether they keep their sum.
fn rank(value: &Value) -> (u32, u32) {
    let grouping =
        |buckets: &Buckets| 2 * (buckets.grouping + 1) + u32::from(buckets.sum.is_some());
    match value {
        Value::Counter(_) => (1, 0),
        Value::Gauge(_) => (2, 0),
        Value::Span(span) => (3, span.histogram.as_ref().map_or(0, grouping)),
        Value::Histogram(buckets) => (4, grouping(buckets)),
        Value::Batch(_) => (5, 0),
        Value::Tree(_) => (6, 0),
    }
}

/// The values of a metric, or of one of those of an entry; `None` where they cannot be told.
fn metric(
    entry: &Entry,
    index: usize,
    reading: &Reading,
    clock: &Clock,
    left: &mut usize,
    problems: &mut Problems,
) -> Option<Metric> {
    let is_span = matches!(entry.form, Form::Span(_));
    if is_span && clock.ticks_per_second == 0 {
        problems
            .add("spans are left out: the region does not say how fast its clock is".to_owned());
        return None;
    }
    let mut lanes = Vec::new();
    for (lane, words) in reading.lanes.iter() {
        let value = lane_value(entry.form, index, lane, words, reading, clock);
        match left.checked_sub(size(&value)) {
            Some(rest) => *left = rest,
            None => {
                problems.add("some metrics are without their lanes: there are too many".to_owned());
                lanes.clear();
                break;
            }
        }
        let per = match lane.checked_sub(FIRST_CPU) {
            Some(cpu) => Per::Cpu(cpu),
            None => Per::Shared,
        };
        lanes.push((per, value));
    }
    lanes.sort_by_key(|lane| lane.0);
    let mut labels = entry.labels.clone();
    if matches!(entry.form, Form::Batch(2..)) {
        labels.push(("index".to_owned(), index.to_string()));
    }
    Some(Metric {
        value: total(entry, index, reading, clock),
        name: entry.name.clone(),
        group: entry.group.clone(),
        labels,
        help: entry.help.clone(),
        unit: entry.unit,
        entry: entry.number,
        generation: entry.generation,
        torn: reading.torn,
        lanes,
    })
}

/// How much of the limit a lane's value uses.
fn size(value: &Value) -> usize {
    match value {
        Value::Counter(_) | Value::Gauge(_) | Value::Batch(_) | Value::Tree(_) => 1,
        Value::Histogram(buckets) => 1 + buckets.buckets.len(),
        Value::Span(span) => {
            4 + span
                .histogram
                .as_ref()
                .map_or(0, |histogram| histogram.buckets.len())
        }
    }
}

/// The sum over all lanes, less what resets have taken.
fn total(entry: &Entry, index: usize, reading: &Reading, clock: &Clock) -> Value {
    if entry.form.publishes() {
        return bounded(entry, index, reading);
    }
    let bias = |word: usize| reading.bias.get(word).copied().unwrap_or(0);
    let mut sums: Vec<u64> = (0..entry.words).map(bias).collect();
    for (_, words) in reading.lanes.iter() {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }
    let downs = [
        bias(1).wrapping_add(reading.first.sum(1)),
        bias(1).wrapping_add(reading.last.sum(1)),
    ];
    let lanes = || reading.lanes.iter().map(|(lane, _)| lane);
    value(entry.form, &sums, downs, reading, lanes, clock)
}

/// The sum, as what is published before and after it was read allows it, and the estimate that was read before.
fn bounded(entry: &Entry, index: usize, reading: &Reading) -> Value {
    let slack_at = entry.words - 2;
    let slack_at = if entry.form == Form::Tree {
        tree::SLACK
    } else {
        slack_at
    };
    let estimate = |bias: &[u64]| {
        let word = |at: usize| bias.get(at).copied().unwrap_or(0).cast_signed();
        let (upper, lower) = (word(2 * index), word(2 * index + 1));
        // The two may not be of one moment: the upper one is from before the lower one passed it.
        let passed = upper.wrapping_sub(lower) < 0;
        let lower = if passed { upper } else { lower };
        Estimate::between(lower, upper, word(slack_at))
    };
    let (before, after) = (estimate(&reading.bias), estimate(&reading.bias_after));
    let sum = reading.lanes.sum(2 * index).cast_signed();
    in_form(
        entry.form,
        Bounded {
            sum: before.hold(after, sum),
            estimate: before.value,
            bound: (before.bound != u64::MAX).then_some(before.bound),
        },
    )
}

fn in_form(form: Form, value: Bounded) -> Value {
    match form {
        Form::Tree => Value::Tree(value),
        _ => Value::Batch(value),
    }
}

/// What one lane says.
fn lane_value(
    form: Form,
    index: usize,
    lane: u32,
    words: &[u64],
    reading: &Reading,
    clock: &Clock,
) -> Value {
    if form.publishes() {
        let word = |at: usize| {
            words
                .get(2 * index + at)
                .copied()
                .unwrap_or(0)
                .cast_signed()
        };
        let (sum, estimate) = (word(0), word(1));
        return in_form(
            form,
            Bounded {
                sum,
                estimate,
                bound: None,
            },
        );
    }
    let downs = [reading.first.word(lane, 1), reading.last.word(lane, 1)];
    value(form, words, downs, reading, || std::iter::once(lane), clock)
}

/// A value from sums, from what a gauge went down before and after, and from the lanes' extremes.
fn value<I: Iterator<Item = u32>>(
    form: Form,
    sums: &[u64],
    downs: [u64; 2],
    reading: &Reading,
    lanes: impl Fn() -> I,
    clock: &Clock,
) -> Value {
    let sum = |word: usize| sums.get(word).copied().unwrap_or(0);
    match form {
        Form::Counter => Value::Counter(sum(0)),
        // Not by sums over all lanes.
        Form::Batch(_) | Form::Tree => in_form(
            form,
            Bounded {
                sum: 0,
                estimate: 0,
                bound: None,
            },
        ),
        Form::Gauge => Value::Gauge(Gauge {
            low: sum(0).wrapping_sub(downs[1]).cast_signed(),
            high: sum(0).wrapping_sub(downs[0]).cast_signed(),
        }),
        Form::Histogram(grouping, has_sum) => Value::Histogram(Buckets {
            sum: has_sum.then(|| sum(histogram::SUM)),
            ..buckets(grouping, sums, histogram::WORDS)
        }),
        Form::Span(grouping) => {
            let histogram = grouping.map(|grouping| buckets(grouping, sums, span::WORDS));
            let (events, ticks) = (sum(span::TIME), sum(span::TIME + 1));
            let in_nanoseconds = |ticks: Extremes| Extremes {
                min: clock.nanoseconds_of(ticks.min),
                max: clock.nanoseconds_of(ticks.max),
            };
            let times = extremes(reading, lanes(), span::SHORTEST, span::LONGEST);
            let bytes = extremes(reading, lanes(), span::FEWEST_BYTES, span::MOST_BYTES);
            Value::Span(Box::new(Span {
                events,
                skipped: sum(span::SKIPPED),
                migrated: sum(span::MIGRATED),
                invalid: sum(span::INVALID),
                time: clock.nanoseconds_of(ticks),
                times: times.filter(|_| events > 0).map(in_nanoseconds),
                byte_events: sum(span::BYTES),
                bytes: sum(span::BYTES + 1),
                byte_extremes: bytes.filter(|_| sum(span::BYTES) > 0),
                histogram,
            }))
        }
    }
}

/// The buckets from a word on that are not empty.
fn buckets(grouping: u32, words: &[u64], first: usize) -> Buckets {
    let counts = words.get(first..).unwrap_or_default().iter().copied();
    Buckets {
        grouping,
        sum: None,
        buckets: counts.enumerate().filter(|bucket| bucket.1 != 0).collect(),
    }
}

/// The extremes of some lanes that belong to the present generation.
///
/// Generation and value of a lane are stored at once, and not read at once. A value that was read after
/// its generation, in the last reading, belongs to it or to a later one; and there was none later, since
/// the bias lane still had the present one after that. So it may be that of an event more.
fn extremes(
    reading: &Reading,
    lanes: impl Iterator<Item = u32>,
    min: usize,
    max: usize,
) -> Option<Extremes> {
    let present = reading.bias.get(span::LONGEST).copied().unwrap_or(0);
    let of = |lane, word| {
        let is_present = present != 0 && reading.lanes.word(lane, word) == present;
        is_present.then(|| reading.last.word(lane, word + 1))
    };
    let (mut smallest, mut largest) = (None, None);
    for lane in lanes {
        let (low, high) = (of(lane, min), of(lane, max));
        smallest = [smallest, low].into_iter().flatten().min();
        largest = largest.max(high);
    }
    let extremes = Extremes {
        min: smallest?,
        max: largest?,
    };
    (extremes.min <= extremes.max).then_some(extremes)
}
