//! The tables of `bench local`.

use std::collections::BTreeSet;

use countersink_experiments::local::published::{Verdict, find as find_column};
use countersink_experiments::local::{COLUMNS, HOT, ITERATIONS, LEN, STRIDE, Sum, memory};
use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_percpu::WORDS;

use crate::output::wrap;

use super::ratios::Ratios;
use super::{RATIOS, fair_median, figure, find, header, median, numbers, rows, thread_label};

/// The rows of the first table.
const WAYS: [&str; 7] = [
    "atomic", "sigmask", "deferred", "trivalue", "local", "percpu", "loop",
];
/// The rows of the hot patterns.
const HOT_WAYS: [&str; 8] = [
    "atomic", "sigmask", "deferred", "trivalue", "local", "percpu", "plain", "loop",
];
/// The way that the others are divided by.
const REFERENCE: &str = "local";

/// Everything but the fixed iterations.
///
/// The architecture says what `LocalCount` is.
pub(crate) fn render(measured: &ExperimentResult, arch: Option<&str>, normalize: bool) -> String {
    let points = &measured.points;
    let mut text = format!(
        "Ways to bump a local counter, one thread{}\n",
        unit(normalize)
    );
    text += &wrap(
        &format!(
            "{LEN} counters in turn with a stride of {STRIDE}; cpu_local_inc bumps {HOT} hot words that \
             share two cache lines and is not comparable with the others. loop is the loop alone, \
             subtracted nowhere. percpu walks {} segments.",
            LEN.div_ceil(WORDS)
        ),
        0,
    );
    text += "\n";
    text += &seed_table(points, normalize);
    text += "\n";
    text += &local_count(points, arch);
    text += &hot_table(points, normalize);
    text += &shared_table(points);
    text + &ratios(measured)
}

/// The first table with the seed's iterations.
pub(crate) fn render_fixed(measured: &ExperimentResult, normalize: bool) -> String {
    let text = format!(
        "\nThe same with {ITERATIONS} iterations for each sample, as published{}\n\n",
        unit(normalize)
    );
    text + &seed_table(&measured.points, normalize)
}

fn unit(normalize: bool) -> &'static str {
    if normalize {
        ", as ratios to local (medians)"
    } else {
        ", ns/op (median ± the farther end of its 95 % interval)"
    }
}

fn seed_table(points: &[PointResult], normalize: bool) -> String {
    let header = header("", COLUMNS.iter().map(|(op, _)| (*op).to_owned()));
    let rows = rows(&WAYS, |way| {
        COLUMNS
            .map(|(op, pattern)| cell(points, (way, op, pattern, 1), normalize))
            .to_vec()
    });
    numbers(&header, &rows)
}

fn hot_table(points: &[PointResult], normalize: bool) -> String {
    let text = format!(
        "\ninc where the cache plays no part{}\n\
         hot: one counter again and again, the time until the next may begin; rotating: {HOT} counters on \
         {HOT}\ncache lines in turn, the time that each takes up. plain is an addition without any \
         protection.\n\n",
        unit(normalize)
    );
    let header = header("", ["hot", "rotating"].map(str::to_owned));
    let rows = rows(&HOT_WAYS, |way| {
        ["hot", "rotating"]
            .map(|pattern| cell(points, (way, "inc", pattern, 1), normalize))
            .to_vec()
    });
    text + &numbers(&header, &rows)
}

fn cell(points: &[PointResult], key: (&str, &str, &str, usize), normalize: bool) -> String {
    let (_, op, pattern, threads) = key;
    let Some(point) = find(points, key) else {
        return "-".to_owned();
    };
    if !normalize {
        return median(point);
    }
    match find(points, (REFERENCE, op, pattern, threads)) {
        Some(reference) => figure(point.wall.median / reference.wall.median),
        None => "-".to_owned(),
    }
}

/// What the counters take on this machine.
pub(crate) fn render_memory() -> String {
    let parts = memory()
        .into_iter()
        .map(|(way, bytes)| format!("{way} {} MB", bytes >> 20));
    let text = format!(
        "memory of the {LEN} counters: {} of address space in all lanes, of which a thread touches its CPU's",
        parts.collect::<Vec<_>>().join(", ")
    );
    format!("\n{}", wrap(&text, 0))
}

/// Whether the alias for this architecture was the fastest of the seed's ways here.
fn local_count(points: &[PointResult], arch: Option<&str>) -> String {
    let alias = match arch {
        Some("x86_64") => "local",
        Some(_) => "trivalue",
        None => return String::new(),
    };
    let others = WAYS
        .iter()
        .filter(|way| !["loop", "percpu", alias].contains(way));
    let mut slower = Vec::new();
    let mut unclear = Vec::new();
    for other in others {
        for (column, (op, _)) in COLUMNS.iter().enumerate() {
            match Verdict::of(points, column, alias, other) {
                Verdict::Held => {}
                Verdict::Reversed => slower.push(format!("{other} {op}")),
                Verdict::CannotTell if find_column(points, other, column).is_some() => {
                    unclear.push(format!("{other} {op}"));
                }
                Verdict::CannotTell => {}
            }
        }
    }
    let list = |names: &[String]| names.join(", ");
    let verdict = match (slower.is_empty(), unclear.is_empty()) {
        (true, true) => {
            "it was the fastest of the thread-owned ways in every column here".to_owned()
        }
        (true, false) => format!(
            "no thread-owned way was faster here; no difference could be told from {}",
            list(&unclear)
        ),
        _ => format!("here these were faster: {}", list(&slower)),
    };
    wrap(
        &format!(
            "LocalCount is {alias} on {}: {verdict}",
            arch.unwrap_or_default()
        ),
        0,
    )
}

fn shared_table(points: &[PointResult]) -> String {
    let shared: Vec<_> = points
        .iter()
        .filter(|point| point.pattern == "shared")
        .collect();
    let threads: BTreeSet<usize> = shared.iter().map(|point| point.threads).collect();
    if threads.is_empty() {
        return String::new();
    }
    let mut text = "\nOne counter shared by all threads, wall ns/op: time x threads / operations\n\
                    add_return returns the lane's value where there are lanes; read sums them up.\n\
                    unfair: the slowest thread did less than half as much as the fastest.\n\n"
        .to_owned();
    for op in ["inc", "add", "add_return", "read"] {
        let header = header(
            op,
            threads
                .iter()
                .map(|threads| thread_label(&shared, *threads)),
        );
        let rows = rows(&["atomic", "locked-lanes", "percpu"], |way| {
            let cells = threads
                .iter()
                .map(|threads| shared_cell(points, (way, op, "shared", *threads)));
            cells.collect()
        });
        text += &numbers(&header, &rows);
        text += "\n";
    }
    text
}

fn shared_cell(points: &[PointResult], key: (&str, &str, &str, usize)) -> String {
    match find(points, key) {
        Some(point) => fair_median(point),
        None => "-".to_owned(),
    }
}

/// The comparisons that the design stands on.
fn ratios(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let shared = points.iter().filter(|point| point.pattern == "shared");
    let threads: BTreeSet<usize> = shared.map(|point| point.threads).collect();
    let mut pairs = vec![("plain", "rotating", 1), ("plain", "hot", 1)];
    pairs.extend(threads.iter().map(|threads| ("atomic", "shared", *threads)));
    for (other, pattern, threads) in pairs {
        let ours = find(points, ("percpu", "inc", pattern, threads));
        let theirs = find(points, (other, "inc", pattern, threads));
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            continue;
        };
        let s = if threads == 1 { "" } else { "s" };
        ratios.add(
            format!("percpu / {other}, inc {pattern}, {threads} thread{s}"),
            (ours, theirs),
            aim(pattern, threads, ours.oversubscribed),
        );
    }
    format!("{RATIOS}\n{}", ratios.text())
}

/// What the ratio should be at most, on threads that each have a CPU.
fn aim(pattern: &str, threads: usize, oversubscribed: bool) -> Option<f64> {
    match (pattern, threads) {
        ("rotating", 1) => Some(1.25),
        ("shared", 1) => Some(0.5),
        ("shared", 2) if !oversubscribed => Some(0.07),
        _ => None,
    }
}

/// What the counters held in the end.
pub(crate) fn render_sums(sums: &[Sum]) -> String {
    let mut text = "\nSums of the counters, each equal to what its operations make\n\n".to_owned();
    let seed_columns = COLUMNS.map(|(op, pattern)| format!("{op} {pattern}, 1 thread"));
    let header = header("", COLUMNS.iter().map(|(op, _)| (*op).to_owned()));
    let ways = WAYS
        .iter()
        .filter(|way| **way != "loop")
        .copied()
        .collect::<Vec<_>>();
    let rows = rows(&ways, |way| {
        let value = |column: &String| {
            let sum = sums
                .iter()
                .find(|sum| sum.variant == way && sum.column == *column);
            sum.map_or("-".to_owned(), |sum| sum.value.to_string())
        };
        seed_columns.iter().map(value).collect()
    });
    text += &numbers(&header, &rows);
    let others = sums
        .iter()
        .filter(|sum| !seed_columns.contains(&sum.column))
        .count();
    if others > 0 {
        text += &format!("and {others} more, of the other patterns\n");
    }
    text
}
