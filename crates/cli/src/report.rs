//! `countersink report`: results as one page that needs nothing else.
//!
//! Every number of a table says where it is from: `data-at` is the number of the file and the place in its JSON (RFC 6901), `data-value` what
//! stands there. Names are from files that others may have made, so all text is escaped.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use countersink::reader::escape;
use countersink_experiments::check_before_set as cbs;
use countersink_harness::result::{ExperimentResult, PointResult, Results};
use countersink_harness::save;
use countersink_harness::verdict::{Judged, Verdict, against_first};

use crate::files;
use crate::output::print;
use crate::plots::{self, Picture, Values};
use crate::tables::{self, figure};

/// What `report` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Results that `bench --json` has saved
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the page.
///
/// # Errors
/// A file that cannot be read or written, or is no result.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for path in &options.files {
        let results = files::results(path)?;
        files::ensure_can_be_shown(path, &results)?;
        all.push((path.as_path(), results));
    }
    let page = page(&all)?;
    match &options.output {
        Some(path) => Ok(save::save(path, page.as_bytes())?),
        None => print(&page),
    }
}

const STYLE: &str = include_str!("report.css");

fn page(all: &[(&Path, Results)]) -> anyhow::Result<String> {
    let mut body = String::new();
    for (number, (path, results)) in all.iter().enumerate() {
        body += &of_file(number, path, results)?;
    }
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>Countersink results</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Countersink results</h1>\n<p>What operations cost on a machine, as <code>countersink bench</code> measured it: medians of wall time, in \
         nanoseconds for each operation of one thread, \u{b1} the farther end of the 95&nbsp;% interval. Variants of one point were \
         measured in turn, each round in both orders, and are compared by round. A number with&nbsp;! has too many disturbed samples to \
         be trusted.</p>\n{body}</main>\n</body>\n</html>\n"
    ))
}

/// Text that means nothing but itself.
fn text(text: &str) -> String {
    let mut safe = String::new();
    for character in escape(text).chars() {
        match character {
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '&' => safe += "&amp;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            other => safe.push(other),
        }
    }
    safe
}

/// Lines as a terminal shows them.
fn lines(block: &str) -> String {
    let block: Vec<String> = block.trim_matches('\n').lines().map(text).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><pre>{}</pre></div>\n",
        block.join("\n")
    )
}

fn of_file(number: usize, path: &Path, results: &Results) -> anyhow::Result<String> {
    let pictures = plots::all(results, Values::Rate)?;
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy();
    let mut page = format!("<section>\n<h2>{}</h2>\n", text(&name));
    for (at, measured) in results.experiments.iter().enumerate() {
        let own: Vec<&Picture> = pictures
            .iter()
            .filter(|picture| picture.experiment == at)
            .collect();
        page += &of_experiment(
            &format!("{number}:/experiments/{at}"),
            results,
            measured,
            &own,
        );
    }
    if results.experiments.is_empty() {
        page += "<p>Nothing was measured.</p>\n";
    }
    Ok(page + "</section>\n")
}

fn of_experiment(
    place: &str,
    results: &Results,
    measured: &ExperimentResult,
    pictures: &[&Picture],
) -> String {
    let mut page = format!("<section>\n<h3>{}</h3>\n", text(&measured.name));
    page += &lines(&tables::machine(&results.machine, Some(measured)));
    let judged = against_first(measured);
    for (op, pattern) in groups(measured) {
        page += &format!("<h4>{}, {}</h4>\n", text(op), text(pattern));
        page += &table(place, measured, (op, pattern));
        page += &verdicts(&judged, (op, pattern));
    }
    page += &published(results, measured);
    let (samples, others): (Vec<&Picture>, Vec<&Picture>) = pictures
        .iter()
        .copied()
        .partition(|picture| picture.name.ends_with("-samples"));
    if !others.is_empty() {
        page += "<h4>Pictures</h4>\n";
        page.extend(others.iter().map(|picture| figure_of(picture)));
    }
    if !samples.is_empty() {
        page += "<h4>How samples are distributed</h4>\n<details>\n<summary>A picture for each point</summary>\n";
        page.extend(samples.iter().map(|picture| figure_of(picture)));
        page += "</details>\n";
    }
    page + "</section>\n"
}

fn groups(measured: &ExperimentResult) -> Vec<(&str, &str)> {
    let mut seen = BTreeSet::new();
    let keys = measured
        .points
        .iter()
        .map(|point| (point.op.as_str(), point.pattern.as_str()));
    keys.filter(|key| seen.insert(*key)).collect()
}

/// A row for each variant, a column for each number of threads.
fn table(place: &str, measured: &ExperimentResult, (op, pattern): (&str, &str)) -> String {
    let own = measured.points.iter().enumerate();
    let own: Vec<(usize, &PointResult)> = own
        .filter(|(_, point)| point.op == op && point.pattern == pattern)
        .collect();
    let points: Vec<&PointResult> = own.iter().map(|(_, point)| *point).collect();
    let threads: BTreeSet<usize> = points.iter().map(|point| point.threads).collect();
    let mut seen = BTreeSet::new();
    let variants = points.iter().map(|point| point.variant.as_str());
    let variants: Vec<&str> = variants.filter(|variant| seen.insert(*variant)).collect();
    let mut page =
        "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr><th scope=\"col\">variant</th>"
            .to_owned();
    for threads in &threads {
        // Writing to a string does not fail.
        let _ = write!(
            page,
            "<th scope=\"col\">{}</th>",
            text(&tables::thread_label(&points, *threads))
        );
    }
    page += "</tr></thead>\n<tbody>\n";
    for variant in variants {
        let _ = write!(page, "<tr><th scope=\"row\">{}</th>", text(variant));
        for threads in &threads {
            page += "<td>";
            let is_here = |(_, point): &&(usize, &PointResult)| {
                point.variant == variant && point.threads == *threads
            };
            // A name may be there twice, in a file of somebody else.
            let cells: Vec<String> = own
                .iter()
                .filter(is_here)
                .map(|found| cell(place, found))
                .collect();
            page += &match cells.is_empty() {
                true => "-".to_owned(),
                false => cells.join("<br>"),
            };
            page += "</td>";
        }
        page += "</tr>\n";
    }
    page + "</tbody>\n</table></div>\n"
}

fn cell(place: &str, (at, point): &(usize, &PointResult)) -> String {
    let median = point.wall.median;
    let shown = tables::fair_median(point);
    let rest = shown.strip_prefix(&figure(median)).unwrap_or_default();
    format!(
        "<data data-at=\"{place}/points/{at}/wall/median\" data-value=\"{median}\" value=\"{median}\">{}</data>{}",
        figure(median),
        text(rest)
    )
}

/// The verdicts in words: a sentence for each number of threads.
fn verdicts(judged: &[Judged<'_>], (op, pattern): (&str, &str)) -> String {
    let own = judged
        .iter()
        .filter(|one| one.point.op == op && one.point.pattern == pattern);
    let own: Vec<&Judged<'_>> = own.collect();
    let threads: BTreeSet<usize> = own.iter().map(|one| one.point.threads).collect();
    let mut page = String::new();
    for threads in threads {
        let own = || own.iter().filter(|one| one.point.threads == threads);
        let Some(first) = own().next() else { continue };
        let s = if threads == 1 { "" } else { "s" };
        let mut parts = Vec::new();
        for verdict in [
            Verdict::Faster,
            Verdict::Slower,
            Verdict::Same,
            Verdict::CannotTell,
        ] {
            let named = own().filter(|one| one.verdict == verdict).map(|one| {
                format!(
                    "{} ({} times)",
                    text(&one.point.variant),
                    figure(one.ratio.of_medians)
                )
            });
            let named: Vec<String> = named.collect();
            if !named.is_empty() {
                let word = match verdict {
                    Verdict::Faster => "take less time",
                    Verdict::Slower => "take more time",
                    Verdict::Same => "take the same time",
                    Verdict::CannotTell => "cannot be told from it",
                };
                parts.push(format!("{word}: {}", named.join(", ")));
            }
        }
        let _ = writeln!(
            page,
            "<p>With {threads} thread{s}, against {}: {}.</p>",
            text(&first.base.variant),
            parts.join("; ")
        );
    }
    page
}

/// What was published, beside what is here.
fn published(results: &Results, measured: &ExperimentResult) -> String {
    let points = &measured.points;
    let (title, block) = match measured.name.as_str() {
        "local" => (
            "The published tables beside this one",
            tables::published::render_machines(points),
        ),
        "rwsem-published" => (
            "The published table beside this one",
            tables::rwsem::render_published(points),
        ),
        "span" => (
            "The published lines",
            tables::span::render_published(points),
        ),
        cbs::NAME => {
            let found = cbs::Measured::of(measured.clone());
            (
                "What it comes to",
                tables::check_before_set::render(&found, &results.machine),
            )
        }
        _ => return String::new(),
    };
    format!("<h4>{title}</h4>\n{}", lines(&block))
}

fn figure_of(picture: &Picture) -> String {
    format!(
        "<figure>\n<div class=\"scroll\" tabindex=\"0\">{}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
        picture.svg.for_page(),
        text(&picture.caption)
    )
}

#[cfg(test)]
mod tests {
    use countersink_harness::machine::Machine;

    use super::*;

    #[test]
    fn names_are_text_and_numbers_say_where_they_are_from() {
        let mut results = Results::new(Machine {
            cpu_model: Some("</pre><script>alert(1)</script>".to_owned()),
            ..Machine::default()
        });
        let mut measured = ExperimentResult::new("<img src=x onerror=alert(2)>");
        for (variant, around) in [("\"a'", 10.0), ("b\u{202e}", 5.0)] {
            let samples = (0..12).map(|at| around + 0.001 * f64::from(at)).collect();
            measured
                .points
                .extend(PointResult::of(variant, ("do", "<p>", 1), samples));
        }
        results.experiments.push(measured);
        let page = page(&[(Path::new("x/<b>.json"), results)]).expect("a page");
        for bad in ["<script", "<img", "<b>", "\u{202e}", "http://", "https://"] {
            let page = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!page.contains(bad), "{bad} in\n{page}");
        }
        assert!(
            page.contains("<data data-at=\"0:/experiments/0/points/1/wall/median\" data-value=\"5.0055\" value=\"5.0055\">5.01</data>"),
            "{page}"
        );
        // No noise was measured, so nothing is called different.
        assert!(page.contains("With 1 thread, against &quot;a&#39;: cannot be told from it: b\\u{202e} (0.50 times)."), "{page}");
    }
}
