//! The look-ups of a page, beside what was published.

use countersink_experiments::span::published::{PUBLISHED, Verdict, compare, published_ratio};
use countersink_experiments::span::readings::{Figure, Reading, find as find_reading};
use countersink_experiments::span::{COLD, FIRST_USE, HOT, LOOK_UP};
use countersink_harness::result::PointResult;

use super::line;
use crate::output::wrap;
use crate::tables::{figure as digits, find, median, ratio};
use crate::units::{self, scaled};

/// The variants of the look-ups, and what their rows are called.
const TABLES: [(&str, &str); 3] = [
    ("virtual-memmap", "virtual memmap"),
    ("sparsemem", "sparsemem"),
    ("empty", "an empty span"),
];
/// The look-ups: what the spans showed, and what was published.
pub(crate) fn render(readings: &[Reading], points: &[PointResult]) -> String {
    let mut text = "Look-ups of the page of an object, each timed with its own span\n".to_owned();
    text += &wrap(
        "virtual memmap: one array, so the look-up is arithmetic. sparsemem: a table of sections is read \
         first. kfree uses the page right after the look-up; below also within the span. What an empty \
         span shows is in all figures, subtracted from none. The longest times have interruptions in \
         them, which a program cannot keep away; the averages suffer from them. What is shorter than the \
         clock's steps shows in averages only. The whole loop has the harness's clock around it.",
        0,
    );
    for (op, pattern, title) in [
        (LOOK_UP, HOT, "hot: everything is in the first-level cache"),
        (
            LOOK_UP,
            COLD,
            "cold: the section and the page were evicted from all caches before each look-up",
        ),
        (FIRST_USE, HOT, "hot, and the page is used within the span"),
        (
            FIRST_USE,
            COLD,
            "cold, and the page is used within the span",
        ),
    ] {
        text += &look_ups(readings, op, pattern, title);
        text += &whole_loops(points, op, pattern);
    }
    text += "\npublished: kfree in x86-64 kernels of 2007, while they booted\n";
    for published in &PUBLISHED {
        text += &format!("  {:<18} {:>10}\n", published.kernel, published.line);
    }
    text + &orderings(readings)
}

/// What was published, and what spans showed here on average, by their points.
pub(crate) fn render_published(points: &[PointResult]) -> String {
    let mut text = "kfree_virt_to_page: events, total(min/avg/max); and here, the median over samples of a span's average\n".to_owned();
    for published in &PUBLISHED {
        text += &format!("  {:<18} {:>10}", published.kernel, published.line);
        for pattern in [HOT, COLD] {
            let key = format!("{pattern}-span");
            if let Some(point) = find(points, (published.variant, LOOK_UP, &key, 1)) {
                text += &format!("; here {pattern} {} ns", median(point));
            }
        }
        text += "\n";
    }
    text
}

fn look_ups(readings: &[Reading], op: &str, pattern: &str, title: &str) -> String {
    let lines = TABLES.iter().filter_map(|(variant, name)| {
        let reading = find_reading(readings, (variant, op, pattern))?;
        Some(line(name, &reading.total()))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return format!("\n{title}\n  not measured: there is no instruction for it here\n");
    }
    let mut text = format!(
        "\n{title}\n  {:<18} {:>10} total(min/avg/max) p50/p99\n{lines}",
        "kfree_virt_to_page", "events"
    );
    if let Some((memmap, sparsemem)) = pair(readings, op, pattern) {
        for (figure, name) in [
            (Figure::Average, "averages"),
            (Figure::Trimmed, "averages without the longest 1 %"),
            (Figure::Max, "longest"),
        ] {
            let (found, _) = compare(memmap, sparsemem, figure);
            let found = found.map_or("-".to_owned(), |found| ratio(&found));
            text += &format!("  sparsemem / virtual memmap, {name}: {found}\n");
        }
    }
    text
}

/// What the loops took with everything in them.
fn whole_loops(points: &[PointResult], op: &str, pattern: &str) -> String {
    let found = TABLES.iter().filter_map(|(variant, name)| {
        let point = find(points, (variant, op, pattern, 1))?;
        Some(format!("{name} {}", median(point)))
    });
    let found: Vec<String> = found.collect();
    match found.is_empty() {
        true => String::new(),
        false => format!("  whole loop, wall ns: {}\n", found.join(", ")),
    }
}

fn pair<'a>(
    readings: &'a [Reading],
    op: &str,
    pattern: &str,
) -> Option<(&'a Reading, &'a Reading)> {
    let [memmap, sparsemem] = PUBLISHED.map(|published| published.variant);
    Some((
        find_reading(readings, (memmap, op, pattern))?,
        find_reading(readings, (sparsemem, op, pattern))?,
    ))
}

/// The published orderings, each with what the points here say.
fn orderings(readings: &[Reading]) -> String {
    let [memmap, sparsemem] = PUBLISHED;
    let mut text = "orderings published, and whether they hold here\n".to_owned();
    for (figure, name) in [
        (Figure::Min, "shortest"),
        (Figure::Average, "average"),
        (Figure::Trimmed, "average, here without the longest 1 %"),
        (Figure::Max, "longest"),
    ] {
        let nanoseconds = |published| scaled(published as u64, units::TIME);
        let verdicts = [
            (LOOK_UP, HOT, "hot"),
            (LOOK_UP, COLD, "cold"),
            (FIRST_USE, HOT, "hot and used"),
            (FIRST_USE, COLD, "cold and used"),
        ];
        let verdicts = verdicts.iter().filter_map(|(op, pattern, name)| {
            let (memmap, sparsemem) = pair(readings, op, pattern)?;
            let (_, verdict) = compare(memmap, sparsemem, figure);
            Some(format!("{name}: {}", word(verdict)))
        });
        text += &format!(
            "  {name}, {} before {} ({} times)\n      {}\n",
            nanoseconds(memmap.figure(figure)),
            nanoseconds(sparsemem.figure(figure)),
            digits(published_ratio(figure)),
            verdicts.collect::<Vec<_>>().join("; "),
        );
    }
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Held => "held",
        Verdict::Reversed => "reversed",
        Verdict::CannotTell => "cannot be told",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{reading, span};
    use super::*;

    #[test]
    fn tables_are_compared_in_each_state() {
        let readings = [
            reading(("virtual-memmap", LOOK_UP, HOT), span(1000, 9_000, 3, 322)),
            reading(("sparsemem", LOOK_UP, HOT), span(1000, 18_000, 4, 322)),
            reading(("empty", LOOK_UP, HOT), span(1000, 8_000, 2, 300)),
            reading(
                ("virtual-memmap", FIRST_USE, HOT),
                span(1000, 9_000, 4, 28_700),
            ),
            reading(("sparsemem", FIRST_USE, HOT), span(1000, 9_000, 3, 322)),
        ];
        let text = render(&readings, &[]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for line in [
            "virtual memmap          12000 108us(3ns/9ns/322ns) 0ns/0ns",
            "sparsemem               12000 216us(4ns/18ns/322ns) 0ns/0ns",
            "an empty span           12000 96us(2ns/8ns/300ns) 0ns/0ns",
            "sparsemem / virtual memmap, averages: 2.000 [2.000, 2.000]",
            "sparsemem / virtual memmap, averages without the longest 1 %: -",
            "sparsemem / virtual memmap, longest: 1.000 [1.000, 1.000]",
            "not measured: there is no instruction for it here",
            "virtual memmap     598430 5.6ms(3ns/9ns/322ns)",
            "regular sparsemem  596360 10.5ms(4ns/18ns/28.7us)",
            "shortest, 3ns before 4ns (1.33 times)",
            "hot: held; hot and used: reversed",
            "average, 9ns before 18ns (2.00 times)",
            "average, here without the longest 1 %, 9ns before 18ns (2.00 times)",
            "hot: held; hot and used: cannot be told",
            "longest, 322ns before 28.7us (89.1 times)",
            "hot: cannot be told; hot and used: reversed",
        ] {
            assert!(lines.contains(&line), "{line} is missing in\n{text}");
        }
    }
}
