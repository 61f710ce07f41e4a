//! `countersink reset`: makes metrics begin at 0 again, and prints what they held.

use std::collections::{BTreeSet, HashMap};

use anyhow::bail;
use clap::Args;
use countersink::reader::{Metric, Snapshot, Taken, Value};
use serde::Serialize;

use crate::names::{self, is_pattern, matches};
use crate::output::print;
use crate::show::json::JsonMetric;
use crate::show::lines::{self, Look};
use crate::target::{self, Target};

/// What is said below the options.
const HELP: &str = "\
Nothing is lost: what is counted meanwhile is in what is printed, or is kept. The owner of the\n\
program and root may reset.";

/// What `reset` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// A pid, a program's name or a region file
    target: String,

    /// Metrics or groups, with * and ? as patterns; all metrics, if none is named
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
    let there: BTreeSet<&str> = snapshots.iter().flat_map(all_names).collect();
    let wanted = expand(&options.names, &there)?;
    let mut taken = Vec::with_capacity(targets.len());
    for (target, snapshot) in targets.iter().zip(&snapshots) {
        let has: BTreeSet<&str> = all_names(snapshot).collect();
        let names: Vec<&str> = wanted.intersection(&has).copied().collect();
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

/// Names of metrics and of groups.
fn all_names(snapshot: &Snapshot) -> impl Iterator<Item = &str> {
    let groups = snapshot.metrics.iter().filter_map(|m| m.group.as_deref());
    let names = snapshot.metrics.iter().map(|m| m.name.as_str());
    names.chain(groups)
}

/// The names that were asked for, patterns replaced by what they fit.
fn expand<'a>(asked: &[String], there: &BTreeSet<&'a str>) -> anyhow::Result<BTreeSet<&'a str>> {
    let mut wanted = BTreeSet::new();
    for name in asked {
        let fits = |candidate: &&&str| match is_pattern(name) {
            true => matches(name, candidate),
            false => name == **candidate,
        };
        let fitting: Vec<&str> = there.iter().filter(fits).copied().collect();
        if fitting.is_empty() {
            bail!(
                "nothing is named {}; {}",
                names::escaped(name),
                enumerate(there)
            );
        }
        wanted.extend(fitting);
    }
    Ok(wanted)
}

/// So many names are enough for a sentence.
const MOST_NAMES: usize = 20;

fn enumerate(there: &BTreeSet<&str>) -> String {
    let names: Vec<String> = there
        .iter()
        .take(MOST_NAMES)
        .map(|name| names::escaped(name))
        .collect();
    match (names.len(), there.len() - names.len()) {
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
        return print(&(serde_json::to_string_pretty(&document)? + "\n"));
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
        let there = BTreeSet::from(["rwsem", "rwsem_rtrylock", "rwsem_wtrylock", "requests"]);
        let expanded = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
            expand(&asked, &there).map_err(|error| error.to_string())
        };
        assert_eq!(expanded(&[]), Ok(BTreeSet::new()));
        assert_eq!(expanded(&["rwsem"]), Ok(BTreeSet::from(["rwsem"])));
        let both = BTreeSet::from(["rwsem_rtrylock", "rwsem_wtrylock"]);
        assert_eq!(expanded(&["*trylock"]), Ok(both));
        let none =
            "nothing is named request; there is requests, rwsem, rwsem_rtrylock, rwsem_wtrylock";
        assert_eq!(expanded(&["requests", "request"]), Err(none.to_owned()));
    }

    #[test]
    fn a_sentence_does_not_list_thousands() {
        let names: Vec<String> = (0..1000).map(|number| format!("n{number:04}")).collect();
        let there: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let sentence = enumerate(&there);
        assert!(sentence.ends_with(" n0019 and 980 more"), "{sentence}");
        assert_eq!(enumerate(&BTreeSet::new()), "there are no metrics");
    }
}
