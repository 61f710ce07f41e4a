//! The `countersink` command: parse, call, render.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage; that of the command for `stat`; 1 also for `compare --fail-on slower` where something is;
//! 130 for `bench` that Ctrl-C has ended.

mod bench;
mod compare;
mod doctor;
mod files;
mod list;
mod names;
mod output;
mod pause;
mod plots;
mod prune;
mod render;
mod report;
mod reset;
mod show;
#[cfg(unix)]
mod stat;
mod table;
mod tables;
mod target;
mod times;
mod units;
mod usage;
#[cfg(target_os = "linux")]
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Per-CPU counters for Rust on Linux: look at what programs count, and at what counting costs on
/// this machine.
#[derive(Debug, Parser)]
#[command(name = "countersink", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Which programs can be looked at
    List(list::Options),
    /// What a program has counted
    Show(show::Options),
    /// Make metrics begin at 0 again, and print what they held
    Reset(reset::Options),
    /// What every counter grew by while commands ran
    #[cfg(unix)]
    Stat(stat::Options),
    /// Remove the region files of dead programs
    Prune(prune::Options),
    /// Run experiments and print their tables
    Bench(bench::Options),
    /// Hold results against each other
    Compare(compare::Options),
    /// Saved results in another form
    Render(render::Options),
    /// Saved results as one page, with tables, pictures and verdicts
    Report(report::Options),
    /// Run small system calls with a counter in each, as tasks on all CPUs
    #[cfg(target_os = "linux")]
    Workload(workload::Options),
    /// What this machine offers, what is used, and why
    Doctor(doctor::Options),
}

fn main() -> ExitCode {
    let done = |result: anyhow::Result<()>| result.map(|()| ExitCode::SUCCESS);
    let result = match Cli::parse().command {
        Command::List(options) => done(list::run(&options)),
        Command::Show(options) => done(show::run(&options)),
        Command::Reset(options) => done(reset::run(&options)),
        #[cfg(unix)]
        Command::Stat(options) => stat::run(&options),
        Command::Prune(options) => done(prune::run(&options)),
        Command::Bench(options) => bench::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Render(options) => done(render::run(&options)),
        Command::Report(options) => done(report::run(&options)),
        #[cfg(target_os = "linux")]
        Command::Workload(options) => done(workload::run(&options)),
        Command::Doctor(options) => done(doctor::run(&options)),
    };
    match result {
        Ok(status) => status,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("countersink: {error:#}");
            ExitCode::FAILURE
        }
    }
}
