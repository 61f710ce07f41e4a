//! What each lane holds, as a table.

use countersink::reader::{Metric, Span, Value};

use super::lines::{Look, mean};
use super::select::lane_name;
use crate::names;
use crate::table::table;
use crate::units::{self, average, scaled};

const COLUMNS: [&str; 8] = [
    "metric", "lane", "value", "total", "min", "avg", "max", "bytes",
];

/// A row for each lane in which something was counted.
pub(super) fn render(metrics: &[&Metric], look: Look) -> String {
    let mut rows = Vec::new();
    for metric in metrics {
        let name = names::of(metric);
        for (lane, value) in &metric.lanes {
            if let Some(cells) = cells(value, metric.unit, look) {
                let mut row = vec![name.clone(), lane_name(*lane)];
                row.extend(cells);
                rows.push(row);
            }
        }
    }
    if rows.is_empty() {
        return "\nnothing was counted on any lane\n".to_owned();
    }
    format!("\n{}", table(&COLUMNS, &rows, 1..COLUMNS.len()))
}

/// The columns behind the lane; `None` where there is nothing.
fn cells(value: &Value, unit: &str, look: Look) -> Option<[String; 6]> {
    let blank = String::new;
    let plain = |value: String| [value, blank(), blank(), blank(), blank(), blank()];
    match value {
        Value::Counter(0) => None,
        Value::Counter(value) => Some(plain(value.to_string())),
        // On one lane, the downs of other lanes' ups make any number.
        Value::Gauge(gauge) if gauge.low == 0 && gauge.high == 0 => None,
        Value::Gauge(gauge) if gauge.low == gauge.high => Some(plain(gauge.low.to_string())),
        Value::Gauge(gauge) => Some(plain(format!("{}..{}", gauge.low, gauge.high))),
        Value::Batch(value) | Value::Tree(value) if value.sum == 0 && value.estimate == 0 => None,
        Value::Batch(value) | Value::Tree(value) => Some(plain(value.sum.to_string())),
        Value::Span(span) if is_empty(span) => None,
        Value::Span(span) => Some(span_cells(span)),
        Value::Histogram(values) if values.count() == 0 => None,
        Value::Histogram(values) => {
            let mut cells = plain(values.count().to_string());
            cells[1] = values.sum.map_or(blank(), |sum| look.scaled(sum, unit));
            cells[3] = mean(values).map_or(blank(), |mean| look.scaled(mean, unit));
            Some(cells)
        }
        _ => None,
    }
}

fn is_empty(span: &Span) -> bool {
    [span.events, span.skipped, span.migrated, span.invalid] == [0; 4]
}

fn span_cells(span: &Span) -> [String; 6] {
    let known = |value: Option<u64>| value.map_or("-".to_owned(), |v| scaled(v, units::TIME));
    let skipped = match span.skipped {
        0 => String::new(),
        skipped => format!(" (+{skipped})"),
    };
    let bytes = match span.byte_events {
        0 => String::new(),
        _ => scaled(span.bytes, units::BYTES),
    };
    [
        format!("{}{skipped}", span.events),
        scaled(span.time, units::TIME),
        known(span.times.map(|times| times.min)),
        known((span.events > 0).then(|| average(span.time, span.events))),
        known(span.times.map(|times| times.max)),
        bytes,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::samples::*;
    use super::*;
    use countersink::reader::{Gauge, Per};

    #[test]
    fn lanes_with_something_have_rows() {
        let of = |events, skipped| {
            let span = Span {
                events,
                skipped,
                time: events * 1_000,
                times: extremes(5, 2_000),
                byte_events: events,
                bytes: events * 512,
                ..Span::default()
            };
            Value::Span(Box::new(span))
        };
        let metrics = [
            on_lanes(
                counter("requests", 12),
                vec![
                    (Per::Cpu(0), Value::Counter(5)),
                    (Per::Cpu(1), Value::Counter(0)),
                    (Per::Shared, Value::Counter(7)),
                ],
            ),
            on_lanes(
                gauge("in_flight", 1, 1),
                vec![(Per::Cpu(1), Value::Gauge(Gauge { low: -4, high: -4 }))],
            ),
            on_lanes(span("read", Span::default()), vec![(Per::Cpu(0), of(3, 2))]),
            on_lanes(
                metric("size", Value::Histogram(buckets())),
                vec![(Per::Cpu(0), Value::Histogram(buckets()))],
            ),
        ];
        let look = Look {
            migrated: false,
            clock: clock(),
        };
        let metrics: Vec<&Metric> = metrics.iter().collect();
        insta::assert_snapshot!(render(&metrics, look).trim_start(), @r#"
        metric       lane   value  total  min  avg  max  bytes
        requests        0       5
        requests   shared       7
        in_flight       1      -4
        read            0  3 (+2)    3us  5ns  1us  2us  1.5kb
        size            0     100    550         6
        "#);
    }
}
