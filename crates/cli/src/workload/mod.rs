//! `countersink workload`: small system calls with an addition to a counter in each.

mod measured;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use countersink_experiments::workload::{Bump, MOST_TASKS, Mode, Plan, Workload};
use countersink_harness::cpus::Topology;
use countersink_harness::machine::Machine;
use countersink_harness::save;
use countersink_harness::schedule::{SAMPLES_PER_REPEAT, SAMPLES_PER_ROUND};

use crate::output::print;
use crate::tables;

use measured::Measured;

/// What is said below the options.
const HELP: &str = "\
Rates are operations of all tasks in a second, medians over the samples. Several counters take turns,\n\
A B B A, and each is held against the first one: won or lost if the whole 95 % interval of the ratio\n\
is on one side of 1, `cannot tell` otherwise, and where more than a quarter of the samples was disturbed (!).\n\
\n\
While it runs, `countersink show` of this process has what all tasks count, as workload_operations.";

/// What `workload` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// What every operation is
    #[arg(value_enum)]
    workload: Name,

    /// Numbers of tasks, such as 1..4 or 1,2,8; by default 1 to the CPUs that may be used
    #[arg(long, value_name = "N", value_parser = Tasks::parse)]
    tasks: Option<Tasks>,

    /// Tasks as processes, as threads, or one after the other as both
    #[arg(long, value_enum, default_value = "both")]
    mode: Modes,

    /// Counters to add to in each operation
    #[arg(
        long,
        value_enum,
        value_name = "WAY,...",
        value_delimiter = ',',
        default_value = "none"
    )]
    counter: Vec<Way>,

    /// Seconds of each sample
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    duration: Duration,

    /// Seconds before each sample
    #[arg(long, value_name = "S", default_value = "0.2", value_parser = seconds)]
    warm_up: Duration,

    /// Samples of each counter: an even number, 12 at least for an interval
    #[arg(long, value_name = "N", default_value = "12", value_parser = samples)]
    samples: usize,

    /// Also write NAME.csv and NAME.title, as will-it-scale has them, to a directory: what the first counter did
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,

    /// Also write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// Opens a file that does not exist
    Openneg,
    /// Page faults
    Pft,
    /// A byte through a pipe
    Pipe,
    /// Yields the CPU
    #[value(name = "sched_yield")]
    SchedYield,
    /// Asks for the parent
    Getppid,
}

impl Name {
    fn workload(self) -> Workload {
        match self {
            Name::Openneg => Workload::OpenNeg,
            Name::Pft => Workload::Pft,
            Name::Pipe => Workload::Pipe,
            Name::SchedYield => Workload::SchedYield,
            Name::Getppid => Workload::GetPpid,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Modes {
    Processes,
    Threads,
    Both,
}

impl Modes {
    fn modes(self) -> &'static [Mode] {
        match self {
            Modes::Processes => &[Mode::Processes],
            Modes::Threads => &[Mode::Threads],
            Modes::Both => &[Mode::Processes, Mode::Threads],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Way {
    /// No counter
    None,
    /// BatchCounter
    Carry,
    /// The kernel's algorithm: compare-exchange, and a lock
    Kernel,
    /// The one before: interrupts disabled
    Masked,
    /// One shared word
    Atomic,
}

impl Way {
    fn bump(self) -> Bump {
        match self {
            Way::None => Bump::None,
            Way::Carry => Bump::Carry,
            Way::Kernel => Bump::Kernel,
            Way::Masked => Bump::Masked,
            Way::Atomic => Bump::Atomic,
        }
    }
}

/// Numbers of tasks, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tasks(BTreeSet<usize>);

impl Tasks {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| match text.trim().parse() {
            Ok(0) => Err("at least one task is needed".to_owned()),
            Ok(tasks) if tasks > MOST_TASKS => Err(format!("at most {MOST_TASKS} tasks")),
            Ok(tasks) => Ok(tasks),
            Err(_) => Err(format!("`{text}` is not a number of tasks")),
        };
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("{first}..{last} goes down"));
            }
            return Ok(Tasks((first..=last).collect()));
        }
        text.split(',')
            .map(number)
            .collect::<Result<_, _>>()
            .map(Tasks)
    }

    fn all() -> Self {
        let cpus = Topology::detect().cpus().len().clamp(1, MOST_TASKS);
        Tasks((1..=cpus).collect())
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    if !(0.001..=3600.0).contains(&seconds) {
        return Err("from 0.001 to 3600 seconds".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn samples(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(samples @ 2..=1000) if samples % SAMPLES_PER_ROUND == 0 => Ok(samples),
        _ => Err("an even number from 2 to 1000".to_owned()),
    }
}

/// Runs the workload, and prints what it did.
///
/// # Errors
/// A file that cannot be written, before anything is run; a task that failed.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(path) = &options.json {
        save::check_writable(path)?;
    }
    if let Some(directory) = &options.csv {
        check_directory(directory)?;
    }
    let machine = Machine::detect();
    let mut ways = Vec::new();
    for way in &options.counter {
        if !ways.contains(way) {
            ways.push(*way);
        }
    }
    let workload = options.workload.workload();
    let tasks = options.tasks.clone().unwrap_or_else(Tasks::all);
    let mut measured = Vec::new();
    for &tasks in &tasks.0 {
        for &mode in options.mode.modes() {
            let point = measure(options, &ways, mode, tasks)?;
            print(&measured::line(workload, &point))?;
            measured.extend(point);
        }
    }
    print(&measured::verdicts(workload, &measured))?;
    let results = measured::results(machine, workload, &measured);
    for experiment in &results.experiments {
        print(&format!("\n{}", tables::validity(experiment)))?;
    }
    if let Some(directory) = &options.csv {
        measured::write_csv(directory, workload, &measured)?;
    }
    if let Some(path) = &options.json {
        results.save(path)?;
    }
    Ok(())
}

/// A directory that files can be written to.
fn check_directory(directory: &Path) -> anyhow::Result<()> {
    let metadata = std::fs::metadata(directory)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    anyhow::ensure!(
        metadata.is_dir(),
        "{} is not a directory",
        directory.display()
    );
    save::check_writable(&directory.join("workload.csv"))?;
    Ok(())
}

/// All counters at one point, in turn: forth and back again in each round.
fn measure(
    options: &Options,
    ways: &[Way],
    mode: Mode,
    tasks: usize,
) -> anyhow::Result<Vec<Measured>> {
    let plan = Plan {
        workload: options.workload.workload(),
        mode,
        tasks,
        warm_up: options.warm_up,
        window: options.duration,
    };
    let mut measured: Vec<Measured> = ways
        .iter()
        .map(|&way| Measured {
            way,
            mode,
            tasks,
            samples: Vec::with_capacity(options.samples),
            repeated: 0,
        })
        .collect();
    let most_repeats = options.samples.div_ceil(SAMPLES_PER_REPEAT);
    for _ in 0..options.samples / SAMPLES_PER_ROUND {
        let forth = 0..measured.len();
        for at in forth.clone().chain(forth.rev()) {
            let measured = &mut measured[at];
            let mut sample = plan.sample(measured.way.bump())?;
            while !sample.surroundings.disturbed.is_empty() && measured.repeated < most_repeats {
                measured.repeated += 1;
                sample = plan.sample(measured.way.bump())?;
            }
            measured.samples.push(sample);
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_a_range_or_a_list() {
        let parse =
            |text: &str| Tasks::parse(text).map(|tasks| tasks.0.into_iter().collect::<Vec<_>>());
        assert_eq!(parse("1..3"), Ok(vec![1, 2, 3]));
        assert_eq!(parse("4"), Ok(vec![4]));
        assert_eq!(parse("8, 2,2"), Ok(vec![2, 8]));
        for bad in ["", "0", "3..1", "1..", "x", "1..2000", "-1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
