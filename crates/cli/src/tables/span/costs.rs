//! What counting and timing cost.

use std::collections::BTreeSet;

use countersink_experiments::span::{COUNT, IN_TURN, SAME, TIME};
use countersink_harness::result::{ExperimentResult, PointResult};

use crate::output::wrap;
use crate::tables::ratios::Ratios;
use crate::tables::{RATIOS, fair_median, find, header, numbers, rows, thread_label};

/// The rows of the costs of counting, and of timing.
const COUNTING: [&str; 7] = [
    "percpu",
    "counter",
    "gauge",
    "histogram",
    "histogram-same",
    "histogram-sum",
    "atomic",
];
const TIMING: [&str; 7] = [
    "clock-pair",
    "span",
    "span-bytes",
    "span-histogram",
    "rdtsc-pair",
    "instant-pair",
    "instant+atomics",
];

/// What counting and timing cost.
pub(crate) fn render(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut text = "\nWhat counting costs, wall ns/op: time x threads / operations\n".to_owned();
    text += &wrap(
        "One metric that all threads share. percpu is the bare operation, its handle in registers; histogram \
         records values from 0 to 1023, histogram-same one value, histogram-sum keeps the sum too; atomic is a shared AtomicU64.",
        0,
    );
    text += &costs(points, COUNT, SAME, &COUNTING);
    text += "16 in turn, which shows throughput, not latency\n";
    text += &costs(points, COUNT, IN_TURN, &COUNTING);
    text += "What timing nothing costs\n";
    text += &wrap(
        "clock-pair is two bare reads of time and CPU, as a span does them. rdtsc-pair waits for nothing \
         before it. instant is std's; instant+atomics with four shared words for events, total, \
         longest and shortest: the usual way.",
        0,
    );
    text += &costs(points, TIME, SAME, &TIMING);
    text + &ratios(measured) + &scaling(measured)
}

fn costs(points: &[PointResult], op: &str, pattern: &str, ways: &[&str]) -> String {
    let here = |point: &&PointResult| point.op == op && point.pattern == pattern;
    let here: Vec<&PointResult> = points.iter().filter(here).collect();
    let threads = thread_counts(points);
    let labels = threads.iter().map(|threads| thread_label(&here, *threads));
    let header = header("", labels);
    let rows = rows(ways, |way| {
        let cell = |threads: &usize| {
            let point = find(points, (way, op, pattern, *threads));
            point.map_or("-".to_owned(), fair_median)
        };
        threads.iter().map(cell).collect()
    });
    format!("\n{}\n", numbers(&header, &rows))
}

fn thread_counts(points: &[PointResult]) -> BTreeSet<usize> {
    let costs = points.iter().filter(|point| point.op == COUNT);
    costs.map(|point| point.threads).collect()
}

/// The comparisons that have an aim, and those beside them.
fn ratios(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let pairs = [
        (COUNT, SAME, "counter", "percpu", Some(1.2)),
        (COUNT, IN_TURN, "counter", "percpu", Some(1.2)),
        (COUNT, SAME, "gauge", "counter", None),
        (COUNT, SAME, "histogram", "counter", Some(2.0)),
        (COUNT, SAME, "histogram-same", "counter", Some(2.0)),
        (COUNT, SAME, "histogram-sum", "counter", None),
        (COUNT, SAME, "counter", "atomic", None),
        (TIME, SAME, "span", "clock-pair", Some(1.25)),
        (TIME, SAME, "span-bytes", "clock-pair", None),
        (TIME, SAME, "span-histogram", "clock-pair", None),
        (TIME, SAME, "span", "instant-pair", None),
        (TIME, SAME, "span", "instant+atomics", None),
    ];
    for (op, pattern, ours, theirs, aim) in pairs {
        for threads in thread_counts(points) {
            let [a, b] = [ours, theirs].map(|way| find(points, (way, op, pattern, threads)));
            let (Some(a), Some(b)) = (a, b) else { continue };
            let s = if threads == 1 { "" } else { "s" };
            let label = format!("{ours} / {theirs}, {pattern}, {threads} thread{s}");
            ratios.add(label, (a, b), aim.filter(|_| has_aim(a)));
        }
    }
    format!("{RATIOS}\n{}", ratios.text())
}

/// Aims are for one and two threads that each have a CPU.
fn has_aim(point: &PointResult) -> bool {
    point.threads <= 2 && !point.oversubscribed
}

/// What several threads cost each other.
fn scaling(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let several: Vec<usize> = (thread_counts(points).into_iter())
        .filter(|threads| *threads > 1)
        .collect();
    let mut ratios = Ratios::new(measured);
    let ways = [
        (COUNT, "counter"),
        (COUNT, "gauge"),
        (COUNT, "histogram"),
        (TIME, "span"),
        (TIME, "span-bytes"),
        (TIME, "span-histogram"),
        (COUNT, "atomic"),
        (TIME, "instant+atomics"),
    ];
    for threads in several {
        for (op, way) in ways {
            let [many, one] = [threads, 1].map(|threads| find(points, (way, op, SAME, threads)));
            let (Some(many), Some(one)) = (many, one) else {
                continue;
            };
            // Rounds of two points share no conditions; as independent pairs they give an interval too.
            let is_ours = !["atomic", "instant+atomics"].contains(&way);
            let aim = Some(1.15).filter(|_| is_ours && has_aim(many));
            let label = format!("{way}, {threads} threads / 1 thread");
            ratios.add(label, (many, one), aim);
        }
    }
    let text = ratios.text();
    if text.is_empty() {
        return text;
    }
    let head = "\nThe same per thread, several threads / one; measured one after the other, so a drift is in it\n\n";
    format!("{head}{text}")
}

#[cfg(test)]
mod tests {
    use countersink_experiments::span::SpanExperiment;
    use countersink_harness::machine::Machine;
    use countersink_harness::measure;
    use countersink_harness::mock::{MockRunner, even_sample};
    use countersink_harness::progress::Silent;
    use countersink_harness::result::Results;
    use countersink_harness::schedule::Plan;

    use super::*;

    /// The costs with invented times: several threads take half as long again, but for spans.
    fn invented() -> ExperimentResult {
        let mut runner = MockRunner::new(|call| {
            let nanoseconds: u64 = match call.variant {
                "percpu" => 10,
                "counter" | "gauge" => 11,
                "histogram" => 30,
                "atomic" => 44,
                "clock-pair" => 100,
                "span" => 120,
                "span-histogram" => 150,
                _ => 200,
            };
            let contended = call.threads > 1 && !call.variant.starts_with("span");
            let wall = if contended {
                nanoseconds * 3 / 2
            } else {
                nanoseconds
            };
            let mut sample = even_sample(call.threads, 100, 100 * wall);
            sample.oversubscribed = call.threads == 3;
            sample
        });
        let plan = Plan::new(std::time::Duration::from_millis(1), 6).expect("a plan");
        let mut results = Results::new(Machine::default());
        let experiment = SpanExperiment::new(&[1, 2, 3]);
        measure::run(&experiment, &mut runner, &plan, &mut Silent, &mut results).expect("results");
        results.experiments.remove(0)
    }

    #[test]
    fn ratios_are_held_against_their_aims() {
        let text = render(&invented());
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(squeezed).collect();
        for line in [
            "1 thread 2 threads 3 threads (more than CPUs)",
            "clock-pair 100 ±0% 150 ±0% 150 ±0%",
            "counter / percpu, hot, 1 thread: 1.100 [1.100, 1.100], slower; aim: at most 1.2, reached",
            // 16 and 15: whole ns.
            "counter / percpu, rotating, 2 threads: 1.067 [1.067, 1.067], slower; aim: at most 1.2, reached",
            "histogram / counter, hot, 1 thread: 2.727 [2.727, 2.727], slower; aim: at most 2, missed",
            "histogram / counter, hot, 3 threads: 2.812 [2.812, 2.812], slower",
            "counter / atomic, hot, 1 thread: 0.250 [0.250, 0.250], faster",
            "span / clock-pair, hot, 1 thread: 1.200 [1.200, 1.200], slower; aim: at most 1.25, reached",
            "span-histogram / clock-pair, hot, 1 thread: 1.500 [1.500, 1.500], slower",
            "counter, 2 threads / 1 thread: 1.455 [1.455, 1.455], slower; aim: at most 1.15, missed",
            "span, 2 threads / 1 thread: 1.000 [1.000, 1.000], same; aim: at most 1.15, reached",
            "span, 3 threads / 1 thread: 1.000 [1.000, 1.000], same",
            "atomic, 2 threads / 1 thread: 1.500 [1.500, 1.500], slower",
        ] {
            assert!(
                lines.contains(&line.to_owned()),
                "{line} is missing in\n{text}"
            );
        }
    }
}
