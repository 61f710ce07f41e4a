//! The tables and the plot of `bench check-before-set`.

use std::path::Path;

use countersink_experiments::check_before_set::published::{PROGRAMS, PUBLISHED_READER, Took};
use countersink_experiments::check_before_set::{
    At, BreakEven, CHECKED, Measured, PLAIN, READ, SHARES, SetUp, WRITE, break_even, caches,
    published, size,
};
use countersink_harness::result::PointResult;
use countersink_harness::stats::Ratio;
use plotters::prelude::*;

use super::table::{figure, find, header, numbers, ratio};
use crate::output::{print, wrap};

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
pub(super) fn render(measured: &Measured, ghz: f64) -> String {
    let mut text = String::new();
    for note in &measured.notes {
        text += &format!("note       {note}\n");
    }
    let caches: Vec<String> = caches()
        .iter()
        .map(|cache| format!("level {}: {}", cache.level, size(cache.bytes)))
        .collect();
    if !caches.is_empty() {
        text += &format!("caches     {}\n", caches.join(", "));
    }
    text += &format!("clock      {ghz:.2} GHz, by a chain of operations whose cycles are known\n");
    text += "\nStoring to every word of some memory, with and without looking first: ns for each word, mean and standard deviation of \
             12 runs, and cycles\n";
    text += &set_ups(measured, ghz);
    text += &sweeps(measured);
    text + &sentence(measured)
}

fn set_ups(measured: &Measured, ghz: f64) -> String {
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
            let cycles = |point: &PointResult| format!("{:.2}", point.wall.mean * ghz);
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
struct Curve {
    name: String,
    sweep: Vec<At>,
}

fn curves(measured: &Measured) -> Vec<Curve> {
    let mut curves = Vec::new();
    for sweep in &measured.sweeps {
        let Some(first) = sweep.first() else { continue };
        let roles: &[&str] = if first.together {
            &[WRITE, READ]
        } else {
            &[WRITE]
        };
        for op in roles {
            let at = |(share, set_up): (u32, &SetUp)| {
                let found = compared(measured, set_up, op)?;
                Some(At {
                    share,
                    ratio: found.of_medians,
                    ci95: found.ci95?,
                })
            };
            let ratios = SHARES.into_iter().zip(sweep).filter_map(at).collect();
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
            let cells = curve.sweep.iter().map(|at| format!("{:.2}", at.ratio));
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

/// Writes the sweeps as a picture.
pub(super) fn plot(measured: &Measured, path: &Path) -> anyhow::Result<()> {
    let curves = curves(measured);
    let highest = curves
        .iter()
        .flat_map(|curve| curve.sweep.iter().map(|at| at.ratio))
        .fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (900, 560)).into_drawing_area();
        let failed = |error: &dyn std::fmt::Display| anyhow::anyhow!("the plot failed: {error}");
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let mut chart = ChartBuilder::on(&area)
            .caption(
                "Look before setting: time with / without",
                ("sans-serif", 20),
            )
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..100.0, 0.0..highest * 1.1)
            .map_err(|error| failed(&error))?;
        chart
            .configure_mesh()
            .x_desc("cache lines in which everything is set already, %")
            .y_desc("checked / plain")
            .draw()
            .map_err(|error| failed(&error))?;
        chart
            .draw_series(LineSeries::new(
                [(0.0, 1.0), (100.0, 1.0)],
                BLACK.stroke_width(1),
            ))
            .map_err(|error| failed(&error))?;
        for (number, curve) in curves.iter().enumerate() {
            let color = Palette99::pick(number).stroke_width(2);
            let line = curve.sweep.iter().map(|at| (f64::from(at.share), at.ratio));
            chart
                .draw_series(LineSeries::new(line, color))
                .map_err(|error| failed(&error))?
                .label(curve.name.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], color));
        }
        chart
            .configure_series_labels()
            .border_style(BLACK)
            .background_style(WHITE)
            .draw()
            .map_err(|error| failed(&error))?;
        area.present().map_err(|error| failed(&error))?;
    }
    countersink_harness::save::save(path, svg.as_bytes())?;
    Ok(())
}

/// Runs the literal programs, and tells which of the seed's conclusions survive.
pub(super) fn run_as_published() -> anyhow::Result<()> {
    print(
        "\nThe programs as they were posted, each once: seconds without and with the test; minutes\n",
    )?;
    let mut all = Vec::new();
    for program in &PROGRAMS {
        let took = published::run(program).map_err(anyhow::Error::msg)?;
        print(&line(
            program.name,
            program.published,
            took.map(|took| took.writer),
        ))?;
        if let [Some(plain), Some(checked)] = took.map(|took| took.reader) {
            print(&line(
                "two threads, reader",
                PUBLISHED_READER,
                [plain, checked],
            ))?;
        }
        all.push(took);
    }
    print(&conclusions(&all))
}

fn line(name: &str, published: [f64; 2], ours: [f64; 2]) -> String {
    let change = |[plain, checked]: [f64; 2]| 100.0 * (checked / plain - 1.0);
    format!(
        "  {name:<24} {:7.3} {:7.3} ({:+.1} %); published {:7.3} {:7.3} ({:+.1} %)\n",
        ours[0],
        ours[1],
        change(ours),
        published[0],
        published[1],
        change(published)
    )
}

fn conclusions(took: &[[Took; 2]]) -> String {
    let ratio = |number: usize| {
        let [plain, checked] = took.get(number)?.map(|took| took.writer);
        Some(checked / plain)
    };
    let reader = || {
        let [plain, checked] = took.get(2)?.map(|took| took.reader);
        Some(checked? / plain?)
    };
    // What missed the cache then may fit it now.
    let last = caches().iter().map(|cache| cache.bytes).max().unwrap_or(0);
    let fits = match PROGRAMS[0].bytes() <= last {
        true => format!(
            " (but its {} fit the last cache here)",
            size(PROGRAMS[0].bytes())
        ),
        false => String::new(),
    };
    let holds = |holds: Option<bool>| match holds {
        Some(true) => "holds here",
        Some(false) => "does not hold here",
        None => "cannot be told",
    };
    format!(
        "  \"the check is free\" where memory misses (at most 5 % more): {}{fits}\n  a check doubles the time where memory hits (at least 1.5 times): {}\n  \
         the reader saves time: {}; but no look ever found a value there, so what it saved is not what the check is for\n  \
         the writer pays for that: {}\n",
        holds(ratio(0).map(|ratio| ratio <= 1.05)),
        holds(ratio(1).map(|ratio| ratio >= 1.5)),
        holds(reader().map(|ratio| ratio < 1.0)),
        holds(ratio(2).map(|ratio| ratio > 1.0)),
    )
}
