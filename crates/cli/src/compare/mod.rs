//! `countersink compare`.

mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use countersink::reader::escape;
use countersink_harness::compare::read::{append, sheet};
use countersink_harness::compare::{
    Between, Cell, Direction, Row, Rule, Sheet, between, compare, differences,
};
use countersink_harness::schedule::ENOUGH_PROCESSES;
use countersink_harness::verdict::Verdict;

use crate::bench::ENDED;
use crate::files;
use crate::output::print;

/// What `compare` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Result files: of `bench --json`, will-it-scale's CSV, or what Go's benchmarks print. The first is the base. Several of one
    /// run are joined by commas, and their values are put together: a.csv,b.csv
    #[arg(required_unless_present = "commands", num_args = 2.., value_name = "BASE NEW")]
    files: Vec<String>,

    /// What gets a star
    #[arg(long, value_enum, default_value_t = Stars::Welch)]
    stars: Stars,

    /// What the columns are called, instead of by their files
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    names: Vec<String>,

    /// Show times of different machines side by side, and not only ratios
    #[arg(long)]
    absolute: bool,

    /// End with status 1 if something is slower: by the verdicts between results of bench, and of
    /// workloads, by the stars of all else
    #[arg(long, value_enum, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    workloads: workload::Workloads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stars {
    /// Welch's t-test, p < 0.05
    Welch,
    /// As mmtests from 2018 to 2024
    #[value(name = "mmtests-2018")]
    Mmtests2018,
    /// As mmtests since November 2024
    #[value(name = "mmtests-2024")]
    Mmtests2024,
}

impl Stars {
    fn rule(self) -> Rule {
        match self {
            Stars::Welch => Rule::Welch,
            Stars::Mmtests2018 => Rule::Mmtests2018,
            Stars::Mmtests2024 => Rule::Mmtests2024,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Worse than the base
    Slower,
}

/// Compares.
///
/// # Errors
/// A file that cannot be read; files that have nothing in common.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut sheets = Vec::new();
    if !options.workloads.commands.is_empty() {
        match workload::run(&options.workloads)? {
            Some(found) => sheets = found,
            None => {
                eprintln!("countersink: ended; nothing is compared");
                return Ok(ExitCode::from(ENDED));
            }
        }
    }
    for files in &options.files {
        sheets.push(read(files)?);
    }
    name(&mut sheets, options)?;
    let Some((base, others)) = sheets.split_first() else {
        bail!("there is nothing to compare");
    };
    let rule = options.stars.rule();
    let rows = compare(base, others, rule)?;
    let mut notes = Notes::of(base, others);
    let are_apart = notes.machines_differ && !options.absolute;
    let shown = if are_apart {
        shapes(&rows)
    } else {
        rows.clone()
    };
    let mut text = table(&shown, &sheets);
    text += &durations(&sheets);
    text += &foot(&rows, &sheets, rule);
    if are_apart {
        notes.lines.push(
            "These are different machines, so each value is shown as a multiple of the same column's at the fewest threads; \
             --absolute shows what was measured"
                .to_owned(),
        );
    }
    let judged: Vec<Vec<Between>> = others.iter().map(|new| between(base, new)).collect();
    for (new, judged) in others.iter().zip(&judged) {
        text += &verdicts(base, new, judged);
    }
    for line in &notes.lines {
        text += &format!("{}\n", escape(line));
    }
    print(&text)?;
    let is_slower = (0..others.len()).any(|at| match judged[at].is_empty() {
        true => rows.iter().any(|row| is_starred_as_slower(row, at + 1)),
        false => judged[at].iter().any(|one| one.verdict == Verdict::Slower),
    });
    if options.fail_on == Some(FailOn::Slower) && is_slower {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn is_starred_as_slower(row: &Row, column: usize) -> bool {
    let cell = row.cells.get(column).copied().flatten();
    cell.is_some_and(|cell| cell.star == Some(true) && cell.percent < 0.0)
}

/// More are counted, and not listed.
const MOST_LISTED: usize = 20;

/// What two runs of ours differ in beyond noise. Empty if a file tells nothing of noise.
fn verdicts(base: &Sheet, new: &Sheet, judged: &[Between]) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let count = |verdict| judged.iter().filter(|one| one.verdict == verdict).count();
    let mut text = format!(
        "\nVerdicts on {} against {}, by Welch's t-test over processes, over rounds where there are fewer than six, with Holm's correction for {} points, and beyond the noise of both: {} faster, {} \
         slower, {} the same, of {} it cannot be told\n",
        escape(&new.name),
        escape(&base.name),
        judged.len(),
        count(Verdict::Faster),
        count(Verdict::Slower),
        count(Verdict::Same),
        count(Verdict::CannotTell)
    );
    let differ = || {
        judged
            .iter()
            .filter(|one| matches!(one.verdict, Verdict::Faster | Verdict::Slower))
    };
    for one in differ().take(MOST_LISTED) {
        let interval = one.ci95.map_or(String::new(), |[low, high]| {
            format!(" [{low:.3}, {high:.3}]")
        });
        text += &format!(
            "  {}: {}, {:.3}{interval} of the time; noise {:.1} %\n",
            escape(&one.name),
            one.verdict.name(),
            one.ratio,
            100.0 * one.floor.unwrap_or(0.0)
        );
    }
    let more = differ().count().saturating_sub(MOST_LISTED);
    if more > 0 {
        text += &format!("  and {more} more\n");
    }
    let evidence = || {
        [base, new]
            .into_iter()
            .flat_map(|sheet| &sheet.series)
            .filter_map(|series| series.evidence.as_ref())
    };
    if evidence().any(|evidence| evidence.processes < ENOUGH_PROCESSES) {
        text += &format!(
            "  Of runs in fewer than {ENOUGH_PROCESSES} processes the noise includes what the points of an experiment differ by in general; --processes {ENOUGH_PROCESSES} tells more\n"
        );
    }
    let unsound = evidence().filter(|evidence| !evidence.is_sound).count();
    if unsound > 0 {
        let s = if unsound == 1 { "" } else { "s" };
        text +=
            &format!("  Of {unsound} point{s} more than a quarter of the samples was disturbed\n");
    }
    for sheet in [base, new] {
        let is_partial = sheet
            .series
            .iter()
            .filter_map(|series| series.evidence.as_ref())
            .any(|evidence| evidence.is_partial);
        if is_partial {
            text += &format!(
                "  {} was ended before all points were measured\n",
                escape(&sheet.name)
            );
        }
    }
    text
}

/// The files of one column.
fn read(files: &str) -> anyhow::Result<Sheet> {
    let mut all: Option<Sheet> = None;
    // A file may have a comma in its name.
    let paths: Vec<&str> = match Path::new(files).exists() {
        true => vec![files],
        false => files.split(',').collect(),
    };
    for path in paths {
        let found = read_one(path)?;
        match &mut all {
            None => all = Some(found),
            Some(all) => {
                if let Some((one, other)) = all.machine.as_ref().zip(found.machine.as_ref()) {
                    let [machines, _] = differences(one, other);
                    ensure!(
                        machines.is_empty(),
                        "{path} is of another machine than {}",
                        all.name
                    );
                }
                let both = all.times.zip(found.times);
                all.times = both.map(|(one, other)| one.and(other));
                append(all, found.series);
            }
        }
    }
    all.context("no file is named")
}

fn read_one(path: &str) -> anyhow::Result<Sheet> {
    let text = files::read(Path::new(path))?;
    let name = Path::new(path)
        .file_stem()
        .map_or(path.into(), |stem| stem.to_string_lossy());
    sheet(&name, &text).with_context(|| path.to_owned())
}

/// Names the columns: as asked, by their files, or by their places where those are alike.
fn name(sheets: &mut [Sheet], options: &Options) -> anyhow::Result<()> {
    if !options.names.is_empty() {
        ensure!(
            options.names.len() == sheets.len(),
            "{} names for {} columns",
            options.names.len(),
            sheets.len()
        );
        for (sheet, name) in sheets.iter_mut().zip(&options.names) {
            sheet.name.clone_from(name);
        }
        return Ok(());
    }
    let names: BTreeSet<_> = sheets.iter().map(|sheet| sheet.name.clone()).collect();
    if names.len() < sheets.len() {
        for (sheet, files) in sheets.iter_mut().zip(&options.files) {
            sheet.name.clone_from(files);
        }
    }
    Ok(())
}

/// What a reader must know of the machines.
struct Notes {
    machines_differ: bool,
    lines: Vec<String>,
}

impl Notes {
    fn of(base: &Sheet, others: &[Sheet]) -> Self {
        let mut notes = Notes {
            machines_differ: false,
            lines: Vec::new(),
        };
        for other in others {
            let Some((one, new)) = base.machine.as_ref().zip(other.machine.as_ref()) else {
                let line = "Not all files say on which machine they were measured".to_owned();
                if !notes.lines.contains(&line) {
                    notes.lines.push(line);
                }
                continue;
            };
            let [machines, conditions] = differences(one, new);
            notes.machines_differ |= !machines.is_empty();
            for (what, one, new) in machines.into_iter().chain(conditions) {
                notes.lines.push(format!(
                    "{what}: {one} in {}, {new} in {}",
                    base.name, other.name
                ));
            }
        }
        notes
    }
}

/// The name without its number of threads, and that number: `NAME-8`.
fn group(name: &str) -> (&str, u64) {
    let parts = name
        .rsplit_once('-')
        .and_then(|(name, threads)| Some((name, threads.parse().ok()?)));
    parts.unwrap_or((name, 0))
}

/// Each value as a multiple of the one at the fewest threads in the same column.
fn shapes(rows: &[Row]) -> Vec<Row> {
    // By group, unit and column: the fewest threads, and the mean there.
    let mut first: BTreeMap<(&str, &str, usize), (u64, f64)> = BTreeMap::new();
    for row in rows {
        let (name, threads) = group(&row.name);
        for (column, cell) in row.cells.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let mean = cell.moments.mean;
            let known = first
                .entry((name, &row.unit, column))
                .or_insert((threads, mean));
            if threads < known.0 {
                *known = (threads, mean);
            }
        }
    }
    let first = |row: &Row, column| {
        let key = (group(&row.name).0, row.unit.as_str(), column);
        first.get(&key).map(|(_, mean)| *mean)
    };
    let shape = |row: &Row| {
        let mut row = row.clone();
        let scales: Vec<_> = (0..row.cells.len())
            .map(|column| first(&row, column))
            .collect();
        for (cell, scale) in row.cells.iter_mut().zip(scales) {
            if let Some((cell, scale)) = cell.as_mut().zip(scale) {
                cell.moments.mean /= scale;
                cell.moments.stddev = cell.moments.stddev.map(|stddev| stddev / scale);
            }
        }
        row
    };
    rows.iter().map(shape).collect()
}

/// The kinds of rows, as mmtests has them.
const KINDS: [&str; 3] = ["mean", "Stddev", "CoeffVar"];

fn table(rows: &[Row], sheets: &[Sheet]) -> String {
    let label = |row: &Row| {
        let unit = if row.name.ends_with(&row.unit) {
            String::new()
        } else {
            format!(" {}", row.unit)
        };
        escape(&format!("{}{unit}", row.name))
    };
    let width = rows
        .iter()
        .map(|row| label(row).chars().count())
        .max()
        .unwrap_or(0);
    let mut text = header(width + 10, sheets);
    for kind in KINDS {
        for row in rows {
            let name = match (kind, row.direction) {
                ("mean", Direction::More) => "Hmean",
                ("mean", Direction::Less) => "Amean",
                (kind, _) => kind,
            };
            let base = row.cells[0].and_then(|cell| value(kind, &cell));
            // Nothing varies of a single value.
            let Some(base) = base else { continue };
            let mut line = format!("{name:<9} {:<width$}", label(row));
            for cell in &row.cells {
                line += &match cell {
                    Some(cell) => shown(kind, base, cell),
                    None => format!(" {:>12} ({:>8})", "-", "-"),
                };
            }
            text += line.trim_end();
            text += "\n";
        }
    }
    text
}

/// What the runs took as a whole, as those mails have it at their end. Empty if no file tells.
fn durations(sheets: &[Sheet]) -> String {
    if sheets.iter().all(|sheet| sheet.times.is_none()) {
        return String::new();
    }
    const NAME: usize = 10;
    let mut text = format!("\nWhat the runs took, in seconds\n{}", header(NAME, sheets));
    let kinds: [workload::Kind; 3] = [
        ("User", |times| times.user_s),
        ("System", |times| times.system_s),
        ("Elapsed", |times| times.elapsed_s),
    ];
    for (name, of) in kinds {
        let mut line = format!("{name:<NAME$}");
        for sheet in sheets {
            let value = sheet
                .times
                .as_ref()
                .map_or("-".to_owned(), |times| format!("{:.2}", of(times)));
            line += &format!(" {value:>COLUMN$} ");
        }
        text += &format!("{}\n", line.trim_end());
    }
    text
}

/// The width of a column.
const COLUMN: usize = 22;

/// Two lines, as long names are in those mails: what does not fit goes on below.
fn header(width: usize, sheets: &[Sheet]) -> String {
    let parts: Vec<[String; 2]> = sheets.iter().map(|sheet| split(&sheet.name)).collect();
    let line = |which: usize| {
        let mut line = " ".repeat(width);
        for parts in &parts {
            line += &format!(" {:>COLUMN$} ", parts[which]);
        }
        format!("{}\n", line.trim_end())
    };
    match parts.iter().all(|[_, second]| second.is_empty()) {
        true => line(0),
        false => line(0) + &line(1),
    }
}

/// A name in two parts that fit the column: where it has a sign between words, after the last one that leaves a part that fits.
fn split(name: &str) -> [String; 2] {
    let all: Vec<char> = escape(name).chars().collect();
    if all.len() <= COLUMN {
        return [all.iter().collect(), String::new()];
    }
    let is_between = |c: &char| ['-', '_', '.', '/', ' '].contains(c);
    let at = all[..COLUMN]
        .iter()
        .rposition(is_between)
        .map_or(COLUMN, |at| at + 1);
    // What would be cut off in the end had better begin earlier.
    let at = if all.len() - at > COLUMN { COLUMN } else { at };
    let (first, second) = all.split_at(at);
    let first: String = first.iter().collect();
    let second: String = match second.len() > COLUMN {
        true => second.iter().take(COLUMN - 1).chain(&['…']).collect(),
        false => second.iter().collect(),
    };
    [first.trim_end().to_owned(), second.trim().to_owned()]
}

/// What a row of this kind has of a cell.
fn value(kind: &str, cell: &Cell) -> Option<f64> {
    match kind {
        "mean" => Some(cell.moments.mean),
        "Stddev" => cell.moments.stddev,
        _ => cell
            .moments
            .stddev
            .map(|stddev| 100.0 * stddev / cell.moments.mean),
    }
}

fn shown(kind: &str, base: f64, cell: &Cell) -> String {
    let Some(value) = value(kind, cell) else {
        return format!(" {:>12} ({:>8})", "-", "-");
    };
    // Below a hundred two decimals hide what is compared.
    let decimals = if value < 100.0 { 4 } else { 2 };
    let percent = match kind {
        "mean" => cell.percent,
        // Of equal values rounding may leave a trace, and of no spread there is no share.
        _ if base == 0.0 || value == base => 0.0,
        _ => 100.0 - 100.0 * value / base,
    };
    match (kind, cell.star) {
        ("mean", Some(true)) => format!(" {value:12.decimals$} *{percent:7.2}%*"),
        _ => format!(" {value:12.decimals$} ({percent:7.2}%)"),
    }
}

/// The rule, and what came of it.
fn foot(rows: &[Row], sheets: &[Sheet], rule: Rule) -> String {
    let mut text = format!(
        "\nPositive percents are better. *: {} ({})\n",
        rule.text(),
        rule.name()
    );
    for (column, sheet) in sheets.iter().enumerate().skip(1) {
        let cells = || {
            rows.iter()
                .map(|row| row.cells.get(column).copied().flatten())
        };
        let count = |is: &dyn Fn(&Cell) -> bool| cells().flatten().filter(|cell| is(cell)).count();
        let better = count(&|cell| cell.star == Some(true) && cell.percent > 0.0);
        let worse = count(&|cell| cell.star == Some(true) && cell.percent < 0.0);
        let same = count(&|cell| cell.star == Some(false));
        let mut parts = vec![
            format!("{better} better"),
            format!("{worse} worse"),
            format!("{same} without a difference that can be told"),
        ];
        let single = count(&|cell| cell.star.is_none());
        if single > 0 {
            parts.push(format!(
                "{single} of one value only, of which nothing can be told"
            ));
        }
        let missing = cells().filter(Option::is_none).count();
        if missing > 0 {
            parts.push(format!("{missing} missing"));
        }
        let known: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let more = sheet
            .series
            .iter()
            .filter(|series| !known.contains(series.name.as_str()))
            .count();
        if more > 0 {
            parts.push(format!("{more} that the base has not"));
        }
        text += &format!("{}: {}\n", escape(&sheet.name), parts.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_split_between_words() {
        for (name, first, second) in [
            ("v5.0-rc6", "v5.0-rc6", ""),
            (
                "5.1.0-rc6-vanilla-with-the-series",
                "5.1.0-rc6-vanilla-",
                "with-the-series",
            ),
            (
                "abcdefghijklmnopqrstuvwxyz",
                "abcdefghijklmnopqrstuv",
                "wxyz",
            ),
            (
                "a very-long-name-that-no-two-lines-can-hold-anyhow",
                "a very-long-name-that-",
                "no-two-lines-can-hold…",
            ),
            ("red\u{1b}[31m", "red\\u{1b}[31m", ""),
        ] {
            assert_eq!(split(name), [first, second]);
        }
    }
}
