//! The published tables beside ours.

use countersink_experiments::local::COLUMNS;
use countersink_experiments::local::published::{
    Ordering, PUBLISHED, Published, Verdict, WAYS, orderings, our_ratios,
};
use countersink_harness::result::PointResult;

use super::{figure, numbers};
use crate::output::wrap;

/// The seed's five machines as ratios to local_t, ours behind them, and the orderings.
pub(crate) fn render_machines(points: &[PointResult]) -> String {
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

pub(crate) fn header() -> Vec<String> {
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
