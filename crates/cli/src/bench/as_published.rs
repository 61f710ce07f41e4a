//! The methods as they were published, faults included, and which conclusions survive.

use countersink_experiments::check_before_set::published::{
    self, PROGRAMS, PUBLISHED_READER, Took,
};
use countersink_experiments::check_before_set::{caches, size};
use countersink_experiments::local::ITERATIONS;
use countersink_experiments::local::as_published::{CONCLUSIONS, Row, run};
use countersink_experiments::local::published::Verdict;
use countersink_harness::result::PointResult;
use indicatif::ProgressBar;

use crate::output::print;
use crate::tables::numbers;
use crate::tables::published::header;

/// Runs the seed's literal method, and says what survives.
pub(super) fn local(points: &[PointResult]) -> anyhow::Result<String> {
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

/// Runs the literal programs, and tells which of the seed's conclusions survive.
pub(super) fn check_before_set() -> anyhow::Result<()> {
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
