//! A run of experiments: what was measured so far, where it is kept, how it ends and goes on.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use countersink_harness::compare::differences;
use countersink_harness::machine::Machine;
use countersink_harness::measure;
use countersink_harness::result::{ExperimentResult, Planned, Results};
use countersink_harness::schedule::Plan;
use countersink_harness::threads::ThreadRunner;
use countersink_harness::variant::Experiment;

use super::length::{Length, Times};
use super::progress::Bar;
use super::{Options, processes};
use crate::files;
use crate::pause::Interrupts;
use crate::usage::{Since, Who};

/// Ctrl-C ended the run.
#[derive(Debug)]
pub(super) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ended")
    }
}

impl std::error::Error for Interrupted {}

/// What a run has, and what it was asked for.
pub(super) struct Session<'a> {
    pub(super) options: &'a Options,
    pub(super) length: Length,
    pub(super) threads: Vec<usize>,
    pub(super) cpus: usize,
    pub(super) results: Results,
    /// Where results are kept, after every experiment.
    file: Option<PathBuf>,
    began: Since,
    /// What a run before took that this one goes on with.
    before: countersink_harness::result::Times,
}

impl<'a> Session<'a> {
    /// A new run, or one that goes on.
    pub(super) fn new(
        options: &'a Options,
        threads: Vec<usize>,
        cpus: usize,
    ) -> anyhow::Result<Self> {
        // From here on, so that a signal between two experiments is not lost.
        Interrupts::hold();
        let results = match &options.resume {
            Some(path) if options.replica.is_none() => begun(path)?,
            _ => Results::new(Machine::detect()),
        };
        Ok(Session {
            began: Since::now(Who::All),
            before: results.times.unwrap_or_default(),
            options,
            length: Length::of(options),
            threads,
            cpus,
            results,
            file: options.json.clone().or_else(|| options.resume.clone()),
        })
    }

    /// Measures an experiment, in as many processes as are asked for. What a run before has measured is not measured again.
    ///
    /// # Errors
    /// A measurement that failed; [`Interrupted`].
    pub(super) fn measure(
        &mut self,
        experiment: &dyn Experiment,
        times: &Times,
    ) -> anyhow::Result<()> {
        self.measure_and(experiment, times, |_| ())
    }

    /// As [`Session::measure`]; each process adds what its experiment has found out besides.
    pub(super) fn measure_and(
        &mut self,
        experiment: &dyn Experiment,
        times: &Times,
        add: impl FnOnce(&mut ExperimentResult),
    ) -> anyhow::Result<()> {
        let processes = self.options.processes();
        let plan = self.length.plan(times, experiment, processes)?;
        self.measure_by(experiment, &plan, processes, add)
    }

    /// As [`Session::measure_and`], by a plan.
    pub(super) fn measure_by(
        &mut self,
        experiment: &dyn Experiment,
        plan: &Plan,
        processes: usize,
        add: impl FnOnce(&mut ExperimentResult),
    ) -> anyhow::Result<()> {
        let name = experiment.name();
        if !self.is_to_be_measured(name, &plan.into())? {
            return Ok(());
        }
        let mut bar = Bar::new(name, processes);
        let mut runner = ThreadRunner::new();
        measure::run(experiment, &mut runner, plan, &mut bar, &mut self.results)?;
        if let Some(measured) = self.results.experiments.last_mut() {
            add(measured);
        }
        self.complete(bar, processes)
    }

    /// Whether there is something left to measure of an experiment; it is the last then, if there is any of it.
    ///
    /// # Errors
    /// If it was begun with other samples.
    pub(super) fn is_to_be_measured(&mut self, name: &str, plan: &Planned) -> anyhow::Result<bool> {
        let experiments = &mut self.results.experiments;
        let Some(at) = experiments.iter().position(|known| known.name == name) else {
            return Ok(true);
        };
        if !experiments[at].partial {
            eprintln!("countersink: {name} was measured before");
            // The last one is what is shown.
            experiments[at..].rotate_left(1);
            return Ok(false);
        }
        let known = experiments[at].plan;
        ensure!(
            known == Some(*plan),
            "{name} was begun with {}, and this run has {}: go on with the same options",
            known.map_or("other samples".to_owned(), said),
            said(*plan)
        );
        experiments[at..].rotate_left(1);
        Ok(true)
    }

    /// Has other processes measure the last experiment too, and keeps it.
    ///
    /// # Errors
    /// A process that failed; [`Interrupted`], when what there is has been kept.
    pub(super) fn complete(&mut self, mut bar: Bar, processes: usize) -> anyhow::Result<()> {
        if let Some(last) = self.results.experiments.last_mut()
            && !last.partial
            && self.options.replica.is_none()
        {
            last.partial = processes::add(last, processes, &mut bar)?;
        }
        bar.finish();
        self.keep()?;
        match self.last() {
            Some(last) if last.partial => bail!(Interrupted),
            _ => Ok(()),
        }
    }

    /// Does something that does not ask whether it is to end: Ctrl-C ends the process at once, and what was measured has been kept.
    pub(super) fn aside<T>(&self, what: impl FnOnce() -> T) -> T {
        Interrupts::hold().release();
        let done = what();
        Interrupts::hold();
        done
    }

    /// The experiment that was measured last.
    pub(super) fn last(&self) -> Option<&ExperimentResult> {
        self.results.experiments.last()
    }

    /// Writes what there is to the file, if there is to be one.
    pub(super) fn keep(&mut self) -> anyhow::Result<()> {
        self.results.times = self.began.times().map(|times| self.before.and(times));
        match &self.file {
            Some(path) if self.options.replica.is_none() => Ok(self.results.save(path)?),
            _ => Ok(()),
        }
    }

    /// What to say when it was ended.
    pub(super) fn ended(&self) -> String {
        let points: usize = self
            .results
            .experiments
            .iter()
            .map(|known| known.points.len())
            .sum();
        match &self.file {
            Some(path) => format!(
                "ended; the {points} points that were finished are in {0}, marked as partial, and `--resume {0}` goes on",
                path.display()
            ),
            None => "ended; nothing is kept without --json".to_owned(),
        }
    }
}

fn said(plan: Planned) -> String {
    let ms = plan.sample_ns as f64 / 1e6;
    format!("{} rounds of {ms:.1} ms samples", plan.rounds)
}

/// The results of a run that goes on: of this machine, under these conditions.
fn begun(path: &Path) -> anyhow::Result<Results> {
    let shown = path.display();
    let results = files::results(path)?;
    let bare = |machine: &Machine| Machine {
        // What experiments added.
        conditions: Default::default(),
        ..machine.clone()
    };
    let found = differences(&bare(&results.machine), &bare(&Machine::detect()));
    if let Some((what, then, now)) = found.into_iter().flatten().next() {
        bail!("{shown} cannot go on here: {what} was {then}, and is {now}");
    }
    Ok(results)
}
