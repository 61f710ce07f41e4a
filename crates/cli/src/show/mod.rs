//! `countersink show`: what a program has counted.

pub(crate) mod json;
mod lanes;
pub(crate) mod lines;
#[cfg(test)]
pub(crate) mod samples;
mod select;
mod text;
mod watch;

use std::time::Duration;

use clap::Args;
use countersink::reader::{Metric, Per, ReadError, Snapshot, State, growth};
use serde::Serialize;

use crate::names::Filter;
use crate::output::{self, print};
use crate::pause::Interrupts;
use crate::target::{self, Target};
use lines::Look;
use select::Sort;

pub(crate) use text::{complaints, kind, mechanism};

/// What is said below the options.
const HELP: &str = "\
A span's line has its events, in parentheses those that were thrown away because the thread\n\
changed CPU, the total time (shortest/average/longest), and the bytes (fewest/average/most),\n\
averaged over the events that had some. Times include time off the CPU: what a thread waited or\n\
was preempted in a span counts. `-` is what is not known, such as the shortest of no times.\n\
\n\
p50/p90/p99 are percentiles, of histograms only: the middle of the bucket that the percentile is\n\
in. Units are decimal, as in the kernel patch of 2007: K M G T P XX, b kb mb gb tb pb xb.\n\
\n\
--per-cpu and --cpu show values and totals since the program began, resets not taken off; min and\n\
max are since the last reset.\n\
\n\
A core file has the counters as long as shared anonymous memory is dumped, bit 1 of\n\
/proc/PID/coredump_filter, as it is by default, and the region is not in a file.\n\
\n\
docs/json.md says what --json prints.";

/// What `show` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// A pid, a program's name, a region file or a core file
    ///
    /// Digits are always a pid. A program's name is the 15 bytes of it that the kernel keeps, or all of it.
    /// What has a `/` is a file, and so is what no program is called.
    target: String,

    /// Only what this CPU has counted, or `shared`: threads that cannot use a CPU's lane
    #[arg(long, value_name = "N", value_parser = select::parse_lane, conflicts_with = "per_cpu")]
    cpu: Option<Per>,

    /// What each CPU has counted, as a table: values and totals since the program began, resets not
    /// taken off; min and max since the last reset
    #[arg(long, conflicts_with = "watch")]
    per_cpu: bool,

    /// Only metrics whose name, with labels, contains this; with * and ? a pattern for all of it
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// The order: numbers descend, and what is equal is by name
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,

    /// Say how many events of a span changed CPU and were counted all the same
    #[arg(long)]
    migrated: bool,

    /// Print JSON: raw integers with their units. With --watch, an object on each line
    #[arg(long)]
    json: bool,

    /// Every so many seconds, what was counted per second, until the program ends or Ctrl-C
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,

    /// End after so many times
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// The longest time between two looks, a day.
const LONGEST: f64 = 86_400.0;

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=LONGEST).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("not a number of seconds from 0.001 to {LONGEST}")),
    }
}

/// Reads the regions and prints them.
///
/// # Errors
/// No such region, or one that cannot be read; standard output that cannot be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let targets = target::open(&options.target)?;
    if let Some(lane) = options.cpu {
        for target in &targets {
            select::check_lane(target.region.info(), lane)?;
        }
    }
    match options.watch {
        Some(time) => watch(options, &targets, time),
        None => once(options, &targets),
    }
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval_ns: Option<u64>,
    regions: Vec<json::Region<'a>>,
}

impl Options {
    fn filter(&self) -> Option<Filter> {
        self.filter.as_deref().map(Filter::new)
    }

    fn only_lane(&self, metrics: &mut [Metric]) {
        if let Some(lane) = self.cpu {
            for metric in metrics {
                select::only_lane(metric, lane);
            }
        }
    }

    fn choose<'a>(&self, metrics: &'a [Metric]) -> Vec<&'a Metric> {
        select::choose(metrics, self.filter().as_ref(), self.sort)
    }
}

fn once(options: &Options, targets: &[Target]) -> anyhow::Result<()> {
    let mut snapshots = Vec::with_capacity(targets.len());
    for target in targets {
        let mut snapshot = target.region.snapshot()?;
        options.only_lane(&mut snapshot.metrics);
        snapshots.push(snapshot);
    }
    let read = targets.iter().zip(&snapshots);
    if options.json {
        let document = Document {
            schema: json::SCHEMA,
            interval_ns: None,
            regions: read
                .map(|(target, snapshot)| json_region(options, target, snapshot))
                .collect(),
        };
        return print(&output::json(&document, true)?);
    }
    let texts: Vec<String> = read
        .map(|(target, snapshot)| text_of(options, target, snapshot))
        .collect();
    print(&texts.join("\n"))
}

fn json_region<'a>(
    options: &Options,
    target: &'a Target,
    snapshot: &'a Snapshot,
) -> json::Region<'a> {
    let state = target::state(target.region.state());
    let chosen = options.choose(&snapshot.metrics);
    let who = (target.pids.as_slice(), state);
    json::region(
        who,
        target.region.info(),
        snapshot,
        &chosen,
        options.per_cpu,
    )
}

fn text_of(options: &Options, target: &Target, snapshot: &Snapshot) -> String {
    let look = Look {
        migrated: options.migrated,
        clock: snapshot.clock,
    };
    let chosen = options.choose(&snapshot.metrics);
    let mut text = text::heading(&target.who(), target.region.info(), snapshot);
    if target.pids.len() > 1 {
        let processes = target.pids.len();
        text += &format!("shared     by {processes} processes; the figures are of all\n");
    }
    text += &text::lanes(options.cpu, options.per_cpu, snapshot);
    text += &match (chosen.is_empty(), snapshot.metrics.is_empty()) {
        (true, true) => "\nno metrics\n".to_owned(),
        (true, false) => "\nno metric passes the filter\n".to_owned(),
        _ if options.per_cpu => lanes::render(&chosen, look),
        _ => lines::metrics(&chosen, look),
    };
    text + &text::complaints(&chosen, snapshot)
}

/// How long a wait is at most, so that the end of a program is noticed.
const NAP: Duration = Duration::from_millis(500);

/// Prints rates until all targets are dead, the count is reached, or Ctrl-C.
fn watch(options: &Options, targets: &[Target], time: Duration) -> anyhow::Result<()> {
    let interrupts = Interrupts::hold();
    let mut before = Vec::with_capacity(targets.len());
    for target in targets {
        before.push(target.region.snapshot()?);
    }
    if !any_alive(targets) {
        return say_ended(targets);
    }
    let mut left = options.count.unwrap_or(u64::MAX);
    while left > 0 {
        if wait(&interrupts, targets, time) {
            return Ok(());
        }
        let mut after = Vec::with_capacity(targets.len());
        for target in targets {
            match target.region.snapshot() {
                Ok(snapshot) => after.push(snapshot),
                Err(ReadError::Gone { .. }) => return say_ended(targets),
                Err(error) => return Err(error.into()),
            }
        }
        print(&step(options, targets, &before, &after)?)?;
        if !any_alive(targets) {
            return say_ended(targets);
        }
        before = after;
        left -= 1;
    }
    Ok(())
}

/// Waits so long, or until no target lives any more; `true` if Ctrl-C ended it.
fn wait(interrupts: &Interrupts, targets: &[Target], time: Duration) -> bool {
    let mut left = time;
    while !left.is_zero() && any_alive(targets) {
        let nap = left.min(NAP);
        if interrupts.wait(nap) {
            return true;
        }
        left -= nap;
    }
    false
}

fn any_alive(targets: &[Target]) -> bool {
    let mut states = targets.iter().map(|target| target.region.state());
    states.any(|state| state != State::Dead)
}

fn say_ended(targets: &[Target]) -> anyhow::Result<()> {
    for target in targets {
        eprintln!("countersink: {} has ended", target.name());
    }
    Ok(())
}

/// What one interval prints.
fn step(
    options: &Options,
    targets: &[Target],
    before: &[Snapshot],
    after: &[Snapshot],
) -> anyhow::Result<String> {
    let mut text = String::new();
    for ((target, before), after) in targets.iter().zip(before).zip(after) {
        let passed = after.taken.saturating_sub(before.taken);
        let grown = growth(before, after)
            .into_iter()
            .map(|growth| growth.metric);
        let mut grown: Vec<Metric> = grown.collect();
        options.only_lane(&mut grown);
        let mut now = after.clone();
        options.only_lane(&mut now.metrics);
        if options.json {
            let chosen = options.choose(&grown);
            let region = json_region(options, target, &now);
            let document = Document {
                schema: json::SCHEMA,
                interval_ns: u64::try_from(passed.as_nanos()).ok(),
                regions: vec![region.with_growth(&chosen, &now)],
            };
            text += &output::json(&document, false)?;
            continue;
        }
        let interval = watch::Interval {
            growth: &grown,
            now: &now,
            passed,
        };
        let rates = watch::render(&interval, options.filter().as_ref(), options.sort);
        text += &format!(
            "{}: in {:.3} s\n{rates}\n",
            target.name(),
            passed.as_secs_f64()
        );
    }
    Ok(text)
}
