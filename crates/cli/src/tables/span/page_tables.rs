//! The page tables, from outside.

use countersink_experiments::span::page_tables::{
    FORKS, LEVELS, Level, PGD_ALLOC, PGD_FREE, PageTables,
};
use countersink_experiments::span::readings::{Difference, Figure};

use super::line;
use crate::output::wrap;
use crate::tables::figure;

/// The page tables: what the spans showed, and the differences between levels.
pub(crate) fn render(found: &PageTables) -> String {
    let mut text = "\nPage tables from outside, each event timed with a span\n".to_owned();
    text += &wrap(
        "The kernel patch times these inside the kernel. A program sees the whole fault around an allocation: entering \
         the kernel, finding the mapping, a zeroed page of memory, and the pages of tables. Each level's \
         touch needs the pages of all levels below it too. free is munmap as a whole: the system call, the \
         page of memory, the pages of tables, the flush of the TLB.",
        0,
    );
    text += &format!(
        "\n  {:<18} {:>10} total(min/avg/max) p50/p99\n",
        "", "events"
    );
    for level in LEVELS {
        text += &levels_line(found, level.alloc);
    }
    for level in LEVELS {
        text += &levels_line(found, level.free);
    }
    text += &levels_line(found, PGD_ALLOC);
    text += &levels_line(found, PGD_FREE);
    for (level, reason) in &found.missing {
        text += &wrap(&format!("{level} was not timed: {reason}"), 2);
    }
    text += "\n";
    for level in LEVELS
        .iter()
        .filter(|level| found.find(level.alloc).is_some())
    {
        text += &format!("  {} touches {}\n", level.alloc, level.touched);
    }
    text += &wrap(
        &format!(
            "pgd_alloc is fork as the parent sees it, which copies the address space; pgd_free is from then \
             until a child that exits at once was waited for, its start and its own page faults included. \
             {FORKS} in each sample. Nothing else makes or frees a pgd."
        ),
        2,
    );
    text + &differences(found)
}

fn levels_line(found: &PageTables, name: &str) -> String {
    found
        .find(name)
        .map_or_else(String::new, |reading| line(name, &reading.total()))
}

/// What each level adds to the one below.
fn differences(found: &PageTables) -> String {
    let mut text =
        "\nWhat a level adds to the one below it: ns of the average without the longest 1 %\n(median over the rounds, with its 95 % interval)\n\n"
            .to_owned();
    let names: [fn(&Level) -> &'static str; 2] = [|level| level.alloc, |level| level.free];
    for name in names {
        for levels in LEVELS.windows(2) {
            let [below, above] = [&levels[0], &levels[1]].map(|level| found.find(name(level)));
            let (Some(below), Some(above)) = (below, above) else {
                continue;
            };
            if let Some(excess) = above.excess_over(below, Figure::Trimmed) {
                text += &format!(
                    "  {} - {}: {}\n",
                    name(&levels[1]),
                    name(&levels[0]),
                    difference(&excess)
                );
            }
        }
    }
    text
}

fn difference(found: &Difference) -> String {
    let interval = found.ci95.map_or(String::new(), |[low, high]| {
        format!(" [{}, {}]", figure(low), figure(high))
    });
    format!("{}{interval}", figure(found.median))
}

#[cfg(test)]
mod tests {
    use countersink_experiments::span::page_tables::{PATTERN, VARIANT};

    use super::super::tests::{reading, span};
    use super::*;

    #[test]
    fn levels_are_shown_with_what_they_add() {
        let timed = |name, average: u64| {
            let sample = span(10, 10 * average, average - 1, average + 1);
            reading((VARIANT, name, PATTERN), sample)
        };
        let found = PageTables {
            readings: vec![
                timed("page_touch", 500),
                timed("page_unmap", 900),
                timed("pte_alloc", 1_100),
                timed("pte_free", 800),
                timed(PGD_ALLOC, 700_000),
            ],
            missing: vec![("pud_alloc", "no addresses".to_owned())],
            ..PageTables::default()
        };
        let text = render(&found);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for line in [
            "page_touch                120 60us(499ns/500ns/501ns) 0ns/0ns",
            "pgd_alloc                 120 84ms(700us/700us/700us) 0ns/0ns",
            "pud_alloc was not timed: no addresses",
            "pte_alloc - page_touch: 0.00 [0.00, 0.00]",
        ] {
            assert!(lines.contains(&line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("pmd_alloc -"), "{text}");
        let less = Difference {
            median: -101.6,
            ci95: Some([-120.0, 9.0]),
        };
        assert_eq!(difference(&less), "-102 [-120, 9.00]");
    }
}
