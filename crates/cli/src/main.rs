//! The `countersink` command: parse, call, render.

mod doctor;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "countersink", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What this machine offers, what is used, and why
    Doctor(doctor::Options),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Doctor(options) => doctor::run(&options),
    }
}
