//! Comparing results: the table that kernel mails carry.
//!
//! A [`Sheet`] is what a file holds, whatever its form ([`read`]): series of values by name, each with a direction. Sheets side by side give
//! [`Row`]s: a mean of each, what the change is in percent, positive always being better, and a star where a [`Rule`] says that
//! the change is more than chance.
//!
//! The means are mmtests': the harmonic one where more is better (rates add up by the time that each takes), the arithmetic one where
//! less is. So is the standard deviation of a harmonic mean, by the spread of the reciprocals.

mod evidence;
pub mod read;
mod rule;

use std::collections::BTreeMap;

use crate::machine::Machine;
use crate::result::Times;

pub use evidence::{Between, Evidence, between};
pub use rule::Rule;

/// Whether more or less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As of rates.
    More,
    /// As of times.
    Less,
}

/// Values of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What was measured.
    pub name: String,
    /// In what.
    pub unit: String,
    /// What is better.
    pub direction: Direction,
    /// How often it was measured, in the order of measuring. All are finite and above 0.
    pub values: Vec<f64>,
    /// How far they can be trusted, where the file says so.
    pub evidence: Option<Evidence>,
}

/// What one file, or several of one run, hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// What its column is called.
    pub name: String,
    /// Where it was measured, if that is known.
    pub machine: Option<Machine>,
    /// What the run took, if that is known; several runs together.
    pub times: Option<Times>,
    /// In the order of the file; names differ.
    pub series: Vec<Series>,
}

/// The mean of a series and how it varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// By the direction.
    pub mean: f64,
    /// Of the values, not of the mean; `None` of a single value.
    pub stddev: Option<f64>,
    /// How many values.
    pub count: usize,
}

impl Moments {
    /// Of values that are finite and above 0; `None` if there are none.
    pub fn of(direction: Direction, values: &[f64]) -> Option<Moments> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let (mean, stddev) = match direction {
            Direction::Less => {
                let mean = values.iter().sum::<f64>() / count;
                let squares = values
                    .iter()
                    .map(|value| (value - mean).powi(2))
                    .sum::<f64>();
                (mean, (squares / (count - 1.0)).sqrt())
            }
            Direction::More => {
                let mean = count / values.iter().map(|value| 1.0 / value).sum::<f64>();
                let off = |value: &f64| (1.0 / value - 1.0 / mean).powi(2);
                let squares = values.iter().map(off).sum::<f64>();
                (mean, mean * mean * (squares / count).sqrt())
            }
        };
        Some(Moments {
            mean,
            stddev: (values.len() > 1).then_some(stddev),
            count: values.len(),
        })
    }
}

/// What a column has in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Its moments.
    pub moments: Moments,
    /// How much better than the base, in percent; 0 of the base.
    pub percent: f64,
    /// Whether the rule tells them apart; `None` where it cannot say: the base itself, or too few values.
    pub star: Option<bool>,
}

/// One series in all columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The series.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// What is better.
    pub direction: Direction,
    /// Of the base first. `None` where a file lacks the series.
    pub cells: Vec<Option<Cell>>,
}

/// Sheets that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The same name with another unit.
    #[error("{name} is in {base} in {first}, and in {other} in {second}")]
    Unit {
        /// The series.
        name: String,
        /// The file of the first.
        first: String,
        /// Its unit.
        base: String,
        /// The file of the second.
        second: String,
        /// Its unit.
        other: String,
    },
    /// No series is in the base and in another.
    #[error("the files have nothing in common: {0}")]
    Nothing(String),
}

/// Percent, positive where the new value is the better.
pub fn percent(direction: Direction, base: f64, new: f64) -> f64 {
    match direction {
        Direction::More => 100.0 * new / base - 100.0,
        Direction::Less => 100.0 - 100.0 * new / base,
    }
}

/// The rows of all series that the base has, in its order.
///
/// # Errors
/// See [`CompareError`].
pub fn compare(base: &Sheet, others: &[Sheet], rule: Rule) -> Result<Vec<Row>, CompareError> {
    let by_name = |sheet: &Sheet| -> BTreeMap<String, usize> {
        let names = sheet.series.iter().enumerate();
        names
            .map(|(at, series)| (series.name.clone(), at))
            .collect()
    };
    let places: Vec<_> = others.iter().map(by_name).collect();
    let mut rows = Vec::new();
    for series in &base.series {
        let Some(first) = Moments::of(series.direction, &series.values) else {
            continue;
        };
        let mut cells = vec![Some(Cell {
            moments: first,
            percent: 0.0,
            star: None,
        })];
        for (other, places) in others.iter().zip(&places) {
            let found = places.get(&series.name).map(|at| &other.series[*at]);
            if let Some(found) = found
                && found.unit != series.unit
            {
                return Err(CompareError::Unit {
                    name: series.name.clone(),
                    first: base.name.clone(),
                    base: series.unit.clone(),
                    second: other.name.clone(),
                    other: found.unit.clone(),
                });
            }
            let moments = found.and_then(|found| Moments::of(series.direction, &found.values));
            cells.push(moments.map(|moments| Cell {
                moments,
                percent: percent(series.direction, first.mean, moments.mean),
                star: rule.tells_apart(&first, &moments),
            }));
        }
        rows.push(Row {
            name: series.name.clone(),
            unit: series.unit.clone(),
            direction: series.direction,
            cells,
        });
    }
    let shared = |row: &Row| row.cells.iter().skip(1).any(Option::is_some);
    if !rows.iter().any(shared) {
        let names = std::iter::once(base)
            .chain(others)
            .map(|sheet| sheet.name.as_str());
        return Err(CompareError::Nothing(names.collect::<Vec<_>>().join(", ")));
    }
    Ok(rows)
}

/// What makes two machines different ones, and what may differ on one and should be known: names and both values.
pub fn differences(one: &Machine, other: &Machine) -> [Vec<(String, String, String)>; 2] {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let of = |pairs: Vec<(&str, String, String)>| {
        let differ = pairs.into_iter().filter(|(_, one, other)| one != other);
        differ
            .map(|(name, one, other)| (name.to_owned(), one, other))
            .collect()
    };
    let pair =
        |name, field: fn(&Machine) -> &Option<String>| (name, text(field(one)), text(field(other)));
    let machines = of(vec![
        pair("architecture", |machine| &machine.arch),
        pair("CPU", |machine| &machine.cpu_model),
        pair("possible CPUs", |machine| &machine.cpus_possible),
        pair("hypervisor", |machine| &machine.hypervisor),
        pair("product", |machine| &machine.product),
    ]);
    let mut conditions = vec![
        pair("system", |machine| &machine.os),
        pair("kernel", |machine| &machine.kernel),
        pair("allowed CPUs", |machine| &machine.cpus_allowed),
        pair("clock source", |machine| &machine.clocksource),
        pair("governor", |machine| &machine.governor),
        pair("huge pages", |machine| &machine.transparent_hugepages),
        pair("version", |machine| &machine.version),
    ];
    let names = one.conditions.keys().chain(other.conditions.keys());
    let names: std::collections::BTreeSet<_> = names.collect();
    for name in names {
        let of = |machine: &Machine| text(&machine.conditions.get(name).cloned());
        conditions.push((name, of(one), of(other)));
    }
    [machines, of(conditions)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn moments_by_hand() {
        // 2 / (1/2 + 1/6) = 3; the reciprocals 1/2 and 1/6 are 1/6 off 1/3; 9 x 1/6 = 1.5.
        let rates = Moments::of(Direction::More, &[2.0, 6.0]).expect("values");
        assert!(near(rates.mean, 3.0) && near(rates.stddev.expect("two"), 1.5));
        // (1 + 9) / 1 with n - 1.
        let times = Moments::of(Direction::Less, &[2.0, 4.0, 6.0]).expect("values");
        assert!(near(times.mean, 4.0) && near(times.stddev.expect("three"), 2.0));
        let one = Moments::of(Direction::Less, &[7.0]).expect("a value");
        assert_eq!((one.mean, one.stddev, one.count), (7.0, None, 1));
        assert_eq!(Moments::of(Direction::More, &[]), None);
    }

    /// The seed's own rows: the percents and their signs follow from the means that it shows.
    #[test]
    fn percents_are_those_of_the_seed() {
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        for (base, new, shown) in [
            (624_224.981_5, 618_847.520_1, -0.86),
            (539_550.350_9, 547_407.573_8, 1.46),
            (401_470.346_1, 381_157.983_0, -5.06),
            (267_617.035_3, 271_098.544_1, 1.30),
            (176_194.464_1, 175_151.325_6, -0.59),
            (119_927.386_2, 120_610.134_8, 0.57),
            (91_203.682_0, 91_832.748_9, 0.69),
            (2_113_364.689_8, 2_140_254.823_8, 1.27),
            (3_422_806.480_6, 3_352_970.308_2, -2.04),
        ] {
            assert_eq!(rounded(percent(Direction::More, base, new)), shown);
        }
        // Less is better, so what grew is worse.
        assert_eq!(rounded(percent(Direction::Less, 100.0, 105.0)), -5.0);
    }

    fn sheet(name: &str, series: &[(&str, &str, &[f64])]) -> Sheet {
        let series = series.iter().map(|(name, unit, values)| Series {
            name: (*name).to_owned(),
            unit: (*unit).to_owned(),
            direction: Direction::Less,
            values: values.to_vec(),
            evidence: None,
        });
        Sheet {
            name: name.to_owned(),
            machine: None,
            times: None,
            series: series.collect(),
        }
    }

    #[test]
    fn rows_are_the_bases_and_what_is_missing_is_missing() {
        let base = sheet("base", &[("a", "ns", &[2.0, 2.0]), ("b", "ns", &[1.0])]);
        let new = sheet("new", &[("a", "ns", &[1.0, 1.0]), ("c", "ns", &[1.0])]);
        let rows = compare(&base, std::slice::from_ref(&new), Rule::Welch).expect("rows");
        let percents: Vec<_> = rows
            .iter()
            .map(|row| row.cells[1].map(|cell| cell.percent))
            .collect();
        assert_eq!(percents, [Some(50.0), None]);
        let other = sheet("other", &[("a", "MB/s", &[1.0])]);
        let message = compare(&base, &[other], Rule::Welch)
            .expect_err("units")
            .to_string();
        assert_eq!(message, "a is in ns in base, and in MB/s in other");
        let nothing = sheet("nothing", &[("d", "ns", &[1.0])]);
        assert!(matches!(
            compare(&base, &[nothing], Rule::Welch),
            Err(CompareError::Nothing(_))
        ));
    }

    #[test]
    fn another_kernel_is_a_condition_and_another_cpu_another_machine() {
        let machine = |cpu: &str, kernel: &str| Machine {
            cpu_model: Some(cpu.to_owned()),
            kernel: Some(kernel.to_owned()),
            ..Machine::default()
        };
        let [machines, conditions] = differences(&machine("A", "6.1"), &machine("A", "6.2"));
        assert!(machines.is_empty());
        assert_eq!(conditions, [("kernel".into(), "6.1".into(), "6.2".into())]);
        let [machines, _] = differences(&machine("A", "6.1"), &machine("B", "6.1"));
        assert_eq!(machines, [("CPU".into(), "A".into(), "B".into())]);
    }
}
