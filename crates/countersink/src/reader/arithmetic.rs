//! Adding values up, and taking them from each other.

use super::model::{Bounded, Buckets, Extremes, Gauge, Metric, Per, Span, Value};

/// Adds a value of the same form.
pub(super) fn add(value: &mut Value, other: &Value) {
    match (value, other) {
        (Value::Counter(value), Value::Counter(other)) => *value = value.wrapping_add(*other),
        (Value::Gauge(value), Value::Gauge(other)) => {
            value.low = value.low.wrapping_add(other.low);
            value.high = value.high.wrapping_add(other.high);
        }
        (Value::Histogram(value), Value::Histogram(other)) => {
            *value = merged(value, other, u64::wrapping_add);
        }
        (Value::Span(value), Value::Span(other)) => add_span(value, other),
        (Value::Batch(value), Value::Batch(other)) | (Value::Tree(value), Value::Tree(other)) => {
            *value = bounded(value, other, i64::wrapping_add);
        }
        _ => {}
    }
}

fn add_span(value: &mut Span, other: &Span) {
    sums(value, other, u64::wrapping_add);
    value.times = both(value.times, other.times);
    value.byte_extremes = both(value.byte_extremes, other.byte_extremes);
}

/// Combines everything but the extremes.
fn sums(value: &mut Span, other: &Span, with: fn(u64, u64) -> u64) {
    for (value, other) in [
        (&mut value.events, other.events),
        (&mut value.skipped, other.skipped),
        (&mut value.migrated, other.migrated),
        (&mut value.invalid, other.invalid),
        (&mut value.time, other.time),
        (&mut value.byte_events, other.byte_events),
        (&mut value.bytes, other.bytes),
    ] {
        *value = with(*value, other);
    }
    if let (Some(value), Some(other)) = (&mut value.histogram, &other.histogram) {
        *value = merged(value, other, with);
    }
}

/// The extremes of two parts.
pub(super) fn both(one: Option<Extremes>, other: Option<Extremes>) -> Option<Extremes> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Extremes {
            min: one.min.min(other.min),
            max: one.max.max(other.max),
        }),
        (one, other) => one.or(other),
    }
}

/// Combines buckets by their number.
fn merged(one: &Buckets, other: &Buckets, with: fn(u64, u64) -> u64) -> Buckets {
    let mut buckets = Vec::with_capacity(one.buckets.len().max(other.buckets.len()));
    let (mut left, mut right) = (
        one.buckets.iter().peekable(),
        other.buckets.iter().peekable(),
    );
    while let Some(number) = [left.peek(), right.peek()]
        .into_iter()
        .flatten()
        .map(|bucket| bucket.0)
        .min()
    {
        let next = |buckets: &mut std::iter::Peekable<std::slice::Iter<'_, (usize, u64)>>| {
            let found = buckets.next_if(|bucket| bucket.0 == number);
            found.map_or(0, |bucket| bucket.1)
        };
        let count = with(next(&mut left), next(&mut right));
        if count != 0 {
            buckets.push((number, count));
        }
    }
    Buckets {
        grouping: one.grouping,
        sum: one.sum.zip(other.sum).map(|(one, other)| with(one, other)),
        buckets,
    }
}

/// What a value is more than an earlier one, without extremes.
pub(super) fn subtract(value: &mut Value, earlier: &Value) {
    match (value, earlier) {
        (Value::Counter(value), Value::Counter(earlier)) => *value = value.wrapping_sub(*earlier),
        (Value::Gauge(value), Value::Gauge(earlier)) => {
            *value = Gauge {
                low: value.low.wrapping_sub(earlier.high),
                high: value.high.wrapping_sub(earlier.low),
            };
        }
        (Value::Histogram(value), Value::Histogram(earlier)) => {
            *value = merged(value, earlier, u64::wrapping_sub);
        }
        (Value::Span(value), Value::Span(earlier)) => {
            sums(value, earlier, u64::wrapping_sub);
            value.times = None;
            value.byte_extremes = None;
        }
        (Value::Batch(value), Value::Batch(earlier))
        | (Value::Tree(value), Value::Tree(earlier)) => {
            *value = bounded(value, earlier, i64::wrapping_sub);
        }
        _ => {}
    }
}

/// Combines sums and estimates; what these may be off by adds up in either case.
fn bounded(one: &Bounded, other: &Bounded, with: fn(i64, i64) -> i64) -> Bounded {
    let bounds = one.bound.zip(other.bound);
    Bounded {
        sum: with(one.sum, other.sum),
        estimate: with(one.estimate, other.estimate),
        bound: bounds.map(|(one, other)| one.saturating_add(other)),
    }
}

/// Nothing, in a value's form.
pub(super) fn zero(value: &Value) -> Value {
    match value {
        Value::Counter(_) => Value::Counter(0),
        Value::Gauge(_) => Value::Gauge(Gauge { low: 0, high: 0 }),
        Value::Batch(value) => Value::Batch(no_bounded(value)),
        Value::Tree(value) => Value::Tree(no_bounded(value)),
        Value::Histogram(buckets) => Value::Histogram(Buckets {
            sum: buckets.sum.map(|_| 0),
            grouping: buckets.grouping,
            buckets: Vec::new(),
        }),
        Value::Span(span) => Value::Span(Box::new(Span {
            histogram: span.histogram.as_ref().map(|histogram| Buckets {
                sum: None,
                grouping: histogram.grouping,
                buckets: Vec::new(),
            }),
            ..Span::default()
        })),
    }
}

fn no_bounded(like: &Bounded) -> Bounded {
    Bounded {
        sum: 0,
        estimate: 0,
        bound: like.bound.map(|_| 0),
    }
}

/// Whether two values have the same form, so that they can be added.
pub(super) fn same_form(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Counter(_), Value::Counter(_))
        | (Value::Gauge(_), Value::Gauge(_))
        | (Value::Batch(_), Value::Batch(_))
        | (Value::Tree(_), Value::Tree(_)) => true,
        (Value::Histogram(one), Value::Histogram(other)) => {
            (one.grouping, one.sum.is_some()) == (other.grouping, other.sum.is_some())
        }
        (Value::Span(one), Value::Span(other)) => {
            let grouping =
                |span: &Span| span.histogram.as_ref().map(|histogram| histogram.grouping);
            grouping(one) == grouping(other)
        }
        _ => false,
    }
}

/// Combines values lane by lane.
pub(super) fn by_lane(
    lanes: &mut Vec<(Per, Value)>,
    other: &[(Per, Value)],
    with: fn(&mut Value, &Value),
) {
    for (per, value) in other {
        match lanes.binary_search_by_key(per, |lane| lane.0) {
            Ok(at) => {
                if let Some(lane) = lanes.get_mut(at) {
                    with(&mut lane.1, value);
                }
            }
            Err(at) => {
                let mut lane = zero(value);
                with(&mut lane, value);
                lanes.insert(at, (*per, lane));
            }
        }
    }
}

/// Adds an equal metric.
pub(super) fn add_metric(metric: &mut Metric, other: &Metric) {
    metric.torn |= other.torn;
    add(&mut metric.value, &other.value);
    by_lane(&mut metric.lanes, &other.lanes, add);
}
