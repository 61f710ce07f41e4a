//! Metrics as lines of text, in the form that the simple performance counters had in `/proc/perf/all`.

use std::collections::BTreeSet;

use countersink::reader::{Bounded, Buckets, Clock, Extremes, Gauge, Metric, Span, Value};

use crate::names;
use crate::units::{self, Unit, average, scaled};

/// The name's column: so wide at least and at most. Longer names push their own line only.
const NARROWEST: usize = 20;
const WIDEST: usize = 60;

/// How lines look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Say how many events changed CPU.
    pub(crate) migrated: bool,
    /// What ticks are.
    pub(crate) clock: Clock,
}

impl Look {
    /// A value of a metric in its unit, scaled.
    pub(crate) fn scaled(&self, value: u64, unit: &str) -> String {
        match unit {
            "ticks" => scaled(self.clock.nanoseconds_of(value), units::TIME),
            unit => scaled(value, units::of(unit)),
        }
    }
}

/// The metrics, in their order: by kind those of no group, then the groups.
pub(crate) fn metrics(metrics: &[&Metric], look: Look) -> String {
    let lengths = metrics.iter().map(|m| names::of(m).chars().count());
    let fitting = lengths.filter(|length| *length <= WIDEST).max();
    let width = fitting.unwrap_or(0).max(NARROWEST);
    let mut text = String::new();
    for (title, columns, is_of_kind) in SECTIONS {
        let of_kind = |m: &&&Metric| m.group.is_none() && is_of_kind(&m.value);
        let lines: Vec<String> = (metrics.iter().filter(of_kind))
            .map(|metric| line(metric, width, look))
            .collect();
        if !lines.is_empty() {
            text += &format!("\n{title:<width$} {columns}\n{}", lines.concat());
        }
    }
    let groups: BTreeSet<&String> = metrics.iter().filter_map(|m| m.group.as_ref()).collect();
    for group in groups {
        text += &format!("\ngroup {}\n", names::escaped(group));
        for metric in metrics.iter().filter(|m| m.group.as_ref() == Some(group)) {
            text += &line(metric, width, look);
        }
    }
    text
}

type Section = (&'static str, &'static str, fn(&Value) -> bool);

const SECTIONS: [Section; 5] = [
    (
        "spans",
        "    events (+skipped) total(min/avg/max) bytes(min/avg/max)",
        |value| matches!(value, Value::Span(_)),
    ),
    ("counters", "     value", |value| {
        matches!(value, Value::Counter(_))
    }),
    ("gauges", "     value", |value| {
        matches!(value, Value::Gauge(_))
    }),
    ("bounded counters", "     value about (within)", |value| {
        matches!(value, Value::Batch(_) | Value::Tree(_))
    }),
    ("histograms", "    values mean p50/p90/p99", |value| {
        matches!(value, Value::Histogram(_))
    }),
];

fn line(metric: &Metric, width: usize, look: Look) -> String {
    let mut text = format!("{:<width$} ", names::of(metric));
    text += &match &metric.value {
        Value::Counter(value) => format!("{value:>10}") + &in_unit(*value, metric.unit, look),
        Value::Gauge(gauge) => gauge_value(*gauge, metric.unit, look),
        Value::Batch(value) | Value::Tree(value) => bounded(value, metric.unit, look),
        Value::Span(span) => span_values(span, look),
        Value::Histogram(buckets) => histogram(buckets, metric.unit, look),
        _ => "of a kind that this version does not know".to_owned(),
    };
    if metric.torn {
        text += " torn";
    }
    text + "\n"
}

/// A number that has a unit once more, scaled.
fn in_unit(value: u64, unit: &str, look: Look) -> String {
    match unit {
        "" => String::new(),
        unit => format!(" {}", look.scaled(value, unit)),
    }
}

fn gauge_value(gauge: Gauge, unit: &str, look: Look) -> String {
    let Gauge { low, high } = gauge;
    if low != high {
        return format!("{:>10}", format!("{low}..{high}"));
    }
    let scaled = in_unit(low.unsigned_abs(), unit, look);
    let sign = if low < 0 { " -" } else { " " };
    format!("{low:>10}{}", scaled.replacen(' ', sign, 1))
}

/// The sum, and what the program reads without one.
fn bounded(value: &Bounded, unit: &str, look: Look) -> String {
    let sum = Gauge {
        low: value.sum,
        high: value.sum,
    };
    let bound = value
        .bound
        .map_or("?".to_owned(), |bound| bound.to_string());
    let sum = gauge_value(sum, unit, look);
    format!("{sum} {} ({bound})", value.estimate)
}

fn span_values(span: &Span, look: Look) -> String {
    let mut text = format!("{:>10} ", span.events);
    if span.skipped > 0 {
        text += &format!("(+{:>3}) ", span.skipped);
    }
    text += &total(units::TIME, span.time, span.events, span.times);
    if span.byte_events > 0 {
        // The average is that of the events which had bytes.
        let bytes = total(
            units::BYTES,
            span.bytes,
            span.byte_events,
            span.byte_extremes,
        );
        text += &format!(" {bytes}");
    }
    if let Some(values) = percentiles(|q| span.percentile(q, &look.clock)) {
        let values = values.map(|value| scaled(value, units::TIME));
        text += &format!(" p50/p90/p99 {}", values.join("/"));
    }
    if look.migrated {
        text += &format!(" migrated {}", span.migrated);
    }
    if span.invalid > 0 {
        text += &format!(" invalid {}", span.invalid);
    }
    text
}

/// `total(min/avg/max)`. Nothing measured has no extremes and no average, which is not the same as 0.
fn total(units: &[Unit], sum: u64, count: u64, extremes: Option<Extremes>) -> String {
    let known = |value: Option<u64>| value.map_or("-".to_owned(), |value| scaled(value, units));
    format!(
        "{}({}/{}/{})",
        scaled(sum, units),
        known(extremes.map(|e| e.min)),
        known((count > 0).then(|| average(sum, count))),
        known(extremes.map(|e| e.max)),
    )
}

fn histogram(buckets: &Buckets, unit: &str, look: Look) -> String {
    let count = buckets.count();
    let (Some(mean), Some(values)) = (mean(buckets), percentiles(|q| buckets.quantile(q))) else {
        return format!("{count:>10} - -/-/-");
    };
    let mean = look.scaled(mean, unit);
    let values = values.map(|value| look.scaled(value, unit));
    format!("{count:>10} {mean} {}", values.join("/"))
}

/// The mean of a histogram's values, rounded as other averages are; `None` of nothing.
pub(super) fn mean(values: &Buckets) -> Option<u64> {
    match (values.sum, values.count()) {
        (Some(sum), count) if count > 0 => Some(average(sum, count)),
        _ => values.mean(),
    }
}

/// The values that half, nine tenths and 99 hundredths do not exceed; `None` of nothing.
pub(super) fn percentiles(quantile: impl Fn(f64) -> Option<u64>) -> Option<[u64; 3]> {
    Some([quantile(0.5)?, quantile(0.9)?, quantile(0.99)?])
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;

    fn render(metrics: &[Metric]) -> String {
        let look = Look {
            migrated: false,
            clock: clock(),
        };
        let text = super::metrics(&metrics.iter().collect::<Vec<_>>(), look);
        text.trim_start().to_owned()
    }

    fn in_group(group: &str, mut metric: Metric) -> Metric {
        metric.group = Some(group.to_owned());
        metric
    }

    fn with_unit(unit: &'static str, mut metric: Metric) -> Metric {
        metric.unit = unit;
        metric
    }

    #[test]
    fn spans_have_the_published_form() {
        let sparse = Span {
            events: 596_360,
            time: 10_500_000,
            times: extremes(4, 28_700),
            skipped: 7,
            ..Span::default()
        };
        let text = render(&[
            span("kfree_virt_to_page", published()),
            span("kfree_sparsemem", sparse),
        ]);
        insta::assert_snapshot!(text, @r#"
        spans                    events (+skipped) total(min/avg/max) bytes(min/avg/max)
        kfree_virt_to_page       598430 5.6ms(3ns/9ns/322ns)
        kfree_sparsemem          596360 (+  7) 10.5ms(4ns/18ns/28.7us)
        "#);
    }

    #[test]
    fn bytes_are_averaged_over_the_events_that_had_some() {
        let read = Span {
            events: 1_000,
            time: 999_950,
            times: extremes(0, 2_000),
            byte_events: 2,
            bytes: 3_000,
            byte_extremes: extremes(0, 3_000),
            ..Span::default()
        };
        let text = render(&[span("read", read)]);
        assert!(
            text.contains(" 1ms(0ns/1us/2us) 3kb(0b/1.5kb/3kb)"),
            "{text}"
        );
    }

    #[test]
    fn zero_is_a_minimum_and_nothing_is_none() {
        let instant = Span {
            events: 1,
            times: extremes(0, 0),
            ..Span::default()
        };
        let text = render(&[span("instant", instant), span("never", Span::default())]);
        insta::assert_snapshot!(text, @r#"
        spans                    events (+skipped) total(min/avg/max) bytes(min/avg/max)
        instant                       1 0ns(0ns/0ns/0ns)
        never                         0 0ns(-/-/-)
        "#);
    }

    #[test]
    fn what_a_span_may_say_besides() {
        let all = Span {
            events: 100,
            migrated: 3,
            invalid: 2,
            time: 275,
            times: extremes(1, 5),
            histogram: Some(buckets()),
            ..Span::default()
        };
        let mut metric = span("all", all);
        metric.torn = true;
        insta::assert_snapshot!(render(std::slice::from_ref(&metric)), @r#"
        spans                    events (+skipped) total(min/avg/max) bytes(min/avg/max)
        all                         100 275ns(1ns/3ns/5ns) p50/p90/p99 3ns/5ns/5ns invalid 2 torn
        "#);
        let look = Look {
            migrated: true,
            clock: clock(),
        };
        assert!(super::metrics(&[&metric], look).contains(" migrated 3 invalid 2 torn"));
    }

    #[test]
    fn counts_do_not_end_at_32_bits() {
        let long = Span {
            events: u64::MAX,
            time: u64::MAX,
            times: extremes(u64::MAX, u64::MAX),
            ..Span::default()
        };
        let text = render(&[span("long", long), counter("many", u64::MAX)]);
        insta::assert_snapshot!(text, @r#"
        spans                    events (+skipped) total(min/avg/max) bytes(min/avg/max)
        long                 18446744073709551615 584.9y(584.9y/1ns/584.9y)

        counters                  value
        many                 18446744073709551615
        "#);
    }

    #[test]
    fn all_kinds_and_groups() {
        let mut labelled = counter("requests", 7);
        labelled.labels = vec![
            ("method".to_owned(), "GET".to_owned()),
            ("path".to_owned(), "a\"b\\".to_owned()),
        ];
        let text = render(&[
            with_unit("bytes", gauge("heap", -1_500, -1_500)),
            gauge("in_flight", 3, 5),
            labelled,
            in_group("rwsem", counter("rwsem_rtrylock", 784_029)),
            in_group("rwsem", counter("rwsem_rtrylock_fail", 59)),
            with_unit("bytes", counter("sent", 1_234_567)),
            with_unit("bytes", metric("size", Value::Histogram(buckets()))),
            with_unit("ticks", metric("wait", Value::Histogram(buckets()))),
            metric("none", Value::Histogram(Buckets::default())),
            span("kfree_virt_to_page", published()),
        ]);
        insta::assert_snapshot!(text, @r#"
        spans                                    events (+skipped) total(min/avg/max) bytes(min/avg/max)
        kfree_virt_to_page                       598430 5.6ms(3ns/9ns/322ns)

        counters                                  value
        requests{method="GET",path="a\"b\\"}          7
        sent                                    1234567 1.2mb

        gauges                                    value
        heap                                      -1500 -1.5kb
        in_flight                                  3..5

        histograms                               values mean p50/p90/p99
        size                                        100 6b 5b/9b/10b
        wait                                        100 3ns 3ns/5ns/5ns
        none                                          0 - -/-/-

        group rwsem
        rwsem_rtrylock                           784029
        rwsem_rtrylock_fail                          59
        "#);
    }

    #[test]
    fn long_names_widen_the_column_and_very_long_ones_their_line() {
        let name = "a_name_of_more_than_twenty_characters";
        let endless = "x".repeat(300);
        let text = render(&[counter("a", 1), counter(name, 2), counter(&endless, 3)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], format!("{:<37} {:>10}", "a", 1));
        assert_eq!(lines[2], format!("{name} {:>10}", 2));
        assert_eq!(lines[3], format!("{endless} {:>10}", 3));
    }
}
