//! `countersink render`.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use countersink_harness::render::{Format, render};
use countersink_harness::result::Results;
use countersink_harness::save;

use crate::output::print;

/// What `render` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Results that `bench --json` has saved
    file: PathBuf,

    /// In which form
    #[arg(long, value_enum, default_value_t = Form::Markdown)]
    format: Form,

    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line for each point
    Csv,
    /// What Go's benchmarks print, for benchstat: a line for each sample
    Go,
    /// Tables
    Markdown,
    /// The same again, as this version writes it
    Json,
}

/// Renders.
///
/// # Errors
/// A file that cannot be read or written, or is no result.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let path = options.file.display();
    let text =
        std::fs::read_to_string(&options.file).with_context(|| format!("cannot read {path}"))?;
    let results = Results::from_json(&text).with_context(|| path.to_string())?;
    let format = match options.format {
        Form::Csv => Format::Csv,
        Form::Go => Format::Go,
        Form::Markdown => Format::Markdown,
        Form::Json => Format::Json,
    };
    let text = render(&results, format);
    match &options.output {
        Some(path) => Ok(save::save(path, text.as_bytes())?),
        None => print(&text),
    }
}
