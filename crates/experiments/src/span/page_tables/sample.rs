//! Samples of the levels.

use countersink::Span;

use super::address_space::{AddressSpace, Child};
use super::{FORKS, LEVELS, Level, PATTERN, PGD_ALLOC, PGD_FREE, PageTables, VARIANT};
use crate::span::readings::{GROUPING, Readings};

static PAGE_TOUCH: Span = timed("page_touch", "First touches of a page");
static PAGE_UNMAP: Span = timed("page_unmap", "munmap of a page");
static PTE_ALLOC_SPAN: Span = timed("pte_alloc", "First touches of a fresh 2 MiB");
static PTE_FREE_SPAN: Span = timed("pte_free", "munmap of 2 MiB with one page");
static PMD_ALLOC_SPAN: Span = timed("pmd_alloc", "First touches of a fresh 1 GiB");
static PMD_FREE_SPAN: Span = timed("pmd_free", "munmap of 1 GiB with one page");
static PUD_ALLOC_SPAN: Span = timed("pud_alloc", "First touches of a fresh 512 GiB");
static PUD_FREE_SPAN: Span = timed("pud_free", "munmap of 512 GiB with one page");
static PGD_ALLOC_SPAN: Span = timed("pgd_alloc", "fork, in the parent");
static PGD_FREE_SPAN: Span = timed("pgd_free", "exit of a child, until it was waited for");

const fn timed(name: &'static str, help: &'static str) -> Span {
    Span::new(name).with_histogram(GROUPING).help(help)
}

/// The spans of the levels, in their order.
static SPANS: [(&Span, &Span); 4] = [
    (&PAGE_TOUCH, &PAGE_UNMAP),
    (&PTE_ALLOC_SPAN, &PTE_FREE_SPAN),
    (&PMD_ALLOC_SPAN, &PMD_FREE_SPAN),
    (&PUD_ALLOC_SPAN, &PUD_FREE_SPAN),
];

/// All levels in turn, forwards and backwards, round after round; and the processes.
pub(super) fn rounds(rounds: usize) -> PageTables {
    let readings = Readings::default();
    let mut missing: Vec<(&'static str, String)> = Vec::new();
    let levels: Vec<_> = LEVELS.iter().zip(SPANS).collect();
    for _ in 0..=rounds {
        for (level, spans) in levels.iter().chain(levels.iter().rev()) {
            if missing.iter().any(|(name, _)| *name == level.alloc) {
                continue;
            }
            if let Err(reason) = sample(level, *spans, &readings) {
                missing.push((level.alloc, reason));
            }
        }
        for _ in 0..2 {
            if missing.iter().any(|(name, _)| *name == PGD_ALLOC) {
                continue;
            }
            if let Err(reason) = processes(&readings) {
                missing.push((PGD_ALLOC, reason));
            }
        }
    }
    PageTables {
        readings: readings.get(),
        missing,
        cpu: None,
    }
}

/// Touches what was never touched, and gives it back, from the end on.
fn sample(level: &Level, (alloc, free): (&Span, &Span), readings: &Readings) -> Result<(), String> {
    let bytes = (level.events + 1) * level.step;
    let reserved = AddressSpace::reserve(bytes, level.whole);
    let mut space =
        reserved.map_err(|error| format!("no {} MiB of addresses: {error}", bytes >> 20))?;
    // All levels above are there from here on.
    space.touch(0);
    for event in 1..=level.events {
        let running = alloc.start();
        space.touch(event * level.step);
        running.stop();
    }
    for event in (1..=level.events).rev() {
        let running = free.start();
        let result = space.give_back_from(event * level.step);
        running.stop();
        result.map_err(|error| format!("munmap: {error}"))?;
    }
    push(level.alloc, alloc, level.events, readings)?;
    push(level.free, free, level.events, readings)
}

/// Makes and ends processes.
fn processes(readings: &Readings) -> Result<(), String> {
    for _ in 0..FORKS {
        let running = PGD_ALLOC_SPAN.start();
        let child = Child::fork();
        running.stop();
        let child = child.map_err(|error| format!("no process: {error}"))?;
        let running = PGD_FREE_SPAN.start();
        let result = child.wait();
        running.stop();
        result.map_err(|error| error.to_string())?;
    }
    push(PGD_ALLOC, &PGD_ALLOC_SPAN, FORKS, readings)?;
    push(PGD_FREE, &PGD_FREE_SPAN, FORKS, readings)
}

/// Keeps a sample that has all its events.
fn push(name: &str, span: &Span, events: usize, readings: &Readings) -> Result<(), String> {
    let taken = span.take();
    let recorded = taken.events + taken.skipped + taken.invalid;
    if recorded != events as u64 {
        return Err(format!("{name}: {events} events, the span has {recorded}"));
    }
    readings.push((VARIANT, name, PATTERN), taken);
    Ok(())
}
