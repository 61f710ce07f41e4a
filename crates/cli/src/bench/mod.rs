//! `countersink bench`.

mod as_published;
mod disassembly;
mod length;
mod processes;
mod progress;
mod rwsem;
mod self_check;
mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersink_experiments::batch::{AIMED, BatchExperiment, accuracy};
use countersink_experiments::check_before_set as cbs;
use countersink_experiments::local::LocalExperiment;
use countersink_experiments::rwsem::RwsemExperiment;
use countersink_experiments::span::{SpanExperiment, add_readings, page_tables};
use countersink_harness::cpus::Topology;
use countersink_harness::result::{ExperimentResult, PointResult};
use countersink_harness::save;
use countersink_harness::schedule::{ENOUGH_PROCESSES, MIN_ROUNDS, Plan};
use countersink_harness::variant::{Experiment, Point};

use crate::output::print;
use crate::plots;
use crate::tables::{self, batch, check_before_set, local, published, span};
use length::{
    ACCURACY_TIMES, BATCH_TIMES, LOCAL_TIMES, OVERSUBSCRIBED, RWSEM_PUBLISHED_TIMES, RWSEM_TIMES,
    SPAN_TIMES,
};
pub(crate) use progress::Bar;
use session::{Interrupted, Session};

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

    /// Also write the results to a file, as JSON, after every experiment
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Go on with a run that Ctrl-C has ended, by the file that it wrote and with its other options
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// Measure in so many fresh processes, one after the other: from 6 on, intervals are over processes. By default 6
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    processes: Option<u16>,

    /// Check that verdicts keep what they promise, on invented noise and on this machine, and what the harness itself takes: a minute
    #[arg(long, conflicts_with_all = ["experiments", "quick", "full", "threads", "json", "resume", "processes", "plot", "as_published"])]
    self_check: bool,

    /// Measure one experiment for another process
    #[arg(long, hide = true, value_enum)]
    replica: Option<Name>,
}

impl Options {
    fn processes(&self) -> usize {
        self.processes.map_or(ENOUGH_PROCESSES, usize::from)
    }
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
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if options.self_check {
        return self_check::run();
    }
    for path in options.json.iter().chain(&options.plot) {
        save::check_writable(path)?;
    }
    let topology = Topology::detect();
    let threads = threads(options, topology.cpus().len());
    let mut session = Session::new(options, threads, topology.cpus().len())?;
    if options.replica.is_none() {
        warn_of_cpus(&topology, &session.threads);
    }
    match run_all(&mut session) {
        Err(error) if error.is::<Interrupted>() && options.replica.is_none() => {
            eprintln!("countersink: {}", session.ended());
            return Ok(ExitCode::from(ENDED));
        }
        Err(error) if error.is::<Interrupted>() => {}
        result => result?,
    }
    if options.replica.is_some() {
        print(&session.results.to_json()?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The status of what Ctrl-C ended, as shells have it.
pub(crate) const ENDED: u8 = 130;

fn run_all(session: &mut Session<'_>) -> anyhow::Result<()> {
    let named: BTreeSet<Name> = match session.options.replica {
        Some(name) => BTreeSet::from([name]),
        None => session.options.experiments.iter().copied().collect(),
    };
    let all = [
        (
            Name::Local,
            run_local as fn(&mut Session<'_>) -> anyhow::Result<()>,
        ),
        (Name::Span, run_span),
        (Name::Batch, run_batch),
        (Name::Rwsem, run_rwsem),
        (Name::CheckBeforeSet, run_check_before_set),
    ];
    for (name, run) in all {
        if named.is_empty() || named.contains(&name) {
            run(session)?;
        }
    }
    session.keep()
}

fn run_batch(session: &mut Session<'_>) -> anyhow::Result<()> {
    let options = session.options;
    let experiment = BatchExperiment::new(&session.threads);
    session.measure(&experiment, &BATCH_TIMES)?;
    if options.replica.is_some() {
        return Ok(());
    }
    let mut text = tables::machine(&session.results.machine, session.last());
    if let Some(measured) = session.last() {
        text += &batch::render(measured);
    }
    let most = session.threads.iter().max().copied().unwrap_or(1);
    let time = ACCURACY_TIMES[session.length as usize];
    let seen = session.aside(|| accuracy::watch_all(AIMED, most, time));
    text += &batch::render_accuracy(AIMED, most, &seen.map_err(anyhow::Error::msg)?);
    if options.size {
        text += &batch::render_sizes();
    }
    print(&text)
}

fn run_rwsem(session: &mut Session<'_>) -> anyhow::Result<()> {
    let options = session.options;
    let mut threads = session.threads.clone();
    if options.threads.is_empty() {
        // Locks are also held by threads that do not run.
        threads.push(OVERSUBSCRIBED * session.cpus.max(1));
    }
    let (ops, work) = (options.rwsem.ops(), options.rwsem.work());
    let experiment = RwsemExperiment::new(&ops, &threads, work);
    session.measure(&experiment, &RWSEM_TIMES)?;
    if options.replica.is_some() {
        return Ok(());
    }
    let mut text = tables::machine(&session.results.machine, session.last());
    if let Some(measured) = session.last() {
        text += &tables::rwsem::render(measured, &ops, work, &experiment.events());
    }
    if options.rwsem.disasm {
        text += &rwsem::render_disassembly();
    }
    print(&text)?;
    if options.published {
        use countersink_experiments::rwsem::published as seed;
        let experiment = RwsemExperiment::new(&[seed::OP], &seed::THREADS, seed::WORK);
        let plan = session
            .length
            .plan(&RWSEM_PUBLISHED_TIMES, &experiment, 1)?;
        session.measure_by(&Named("rwsem-published", &experiment), &plan, 1, |_| ())?;
        if let Some(measured) = session.last() {
            print(&tables::rwsem::render_published(&measured.points))?;
        }
    }
    Ok(())
}

fn run_check_before_set(session: &mut Session<'_>) -> anyhow::Result<()> {
    let options = session.options;
    let plan = session
        .length
        .plan_of_check_before_set(options.processes())?;
    let is_left = session.is_to_be_measured(cbs::NAME, &(&plan).into())?;
    let begun = session
        .last()
        .filter(|last| last.name == cbs::NAME)
        .cloned();
    let notes = if is_left {
        let mut bar = Bar::new(cbs::NAME, options.processes());
        let found = cbs::run(&plan, &mut bar, begun.as_ref());
        if begun.is_some() {
            session.results.experiments.pop();
        }
        session.results.experiments.push(found.result.clone());
        session.complete(bar, options.processes())?;
        found.notes
    } else {
        Vec::new()
    };
    let Some(result) = session.last().cloned() else {
        return Ok(());
    };
    if options.replica.is_some() {
        return Ok(());
    }
    let found = cbs::Measured {
        notes,
        ..cbs::Measured::of(result)
    };
    let mut text = tables::machine(&session.results.machine, session.last());
    text += &check_before_set::render(&found, &session.results.machine);
    print(&text)?;
    if let Some(path) = &options.plot {
        let svg = plots::break_even(&check_before_set::curves(&found))?;
        save::save(path, svg.for_file().as_bytes())?;
    }
    if options.as_published {
        session.aside(as_published::check_before_set)?;
    }
    Ok(())
}

fn run_local(session: &mut Session<'_>) -> anyhow::Result<()> {
    let options = session.options;
    let experiment = LocalExperiment::new(&session.threads);
    session.measure(&experiment, &LOCAL_TIMES)?;
    if options.replica.is_some() {
        return Ok(());
    }
    let mut text = tables::machine(&session.results.machine, session.last());
    let mut points = Vec::new();
    if let Some(measured) = session.last() {
        text += &local::render(
            measured,
            session.results.machine.arch.as_deref(),
            options.normalize,
        );
        text += &local::render_sums(&experiment.sums());
        text += &local::render_memory();
        if options.published {
            text += &published::render_machines(&measured.points);
        }
        points.clone_from(&measured.points);
    }
    print(&text)?;
    if options.full {
        let fixed = LocalExperiment::fixed();
        let plan = Plan::new(Duration::from_secs(1), MIN_ROUNDS)?;
        session.measure_by(&Named("local-fixed", &fixed), &plan, 1, |_| ())?;
        if let Some(measured) = session.last() {
            let normalize = options.normalize;
            let text =
                local::render_fixed(measured, normalize) + &local::render_sums(&fixed.sums());
            print(&text)?;
        }
    }
    if options.as_published {
        print(&session.aside(|| as_published::local(&points))?)?;
    }
    Ok(())
}

fn run_span(session: &mut Session<'_>) -> anyhow::Result<()> {
    let experiment = SpanExperiment::new(&session.threads);
    let rounds = length::page_table_rounds(session.length, session.options.processes());
    let mut tables_found = None;
    session.measure_and(&experiment, &SPAN_TIMES, |measured| {
        add_readings(measured, &experiment.readings());
        if measured.partial {
            return;
        }
        let found = page_tables::run(rounds);
        if let Ok(found) = &found {
            add_points(measured, found.points());
        }
        tables_found = Some(found);
    })?;
    let readings = experiment.readings();
    if session.options.replica.is_some() {
        return Ok(());
    }
    let mut text = tables::machine(&session.results.machine, session.last());
    if let Some(measured) = session.last() {
        text += &span::render_look_ups(&readings, &measured.points);
        text += &span::render_costs(measured);
    }
    text += &match tables_found {
        Some(Ok(found)) => span::render_page_tables(&found),
        Some(Err(reason)) => format!("\nPage tables were not timed: {reason}\n"),
        None => "\nPage tables were timed before.\n".to_owned(),
    };
    print(&text)
}

/// Adds points that are not there yet: a run that goes on may have them.
fn add_points(measured: &mut ExperimentResult, points: Vec<PointResult>) {
    for point in points {
        if !measured.points.iter().any(|known| known.is_same_as(&point)) {
            measured.points.push(point);
        }
    }
}

/// An experiment under another name.
struct Named<'a>(&'static str, &'a dyn Experiment);

impl Experiment for Named<'_> {
    fn name(&self) -> &str {
        self.0
    }
    fn points(&self) -> Vec<Point<'_>> {
        self.1.points()
    }
    fn conditions(&self) -> BTreeMap<String, String> {
        self.1.conditions()
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
            resume: None,
            processes: None,
            self_check: false,
            replica: None,
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
}
