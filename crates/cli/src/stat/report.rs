//! What commands have counted, as lines, as a table, as JSON.

use std::collections::BTreeMap;

use countersink::reader::{Metric, Snapshot, Span, Value};
use serde::Serialize;

use super::command::Ended;
use crate::show::json::JsonMetric;
use crate::table::table;
use crate::{names, output};

/// A phase that ran.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) name: String,
    pub(super) ended: Ended,
    /// What metrics grew by.
    pub(super) grown: Vec<Metric>,
}

/// In the form in which lock events were published in 2019.
pub(super) fn lines(number: usize, done: &Done) -> String {
    let gap = if number > 1 { "\n" } else { "" };
    let mut text = format!("{gap}{number}) After {}:\n", names::escaped(&done.name));
    for (name, value) in done.grown.iter().flat_map(values) {
        text += &format!("{name}={value}\n");
    }
    text
}

/// A row for each value, a column for each phase.
pub(super) fn table_of(done: &[Done]) -> String {
    let mut columns = vec!["metric".to_owned()];
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (at, phase) in done.iter().enumerate() {
        columns.push(names::escaped(&phase.name));
        for (name, value) in phase.grown.iter().flat_map(values) {
            let row = rows.entry(name).or_default();
            // What was not there in earlier phases did not grow in them.
            row.resize(at, "0".to_owned());
            row.push(value);
        }
    }
    let rows = rows.into_iter().map(|(name, mut row)| {
        row.resize(done.len(), "0".to_owned());
        row.insert(0, name);
        row
    });
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    table(&columns, &rows.collect::<Vec<_>>(), 1..columns.len())
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    phases: Vec<JsonPhase<'a>>,
    problems: &'a [String],
}

#[derive(Debug, Serialize)]
struct JsonPhase<'a> {
    name: &'a str,
    status: u8,
    elapsed_ns: u64,
    growth: Vec<JsonMetric<'a>>,
}

/// All phases as one object; the clock is that of the last snapshot.
pub(super) fn json(done: &[Done], last: &Snapshot) -> anyhow::Result<String> {
    let document = Document {
        schema: "countersink-stat/1",
        phases: done.iter().map(|done| json_phase(done, last)).collect(),
        problems: &last.problems,
    };
    output::json(&document, true)
}

fn json_phase<'a>(done: &'a Done, last: &Snapshot) -> JsonPhase<'a> {
    let grown = done.grown.iter();
    JsonPhase {
        name: &done.name,
        status: done.ended.status,
        elapsed_ns: u64::try_from(done.ended.took.as_nanos()).unwrap_or(u64::MAX),
        growth: grown
            .map(|metric| JsonMetric::of(metric, &last.clock, false))
            .collect(),
    }
}

/// Whether nothing was counted.
pub(super) fn is_nothing(grown: &Metric) -> bool {
    match &grown.value {
        Value::Counter(by) => *by == 0,
        Value::Gauge(by) => (by.low, by.high) == (0, 0),
        Value::Batch(by) | Value::Tree(by) => by.sum == 0,
        Value::Span(span) => [span.events, span.skipped, span.invalid] == [0; 3],
        Value::Histogram(values) => values.count() == 0,
        _ => true,
    }
}

/// A metric's values by their names.
fn values(grown: &Metric) -> Vec<(String, String)> {
    let name = names::of(grown);
    let part = |part: &str, value: u64| (format!("{name}.{part}"), value.to_string());
    match &grown.value {
        Value::Counter(by) => vec![(name, by.to_string())],
        Value::Gauge(by) if by.low == by.high => vec![(name, by.low.to_string())],
        Value::Gauge(by) => vec![(name, format!("{}..{}", by.low, by.high))],
        Value::Batch(by) | Value::Tree(by) => vec![(name, by.sum.to_string())],
        Value::Span(span) => of_span(span, part),
        Value::Histogram(values) => {
            let sum = values.sum.map(|sum| part("sum", sum));
            std::iter::once(part("count", values.count()))
                .chain(sum)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn of_span(span: &Span, part: impl Fn(&str, u64) -> (String, String)) -> Vec<(String, String)> {
    let mut values = vec![part("events", span.events), part("time_ns", span.time)];
    for (name, value) in [
        ("bytes", span.bytes),
        ("migrated", span.migrated),
        ("skipped", span.skipped),
        ("invalid", span.invalid),
    ] {
        if value > 0 {
            values.push(part(name, value));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::samples::{buckets, counter, gauge, metric, published, snapshot, span};
    use std::time::Duration;

    fn done(name: &str, grown: Vec<Metric>) -> Done {
        let ended = Ended {
            status: 0,
            took: Duration::from_millis(5),
        };
        let name = name.to_owned();
        Done { name, ended, grown }
    }

    fn phases() -> [Done; 2] {
        let bootup = vec![
            counter("rwsem_rtrylock", 784_029),
            counter("rwsem_rtrylock_fail", 59),
        ];
        let skipping = Span {
            skipped: 7,
            ..published()
        };
        let build = vec![
            gauge("in_flight", -1, 1),
            span("read", skipping),
            counter("rwsem_rtrylock", 338_667_559),
            counter("rwsem_rtrylock_fail", 18),
            metric("size", Value::Histogram(buckets())),
        ];
        [done("bootup", bootup), done("make -j112", build)]
    }

    #[test]
    fn lines_have_the_published_form() {
        let [bootup, build] = phases();
        let text = lines(1, &bootup) + &lines(2, &build);
        insta::assert_snapshot!(text, @r#"
        1) After bootup:
        rwsem_rtrylock=784029
        rwsem_rtrylock_fail=59

        2) After make -j112:
        in_flight=-1..1
        read.events=598430
        read.time_ns=5600000
        read.skipped=7
        rwsem_rtrylock=338667559
        rwsem_rtrylock_fail=18
        size.count=100
        size.sum=550
        "#);
    }

    #[test]
    fn a_table_has_a_column_for_each_phase() {
        insta::assert_snapshot!(table_of(&phases()), @r#"
        metric               bootup  make -j112
        in_flight                 0       -1..1
        read.events               0      598430
        read.skipped              0           7
        read.time_ns              0     5600000
        rwsem_rtrylock       784029   338667559
        rwsem_rtrylock_fail      59          18
        size.count                0         100
        size.sum                  0         550
        "#);
        assert_eq!(table_of(&[]), "metric\n");
    }

    #[test]
    fn json_has_the_growth_of_each_phase() {
        let text = json(&phases(), &snapshot(Vec::new())).expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(json["schema"], "countersink-stat/1");
        assert_eq!(json["phases"][0]["elapsed_ns"], 5_000_000);
        assert_eq!(json["phases"][1]["name"], "make -j112");
        assert_eq!(json["phases"][1]["growth"][2]["value"], 338_667_559);
    }
}
