//! `countersink workload`: small system calls with an addition to a counter in each.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use countersink_experiments::workload::{Bump, MOST_TASKS, Mode, Plan, Sample, Workload};
use countersink_harness::cpus::Topology;
use countersink_harness::machine::Machine;
use countersink_harness::result::{ExperimentResult, PointResult, Results};
use countersink_harness::save;
use countersink_harness::schedule::SAMPLES_PER_ROUND;
use countersink_harness::stats::{Ratio, median};

use crate::output::print;
use crate::table::table;

/// What is said below the options.
const HELP: &str = "\
Rates are operations of all tasks in a second, medians over the samples. Several counters take turns,\n\
A B B A, and each is held against the first one: won or lost if the whole 95 % interval of the ratio\n\
is on one side of 1, `cannot tell` otherwise.\n\
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

/// The samples of one counter at one point.
#[derive(Debug)]
struct Measured {
    way: Way,
    mode: Mode,
    tasks: usize,
    samples: Vec<Sample>,
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
    let tasks = options.tasks.clone().unwrap_or_else(Tasks::all);
    let mut measured = Vec::new();
    for &tasks in &tasks.0 {
        for &mode in options.mode.modes() {
            let point = measure(options, &ways, mode, tasks)?;
            print(&line(options, &point))?;
            measured.extend(point);
        }
    }
    print(&verdicts(&measured))?;
    if let Some(directory) = &options.csv {
        write_csv(directory, options.workload.workload(), &measured)?;
    }
    if let Some(path) = &options.json {
        results(machine, options.workload.workload(), &measured).save(path)?;
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
        })
        .collect();
    for _ in 0..options.samples / SAMPLES_PER_ROUND {
        let forth = 0..measured.len();
        for at in forth.clone().chain(forth.rev()) {
            let sample = plan.sample(measured[at].way.bump())?;
            measured[at].samples.push(sample);
        }
    }
    Ok(measured)
}

impl Measured {
    fn of(&self, figure: impl Fn(&Sample) -> f64) -> f64 {
        let figures: Vec<f64> = self.samples.iter().map(figure).collect();
        median(&figures).unwrap_or(0.0)
    }

    fn rate(&self) -> f64 {
        self.of(Sample::per_second)
    }

    /// Time of a task for an operation.
    fn nanoseconds(&self) -> Vec<f64> {
        let tasks = self.tasks as f64;
        let samples = self.samples.iter();
        samples
            .map(|sample| 1e9 * tasks / sample.per_second())
            .collect()
    }

    /// The slowest task's operations by the fastest one's.
    fn fairness(sample: &Sample) -> f64 {
        let operations = || sample.operations.iter().copied();
        let (least, most) = (operations().min(), operations().max());
        least.unwrap_or(0) as f64 / most.unwrap_or(0).max(1) as f64
    }

    fn label(&self) -> String {
        let kind = match (self.mode, self.tasks) {
            (Mode::Processes, 1) => "process",
            (Mode::Threads, 1) => "thread",
            (mode, _) => mode.name(),
        };
        let more = match self.samples.iter().any(|sample| sample.oversubscribed) {
            true => " (more than CPUs)",
            false => "",
        };
        format!("{} {kind}{more}", self.tasks)
    }
}

fn line(options: &Options, point: &[Measured]) -> String {
    let Some(first) = point.first() else {
        return String::new();
    };
    let name = options.workload.workload().name();
    let rows: Vec<Vec<String>> = point
        .iter()
        .map(|measured| {
            vec![
                measured.way.bump().name().to_owned(),
                format!("{:.0}", measured.rate()),
                format!("{:.0}", measured.of(|sample| sample.per_cpu_second)),
                format!("{:.1}", median(&measured.nanoseconds()).unwrap_or(0.0)),
                format!("{:.2}", measured.of(Measured::fairness)),
                format!("{:.0}", measured.of(|sample| sample.idle)),
            ]
        })
        .collect();
    // The mails call them by what is counted.
    let (second, cpu) = match options.workload {
        Name::Pft => ("faults/sec", "faults/cpu"),
        _ => ("ops/sec", "ops/cpu"),
    };
    let header = ["counter", second, cpu, "ns/op", "fairness", "idle %"];
    format!(
        "\n{name}, {}\n{}",
        first.label(),
        table(&header, &rows, 1..header.len())
    )
}

/// Each counter against the first one, where there are several.
fn verdicts(measured: &[Measured]) -> String {
    let mut text = String::new();
    let mut first: Option<&Measured> = None;
    for point in measured {
        let base = match first {
            Some(base) if (base.mode, base.tasks) == (point.mode, point.tasks) => base,
            _ => {
                first = Some(point);
                continue;
            }
        };
        let ratio = Ratio::paired(&base.nanoseconds(), &point.nanoseconds(), SAMPLES_PER_ROUND);
        let Some(ratio) = ratio else { continue };
        let (interval, verdict) = match ratio.ci95 {
            Some([low, high]) => (
                format!(" [{low:.4}, {high:.4}]"),
                match (low, high) {
                    (low, _) if low > 1.0 => "won",
                    (_, high) if high < 1.0 => "lost",
                    _ => "cannot tell",
                },
            ),
            None => (String::new(), "cannot tell"),
        };
        text += &format!(
            "  {} / {}, {}: {:.4}{interval}: {verdict}\n",
            point.way.bump().name(),
            base.way.bump().name(),
            point.label(),
            ratio.of_medians,
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nRates against the first counter's, with their 95 % interval over the rounds\n\n{text}"
    )
}

/// will-it-scale's columns: rates as whole numbers, a kind of task that was not run as -1.
fn csv(measured: &[Measured]) -> String {
    let mut text =
        "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n".to_owned();
    // The first counter of each point.
    let find = |tasks, mode| {
        let mut points = measured.iter();
        points.find(|point| (point.tasks, point.mode) == (tasks, mode))
    };
    let tasks: BTreeSet<usize> = measured.iter().map(|point| point.tasks).collect();
    let rate = |tasks, mode| find(tasks, mode).map_or(-1, |point| point.rate() as i64);
    let idle = |tasks, mode| find(tasks, mode).map_or(0.0, |point| point.of(|s| s.idle));
    // Without a run of one task, the fewest stand for it.
    let fewest = tasks.first().copied().unwrap_or(1);
    let one = rate(fewest, Mode::Processes).max(rate(fewest, Mode::Threads)) / fewest as i64;
    for tasks in tasks {
        text += &format!(
            "{tasks},{},{:.2},{},{:.2},{}\n",
            rate(tasks, Mode::Processes),
            idle(tasks, Mode::Processes),
            rate(tasks, Mode::Threads),
            idle(tasks, Mode::Threads),
            one * tasks as i64,
        );
    }
    text
}

fn write_csv(directory: &Path, workload: Workload, measured: &[Measured]) -> anyhow::Result<()> {
    let path = |ending| directory.join(format!("{}.{ending}", workload.name()));
    save::save(&path("csv"), csv(measured).as_bytes())?;
    save::save(&path("title"), format!("{}\n", workload.title()).as_bytes())?;
    Ok(())
}

/// The results in the form that experiments have.
fn results(machine: Machine, workload: Workload, measured: &[Measured]) -> Results {
    let mut results = Results::new(machine);
    let points = measured.iter().filter_map(|measured| {
        let samples = measured.nanoseconds();
        let fairness: Vec<f64> = measured.samples.iter().map(Measured::fairness).collect();
        let key = (workload.name(), measured.mode.name(), measured.tasks);
        let place = Topology::detect().place(measured.tasks);
        Some(PointResult {
            pinned: measured.samples.iter().all(|sample| sample.pinned),
            oversubscribed: measured.samples.iter().any(|sample| sample.oversubscribed),
            shared_cores: place.shared_cores,
            cpus: place.cpus,
            fairness: median(&fairness)?,
            fairness_samples: fairness,
            ..PointResult::of(measured.way.bump().name(), key, samples)?
        })
    });
    let mut experiment = ExperimentResult::new("workload");
    experiment.points.extend(points);
    results.experiments.push(experiment);
    results
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

    fn point(way: Way, mode: Mode, tasks: usize, rates: &[u64]) -> Measured {
        let sample = |rate: &u64| Sample {
            window: Duration::from_secs(1),
            operations: vec![*rate / tasks as u64; tasks],
            per_cpu_second: *rate as f64,
            idle: 12.5,
            pinned: true,
            oversubscribed: false,
        };
        Measured {
            way,
            mode,
            tasks,
            samples: rates.iter().map(sample).collect(),
        }
    }

    #[test]
    fn columns_are_those_of_will_it_scale() {
        let measured = [
            point(Way::None, Mode::Processes, 1, &[1000; 2]),
            point(Way::Carry, Mode::Processes, 1, &[1; 2]),
            point(Way::None, Mode::Threads, 1, &[1100; 2]),
            point(Way::None, Mode::Processes, 2, &[2000; 2]),
        ];
        assert_eq!(
            csv(&measured),
            "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n\
             1,1000,12.50,1100,12.50,1100\n2,2000,12.50,-1,0.00,2200\n"
        );
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let rates = |middle: u64, spread: u64| -> Vec<u64> {
            (0..12).map(|at| middle + spread * (at / 2 % 2)).collect()
        };
        let measured = [
            point(Way::None, Mode::Threads, 1, &rates(1_000_000, 0)),
            point(Way::Carry, Mode::Threads, 1, &rates(1_000_000, 1000)),
            point(Way::Kernel, Mode::Threads, 1, &rates(900_000, 1000)),
            point(Way::Masked, Mode::Threads, 1, &rates(999_000, 2000)),
            point(Way::None, Mode::Threads, 2, &rates(1_000_000, 0)),
        ];
        let text = verdicts(&measured);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('/')).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].ends_with("cannot tell"), "{text}");
        assert!(lines[1].ends_with("lost"), "{text}");
        assert!(lines[2].ends_with("cannot tell"), "{text}");
    }

    #[test]
    fn tasks_have_names() {
        let label = |mode, tasks| point(Way::None, mode, tasks, &[]).label();
        assert_eq!(label(Mode::Processes, 1), "1 process");
        assert_eq!(label(Mode::Processes, 2), "2 processes");
        assert_eq!(label(Mode::Threads, 1), "1 thread");
        assert_eq!(label(Mode::Threads, 2), "2 threads");
    }
}
