//! The tables of experiments, as `bench` prints them and `render` does again; and what they have in common.

pub(crate) mod batch;
pub(crate) mod check_before_set;
pub(crate) mod local;
pub(crate) mod published;
pub(crate) mod ratios;
pub(crate) mod rwsem;
mod saved;
pub(crate) mod span;

pub(crate) use saved::render;

use std::collections::{BTreeMap, BTreeSet};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use countersink_harness::machine::Machine;
use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_harness::stats::Ratio;
use countersink_harness::surroundings::Disturbance;

/// A table of numbers: the first column to the left, the others to the right.
pub(crate) fn numbers(header: &[String], rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.to_string();
    let lines = lines.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// Three significant digits, so that a table of 0.5 and 250 can be read.
pub(crate) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The head of a list of ratios.
pub(crate) const RATIOS: &str = "Ratios of medians, with their 95 % interval over the processes (over the rounds, of fewer than six).\nfaster, slower: by a paired \
t-test, with Holm's correction for the list, at 5 %, and beyond the noise; same: the whole interval is within the noise, or 1 %\n";

/// A median with how far its 95 % interval reaches, in percent of it; with a mark where too many samples were disturbed.
pub(crate) fn median(point: &PointResult) -> String {
    let wall = &point.wall;
    let spread = match wall.ci95 {
        Some([low, high]) => {
            let reach = (high - wall.median).max(wall.median - low) / wall.median;
            format!(" ±{:.0}%", 100.0 * reach)
        }
        None => String::new(),
    };
    let mark = if point.is_sound() { "" } else { " !" };
    format!("{}{spread}{mark}", figure(wall.median))
}

/// A median of several threads, with a mark where one did less than half as much as another.
pub(crate) fn fair_median(point: &PointResult) -> String {
    let mark = if point.fairness < 0.5 {
        " (unfair)"
    } else {
        ""
    };
    format!("{}{mark}", median(point))
}

/// A ratio of medians with its interval.
pub(crate) fn ratio(ratio: &Ratio) -> String {
    let interval = ratio.ci95.map_or(String::new(), |[low, high]| {
        format!(" [{low:.3}, {high:.3}]")
    });
    format!("{:.3}{interval}", ratio.of_medians)
}

/// The point of a variant.
pub(crate) fn find<'a>(
    points: &'a [PointResult],
    (variant, op, pattern, threads): (&str, &str, &str, usize),
) -> Option<&'a PointResult> {
    points.iter().find(|point| {
        point.variant == variant
            && point.op == op
            && point.pattern == pattern
            && point.threads == threads
    })
}

/// What a ratio says of its aim, if it has one.
pub(crate) fn verdict(found: &Ratio, aim: Option<f64>) -> String {
    let Some(aim) = aim else {
        return String::new();
    };
    let verdict = match found.ci95 {
        Some([_, high]) if high <= aim => "reached",
        Some([low, _]) if low > aim => "missed",
        _ => "undecided",
    };
    format!("; aim: at most {aim}, {verdict}")
}

/// The first column's head and the others'.
pub(crate) fn header(first: &str, others: impl IntoIterator<Item = String>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(others).collect()
}

/// A row for each way that has figures.
pub(crate) fn rows(ways: &[&str], cells: impl Fn(&str) -> Vec<String>) -> Vec<Vec<String>> {
    let rows = ways.iter().map(|way| {
        let mut row = vec![(*way).to_owned()];
        row.extend(cells(way));
        row
    });
    rows.filter(|row| row.iter().skip(1).any(|cell| cell != "-"))
        .collect()
}

/// The head of a column of some points.
pub(crate) fn thread_label(points: &[&PointResult], threads: usize) -> String {
    let at = |point: &&&PointResult| point.threads == threads;
    let mut label = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
    if points.iter().filter(at).any(|point| point.oversubscribed) {
        label += " (more than CPUs)";
    }
    let shares = |point: &&PointResult| point.shared_cores == Some(true);
    if points.iter().filter(at).any(shares) {
        label += " (sharing cores)";
    }
    label
}

/// What the numbers were measured on.
pub(crate) fn machine(machine: &Machine, measured: Option<&ExperimentResult>) -> String {
    let known = |field: &Option<String>| field.clone().unwrap_or_else(|| "unknown".to_owned());
    let points = measured.map_or(&[][..], |measured| &measured.points);
    let threads = match (
        points.iter().all(|point| point.pinned),
        points.iter().any(|point| point.oversubscribed),
    ) {
        (false, _) => "not all pinned",
        (true, false) => "pinned, one to a CPU",
        (true, true) => "pinned; more than CPUs where it is said",
    };
    let mut text = format!(
        "CPU        {}, {} of {} allowed\nkernel     {} {}, clock source {}, huge pages {}\n\
         hypervisor {}, frequency governor {}\nthreads    {}\n",
        known(&machine.cpu_model),
        known(&machine.cpus_allowed),
        known(&machine.cpus_possible),
        known(&machine.os),
        known(&machine.kernel),
        known(&machine.clocksource),
        known(&machine.transparent_hugepages),
        known(&machine.hypervisor),
        known(&machine.governor),
        threads,
    );
    for (name, value) in &machine.conditions {
        text += &format!("{name:<10} {value}\n");
    }
    if measured.is_some_and(|measured| measured.partial) {
        text += "partial    the run was ended before all points were measured\n";
    }
    if let Some(measured) = measured {
        text += &validity(measured);
        text += &noise(measured);
    }
    text + "\n"
}

/// How many samples were disturbed, by what, and what became of them.
pub(crate) fn validity(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let all: usize = points.iter().map(|point| point.surroundings.len()).sum();
    let repeated: usize = points.iter().map(|point| point.repeated).sum();
    let kept: usize = points.iter().map(PointResult::disturbed).sum();
    if all == 0 {
        return String::new();
    }
    let mut reasons: BTreeMap<Disturbance, usize> = BTreeMap::new();
    for found in points.iter().flat_map(|point| &point.surroundings) {
        for reason in &found.disturbed {
            *reasons.entry(*reason).or_default() += 1;
        }
    }
    let reasons = reasons
        .iter()
        .map(|(reason, count)| format!("{} {count}", reason.name()));
    let reasons = match kept {
        0 => String::new(),
        _ => format!(" ({})", reasons.collect::<Vec<_>>().join(", ")),
    };
    let unsound = points.iter().filter(|point| !point.is_sound()).count();
    let unsound = match unsound {
        0 => String::new(),
        _ => format!("; !: of {unsound} points more than a quarter is disturbed"),
    };
    format!(
        "samples    {all}; {repeated} others were disturbed and taken again, {kept} disturbed ones are kept{reasons}{unsound}\n"
    )
}

/// How far variants are from themselves.
fn noise(measured: &ExperimentResult) -> String {
    let threads: BTreeSet<usize> = measured.noise.iter().map(|noise| noise.threads).collect();
    let floor = |threads: &usize| {
        let floor = measured.noise_floor(*threads)?;
        let s = if *threads == 1 { "" } else { "s" };
        Some(format!("{:.1} % at {threads} thread{s}", 100.0 * floor))
    };
    let floors: Vec<String> = threads.iter().filter_map(floor).collect();
    if floors.is_empty() {
        return String::new();
    }
    format!(
        "noise      a variant measured against itself was off by at most {}, in 95 of 100 comparisons\n",
        floors.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_carry() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.574, "0.57"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (99.94, "99.9"),
            (99.96, "100"),
            (1234.5, "1234"),
        ] {
            assert_eq!(figure(value), text);
        }
    }

    #[test]
    fn tables_align_numbers_to_the_right() {
        let rows = [
            vec!["a".to_owned(), "1.00".to_owned()],
            vec!["bc".to_owned(), "10.0".to_owned()],
        ];
        let text = numbers(&["way".to_owned(), "inc".to_owned()], &rows);
        assert_eq!(text, " way   inc\n a    1.00\n bc   10.0\n");
    }
}
