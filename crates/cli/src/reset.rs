//! `countersink reset`: makes metrics begin at 0 again, and prints what they held.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::bail;
use clap::Args;
use countersink::reader::{Metric, Snapshot, Taken, Value};
use serde::Serialize;

use crate::names::{self, is_pattern, matches};
use crate::output::{self, print};
use crate::show::json::JsonMetric;
use crate::show::lines::{self, Look};
use crate::target::{self, Target};

/// What is said below the options.
const HELP: &str = "\
Gauges are left alone. One member of a family is named as `show` prints it, in quotes for the\n\
shell: 'requests{method=\"GET\"}'. The plain name means all its members.\n\
\n\
Nothing is lost: what is counted meanwhile is in what is printed, or is kept. The owner of the\n\
program and root may reset.";

/// What `reset` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// A pid, a program's name or a region file
    ///
    /// Digits are always a pid. A program's name is the 15 bytes of it that the kernel keeps, or all of it.
    /// What has a `/` is a file, and so is what no program is called.
    target: String,

    /// Metrics, with or without labels, or groups; * and ? make patterns. All metrics, if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Print what was taken as one JSON object
    #[arg(long)]
    json: bool,
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    regions: Vec<JsonRegion<'a>>,
}

#[derive(Debug, Serialize)]
struct JsonRegion<'a> {
    pids: &'a [u32],
    program: &'a str,
    taken: Vec<JsonMetric<'a>>,
}

/// Resets and prints what was taken.
///
/// # Errors
/// No such region, or several; names that nothing has: nothing is reset then. A region that may not be
/// written to.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let targets = target::open(&options.target)?;
    refuse_several(&options.target, &targets)?;
    let mut snapshots = Vec::with_capacity(targets.len());
    for target in &targets {
        snapshots.push(target.region.snapshot()?);
    }
    let mut there = Names::new();
    for (name, can_be_reset) in snapshots.iter().flat_map(all_names) {
        *there.entry(name).or_default() |= can_be_reset;
    }
    let wanted = expand(&options.names, &there)?;
    let mut taken = Vec::with_capacity(targets.len());
    for (target, snapshot) in targets.iter().zip(&snapshots) {
        let has: BTreeSet<String> = all_names(snapshot).map(|(name, _)| name).collect();
        let names = wanted.iter().copied().filter(|name| has.contains(*name));
        let names: Vec<&str> = names.collect();
        // No names at all would mean all of them.
        if names.is_empty() && !options.names.is_empty() {
            taken.push(Vec::new());
            continue;
        }
        taken.push(described(target.region.reset(&names)?, snapshot));
    }
    report(options, &targets, &snapshots, &taken)
}

/// Several regions of one process are fine: it has several versions of the library.
fn refuse_several(asked: &str, targets: &[Target]) -> anyhow::Result<()> {
    if asked.parse::<u32>().is_ok() {
        return Ok(());
    }
    let first = targets.first().map(|target| &target.pids);
    let one = targets.iter().all(|target| Some(&target.pids) == first);
    if targets.len() > 1 && (!one || first.is_some_and(Vec::is_empty)) {
        let names: Vec<String> = targets.iter().map(Target::name).collect();
        bail!(
            "several are called {}: {}; name one by its pid or its file",
            names::escaped(asked),
            names.join(", ")
        );
    }
    Ok(())
}

/// Names, and whether anything of that name can be reset.
type Names = BTreeMap<String, bool>;

/// Names of metrics, without and with labels, and of groups.
fn all_names(snapshot: &Snapshot) -> impl Iterator<Item = (String, bool)> {
    snapshot.metrics.iter().flat_map(|metric| {
        let can_be_reset = !matches!(
            metric.value,
            Value::Gauge(_) | Value::Batch(_) | Value::Tree(_)
        );
        let names = [
            Some(metric.name.clone()),
            (!metric.labels.is_empty()).then(|| names::of(metric)),
            metric.group.clone(),
        ];
        let names = names.into_iter().flatten();
        names.map(move |name| (name, can_be_reset))
    })
}

/// The names that were asked for, patterns replaced by what they fit.
fn expand<'a>(asked: &[String], there: &'a Names) -> anyhow::Result<BTreeSet<&'a str>> {
    let mut wanted = BTreeSet::new();
    for name in asked {
        if let Some((known, _)) = there.get_key_value(name) {
            wanted.insert(known.as_str());
            continue;
        }
        let fits = |(candidate, _): &(&String, &bool)| is_pattern(name) && matches(name, candidate);
        let fitting: Vec<(&String, &bool)> = there.iter().filter(fits).collect();
        // Patterns pass over gauges.
        let can_be = fitting.iter().filter(|(_, can_be_reset)| **can_be_reset);
        let can_be: Vec<&str> = can_be.map(|(name, _)| name.as_str()).collect();
        if can_be.is_empty() && !fitting.is_empty() {
            bail!(
                "{} fits only gauges, which their program can set only",
                names::escaped(name)
            );
        }
        if can_be.is_empty() {
            bail!(
                "nothing is named {}; {}",
                names::escaped(name),
                enumerate(there)
            );
        }
        wanted.extend(can_be);
    }
    Ok(wanted)
}

/// So many names are enough for a sentence.
const MOST_NAMES: usize = 20;

/// The names without labels.
fn enumerate(there: &Names) -> String {
    let plain: Vec<&String> = there.keys().filter(|name| !name.contains('{')).collect();
    let some = plain.iter().take(MOST_NAMES);
    let names: Vec<String> = some.map(|name| names::escaped(name)).collect();
    match (names.len(), plain.len() - names.len()) {
        (0, _) => "there are no metrics".to_owned(),
        (_, 0) => format!("there is {}", names.join(", ")),
        (_, more) => format!("there is {} and {more} more", names.join(", ")),
    }
}

/// Metrics with what was taken as their values, by name.
fn described(taken: Vec<Taken>, snapshot: &Snapshot) -> Vec<Metric> {
    let metrics = snapshot.metrics.iter();
    let known: HashMap<_, &Metric> = metrics.map(|m| ((&m.name, &m.labels), m)).collect();
    let mut described: Vec<Metric> = taken
        .iter()
        .map(|taken| describe(taken, known.get(&(&taken.name, &taken.labels)).copied()))
        .collect();
    described.sort_by(|one, other| (&one.name, &one.labels).cmp(&(&other.name, &other.labels)));
    described
}

/// Without its description if it was registered after the snapshot.
fn describe(taken: &Taken, known: Option<&Metric>) -> Metric {
    Metric {
        name: taken.name.clone(),
        group: known.and_then(|metric| metric.group.clone()),
        labels: taken.labels.clone(),
        help: known.map_or(String::new(), |metric| metric.help.clone()),
        unit: match &taken.value {
            Value::Span(_) => "nanoseconds",
            _ => known.map_or("", |metric| metric.unit),
        },
        entry: known.map_or(0, |metric| metric.entry),
        generation: known.map_or(0, |metric| metric.generation),
        torn: false,
        value: taken.value.clone(),
        lanes: Vec::new(),
    }
}

fn report(
    options: &Options,
    targets: &[Target],
    snapshots: &[Snapshot],
    taken: &[Vec<Metric>],
) -> anyhow::Result<()> {
    let clocks = snapshots.iter().map(|snapshot| snapshot.clock);
    let each = targets.iter().zip(clocks).zip(taken);
    if options.json {
        let mut regions = Vec::with_capacity(targets.len());
        for ((target, clock), taken) in each {
            regions.push(JsonRegion {
                pids: &target.pids,
                program: &target.region.info().program,
                taken: taken
                    .iter()
                    .map(|m| JsonMetric::of(m, &clock, false))
                    .collect(),
            });
        }
        let document = Document {
            schema: "countersink-reset/1",
            regions,
        };
        return print(&output::json(&document, true)?);
    }
    let mut text = String::new();
    for ((target, clock), taken) in each {
        let look = Look {
            migrated: false,
            clock,
        };
        text += &match taken.is_empty() {
            true => format!("{} had nothing to take\n", target.name()),
            false => format!("taken from {}\n", target.name()),
        };
        text += &lines::metrics(&taken.iter().collect::<Vec<_>>(), look);
    }
    print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_what_they_fit() {
        let there = Names::from(
            [
                ("rwsem", true),
                ("rwsem_rtrylock", true),
                ("rwsem_wtrylock", true),
                ("requests", true),
                ("requests{method=\"GET\"}", true),
                ("rwsem_waiting", false),
            ]
            .map(|(name, can_be_reset)| (name.to_owned(), can_be_reset)),
        );
        let expanded = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
            expand(&asked, &there).map_err(|error| error.to_string())
        };
        assert_eq!(expanded(&[]), Ok(BTreeSet::new()));
        assert_eq!(expanded(&["rwsem"]), Ok(BTreeSet::from(["rwsem"])));
        let both = BTreeSet::from(["rwsem_rtrylock", "rwsem_wtrylock"]);
        assert_eq!(expanded(&["*trylock"]), Ok(both));
        let all = BTreeSet::from(["rwsem", "rwsem_rtrylock", "rwsem_wtrylock"]);
        assert_eq!(expanded(&["rwsem*"]), Ok(all));
        let one = "requests{method=\"GET\"}";
        assert_eq!(expanded(&[one]), Ok(BTreeSet::from([one])));
        assert_eq!(
            expanded(&["rwsem_waiting"]),
            Ok(BTreeSet::from(["rwsem_waiting"]))
        );
        let gauges = "rwsem_wa* fits only gauges, which their program can set only";
        assert_eq!(expanded(&["rwsem_wa*"]), Err(gauges.to_owned()));
        let none = "nothing is named request; there is requests, rwsem, rwsem_rtrylock, \
                    rwsem_waiting, rwsem_wtrylock";
        assert_eq!(expanded(&["requests", "request"]), Err(none.to_owned()));
    }

    #[test]
    fn a_sentence_does_not_list_thousands() {
        let names: Vec<String> = (0..1000).map(|number| format!("n{number:04}")).collect();
        let there: Names = names.into_iter().map(|name| (name, true)).collect();
        let sentence = enumerate(&there);
        assert!(sentence.ends_with(" n0019 and 980 more"), "{sentence}");
        assert_eq!(enumerate(&Names::new()), "there are no metrics");
    }
}
