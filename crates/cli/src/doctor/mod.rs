//! `countersink doctor`: what this machine offers, what is used, and why.
//!
//! `--json` prints one object, schema `countersink-doctor/1`, with the fields of [`facts::Facts`]. What
//! is not known is `null` (lists: empty), with the reason in `unknown`; nothing fails for want of a fact.

mod advice;
mod cpu;
mod facts;
mod text;
mod unknown;

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod os;
#[cfg(not(target_os = "linux"))]
#[path = "other.rs"]
mod os;

use clap::Args;

use crate::output::print;

/// What `doctor` takes.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print one JSON object, with raw integers
    #[arg(long)]
    json: bool,
}

/// Gathers the facts and prints them.
///
/// # Errors
/// Standard output that cannot be written.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let facts = facts::Facts::gather();
    if options.json {
        print(&(serde_json::to_string_pretty(&facts)? + "\n"))
    } else {
        print(&text::render(&facts))
    }
}
