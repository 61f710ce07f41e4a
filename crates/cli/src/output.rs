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

/// The widest line that is printed, tables aside.
const WIDTH: usize = 98;

/// Text broken between words, each line after so many spaces.
pub(crate) fn wrap(text: &str, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.len() + 1 + word.len() > WIDTH {
            wrapped += &format!("{:indent$}{line}\n", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    wrapped + &format!("{:indent$}{line}\n", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words() {
        let text = wrap(&"word ".repeat(40), 2);
        assert!(text.lines().count() > 1);
        assert!(
            text.lines()
                .all(|line| line.len() <= WIDTH && line.starts_with("  word"))
        );
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(wrap(&"x".repeat(200), 0), "x".repeat(200) + "\n");
    }
}
