//! Room: what was never used, and lists of what is used no more.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use countersink_percpu::WORDS;

use super::Region;
use super::entries::{Entry, RETIRED, Words};
use super::refusal::Refusal;
use super::register::Wanted;
use crate::kind::Kind;
use crate::layout::header;

/// Attempts on a list that others change at the same time; then it counts as empty, or what was to be
/// put there is not used again.
const MOST_ATTEMPTS: u32 = 1000;

/// A list's head: the number of its first entry and one, or 0, under a count of changes, so that a
/// head that is the same has not been another in between.
#[derive(Clone, Copy)]
struct Head(u64);

impl Head {
    fn first(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    fn with(self, next: u32) -> Head {
        Head(((self.0 >> 32) + 1) << 32 | u64::from(next))
    }
}

impl Region {
    /// The offset of the head of the list of entries with so many words; a list that has no size yet
    /// gets this one.
    fn list(&self, size: u64) -> Option<u64> {
        (0..header::FREE_LIST_COUNT).find_map(|number| {
            let at = (header::FREE_LISTS + 16 * number) as u64;
            let held = match self.u64(at).compare_exchange(0, size, AcqRel, Acquire) {
                Ok(_) => size,
                Err(held) => held,
            };
            (held == size).then_some(at + 8)
        })
    }

    /// An entry for this metric, with its words, that is used no more. It is the caller's alone.
    pub(super) fn pop_free(&self, wanted: &Wanted<'_>) -> Option<Entry<'_>> {
        let words = wanted.words();
        let head = self.u64(self.list(size(wanted.kind.code(), words))?);
        for _ in 0..MOST_ATTEMPTS {
            let seen = Head(head.load(Acquire));
            let entry = self.entry(seen.first()?)?;
            let next = entry.next();
            let taken = seen.with(next);
            if head
                .compare_exchange(seen.0, taken.0, AcqRel, Relaxed)
                .is_err()
            {
                continue;
            }
            let held = entry.words();
            let layout = self.layout();
            let sound = entry.life().state() == RETIRED
                && held.count as usize == words
                && layout.has_words(held.segment, held.first, held.count);
            if sound {
                return Some(entry);
            }
        }
        None
    }

    /// Puts an entry that nobody uses where it is found again.
    pub(super) fn push_free(&self, entry: &Entry<'_>) {
        let size = size(entry.kind(), entry.words().count as usize);
        let Some(list) = self.list(size) else {
            return;
        };
        let head = self.u64(list);
        for _ in 0..MOST_ATTEMPTS {
            let seen = Head(head.load(Acquire));
            entry.set_next(seen.0 as u32);
            let added = seen.with(entry.number + 1);
            // Release: whoever pops it sees its next.
            if head
                .compare_exchange(seen.0, added.0, AcqRel, Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }

    /// A new entry with words of its own. Words that were found before there was no room for an entry
    /// are lost.
    pub(super) fn new_entry(&self, words: usize) -> Result<Entry<'_>, Refusal> {
        if self.entries_used() >= self.layout().entries {
            return Err(Refusal::NoEntry);
        }
        let place = self.new_words(words).ok_or(Refusal::NoWords)?;
        let used = self.u64(header::ENTRIES_USED as u64);
        let most = u64::from(self.layout().entries);
        let number = used
            .fetch_update(AcqRel, Relaxed, |used| (used < most).then(|| used + 1))
            .map_err(|_| Refusal::NoEntry)?;
        let entry = self.entry(number as u32).ok_or(Refusal::NoEntry)?;
        entry.set_words(place);
        Ok(entry)
    }

    fn new_words(&self, count: usize) -> Option<Words> {
        let lane = WORDS as u64;
        let end = u64::from(self.layout().segments) * lane;
        let alignment = alignment(count);
        let place = |used: u64| {
            let start = used.checked_next_multiple_of(alignment)?;
            let fits = start % lane + count as u64 <= lane;
            let start = if fits {
                start
            } else {
                start.next_multiple_of(lane)
            };
            (start + count as u64 <= end).then_some(start)
        };
        let used = self.u64(header::WORDS_USED as u64);
        let before = used
            .fetch_update(AcqRel, Relaxed, |used| {
                place(used.min(end)).map(|start| start + count as u64)
            })
            .ok()?;
        let start = place(before.min(end))?;
        Some(Words {
            segment: (start / lane) as u32,
            first: (start % lane) as u32,
            count: count as u32,
        })
    }
}

/// What tells lists apart: the number of words, and the kind where a metric cannot begin with words that were
/// another kind's.
fn size(kind: u32, words: usize) -> u64 {
    let own = Kind::of(kind).is_some_and(Kind::keeps_words);
    words as u64 | if own { u64::from(kind) << 32 } else { 0 }
}

/// Pairs need even places; what a span writes each time lies in one cache line.
fn alignment(words: usize) -> u64 {
    match words {
        ..=1 => 1,
        2..=15 => 2,
        _ => 8,
    }
}
