//! Which metrics are shown, in which order, and of which lane.

use std::cmp::Reverse;

use clap::ValueEnum;
use countersink::reader::{Bounded, Buckets, Gauge, Info, Metric, Per, Value};

use super::lines::mean;
use crate::names::{self, Filter};
use crate::units::average;

/// What metrics are sorted by: numbers descending, and what is equal by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// Name and labels
    #[default]
    Name,
    /// How many events or values; the value of counters and gauges
    Events,
    /// Total time, or sum of values where it is kept; the value of counters and gauges
    Total,
    /// Average time or value; the value of counters and gauges
    Avg,
    /// Longest time, or largest bucket with values; the value of counters and gauges
    Max,
    /// The value of counters and gauges; events elsewhere
    Value,
}

/// Takes the metrics that pass, sorted.
pub(super) fn choose<'a>(
    metrics: &'a [Metric],
    filter: Option<&Filter>,
    sort: Sort,
) -> Vec<&'a Metric> {
    let passes = |metric: &&Metric| filter.is_none_or(|filter| filter.passes(&names::of(metric)));
    let mut chosen: Vec<&Metric> = metrics.iter().filter(passes).collect();
    if sort != Sort::Name {
        // Stable, and by name before.
        chosen.sort_by_key(|metric| Reverse(key(metric, sort)));
    }
    chosen
}

fn key(metric: &Metric, sort: Sort) -> i128 {
    match (&metric.value, sort) {
        (Value::Counter(value), _) => (*value).into(),
        (Value::Gauge(gauge), _) => gauge.high.into(),
        (Value::Batch(value) | Value::Tree(value), _) => value.sum.into(),
        (Value::Span(span), Sort::Total) => span.time.into(),
        (Value::Span(span), Sort::Avg) => average(span.time, span.events).into(),
        (Value::Span(span), Sort::Max) => span.times.map_or(-1, |times| times.max.into()),
        (Value::Span(span), _) => span.events.into(),
        (Value::Histogram(values), Sort::Total) => values.sum.map_or(-1, Into::into),
        (Value::Histogram(values), Sort::Avg) => mean(values).map_or(-1, Into::into),
        (Value::Histogram(values), Sort::Max) => {
            values.buckets.last().map_or(-1, |bucket| bucket.0 as i128)
        }
        (Value::Histogram(values), _) => values.count().into(),
        _ => -1,
    }
}

/// That there is such a lane.
///
/// # Errors
/// A CPU without a lane.
pub(super) fn check_lane(info: &Info, lane: Per) -> anyhow::Result<()> {
    if let Per::Cpu(cpu) = lane
        && cpu >= info.cpus
    {
        anyhow::bail!(
            "there is no lane of CPU {cpu}: {} has lanes of CPUs 0 to {}",
            names::escaped(&info.program),
            info.cpus.saturating_sub(1)
        );
    }
    Ok(())
}

/// Puts what one lane holds in place of the sums.
pub(super) fn only_lane(metric: &mut Metric, lane: Per) {
    let found = metric.lanes.iter().find(|(per, _)| *per == lane);
    metric.value = found.map_or_else(|| nothing(&metric.value), |(_, value)| value.clone());
}

const NO_BOUNDED: Bounded = Bounded {
    sum: 0,
    estimate: 0,
    bound: None,
};

/// What a lane holds that nobody has counted on.
fn nothing(like: &Value) -> Value {
    match like {
        Value::Counter(_) => Value::Counter(0),
        Value::Gauge(_) => Value::Gauge(Gauge { low: 0, high: 0 }),
        Value::Span(_) => Value::Span(Box::default()),
        Value::Batch(_) => Value::Batch(NO_BOUNDED),
        Value::Tree(_) => Value::Tree(NO_BOUNDED),
        Value::Histogram(buckets) => Value::Histogram(Buckets {
            grouping: buckets.grouping,
            sum: buckets.sum.map(|_| 0),
            buckets: Vec::new(),
        }),
        other => other.clone(),
    }
}

/// A lane's name.
pub(super) fn lane_name(lane: Per) -> String {
    match lane {
        Per::Cpu(cpu) => cpu.to_string(),
        Per::Shared => "shared".to_owned(),
    }
}

/// A lane by its name.
pub(super) fn parse_lane(text: &str) -> Result<Per, String> {
    match text {
        "shared" => Ok(Per::Shared),
        text => match text.parse() {
            Ok(cpu) => Ok(Per::Cpu(cpu)),
            Err(_) => Err("neither the number of a CPU nor `shared`".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;
    use countersink::reader::Span;

    fn order(metrics: &[Metric], sort: Sort) -> Vec<&str> {
        let chosen = choose(metrics, None, sort);
        chosen.iter().map(|metric| metric.name.as_str()).collect()
    }

    #[test]
    fn numbers_descend_and_equals_keep_their_names_order() {
        let of = |events, time, max| Span {
            events,
            time,
            times: extremes(1, max),
            ..Span::default()
        };
        let metrics = [
            span("a", of(1, 100, 100)),
            span("b", of(10, 100, 50)),
            span("c", of(10, 200, 500)),
            span("d", Span::default()),
        ];
        assert_eq!(order(&metrics, Sort::Name), ["a", "b", "c", "d"]);
        assert_eq!(order(&metrics, Sort::Events), ["b", "c", "a", "d"]);
        assert_eq!(order(&metrics, Sort::Total), ["c", "a", "b", "d"]);
        assert_eq!(order(&metrics, Sort::Avg), ["a", "c", "b", "d"]);
        assert_eq!(order(&metrics, Sort::Max), ["c", "a", "b", "d"]);
        let counters = [counter("a", 1), counter("b", u64::MAX), gauge("c", -5, -4)];
        assert_eq!(order(&counters, Sort::Value), ["b", "a", "c"]);
    }

    #[test]
    fn filters_see_labels() {
        let mut labelled = counter("requests", 1);
        labelled.labels = vec![("method".to_owned(), "GET".to_owned())];
        let metrics = [counter("errors", 0), labelled];
        let chosen = |text| choose(&metrics, Some(&Filter::new(text)), Sort::Name).len();
        assert_eq!(chosen("GET"), 1);
        assert_eq!(chosen("*"), 2);
        assert_eq!(chosen("req"), 1);
        assert_eq!(chosen("requests*"), 1);
        assert_eq!(chosen("nothing"), 0);
    }

    #[test]
    fn a_lane_takes_the_place_of_the_sum() {
        let lanes = vec![
            (Per::Cpu(0), Value::Counter(5)),
            (Per::Cpu(1), Value::Counter(6)),
            (Per::Shared, Value::Counter(7)),
        ];
        let of = |per| {
            let mut metric = on_lanes(counter("a", 18), lanes.clone());
            only_lane(&mut metric, per);
            metric.value
        };
        assert_eq!(of(Per::Cpu(1)), Value::Counter(6));
        assert_eq!(of(Per::Shared), Value::Counter(7));
        // Where nobody has counted, there is nothing.
        assert_eq!(of(Per::Cpu(63)), Value::Counter(0));
    }

    #[test]
    fn a_lane_that_is_not_there_is_an_error() {
        assert!(check_lane(&info(), Per::Cpu(1)).is_ok());
        assert!(check_lane(&info(), Per::Shared).is_ok());
        let error = check_lane(&info(), Per::Cpu(2)).expect_err("no lane");
        assert_eq!(
            error.to_string(),
            "there is no lane of CPU 2: demo has lanes of CPUs 0 to 1"
        );
    }

    #[test]
    fn lanes_have_names() {
        assert_eq!(parse_lane("7"), Ok(Per::Cpu(7)));
        assert_eq!(parse_lane(&lane_name(Per::Shared)), Ok(Per::Shared));
        assert!(parse_lane("-1").is_err());
        assert!(parse_lane("x").is_err());
    }
}
