//! The same in fresh processes. Where code and memory lie is fixed for a process and makes a difference, so samples of one process, however
//! many, are evidence of one layout only.

use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use countersink_harness::progress::Progress;
use countersink_harness::result::{ExperimentResult, Results};

use super::progress::Bar;

/// Has further processes measure an experiment, until so many have, and adds what they found. `true` if it was ended before.
///
/// # Errors
/// A process that failed, or found something else.
pub(super) fn add(
    measured: &mut ExperimentResult,
    processes: usize,
    bar: &mut Bar,
) -> anyhow::Result<bool> {
    let done = measured.points.first().map_or(1, |point| point.processes);
    for before in done..processes {
        if bar.is_stopped() {
            return Ok(true);
        }
        bar.process(before);
        let Some(found) = run(&measured.name)? else {
            return Ok(true);
        };
        ensure!(
            measured.add_process(&found),
            "another process measured something else of {}",
            measured.name
        );
    }
    Ok(bar.is_stopped())
}

/// Has one process measure it, with the options of this one. `None` if it was ended.
fn run(name: &str) -> anyhow::Result<Option<ExperimentResult>> {
    let starting = "cannot start another process to measure in";
    let output = Command::new(std::env::current_exe().context(starting)?)
        .args(std::env::args_os().skip(1))
        .args(["--replica", name])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context(starting)?;
    if !output.status.success() {
        bail!(
            "another process that measured {name} ended with {}",
            output.status
        );
    }
    let text = String::from_utf8(output.stdout).context("another process printed no text")?;
    let mut results = Results::from_json(&text)?;
    let found = results.experiments.pop();
    Ok(found.filter(|found| !found.partial))
}
