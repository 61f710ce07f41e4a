//! `countersink render`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};
use countersink::reader::escape;
use countersink_harness::render::{Format, render};
use countersink_harness::result::Results;
use countersink_harness::save;

use crate::output::print;
use crate::{files, plots, tables};

/// What `render` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Results that `bench --json` has saved
    file: PathBuf,

    /// In which form
    #[arg(long, value_enum, default_value_t = Form::Markdown)]
    format: Form,

    /// What pictures show by threads
    #[arg(long, value_enum, default_value_t)]
    values: plots::Values,

    /// Write to a file instead of standard output; to a directory, for svg
    #[arg(short, long, value_name = "FILE", required_if_eq("format", "svg"))]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A line for each point
    Csv,
    /// What Go's benchmarks print, for benchstat: a line for each sample
    Go,
    /// A table for each experiment, with its verdicts
    Markdown,
    /// The tables that bench prints
    Text,
    /// The same again, as this version writes it
    Json,
    /// Pictures, a file for each
    Svg,
    /// Pictures in letters
    Plot,
}

/// Renders.
///
/// # Errors
/// A file that cannot be read or written, or is no result.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let results = files::results(&options.file)?;
    if matches!(
        options.format,
        Form::Text | Form::Svg | Form::Plot | Form::Markdown
    ) {
        files::ensure_can_be_shown(&options.file, &results)?;
    }
    let text = match options.format {
        Form::Csv => render(&results, Format::Csv),
        Form::Go => render(&results, Format::Go),
        Form::Markdown => readable(&render(&results, Format::Markdown)),
        Form::Json => render(&results, Format::Json),
        Form::Text => readable(&tables::render(&results)),
        Form::Plot => readable(&plots::render_terminal(&results, options.values)),
        Form::Svg => {
            let directory = options.output.as_deref().unwrap_or(Path::new("."));
            return draw(&results, options.values, directory);
        }
    };
    match &options.output {
        Some(path) => Ok(save::save(path, text.as_bytes())?),
        None => print(&text),
    }
}

/// Texts for people: files are of others, and what they hold may be meant for a terminal.
fn readable(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(escape).collect();
    lines.join("\n")
}

fn draw(results: &Results, values: plots::Values, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let pictures = plots::all(results, values)?;
    for picture in &pictures {
        let path = directory.join(format!("{}.svg", picture.name));
        save::save(&path, picture.svg.for_file().as_bytes())?;
    }
    let s = if pictures.len() == 1 { "" } else { "s" };
    print(&format!(
        "{} picture{s} in {}\n",
        pictures.len(),
        directory.display()
    ))
}
