//! Standard output, whoever reads it.

use std::io::{self, Write};

use countersink::reader::escape;
use serde::Serialize;

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

/// JSON that is safe to show: what [`escape`] would change in a text is written as `\uXXXX`, which means
/// the same.
pub(crate) fn json<T: Serialize>(document: &T, pretty: bool) -> anyhow::Result<String> {
    let text = match pretty {
        true => serde_json::to_string_pretty(document)?,
        false => serde_json::to_string(document)?,
    };
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        let mut buffer = [0; 4];
        let harmless = (character.is_ascii() && character != '\x7f') || {
            let text = &*character.encode_utf8(&mut buffer);
            escape(text) == text
        };
        if harmless {
            safe.push(character);
        } else {
            // Such characters stand in strings only.
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe += &format!("\\u{unit:04x}");
            }
        }
    }
    Ok(safe + "\n")
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
    fn json_shows_nothing_harmful_and_means_the_same() {
        let names = [
            "plain",
            "\u{202e}turned",
            "\u{9b}31m",
            "\u{e0001}",
            "ä",
            "\u{7f}\n",
        ];
        let text = json(&names, false).expect("json");
        assert!(
            text.contains(r"\u202eturned") && text.contains(r"\udb40\udc01"),
            "{text}"
        );
        assert!(
            text.contains('ä') && !text.contains(['\u{202e}', '\u{9b}', '\u{e0001}', '\u{7f}'])
        );
        let read: Vec<String> = serde_json::from_str(&text).expect("still json");
        assert_eq!(read, names);
    }

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
