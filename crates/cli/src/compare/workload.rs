//! `compare --workload`: commands in turn, first to last and last to first, so that a drift of the machine is in all alike.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;
use countersink::reader::escape;
use countersink_harness::compare::{Direction, Evidence, Series, Sheet};
use countersink_harness::machine::Machine;
use countersink_harness::progress::Progress;
use countersink_harness::result::{ExperimentResult, Noise, PointResult, Results, Times};
use countersink_harness::save;
use countersink_harness::schedule::sequence;

use crate::bench::Bar;
use crate::usage::{Since, Who};

/// What `--workload` takes.
#[derive(Args, Debug)]
pub(crate) struct Workloads {
    /// Time commands against each other, by `sh -c`, at least two; what they print is thrown away. The first is the base, and is also
    /// measured against itself
    #[arg(long = "workload", value_name = "CMD", conflicts_with = "files")]
    pub(super) commands: Vec<String>,

    /// Rounds in which each command runs twice
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(3..=1000), conflicts_with = "files")]
    rounds: u16,

    /// Runs of each command before, which do not count
    #[arg(long, default_value_t = 1, conflicts_with = "files")]
    warm_up: u16,

    /// Also write the times to a file, as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    json: Option<std::path::PathBuf>,
}

const EXPERIMENT: &str = "workload";
const PATTERN: &str = "commands";
const UNIT: &str = "s";
/// What is measured of a command, in seconds.
pub(super) type Kind = (&'static str, fn(&Times) -> f64);
const KINDS: [Kind; 3] = [
    ("user", |times| times.user_s),
    ("system", |times| times.system_s),
    ("elapsed", |times| times.elapsed_s),
];

/// Runs the commands. `None` if Ctrl-C has ended that.
///
/// # Errors
/// A command that fails, or a file that cannot be written, before anything runs.
pub(super) fn run(options: &Workloads) -> anyhow::Result<Option<Vec<Sheet>>> {
    let commands = &options.commands;
    if commands.len() < 2 {
        bail!("one workload has nothing to be compared with");
    }
    if let Some(path) = &options.json {
        save::check_writable(path)?;
    }
    // The last is the first once more.
    let mut taken: Vec<Vec<Times>> = vec![Vec::new(); commands.len() + 1];
    let warm_up =
        (0..commands.len()).flat_map(|at| std::iter::repeat_n(at, options.warm_up.into()));
    let warm_up: Vec<usize> = warm_up.collect();
    let rounds = sequence(taken.len(), options.rounds.into());
    let slots: Vec<usize> = warm_up.iter().copied().chain(rounds).collect();
    let mut bar = Bar::new(EXPERIMENT, 1);
    for (done, slot) in slots.iter().enumerate() {
        let command = commands.get(*slot).unwrap_or(&commands[0]);
        bar.at(done, slots.len(), &escape(command));
        let times = time(command);
        // From a terminal, Ctrl-C has ended the command as well.
        if bar.is_stopped() {
            bar.finish();
            return Ok(None);
        }
        match times {
            Ok(times) if done >= warm_up.len() => taken[*slot].push(times),
            Ok(_) => {}
            Err(error) => {
                bar.finish();
                return Err(error);
            }
        }
    }
    bar.finish();
    let twin = taken.pop().unwrap_or_default();
    let measured = gathered(commands, &taken, &twin);
    let machine = Machine::detect();
    let sheets = commands.iter().zip(&taken);
    let sheets = sheets
        .map(|(command, taken)| sheet(command, taken, &measured, &machine))
        .collect::<Vec<_>>();
    if let Some(path) = &options.json {
        let mut results = Results::new(machine);
        results.experiments.push(measured);
        results.save(path)?;
    }
    Ok(Some(sheets))
}

fn time(command: &str) -> anyhow::Result<Times> {
    let since = Since::now(Who::Children);
    let shown = escape(command);
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run `{shown}`"))?;
    let times = since
        .times()
        .context("this system does not tell what commands take")?;
    match status.success() {
        true => Ok(times),
        false => bail!("`{shown}` ended with {status}, so nothing is compared"),
    }
}

/// The times as an experiment. What took less than the clock's steps has no share of anything and stays away.
fn gathered(commands: &[String], taken: &[Vec<Times>], twin: &[Times]) -> ExperimentResult {
    let mut measured = ExperimentResult::new(EXPERIMENT);
    for (op, of) in KINDS {
        let is_known = taken
            .iter()
            .flatten()
            .chain(twin)
            .all(|times| of(times) > 0.0);
        if !is_known {
            eprintln!(
                "countersink: runs of less {op} time than the system counts are not compared by it"
            );
            continue;
        }
        for (command, taken) in commands.iter().zip(taken) {
            let samples: Vec<f64> = taken.iter().map(of).collect();
            let point = PointResult::of(command, (op, PATTERN, 1), samples);
            measured.points.extend(point.map(|point| PointResult {
                unit: UNIT.to_owned(),
                ..point
            }));
        }
        measured.noise.push(Noise {
            variant: commands[0].clone(),
            op: op.to_owned(),
            pattern: PATTERN.to_owned(),
            threads: 1,
            processes: 1,
            samples: twin.iter().map(of).collect(),
        });
    }
    measured
}

/// A column: the times of one command.
fn sheet(command: &str, taken: &[Times], measured: &ExperimentResult, machine: &Machine) -> Sheet {
    let series = KINDS.iter().filter_map(|(op, _)| {
        let is_its = |point: &&PointResult| point.variant == command && point.op == *op;
        let point = measured.points.iter().find(is_its)?;
        // Of this kind alone: how far system times are off says nothing of elapsed ones.
        let own = ExperimentResult {
            noise: measured
                .noise
                .iter()
                .filter(|noise| noise.op == *op)
                .cloned()
                .collect(),
            ..measured.clone()
        };
        let evidence = Evidence::of(&own, point, own.noise_floor(1));
        Some(Series {
            name: (*op).to_owned(),
            unit: UNIT.to_owned(),
            direction: Direction::Less,
            values: point.samples.clone(),
            evidence: Some(Evidence {
                // Each run is a process.
                processes: point.samples.len(),
                ..evidence
            }),
        })
    });
    let sum = |of: fn(&Times) -> f64| taken.iter().map(of).sum();
    Sheet {
        name: command.to_owned(),
        machine: Some(machine.clone()),
        series: series.collect(),
        times: Some(Times {
            user_s: sum(KINDS[0].1),
            system_s: sum(KINDS[1].1),
            elapsed_s: sum(KINDS[2].1),
        }),
    }
}
