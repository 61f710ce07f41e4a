//! What grew between two snapshots.

use std::collections::HashMap;

use super::arithmetic::{add, by_lane, same_form, subtract, zero};
use super::model::{Labels, Metric, Per, Snapshot, Value};

/// What a metric grew by.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    /// The metric as it is after, with what was added since as its value and lanes. Lanes are left out
    /// where they are not known. Extremes are there only where the metric was not there before: of the
    /// others, it is not known when they were.
    pub metric: Metric,
    /// It was reset or taken meanwhile. The growth is that of the lanes, from which resets take nothing, so
    /// nothing is missing. Where the lanes are not known, it is what was counted since.
    pub reset: bool,
    /// It was not there before.
    pub new: bool,
}

/// What each metric that is there after grew by. Snapshots of one region; metrics are the same if name, labels,
/// entry and generation are.
pub fn growth(before: &Snapshot, after: &Snapshot) -> Vec<Growth> {
    let earlier: HashMap<_, &Metric> = before
        .metrics
        .iter()
        .map(|metric| (identity(metric), metric))
        .collect();
    let grown = after
        .metrics
        .iter()
        .map(|metric| match earlier.get(&identity(metric)) {
            Some(earlier) if same_form(&earlier.value, &metric.value) => since(earlier, metric),
            _ => since_the_beginning(metric),
        });
    grown.collect()
}

fn since_the_beginning(metric: &Metric) -> Growth {
    let mut metric = metric.clone();
    // Its words may have been another metric's before: then the lanes have that one's counts, too.
    let nothing = zero(&metric.value);
    let counts = |mut value: Value| {
        subtract(&mut value, &nothing);
        value
    };
    let counted = counts(sum(&metric.lanes, &metric.value));
    if !is_same(&counts(metric.value.clone()), &counted) {
        metric.lanes.clear();
    }
    Growth {
        metric,
        reset: false,
        new: true,
    }
}

fn identity(metric: &Metric) -> (&str, &Labels, u32, u32) {
    (
        &metric.name,
        &metric.labels,
        metric.entry,
        metric.generation,
    )
}

fn since(earlier: &Metric, later: &Metric) -> Growth {
    let mut metric = later.clone();
    metric.torn |= earlier.torn;
    by_lane(&mut metric.lanes, &earlier.lanes, subtract);
    for lane in &mut metric.lanes {
        // Lanes that were not there before keep their extremes otherwise.
        let nothing = zero(&lane.1);
        subtract(&mut lane.1, &nothing);
    }
    metric.lanes.retain(|lane| lane.1 != zero(&lane.1));
    subtract(&mut metric.value, &earlier.value);
    let counted = sum(&metric.lanes, &metric.value);
    // A snapshot leaves all lanes of a metric out, or none.
    let is_known =
        |metric: &Metric| !metric.lanes.is_empty() || metric.value == zero(&metric.value);
    let known = is_known(earlier) && is_known(later);
    let mut reset = false;
    if known && !is_same(&metric.value, &counted) {
        reset = true;
        metric.value = counted;
    } else if is_less(&later.value, &earlier.value) && !(known && has_wrapped(earlier, later)) {
        // Reset; or there were several equal entries, and one of them is gone.
        reset = true;
        metric.value = later.value.clone();
        metric.lanes.clone_from(&later.lanes);
    }
    Growth {
        metric,
        reset,
        new: false,
    }
}

fn sum(lanes: &[(Per, Value)], form: &Value) -> Value {
    lanes.iter().fold(zero(form), |mut sum, lane| {
        add(&mut sum, &lane.1);
        sum
    })
}

/// Whether two values without extremes are equal, but for the rounding of times.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Span(one), Value::Span(other)) => {
            let mut one = one.clone();
            one.time = other.time;
            one == *other
        }
        // They are never reset from outside, and their lanes are not summed up at one moment.
        (Value::Batch(_), Value::Batch(_)) | (Value::Tree(_), Value::Tree(_)) => true,
        _ => one == other,
    }
}

/// Whether something that only goes up has gone down.
fn is_less(later: &Value, earlier: &Value) -> bool {
    match (later, earlier) {
        (Value::Counter(later), Value::Counter(earlier)) => later < earlier,
        (Value::Span(later), Value::Span(earlier)) => later.events < earlier.events,
        (Value::Histogram(later), Value::Histogram(earlier)) => later.count() < earlier.count(),
        _ => false,
    }
}

/// Whether a counter has come to the end of 64 bits: it is less than before, by nearly all there are.
fn has_wrapped(earlier: &Metric, later: &Metric) -> bool {
    match (&earlier.value, &later.value) {
        (Value::Counter(earlier), Value::Counter(later)) => {
            !later.wrapping_sub(*earlier).cast_signed().is_negative()
        }
        _ => false,
    }
}
