//! Files that can be compared: results of this crate, will-it-scale's columns, and what Go's benchmarks print.

use std::collections::{BTreeMap, HashMap};

use super::{Direction, Evidence, Series, Sheet};
use crate::result::{ReadError, Results};

/// Why a file cannot be read. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Results of this crate, or what begins like them.
    #[error(transparent)]
    Results(#[from] ReadError),
    /// Neither of the forms.
    #[error(
        "neither results of this program, nor will-it-scale's columns, nor what Go's benchmarks print"
    )]
    Unknown,
    /// A line that does not belong there.
    #[error("line {line}: {what}")]
    Line {
        /// Which.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A value that is none.
    #[error("{name} has the value {value}")]
    Value {
        /// The series.
        name: String,
        /// The value.
        value: f64,
    },
    /// Nothing was measured.
    #[error("there are no values in it")]
    Empty,
}

/// Reads the text of a file, whatever its form.
///
/// # Errors
/// See [`FileError`].
pub fn sheet(name: &str, text: &str) -> Result<Sheet, FileError> {
    let start = text.trim_start();
    let mut times = None;
    let (machine, series) = if start.starts_with('{') {
        let results = Results::from_json(text)?;
        times = results.times;
        (Some(results.machine.clone()), of_results(&results))
    } else if start.starts_with("tasks,") {
        (None, of_columns(text)?)
    } else if is_go(text) {
        (None, of_go(text)?)
    } else {
        return Err(FileError::Unknown);
    };
    let mut sheet = Sheet {
        name: name.to_owned(),
        machine,
        times,
        series: Vec::new(),
    };
    append(&mut sheet, series);
    for series in &sheet.series {
        if let Some(value) = series
            .values
            .iter()
            .find(|value| !(value.is_finite() && **value > 0.0))
        {
            return Err(FileError::Value {
                name: series.name.clone(),
                value: *value,
            });
        }
    }
    if sheet.series.is_empty() {
        return Err(FileError::Empty);
    }
    Ok(sheet)
}

/// Adds values to a sheet: to the series of the same name and unit, if it has one.
pub fn append(sheet: &mut Sheet, more: Vec<Series>) {
    let key = |series: &Series| (series.name.clone(), series.unit.clone());
    let known = sheet
        .series
        .iter()
        .enumerate()
        .map(|(at, series)| (key(series), at));
    let mut places: BTreeMap<_, _> = known.collect();
    for series in more {
        match places.get(&key(&series)) {
            Some(at) => {
                let known = &mut sheet.series[*at];
                known.values.extend(series.values);
                let both = known.evidence.take().zip(series.evidence);
                known.evidence = both.map(|(one, other)| one.joined(other));
            }
            None => {
                places.insert(key(&series), sheet.series.len());
                sheet.series.push(series);
            }
        }
    }
}

fn of_results(results: &Results) -> Vec<Series> {
    let experiments = results.experiments.iter();
    let points = experiments.flat_map(|experiment| {
        let mut floors: HashMap<usize, Option<f64>> = HashMap::new();
        experiment.points.iter().map(move |point| Series {
            evidence: Some(Evidence::of(
                experiment,
                point,
                *floors
                    .entry(point.threads)
                    .or_insert_with(|| experiment.noise_floor(point.threads)),
            )),
            name: format!(
                "{} {} {} {}-{}",
                experiment.name, point.variant, point.op, point.pattern, point.threads
            ),
            unit: point.unit.clone(),
            direction: Direction::Less,
            values: point.samples.clone(),
        })
    });
    points.collect()
}

/// `tasks,processes,processes_idle,threads,threads_idle,linear`: a rate of processes and of threads for each number of tasks; the first
/// line has none.
fn of_columns(text: &str) -> Result<Vec<Series>, FileError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let (_, head) = lines.next().ok_or(FileError::Empty)?;
    let names: Vec<&str> = head.trim().split(',').map(str::trim).collect();
    let column = |name: &str| names.iter().position(|found| *found == name);
    let mut series = Vec::new();
    for (at, line) in lines {
        let wrong = |what: String| FileError::Line { line: at + 1, what };
        let cells: Vec<&str> = line.trim().split(',').map(str::trim).collect();
        if cells.len() != names.len() {
            return Err(wrong(format!(
                "{} columns instead of {}",
                cells.len(),
                names.len()
            )));
        }
        let number = |cell: &str| {
            cell.parse::<f64>()
                .map_err(|_| wrong(format!("`{cell}` is not a number")))
        };
        let tasks = number(cells[0])?;
        for mode in ["processes", "threads"] {
            let Some(rate) = column(mode).map(|at| number(cells[at])).transpose()? else {
                continue;
            };
            // What was not run is 0.
            if tasks > 0.0 && rate != 0.0 {
                series.push(Series {
                    name: format!("{mode}-{tasks}"),
                    unit: "ops/s".to_owned(),
                    direction: Direction::More,
                    values: vec![rate],
                    evidence: None,
                });
            }
        }
    }
    Ok(series)
}

fn is_go(text: &str) -> bool {
    let is_result =
        |line: &str| line.starts_with("Benchmark") && line.split_whitespace().count() >= 4;
    text.lines().any(is_result)
}

/// `BenchmarkName-8   1000   12.3 ns/op   5 B/op`: a name, how often, and pairs of a value and its unit. Other lines say under what
/// conditions, or nothing.
fn of_go(text: &str) -> Result<Vec<Series>, FileError> {
    let mut series = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let wrong = |what: String| FileError::Line { line: at + 1, what };
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(name) = words
            .first()
            .and_then(|word| word.strip_prefix("Benchmark"))
        else {
            continue;
        };
        if words.len() < 4 {
            // A name alone, as when a benchmark prints.
            continue;
        }
        if words[1].parse::<u64>().is_err() {
            return Err(wrong(format!(
                "`{}` is not a number of iterations",
                words[1]
            )));
        }
        let pairs = words[2..].chunks(2);
        for pair in pairs {
            let [value, unit] = pair else {
                return Err(wrong(format!("`{}` has no unit", pair[0])));
            };
            let value: f64 = value
                .parse()
                .map_err(|_| wrong(format!("`{value}` is not a number")))?;
            // 0 B/op is what it says, and cannot be compared by percent.
            if value == 0.0 {
                continue;
            }
            series.push(Series {
                name: name.to_owned(),
                unit: (*unit).to_owned(),
                direction: direction_of(unit),
                values: vec![value],
                evidence: None,
            });
        }
    }
    // A name with several units is several series.
    let mut units: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in &series {
        let of_name = units.entry(&one.name).or_default();
        if !of_name.contains(&one.unit.as_str()) {
            of_name.push(&one.unit);
        }
    }
    let several: Vec<String> = units
        .iter()
        .filter(|(_, units)| units.len() > 1)
        .map(|(name, _)| (*name).to_owned())
        .collect();
    for one in &mut series {
        if several.binary_search(&one.name).is_ok() {
            one.name = format!("{} {}", one.name, one.unit);
        }
    }
    Ok(series)
}

/// Rates are better when they are more; everything else when it is less.
fn direction_of(unit: &str) -> Direction {
    if unit.ends_with("/s") || unit.ends_with("/sec") {
        Direction::More
    } else {
        Direction::Less
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn will_it_scales_columns() {
        let text = "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n1,100,50,90,50,100\n2,180,0,0,0,200\n";
        let sheet = sheet("x", text).expect("columns");
        let found: Vec<_> = sheet
            .series
            .iter()
            .map(|series| (series.name.as_str(), series.values[0], series.direction))
            .collect();
        let more = Direction::More;
        assert_eq!(
            found,
            [
                ("processes-1", 100.0, more),
                ("threads-1", 90.0, more),
                ("processes-2", 180.0, more)
            ]
        );
    }

    #[test]
    fn what_go_prints() {
        let text = "goos: linux\ncpu: some\nBenchmarkAdd-8   \t1000\t12.5 ns/op\t0 B/op\nBenchmarkAdd-8 1000 13.5 ns/op 0 B/op\n\
                    BenchmarkCopy/size=4-8 10 100 ns/op 40.00 MB/s\nPASS\nok  \tpkg\t1.2s\n";
        let sheet = sheet("x", text).expect("Go's");
        let found: Vec<_> = sheet
            .series
            .iter()
            .map(|series| {
                (
                    series.name.as_str(),
                    series.unit.as_str(),
                    series.values.clone(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Add-8", "ns/op", vec![12.5, 13.5]),
                ("Copy/size=4-8 ns/op", "ns/op", vec![100.0]),
                ("Copy/size=4-8 MB/s", "MB/s", vec![40.0]),
            ]
        );
        assert_eq!(sheet.series[2].direction, Direction::More);
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let said = |text: &str| sheet("x", text).expect_err("an error").to_string();
        assert!(said("").starts_with("neither"));
        assert!(said("hello\n").starts_with("neither"));
        assert!(said("{").starts_with("not a result"));
        assert_eq!(
            said("tasks,processes\n1\n"),
            "line 2: 1 columns instead of 2"
        );
        assert_eq!(
            said("tasks,processes\n1,x\n"),
            "line 2: `x` is not a number"
        );
        assert_eq!(
            said("tasks,processes\n1,NaN\n"),
            "processes-1 has the value NaN"
        );
        assert_eq!(
            said("tasks,processes\n1,-5\n"),
            "processes-1 has the value -5"
        );
        assert_eq!(said("tasks,processes\n"), "there are no values in it");
        assert_eq!(said("BenchmarkA 1 inf ns/op\n"), "A has the value inf");
        assert_eq!(
            said("BenchmarkA x 1 ns/op\n"),
            "line 1: `x` is not a number of iterations"
        );
        assert_eq!(said("BenchmarkA 1 1 ns/op 5\n"), "line 1: `5` has no unit");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(tasks,|Benchmark|\\{)?[ -~\n\t]{0,200}") {
            let _ = sheet("x", &text);
        }

        #[test]
        fn no_numbers_panic(values in prop::collection::vec(any::<f64>(), 1..20)) {
            let lines = values.iter().map(|value| format!("BenchmarkA 1 {value} ns/op\n"));
            if let Ok(sheet) = sheet("x", &lines.collect::<String>()) {
                let _ = crate::compare::compare(&sheet, std::slice::from_ref(&sheet), crate::compare::Rule::Welch);
            }
        }
    }
}
