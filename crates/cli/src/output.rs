//! Standard output, whoever reads it.

use std::io::{self, Write};

/// Writes text to standard output.
///
/// # Errors
/// What the write meets; [`is_broken_pipe`] tells a reader that has had enough.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Whether the reader of standard output went away, as `head` does: nothing to report.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
