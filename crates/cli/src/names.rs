//! What metrics are called, and how they are chosen.

use countersink::reader::{Metric, escape, full_name};
use wildmatch::WildMatch;

/// A text from a region, fit for a terminal whoever wrote it.
pub(crate) fn escaped(text: &str) -> String {
    escape(text)
}

/// A metric's name with its labels, fit for a terminal.
pub(crate) fn of(metric: &Metric) -> String {
    full_name(&metric.name, &metric.labels)
}

/// What a user types to choose metrics: with `*` or `?` a pattern for the whole name, else a part of it.
#[derive(Clone, Debug)]
pub(crate) struct Filter(String);

impl Filter {
    /// Any text is a filter.
    pub(crate) fn new(text: &str) -> Self {
        Filter(text.to_owned())
    }

    /// Whether a name passes.
    pub(crate) fn passes(&self, name: &str) -> bool {
        if is_pattern(&self.0) {
            matches(&self.0, name)
        } else {
            name.contains(&self.0)
        }
    }
}

/// Whether a text is a pattern rather than a name.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Whether a pattern fits a whole name: `*` is any text, `?` any character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    WildMatch::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("*b", "abc", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("**", "x", true),
            ("?", "é", true),
            ("rwsem_*", "rwsem_rtrylock", true),
            ("rwsem_*", "arwsem_rtrylock", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    /// Backtracking into every star would take longer than the universe has.
    #[test]
    fn stars_do_not_explode() {
        assert!(!matches(&("a*".repeat(100) + "b"), &"a".repeat(1000)));
    }

    #[test]
    fn a_filter_is_a_part_or_a_pattern() {
        assert!(Filter::new("lock").passes("rwsem_rtrylock_fail"));
        assert!(!Filter::new("lock?").passes("rwsem_rtrylock_fail"));
        assert!(Filter::new("*lock*").passes("rwsem_rtrylock_fail"));
        assert!(Filter::new("").passes("anything"));
    }
}
