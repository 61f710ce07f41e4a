//! The tables of saved results: those of `bench`, but for what only the run itself knew, such as events and readings of spans.

use std::collections::{BTreeMap, BTreeSet};

use countersink_experiments::check_before_set as cbs;
use countersink_experiments::rwsem::{Op, Work};
use countersink_harness::result::{ExperimentResult, PointResult, Results};

use super::{
    batch, check_before_set, fair_median, header, local, machine, numbers, rwsem, span,
    thread_label,
};

/// The tables of all experiments.
pub(crate) fn render(results: &Results) -> String {
    let mut text = String::new();
    for (at, measured) in results.experiments.iter().enumerate() {
        if at > 0 {
            text += "\n";
        }
        text += &format!("{}\n\n", measured.name);
        text += &machine(&results.machine, Some(measured));
        text += &of_experiment(results, measured);
    }
    text
}

fn of_experiment(results: &Results, measured: &ExperimentResult) -> String {
    let points = &measured.points;
    match measured.name.as_str() {
        "local" => local::render(measured, results.machine.arch.as_deref(), false),
        "local-fixed" => local::render_fixed(measured, false),
        "span" => span::render_costs(measured) + &span_loops(points),
        "batch" => batch::render(measured),
        "rwsem" => rwsem::render(measured, &ops(points), Work::default(), &[]),
        "rwsem-published" => rwsem::render_published(points),
        cbs::NAME => {
            check_before_set::render(&cbs::Measured::of(measured.clone()), &results.machine)
        }
        _ => any(points.iter()),
    }
}

/// What of `span` is no cost of counting and timing.
fn span_loops(points: &[PointResult]) -> String {
    let is_cost = |op: &str| {
        [
            countersink_experiments::span::COUNT,
            countersink_experiments::span::TIME,
        ]
        .contains(&op)
    };
    let others = points.iter().filter(|point| !is_cost(&point.op));
    let text = any(others);
    match text.is_empty() {
        true => text,
        false => format!("\nWhole loops, and what their spans showed on average\n\n{text}"),
    }
}

/// The operations of the points, in the order of the experiment.
fn ops(points: &[PointResult]) -> Vec<Op> {
    let mut shares: Vec<u32> = Vec::new();
    let is_there = |op: Op| points.iter().any(|point| point.op == op.name());
    for point in points
        .iter()
        .filter(|point| point.op == Op::Mixed(0).name())
    {
        let share = point
            .pattern
            .split(' ')
            .next()
            .and_then(|share| share.parse().ok());
        if let Some(share) = share
            && !shares.contains(&share)
        {
            shares.push(share);
        }
    }
    let plain = [Op::TryRead, Op::Read, Op::Write, Op::TryWrite];
    let plain = plain.into_iter().filter(|op| is_there(*op));
    plain.chain(shares.into_iter().map(Op::Mixed)).collect()
}

/// A table for each operation: a row for each pattern and variant, a column for each number of threads.
fn any<'a>(points: impl Iterator<Item = &'a PointResult>) -> String {
    let mut ops: Vec<&str> = Vec::new();
    let mut by_op: BTreeMap<&str, Vec<&PointResult>> = BTreeMap::new();
    for point in points {
        let of_op = by_op.entry(&point.op).or_default();
        if of_op.is_empty() {
            ops.push(&point.op);
        }
        of_op.push(point);
    }
    let table = |op: &&str| {
        let points = &by_op[op];
        let threads: BTreeSet<usize> = points.iter().map(|point| point.threads).collect();
        let mut labels: Vec<(&str, &str)> = Vec::new();
        for point in points {
            let label = (point.pattern.as_str(), point.variant.as_str());
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        let row = |(pattern, variant): &(&str, &str)| {
            let cells = threads.iter().map(|threads| {
                let found = points.iter().find(|point| {
                    point.pattern == *pattern
                        && point.variant == *variant
                        && point.threads == *threads
                });
                found.map_or("-".to_owned(), |point| fair_median(point))
            });
            let label = format!("{pattern}, {variant}");
            std::iter::once(label).chain(cells).collect::<Vec<String>>()
        };
        let header = header(
            op,
            threads.iter().map(|threads| thread_label(points, *threads)),
        );
        numbers(&header, &labels.iter().map(row).collect::<Vec<_>>())
    };
    let tables: Vec<String> = ops.iter().map(table).collect();
    tables.join("\n")
}

#[cfg(test)]
mod tests {
    use countersink_harness::machine::Machine;

    use super::*;

    fn point(key: (&str, &str, &str, usize), around: f64) -> PointResult {
        let (variant, op, pattern, threads) = key;
        PointResult::of(variant, (op, pattern, threads), vec![around; 6]).expect("a point")
    }

    #[test]
    fn what_no_table_is_made_for_has_one_all_the_same() {
        let mut results = Results::new(Machine::default());
        let mut measured = ExperimentResult::new("unheard of");
        measured.points = vec![
            point(("one", "do", "fast", 1), 10.0),
            point(("one", "do", "fast", 2), 20.0),
            point(("two", "do", "fast", 2), 30.0),
            point(("one", "undo", "slow", 1), 40.0),
        ];
        results.experiments.push(measured);
        let text = render(&results);
        let table = [
            " do         1 thread  2 threads",
            " fast, one  10.0 ±0%   20.0 ±0%",
            " fast, two         -   30.0 ±0%",
            "",
            " undo       1 thread",
            " slow, one  40.0 ±0%",
            "",
        ]
        .join("\n");
        assert!(
            text.starts_with("unheard of\n\nCPU        unknown"),
            "{text}"
        );
        assert!(text.ends_with(&table), "{text}");
    }

    #[test]
    fn operations_are_those_of_the_points() {
        let points = [
            point(("std", "mixed", "50 % readers", 1), 1.0),
            point(("std", "read", "one lock", 1), 1.0),
            point(("std", "mixed", "x", 1), 1.0),
        ];
        assert_eq!(ops(&points), [Op::Read, Op::Mixed(50)]);
    }
}
