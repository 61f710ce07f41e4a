//! The published tables beside ours.

use countersink_experiments::local::as_published::{CONCLUSIONS, Row, run};
use countersink_experiments::local::published::{
    Ordering, PUBLISHED, Published, Verdict, WAYS, orderings, our_ratios,
};
use countersink_experiments::local::{COLUMNS, ITERATIONS};
use countersink_harness::result::PointResult;
use indicatif::ProgressBar;

use super::table::{figure, numbers};
use crate::output::wrap;

/// The seed's five machines as ratios to local_t, ours behind them, and the orderings.
pub(super) fn render_machines(points: &[PointResult]) -> String {
    let mut text = "\nThe machines published in 2008, as ratios to local_t: theirs / here\n\
                    irqsave/rest is deferred here; sigmask, the literal form, is in the table above.\n"
        .to_owned();
    let ours = our_ratios(points, "deferred");
    let header = header();
    for published in &PUBLISHED {
        let theirs = published.ratios();
        let rows: Vec<Vec<String>> = (0..WAYS.len())
            .map(|way| {
                let cells = (0..COLUMNS.len()).map(|column| {
                    format!(
                        "{} / {}",
                        known(theirs[way][column]),
                        known(ours[way][column])
                    )
                });
                std::iter::once(WAYS[way].0.to_owned())
                    .chain(cells)
                    .collect()
            })
            .collect();
        text += &format!("\n{}\n", published.machine);
        text += &numbers(&header, &rows);
        for irqsave in WAYS[1].1 {
            text += &orderings_line(published, points, irqsave);
        }
    }
    text
}

fn header() -> Vec<String> {
    std::iter::once(String::new())
        .chain(COLUMNS.iter().map(|(op, _)| (*op).to_owned()))
        .collect()
}

fn known(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

fn orderings_line(published: &Published, points: &[PointResult], irqsave: &str) -> String {
    let found = orderings(published, points, irqsave);
    let of = |verdict: Verdict| {
        found
            .iter()
            .filter(move |ordering| ordering.verdict == verdict)
    };
    let mut text = format!(
        "of {} orderings, irqsave as {irqsave}: {} held, {} reversed, {} cannot be told\n",
        found.len(),
        of(Verdict::Held).count(),
        of(Verdict::Reversed).count(),
        of(Verdict::CannotTell).count(),
    );
    let reversed: Vec<String> = of(Verdict::Reversed).map(describe).collect();
    if !reversed.is_empty() {
        text += &wrap(&format!("reversed: {}", reversed.join("; ")), 2);
    }
    text
}

fn describe(ordering: &Ordering) -> String {
    let (op, _) = COLUMNS[ordering.column];
    format!(
        "{op}: {} before {}",
        WAYS[ordering.faster].0, WAYS[ordering.slower].0
    )
}

/// Runs the seed's literal method, and says what survives.
pub(super) fn run_as_published(points: &[PointResult]) -> anyhow::Result<String> {
    let bar = ProgressBar::new_spinner();
    let rows = run(|way| {
        bar.set_message(format!("{way}, as published"));
        bar.tick();
    });
    bar.finish_and_clear();
    let rows = rows.map_err(anyhow::Error::msg)?;
    let mut text = format!(
        "\nThe published method, faults included: {ITERATIONS} iterations once, whole ns\n\n"
    );
    text += &numbers(&header(), &rows.iter().map(cells).collect::<Vec<_>>());
    text += "\nWhat was concluded then, by the published method and by the right one\n\n";
    for conclusion in &CONCLUSIONS {
        text += &format!(
            "  {}\n      as published: {}; done right: {}\n",
            conclusion.claim,
            word(conclusion.by_published_method(&rows)),
            word(conclusion.by_right_method(points)),
        );
    }
    Ok(text)
}

fn cells(row: &Row) -> Vec<String> {
    std::iter::once(row.variant.to_owned())
        .chain(row.ns.map(|ns| ns.to_string()))
        .collect()
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "holds here",
        Verdict::Reversed => "does not hold here",
        Verdict::CannotTell => "cannot be told",
    }
}
