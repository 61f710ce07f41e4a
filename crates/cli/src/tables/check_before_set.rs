//! The tables and the plot of `bench check-before-set`.

use countersink_experiments::check_before_set::{
    At, BreakEven, CHECKED, Measured, PLAIN, READ, SHARES, SetUp, Values, WRITE, break_even, size,
};
use countersink_harness::machine::Machine;
use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_harness::stats::Ratio;

use super::{figure, find, header, numbers, ratio};
use crate::output::wrap;

/// A role of a set-up in both variants.
fn pair<'a>(measured: &'a Measured, set_up: &SetUp, op: &str) -> Option<[&'a PointResult; 2]> {
    let threads = if set_up.together { 2 } else { 1 };
    let of = |variant| {
        find(
            &measured.result.points,
            (variant, op, &set_up.pattern(), threads),
        )
    };
    Some([of(PLAIN)?, of(CHECKED)?])
}

/// What is checked over what is plain.
fn compared(measured: &Measured, set_up: &SetUp, op: &str) -> Option<Ratio> {
    let [plain, checked] = pair(measured, set_up, op)?;
    // Neighbours in time are a pair.
    Ratio::paired(&checked.samples, &plain.samples, 1)
}

/// The set-ups, the sweeps and the sentence.
pub(crate) fn render(measured: &Measured, machine: &Machine) -> String {
    let mut text = String::new();
    for note in &measured.notes {
        text += &format!("note       {note}\n");
    }
    let of_data = machine
        .caches
        .iter()
        .filter(|cache| cache.kind.as_deref() != Some("Instruction"));
    let caches: Vec<String> = of_data
        .filter_map(|cache| Some(format!("level {}: {}", cache.level?, cache.size.as_ref()?)))
        .collect();
    if !caches.is_empty() {
        text += &format!("caches     {}\n", caches.join(", "));
    }
    let ghz = clock_ghz(&measured.result);
    if let Some(ghz) = ghz {
        text +=
            &format!("clock      {ghz:.2} GHz, by a chain of operations whose cycles are known\n");
    }
    text += "\nStoring to every word of some memory, with and without looking first: ns for each word, mean and standard deviation of \
             12 runs, and cycles\n";
    text += &set_ups(measured, ghz);
    text += &sweeps(measured);
    text + &sentence(measured)
}

/// The clock rate while it was measured: the fastest that was seen.
fn clock_ghz(measured: &ExperimentResult) -> Option<f64> {
    let all = measured.points.iter().flat_map(|point| &point.surroundings);
    let rates = all.filter_map(|found| found.clock_ghz).flatten();
    rates.max_by(f64::total_cmp)
}

fn set_ups(measured: &Measured, ghz: Option<f64>) -> String {
    let mut rows = Vec::new();
    for set_up in &measured.set_ups {
        let roles: &[&str] = if set_up.together {
            &[WRITE, READ]
        } else {
            &[WRITE]
        };
        for op in roles {
            let Some([plain, checked]) = pair(measured, set_up, op) else {
                continue;
            };
            let mean = |point: &PointResult| {
                let deviation = deviation(&point.samples);
                format!("{} ({})", figure(point.wall.mean), figure(deviation))
            };
            let cycles = |point: &PointResult| {
                ghz.map_or("-".to_owned(), |ghz| {
                    format!("{:.2}", point.wall.mean * ghz)
                })
            };
            let found = compared(measured, set_up, op);
            rows.push(vec![
                format!("{op}, {}", set_up.pattern()),
                mean(plain),
                mean(checked),
                cycles(plain),
                cycles(checked),
                found.map_or("-".to_owned(), |found| ratio(&found)),
                set_up.why.clone(),
            ]);
        }
    }
    let header = header(
        "",
        [
            "plain",
            "checked",
            "cycles",
            "cycles",
            "checked / plain",
            "size",
        ]
        .map(str::to_owned),
    );
    numbers(&header, &rows)
}

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0).max(1.0)).sqrt()
}

/// A line of the plot: who, beside whom, on how much memory, and the ratio at each share.
pub(crate) struct Curve {
    pub(crate) name: String,
    pub(crate) sweep: Vec<At>,
}

pub(crate) fn curves(measured: &Measured) -> Vec<Curve> {
    let mut curves = Vec::new();
    for sweep in &measured.sweeps {
        let Some(first) = sweep.first() else { continue };
        let roles: &[&str] = if first.together {
            &[WRITE, READ]
        } else {
            &[WRITE]
        };
        for op in roles {
            let at = |set_up: &SetUp| {
                let Values::Share(share) = set_up.values else {
                    return None;
                };
                let found = compared(measured, set_up, op)?;
                Some(At {
                    share,
                    ratio: found.of_medians,
                    ci95: found.ci95?,
                })
            };
            let ratios = sweep.iter().filter_map(at).collect();
            let who = match (first.together, *op) {
                (false, _) => "a writer alone",
                (true, WRITE) => "a writer beside a reader",
                (true, _) => "a reader beside a writer",
            };
            curves.push(Curve {
                name: format!("{who}, {}", size(first.bytes)),
                sweep: ratios,
            });
        }
    }
    curves
}

fn sweeps(measured: &Measured) -> String {
    let header = header("", SHARES.map(|share| format!("{share} %")));
    let rows: Vec<Vec<String>> = curves(measured)
        .iter()
        .map(|curve| {
            let cells = SHARES.map(|share| {
                let found = curve.sweep.iter().find(|at| at.share == share);
                found.map_or("-".to_owned(), |at| format!("{:.2}", at.ratio))
            });
            std::iter::once(curve.name.clone()).chain(cells).collect()
        })
        .collect();
    format!(
        "\nchecked / plain, medians, by the share of cache lines in which everything is set already; below 1 the look pays\n{}",
        numbers(&header, &rows)
    )
}

/// The answer.
fn sentence(measured: &Measured) -> String {
    let told: Vec<String> = curves(measured)
        .iter()
        .map(|curve| {
            let name = &curve.name;
            match break_even(&curve.sweep) {
                BreakEven::Always => format!("for {name} always"),
                BreakEven::Never => format!("for {name} never"),
                BreakEven::From(share, costs, pays) => format!(
                    "for {name} from about {share:.0} % on (it surely costs at {costs} %, and surely pays from {pays} % on)"
                ),
                BreakEven::AtLeast(share) => {
                    format!("for {name} from {share} % on at least; below, it cannot be told")
                }
                BreakEven::Unknown => format!("for {name} it cannot be told"),
            }
        })
        .collect();
    let text = format!(
        "On this machine, looking before setting pays, by the share of lines that are set already: {}.",
        told.join("; ")
    );
    format!("\n{}", wrap(&text, 0))
}
