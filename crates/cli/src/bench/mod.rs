//! `countersink bench`.

mod batch;
mod check_before_set;
mod disassembly;
mod local;
mod published;
mod rwsem;
mod span;
mod table;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersink_experiments::batch::{AIMED, BatchExperiment, accuracy};
use countersink_experiments::check_before_set as cbs;
use countersink_experiments::local::LocalExperiment;
use countersink_experiments::rwsem::RwsemExperiment;
use countersink_experiments::span::{SpanExperiment, add_readings, page_tables};
use countersink_harness::cpus::Topology;
use countersink_harness::machine::Machine;
use countersink_harness::measure;
use countersink_harness::progress::Progress;
use countersink_harness::result::{ExperimentResult, Results};
use countersink_harness::save;
use countersink_harness::schedule::{MIN_ROUNDS, Plan, SAMPLES_PER_ROUND};
use countersink_harness::threads::ThreadRunner;
use countersink_harness::variant::Experiment;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::print;

/// What `bench` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Experiments to run; all, if none is named
    #[arg(value_enum)]
    experiments: Vec<Name>,

    /// At most 15 seconds for each experiment: to see that it works
    #[arg(long, conflicts_with = "full")]
    quick: bool,

    /// Minutes: longer samples, and the published number of iterations besides
    #[arg(long)]
    full: bool,

    /// Thread counts, such as 1,2,4; by default 1, 2, 4 ... up to the CPUs that may be used
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = thread_count)]
    threads: Vec<usize>,

    /// Show the one-thread tables of `local` as ratios to local
    #[arg(long)]
    normalize: bool,

    /// Show the published machines of `local` and `rwsem` beside this one, and what held
    #[arg(long)]
    published: bool,

    /// Run the published methods of `local` and `check-before-set` as well, faults included, and tell which conclusions
    /// survive: some minutes more, however long the rest is
    #[arg(long)]
    as_published: bool,

    /// Show how many bytes the call sites of `batch` take, in line and out of line
    #[arg(long)]
    size: bool,

    #[command(flatten)]
    rwsem: rwsem::LockOptions,

    /// Write the plot of `check-before-set` to a file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Also write the results to a file, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The experiments that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Name {
    /// The ways to bump a local counter, and one counter that threads share
    Local,
    /// Look-ups and page tables timed with spans, and what counting and timing cost
    Span,
    /// Counters that tell how much they have about: what they cost, and how far they are off
    Batch,
    /// Reader-writer locks: what they cost, and what happens to them
    Rwsem,
    /// Looking at a bit before setting it: what it costs, and from where on it pays
    CheckBeforeSet,
}

/// More threads than this measure the scheduler.
const MOST_THREADS: usize = 4096;

fn thread_count(text: &str) -> Result<usize, String> {
    match text.trim().parse() {
        Ok(0) => Err("at least one thread is needed".to_owned()),
        Ok(threads) if threads > MOST_THREADS => Err(format!("at most {MOST_THREADS} threads")),
        Ok(threads) => Ok(threads),
        Err(_) => Err("not a number of threads".to_owned()),
    }
}

/// Runs the experiments.
///
/// # Errors
/// A result file that cannot be written, before anything is measured; a measurement that failed.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    for path in options.json.iter().chain(&options.plot) {
        save::check_writable(path)?;
    }
    let machine = Machine::detect();
    let topology = Topology::detect();
    let threads = threads(options, topology.cpus().len());
    warn_of_cpus(&topology, &threads);
    let mut results = Results::new(machine);
    let named: BTreeSet<Name> = options.experiments.iter().copied().collect();
    let is_wanted = |name| named.is_empty() || named.contains(&name);
    if is_wanted(Name::Local) {
        run_local(options, &threads, &mut results)?;
    }
    if is_wanted(Name::Span) {
        run_span(options, &threads, &mut results)?;
    }
    if is_wanted(Name::Batch) {
        run_batch(options, &threads, &mut results)?;
    }
    if is_wanted(Name::Rwsem) {
        run_rwsem(options, &threads, topology.cpus().len(), &mut results)?;
    }
    if is_wanted(Name::CheckBeforeSet) {
        run_check_before_set(options, &mut results)?;
    }
    if let Some(path) = &options.json {
        results.save(path)?;
    }
    Ok(())
}

fn run_batch(options: &Options, threads: &[usize], results: &mut Results) -> anyhow::Result<()> {
    let experiment = BatchExperiment::new(threads);
    let length = Length::of(options);
    let plan = length.plan(&BATCH_TIMES, &experiment)?;
    measure_into(&experiment, &plan, results)?;
    let mut text = table::machine(&results.machine, results.experiments.last());
    if let Some(measured) = results.experiments.last() {
        text += &batch::render(&measured.points);
    }
    let most = threads.iter().max().copied().unwrap_or(1);
    let seen = accuracy::watch_all(AIMED, most, ACCURACY_TIMES[length as usize]);
    text += &batch::render_accuracy(AIMED, most, &seen.map_err(anyhow::Error::msg)?);
    if options.size {
        text += &batch::render_sizes();
    }
    print(&text)
}

fn run_rwsem(
    options: &Options,
    threads: &[usize],
    cpus: usize,
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut threads = threads.to_vec();
    if options.threads.is_empty() {
        // Locks are also held by threads that do not run.
        threads.push(OVERSUBSCRIBED * cpus.max(1));
    }
    let (ops, work) = (options.rwsem.ops(), options.rwsem.work());
    let experiment = RwsemExperiment::new(&ops, &threads, work);
    let plan = Length::of(options).plan(&RWSEM_TIMES, &experiment)?;
    measure_into(&experiment, &plan, results)?;
    let mut text = table::machine(&results.machine, results.experiments.last());
    if let Some(measured) = results.experiments.last() {
        text += &rwsem::render(&measured.points, &ops, work, &experiment.events());
    }
    if options.rwsem.disasm {
        text += &rwsem::render_disassembly();
    }
    print(&text)?;
    if options.published {
        use countersink_experiments::rwsem::published;
        let experiment =
            RwsemExperiment::new(&[published::OP], &published::THREADS, published::WORK);
        let plan = Length::of(options).plan(&RWSEM_PUBLISHED_TIMES, &experiment)?;
        measure_into(&experiment, &plan, results)?;
        if let Some(measured) = results.experiments.last_mut() {
            measured.name = "rwsem-published".to_owned();
            print(&rwsem::render_published(&measured.points))?;
        }
    }
    Ok(())
}

fn run_check_before_set(options: &Options, results: &mut Results) -> anyhow::Result<()> {
    let mut bar = Bar::new("check-before-set");
    let length = CHECK_BEFORE_SET_SAMPLES[Length::of(options) as usize];
    let found = cbs::run(length, &mut bar, None);
    bar.0.finish_and_clear();
    results.experiments.push(found.result.clone());
    let mut text = table::machine(&results.machine, results.experiments.last());
    text += &check_before_set::render(&found, cbs::clock_ghz());
    print(&text)?;
    if let Some(path) = &options.plot {
        check_before_set::plot(&found, path)?;
    }
    if options.as_published {
        check_before_set::run_as_published()?;
    }
    Ok(())
}

fn run_local(options: &Options, threads: &[usize], results: &mut Results) -> anyhow::Result<()> {
    let experiment = LocalExperiment::new(threads);
    let plan = Length::of(options).plan(&LOCAL_TIMES, &experiment)?;
    measure_into(&experiment, &plan, results)?;
    let mut text = table::machine(&results.machine, results.experiments.last());
    if let Some(measured) = results.experiments.last() {
        text += &local::render(measured, &experiment.sums(), options.normalize);
        if options.published {
            text += &published::render_machines(&measured.points);
        }
    }
    print(&text)?;
    if options.full {
        let fixed = LocalExperiment::fixed();
        let plan = Plan::new(Duration::from_secs(1), MIN_ROUNDS)?;
        measure_into(&fixed, &plan, results)?;
        if let Some(measured) = results.experiments.last() {
            print(&local::render_fixed(
                measured,
                &fixed.sums(),
                options.normalize,
            ))?;
        }
        merge_last_two(&mut results.experiments);
    }
    if options.as_published
        && let Some(measured) = results.experiments.last()
    {
        print(&published::run_as_published(&measured.points)?)?;
    }
    Ok(())
}

fn run_span(options: &Options, threads: &[usize], results: &mut Results) -> anyhow::Result<()> {
    let experiment = SpanExperiment::new(threads);
    let length = Length::of(options);
    let plan = length.plan(&SPAN_TIMES, &experiment)?;
    measure_into(&experiment, &plan, results)?;
    let readings = experiment.readings();
    let mut text = table::machine(&results.machine, results.experiments.last());
    if let Some(measured) = results.experiments.last_mut() {
        text += &span::render_look_ups(&readings, &measured.points);
        text += &span::render_costs(&measured.points);
        add_readings(measured, &readings);
    }
    print(&text)?;
    match page_tables::run(PAGE_TABLE_ROUNDS[length as usize]) {
        Ok(found) => {
            print(&span::render_page_tables(&found))?;
            if let Some(measured) = results.experiments.last_mut() {
                measured.points.extend(found.points());
            }
        }
        Err(reason) => print(&format!("\nPage tables were not timed: {reason}\n"))?,
    }
    Ok(())
}

/// Makes one experiment of the last two, which have one name.
fn merge_last_two(experiments: &mut Vec<ExperimentResult>) {
    if let (Some(second), Some(first)) = (experiments.pop(), experiments.last_mut()) {
        first.points.extend(second.points);
    }
}

fn measure_into(
    experiment: &dyn Experiment,
    plan: &Plan,
    results: &mut Results,
) -> anyhow::Result<()> {
    let mut bar = Bar::new(experiment.name());
    measure::run(
        experiment,
        &mut ThreadRunner::new(),
        plan,
        &mut bar,
        results,
    )?;
    bar.0.finish_and_clear();
    Ok(())
}

/// Seconds that all samples of an experiment take, by [`Length`].
type Times = [f64; 3];

const LOCAL_TIMES: Times = [9.0, 42.0, 300.0];
const SPAN_TIMES: Times = [8.0, 30.0, 150.0];
const RWSEM_TIMES: Times = [11.0, 60.0, 400.0];
const RWSEM_PUBLISHED_TIMES: Times = [3.0, 20.0, 120.0];
/// Threads for each CPU in the last column of `rwsem`.
const OVERSUBSCRIBED: usize = 4;
const BATCH_TIMES: Times = [7.5, 40.0, 300.0];
/// How long a run of `check-before-set` is, by [`Length`]; where memory is large, as long as a pass takes.
const CHECK_BEFORE_SET_SAMPLES: [Duration; 3] = [
    Duration::from_millis(3),
    Duration::from_millis(20),
    Duration::from_millis(100),
];
/// How long each way to count is watched, by [`Length`].
const ACCURACY_TIMES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_secs(10),
];
/// Rounds of all levels of the page tables, a few ms each.
const PAGE_TABLE_ROUNDS: [usize; 3] = [30, 100, 300];

/// How long a run may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Quick,
    Default,
    Full,
}

impl Length {
    fn of(options: &Options) -> Self {
        match options {
            Options { quick: true, .. } => Length::Quick,
            Options { full: true, .. } => Length::Full,
            _ => Length::Default,
        }
    }

    /// Samples that fill the time: as long as there is time for, with so many rounds that ratios have
    /// intervals.
    fn plan(self, times: &Times, experiment: &dyn Experiment) -> anyhow::Result<Plan> {
        let seconds = times[self as usize];
        let (rounds, longest) = match self {
            Length::Quick => (6, 0.02),
            Length::Default => (8, 0.1),
            Length::Full => (12, 0.25),
        };
        // One besides, which shows how far a variant is from itself.
        let points = experiment.points();
        let variants: usize = points.iter().map(|point| point.variants.len() + 1).sum();
        let samples = variants * SAMPLES_PER_ROUND * (rounds + 1);
        let sample = (seconds / samples.max(1) as f64).clamp(0.002, longest);
        Ok(Plan::new(Duration::from_secs_f64(sample), rounds)?)
    }
}

/// The thread counts to measure, ascending.
fn threads(options: &Options, cpus: usize) -> Vec<usize> {
    let asked: BTreeSet<usize> = options.threads.iter().copied().collect();
    if !asked.is_empty() {
        return asked.into_iter().collect();
    }
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
    let mut counts: BTreeSet<usize> = powers.take_while(|threads| *threads < cpus).collect();
    counts.insert(cpus.max(1));
    counts.into_iter().collect()
}

/// Says what this machine cannot show.
fn warn_of_cpus(topology: &Topology, threads: &[usize]) {
    let cpus = topology.cpus().len();
    let most = threads.iter().max().copied().unwrap_or(1);
    if cpus == 1 {
        eprintln!(
            "countersink: this process may use one CPU only, so nothing here shows what several \
             CPUs do to each other"
        );
    } else if most > cpus {
        eprintln!(
            "countersink: {most} threads on {cpus} CPUs take turns; these columns are marked"
        );
    }
}

/// A progress bar, on a terminal only.
struct Bar(ProgressBar);

impl Bar {
    fn new(experiment: &str) -> Self {
        let style =
            ProgressStyle::with_template("{prefix} [{bar:30}] {pos}/{len} {msg} ({eta} left)");
        let bar = ProgressBar::new(0).with_prefix(experiment.to_owned());
        Bar(match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        })
    }
}

impl Progress for Bar {
    fn at(&mut self, done: usize, total: usize, point: &str) {
        self.0.set_length(total as u64);
        self.0.set_position(done as u64);
        self.0.set_message(point.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_threads(cpus: usize) -> Vec<usize> {
        let options = Options {
            experiments: Vec::new(),
            quick: false,
            full: false,
            threads: Vec::new(),
            normalize: false,
            published: false,
            as_published: false,
            size: false,
            rwsem: rwsem::LockOptions::default(),
            plot: None,
            json: None,
        };
        threads(&options, cpus)
    }

    #[test]
    fn thread_counts_double_up_to_the_cpus() {
        assert_eq!(default_threads(1), [1]);
        assert_eq!(default_threads(2), [1, 2]);
        assert_eq!(default_threads(6), [1, 2, 4, 6]);
        assert_eq!(default_threads(8), [1, 2, 4, 8]);
        assert_eq!(default_threads(0), [1]);
    }

    #[test]
    fn a_thread_count_is_a_number_of_threads() {
        assert_eq!(thread_count("1"), Ok(1));
        assert_eq!(thread_count(" 8 "), Ok(8));
        for bad in ["0", "", "-1", "x", "1.5", "5000", "99999999999999999999"] {
            assert!(thread_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn runs_fit_their_time() {
        let local: &dyn Experiment = &LocalExperiment::new(&[1, 2]);
        let span: &dyn Experiment = &SpanExperiment::new(&[1, 2]);
        let batch: &dyn Experiment = &BatchExperiment::new(&[1, 2]);
        for (times, experiment, quick, default) in [
            (&LOCAL_TIMES, local, 10.0, 45.0),
            (&SPAN_TIMES, span, 9.0, 35.0),
            (&BATCH_TIMES, batch, 10.0, 45.0),
        ] {
            for (length, most) in [(Length::Quick, quick), (Length::Default, default)] {
                let plan = length.plan(times, experiment).expect("a plan");
                let variants: usize = experiment.points().iter().map(|p| p.variants.len()).sum();
                let samples = variants * SAMPLES_PER_ROUND * (plan.rounds() + 1);
                assert!(plan.sample().as_secs_f64() * samples as f64 <= most);
            }
        }
    }
}
