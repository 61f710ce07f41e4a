//! Texts that others have written.

use std::fmt::Write;

use super::model::Labels;

/// A text that is safe to show: control characters, what turns the direction of writing, and what
/// has no width or is no character become `\u{…}`.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            // Writing to a string does not fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

/// A metric's name with its labels, `name{label="value"}`, safe to show. In values, a backslash, a
/// quote and the end of a line are written as in the region: `\\`, `\"`, `\n`.
pub fn full_name(name: &str, labels: &Labels) -> String {
    let mut text = escape(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        text.push(if at == 0 { '{' } else { ',' });
        let value = value.replace('\\', "\\\\");
        let value = value.replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{}=\"{}\"", escape(label), escape(&value));
    }
    if !labels.is_empty() {
        text.push('}');
    }
    text
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2800}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// Labels as an entry has them: `name="value"`, separated by commas. `None` where they are not so.
pub(super) fn labels(mut text: &str) -> Option<Labels> {
    let mut labels = Labels::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        if name.is_empty() || name.contains(['"', ',', '\\']) {
            return None;
        }
        let (value, rest) = quoted(rest)?;
        labels.push((name.to_owned(), value));
        text = match rest.strip_prefix(',') {
            Some("") => return None,
            Some(more) => more,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(labels)
}

/// A value up to its closing quote, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    loop {
        match characters.next()? {
            (at, '"') => return Some((value, text.get(at + 1..)?)),
            (_, '\\') => value.push(match characters.next()?.1 {
                'n' => '\n',
                other @ ('\\' | '"') => other,
                _ => return None,
            }),
            (_, other) => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(labels: &[(&str, &str)]) -> Option<Labels> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Some(labels.iter().map(owned).collect())
    }

    #[test]
    fn labels_are_split() {
        assert_eq!(labels(""), pairs(&[]));
        assert_eq!(labels(r#"a="1""#), pairs(&[("a", "1")]));
        assert_eq!(
            labels(r#"a="1",b="x=\"y\",\\\n""#),
            pairs(&[("a", "1"), ("b", "x=\"y\",\\\n")])
        );
    }

    #[test]
    fn what_is_no_label_is_refused() {
        for text in [
            "a",
            "a=",
            "a=\"",
            "a=\"1",
            "=\"1\"",
            "a=\"1\",",
            "a=\"1\"b=\"2\"",
            "a=\"\\x\"",
            ",a=\"1\"",
            "a=\"\\",
        ] {
            assert_eq!(labels(text), None, "{text}");
        }
    }

    #[test]
    fn labels_are_written_as_they_are_read() {
        let text = r#"a="1",b="x=\"y\",\\\n""#;
        let read = labels(text).expect("labels");
        assert_eq!(full_name("name", &read), format!("name{{{text}}}"));
        assert_eq!(full_name("name", &Labels::new()), "name");
        let harmful = pairs(&[("a", "\t\x1b")]).expect("labels");
        assert_eq!(full_name("n", &harmful), "n{a=\"\\u{9}\\u{1b}\"}");
    }

    #[test]
    fn harmful_characters_are_written_out() {
        assert_eq!(escape("rwsem_wake{cpu=\"é漢\"}"), "rwsem_wake{cpu=\"é漢\"}");
        assert_eq!(
            escape("a\x1b[31m\n\r\t\0"),
            "a\\u{1b}[31m\\u{a}\\u{d}\\u{9}\\u{0}"
        );
        assert_eq!(
            escape("a\u{202e}b\u{9b}c\u{feff}\u{2066}"),
            "a\\u{202e}b\\u{9b}c\\u{feff}\\u{2066}"
        );
        assert_eq!(escape("C:\\u{fffd}"), "C:\\u{fffd}");
    }
}
