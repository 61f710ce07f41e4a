//! `countersink stat`: what every counter grew by while commands ran.
//!
//! The commands count in a region that is made for them, which their environment names, so that all
//! processes that they start count together.

mod command;
mod report;

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use countersink::reader::{Growth, Metric, Snapshot, growth};
use countersink::region::Shared;

use crate::names;
use crate::output::{is_broken_pipe, print};
use crate::pause::Interrupts;
use crate::show::complaints;
use command::{Ended, Phase};
use report::Done;

/// What is said below the options.
const HELP: &str = "\
After each command, a heading `1) After NAME:`, where CMD is its own name, and a line NAME=VALUE\n\
for each counter and for the parts of the others, such as NAME.events and NAME.time_ns of a span.\n\
Labels have a `=` too: split lines at the last `=`. Values are what was counted while the command\n\
ran, by it and by all that it started, as far as they use the library and have not said themselves\n\
where their region is (region::configure, region::unshare). Times of spans include time off the CPU.\n\
\n\
A pipeline is counted as one command: stat -- sh -c 'a | b'\n\
\n\
The exit status is that of the first command that fails, as shells say it: 127 if it is not\n\
found, 128 and the signal if one killed it.";

/// What `stat` takes.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
#[command(group(clap::ArgGroup::new("what").args(["phases", "command"]).required(true).multiple(true)))]
pub(crate) struct Options {
    /// A shell command to run and count separately, before CMD if there is one; can be given several times
    #[arg(long = "phase", value_name = "NAME=CMD", value_parser = Phase::parse)]
    phases: Vec<Phase>,

    /// Print a table in the end, with a column for each command
    #[arg(long, conflicts_with = "json")]
    table: bool,

    /// Print one JSON object in the end
    #[arg(long)]
    json: bool,

    /// Print to a file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The command, and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// Runs the commands and prints what was counted.
///
/// # Errors
/// No memory for a region; an output that cannot be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut output = Output::open(options.output.as_deref())?;
    let shared = Shared::new().context("no region can be made")?;
    let region = shared.open()?;
    // The commands get Ctrl-C, and what they have counted until then is printed.
    let _interrupts = Interrupts::hold();
    let mut before = region.snapshot()?;
    let mut done = Vec::new();
    let mut status = 0;
    for phase in options.phases() {
        let ended = match command::run(&phase.run, Path::new(&shared.path())) {
            Ok(ended) => ended,
            Err((not_run, sentence)) => {
                eprintln!("countersink: {sentence}");
                status = not_run;
                break;
            }
        };
        let after = region.snapshot()?;
        let finished = finish(phase.name, ended, &before, &after);
        if !options.table && !options.json {
            output.write(&report::lines(done.len() + 1, &finished))?;
        }
        done.push(finished);
        before = after;
        status = ended.status;
        if status != 0 {
            break;
        }
    }
    eprint!("{}", complaints(&[], &before));
    if options.table {
        output.write(&report::table_of(&done))?;
    } else if options.json {
        output.write(&report::json(&done, &before)?)?;
    }
    Ok(ExitCode::from(status))
}

impl Options {
    fn phases(&self) -> Vec<Phase> {
        let mut phases = self.phases.clone();
        if !self.command.is_empty() {
            phases.push(Phase::program(&self.command));
        }
        phases
    }
}

/// What a command has counted, and a sentence if it is nothing.
fn finish(name: String, ended: Ended, before: &Snapshot, after: &Snapshot) -> Done {
    let grown = growth(before, after);
    let counts = |growth: &Growth| growth.new || !report::is_nothing(&growth.metric);
    if !grown.iter().any(counts) {
        eprintln!(
            "countersink: `{}` and what it started have counted nothing: they do not use the library, \
             had nothing to count, could not join the region, or said themselves where their region is \
             (region::configure, region::unshare)",
            names::escaped(&name)
        );
    }
    let grown: Vec<Metric> = grown.into_iter().map(|growth| growth.metric).collect();
    Done { name, ended, grown }
}

/// Where the numbers go.
#[derive(Debug)]
enum Output {
    Standard,
    File(File, PathBuf),
}

impl Output {
    /// Opens the file before anything is run.
    fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else {
            return Ok(Output::Standard);
        };
        let file =
            File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output::File(file, path.to_owned()))
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        match self {
            // The commands matter, even if nobody reads on.
            Output::Standard => print(text).or_else(|error| match is_broken_pipe(&error) {
                true => Ok(()),
                false => Err(error),
            }),
            Output::File(file, path) => file
                .write_all(text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display())),
        }
    }
}
