//! The tables of `bench batch`.

use std::collections::{BTreeMap, BTreeSet};

use countersink_experiments::batch::accuracy::Accuracy;
use countersink_experiments::batch::sizes::{self, SITES};
use countersink_experiments::batch::{ADD, AIMED, Amounts, BATCHES, READ};
use countersink_harness::result::{ExperimentResult, PointResult};
use object::{Object, ObjectSection, ObjectSymbol};

use super::ratios::Ratios;
use super::{RATIOS, fair_median, figure, find, header, numbers, rows};
use crate::output::wrap;

const WAYS: [&str; 9] = [
    "percpu",
    "carry",
    "carry-static",
    "kernel",
    "kernel-nested",
    "masked",
    "atomic",
    "tree",
    "loop",
];

/// What additions and reads cost.
pub(crate) fn render(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut text = "\nAdding to a counter that tells how much it has about, wall ns/op: time x threads / operations\n".to_owned();
    text += &wrap(
        "percpu is a bare addition. carry is BatchCounter through a handle in registers, carry-static in a static; \
         kernel folds under a lock, kernel-nested has one attempt in line, masked puts off handlers around all of it; \
         atomic is one shared word; tree publishes to groups of CPUs, where there are more than eight.",
        0,
    );
    for amounts in Amounts::ALL {
        for threads in thread_counts(points) {
            text += &adding(points, amounts, threads);
        }
    }
    text += &reading(points);
    text + &ratios(measured)
}

fn thread_counts(points: &[PointResult]) -> BTreeSet<usize> {
    points.iter().map(|point| point.threads).collect()
}

fn s(threads: usize) -> &'static str {
    if threads == 1 { "" } else { "s" }
}

fn adding(points: &[PointResult], amounts: Amounts, threads: usize) -> String {
    let what = match amounts {
        Amounts::Ones => "by ones",
        Amounts::Mixed => "by amounts from -3 to 12; loop only takes them from their table",
    };
    let at = |point: &&PointResult| point.threads == threads;
    let mark = match points.iter().filter(at).any(|point| point.oversubscribed) {
        true => " (more than CPUs)",
        false => "",
    };
    let header = header("", BATCHES.map(|batch| format!("batch {batch}")));
    let rows = rows(&WAYS, |way| {
        let cell = |batch| {
            let point = find(points, (way, ADD, &amounts.pattern(batch), threads));
            point.map_or("-".to_owned(), fair_median)
        };
        BATCHES.map(cell).to_vec()
    });
    format!(
        "\n{threads} thread{}{mark}, {what}\n{}",
        s(threads),
        numbers(&header, &rows)
    )
}

fn reading(points: &[PointResult]) -> String {
    let threads = thread_counts(points);
    let label = |threads: &usize| format!("{threads} thread{}", s(*threads));
    let header = header("", threads.iter().map(label));
    let rows = rows(&WAYS, |way| {
        let cell = |threads: &usize| {
            let pattern = Amounts::Ones.pattern(AIMED);
            let point = find(points, (way, READ, &pattern, *threads));
            point.map_or("-".to_owned(), fair_median)
        };
        threads.iter().map(cell).collect()
    });
    format!(
        "\nReading, while nobody adds; percpu has only a sum over the lanes\n{}",
        numbers(&header, &rows)
    )
}

/// The comparisons that have an aim, and those beside them.
fn ratios(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let aimed = Amounts::Ones.pattern(AIMED);
    for threads in thread_counts(points) {
        let mut compare = |ours, theirs, aim: Option<f64>| {
            compared(&mut ratios, points, (ours, theirs, &aimed, threads), aim);
        };
        compare("carry", "percpu", Some(1.5).filter(|_| threads <= 2));
        compare("carry-static", "percpu", None);
        compare("tree", "percpu", None);
        compare("carry", "atomic", Some(0.15).filter(|_| threads == 2));
        compare("kernel", "percpu", None);
    }
    let mut to_kernel = Ratios::new(measured);
    for threads in thread_counts(points) {
        for amounts in Amounts::ALL {
            for batch in BATCHES {
                let pattern = amounts.pattern(batch);
                let pair = ("carry", "kernel", pattern.as_str(), threads);
                compared(&mut to_kernel, points, pair, Some(1.0));
            }
        }
    }
    format!(
        "\n{RATIOS}\n{}\ncarry / kernel, the aim at every point: at most 1\n\n{}{}{}",
        ratios.text(),
        to_kernel.text(),
        read_cost(points),
        scaling(measured)
    )
}

fn compared(
    ratios: &mut Ratios<'_>,
    points: &[PointResult],
    (ours, theirs, pattern, threads): (&str, &str, &str, usize),
    aim: Option<f64>,
) {
    let [a, b] = [ours, theirs].map(|way| find(points, (way, ADD, pattern, threads)));
    if let (Some(a), Some(b)) = (a, b) {
        let label = format!(
            "{ours} / {theirs}, {pattern}, {threads} thread{}",
            s(threads)
        );
        ratios.add(label, (a, b), aim.filter(|_| !a.oversubscribed));
    }
}

/// The aim in ns.
fn read_cost(points: &[PointResult]) -> String {
    const MOST: f64 = 2.0;
    let pattern = Amounts::Ones.pattern(AIMED);
    let Some(point) = find(points, ("carry", READ, &pattern, 1)) else {
        return String::new();
    };
    let median = point.wall.median;
    let verdict = match point.wall.ci95 {
        Some([_, high]) if high <= MOST => "reached",
        Some([low, _]) if low > MOST => "missed",
        _ => "undecided",
    };
    format!(
        "\n  carry, read, 1 thread: {} ns; aim: at most {MOST} ns, {verdict}\n",
        figure(median)
    )
}

/// What several threads cost each other.
fn scaling(measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let mut ratios = Ratios::new(measured);
    let pattern = Amounts::Ones.pattern(AIMED);
    for threads in thread_counts(points).into_iter().filter(|n| *n > 1) {
        for way in [
            "percpu",
            "carry",
            "carry-static",
            "tree",
            "kernel",
            "atomic",
        ] {
            let [many, one] = [threads, 1].map(|n| find(points, (way, ADD, &pattern, n)));
            if let Some(pair) = many.zip(one) {
                ratios.add(format!("{way}, {threads} threads / 1 thread"), pair, None);
            }
        }
    }
    let text = ratios.text();
    if text.is_empty() {
        return text;
    }
    format!(
        "\nThe same per thread, several threads / one, {pattern}; measured one after the other, so a drift is in it\n\n{text}"
    )
}

/// How far reads were off.
pub(crate) fn render_accuracy(batch: u32, threads: usize, seen: &[Accuracy]) -> String {
    let header = header(
        "",
        ["reads", "farthest", "promised", "further"].map(str::to_owned),
    );
    let rows: Vec<Vec<String>> = seen
        .iter()
        .map(|seen| {
            let numbers = [seen.reads, seen.worst, seen.bound, seen.broken];
            let mut row = vec![seen.way.to_owned()];
            row.extend(numbers.map(|number| number.to_string()));
            row
        })
        .collect();
    format!(
        "\nHow far reads are off while {threads} thread{} by amounts from -3 to 12, batch {batch}: the farthest that is \
         certain, the bound promised then, and reads beyond theirs\n{}",
        if threads == 1 { " adds" } else { "s add" },
        numbers(&header, &rows)
    )
}

/// How large call sites are.
pub(crate) fn render_sizes() -> String {
    match program() {
        Ok((text, symbols)) => sizes_of(text, &symbols),
        Err(reason) => format!("\nSizes are not known: {reason}\n"),
    }
}

fn sizes_of(text: u64, symbols: &BTreeMap<String, u64>) -> String {
    let Some(sizes) = sizes::sizes(symbols) else {
        return "\nSizes are not known: this program's symbols were removed\n".to_owned();
    };
    let header = header("", ["a call site", "bytes of 33"].map(str::to_owned));
    let row = |size: &sizes::Size| {
        vec![
            size.way.to_owned(),
            size.site.to_string(),
            size.many.to_string(),
        ]
    };
    let mut shown = format!(
        "\nBytes of code, from this program's own symbols\n{}\n",
        numbers(&header, &sizes.iter().map(row).collect::<Vec<_>>())
    );
    for way in ["carry", "carry-static", "kernel", "kernel-nested"] {
        let many = |how: &str| {
            let name = format!("{way}, {how}");
            sizes
                .iter()
                .find(|size| size.way == name)
                .map(|size| size.many)
        };
        if let (Some(inline), Some(called)) = (many("in line"), many("by call")) {
            // Both are in this program; each total is without the other.
            let totals = [inline, called].map(|probe| text.checked_sub(probe));
            let [Some(before), Some(after)] = totals else {
                continue;
            };
            let change = 100.0 * (after as f64 / before as f64 - 1.0);
            shown += &format!(
                "  {way}, {SITES} call sites in line instead of by call: Total: Before={before}, After={after}, chg {change:+.2}%\n"
            );
        }
    }
    shown
}

/// The bytes of this program's code, and those of its functions.
fn program() -> anyhow::Result<(u64, BTreeMap<String, u64>)> {
    let bytes = std::fs::read(std::env::current_exe()?)?;
    let file = object::File::parse(&*bytes)?;
    let text = file.section_by_name(".text").map_or(0, |text| text.size());
    let symbols = file.symbols().filter_map(|symbol| {
        let name = symbol.name().ok()?;
        Some((name.to_owned(), symbol.size()))
    });
    Ok((text, symbols.filter(|(_, size)| *size > 0).collect()))
}
