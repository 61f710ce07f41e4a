//! Reading files that others may have made.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, ensure};
use countersink_harness::result::Results;

/// Larger files are not results.
const MOST_BYTES: u64 = 256 << 20;
/// Nobody reads tables and pictures of more points.
const MOST_SHOWN: usize = 20_000;

/// The text of a file, or of what can be read like one.
///
/// # Errors
/// What cannot be read, is too large, or is not text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let reading = || format!("cannot read {shown}");
    let file = File::open(path).with_context(reading)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(reading)?;
    ensure!(
        bytes.len() as u64 <= MOST_BYTES,
        "{shown} is larger than {} MiB",
        MOST_BYTES >> 20
    );
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{shown} is not text"))
}

/// The results in a file.
///
/// # Errors
/// As [`read`]; and if it holds no results.
pub(crate) fn results(path: &Path) -> anyhow::Result<Results> {
    Results::from_json(&read(path)?).with_context(|| path.display().to_string())
}

/// Refuses what would take too long to show, and nobody could read.
///
/// # Errors
/// If there are too many points.
pub(crate) fn ensure_can_be_shown(path: &Path, results: &Results) -> anyhow::Result<()> {
    let points = results
        .experiments
        .iter()
        .map(|measured| measured.points.len().max(measured.noise.len()));
    let points: usize = points.sum();
    ensure!(
        points <= MOST_SHOWN,
        "{} has {points} points; tables, pictures and reports are made of at most {MOST_SHOWN}, csv and go of any number",
        path.display()
    );
    Ok(())
}
