//! The `countersink` command: parse, call, render.
//!
//! Exit status: 0 done, 1 failed, 2 wrong usage.

mod bench;
mod doctor;
mod output;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Per-CPU counters for Rust on Linux: experiments that show what counting costs on this machine.
#[derive(Debug, Parser)]
#[command(name = "countersink", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run experiments and print their tables
    Bench(bench::Options),
    /// What this machine offers, what is used, and why
    Doctor(doctor::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(options) => bench::run(&options),
        Command::Doctor(options) => doctor::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("countersink: {error:#}");
            ExitCode::FAILURE
        }
    }
}
