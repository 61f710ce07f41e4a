//! Getting a metric its words.

use countersink_percpu::Slots;

use super::Region;
use super::entries::{Entry, Texts};
use super::index::Found;
use super::refusal::Refusal;
use crate::kind::{Kind, Unit};
use crate::layout::{self, header};
use crate::values;

/// What a metric is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// With the group's name.
    pub(crate) name: &'a str,
    /// As they are written.
    pub(crate) labels: &'a str,
    pub(crate) help: &'a str,
    /// The length of the group's name, or 0.
    pub(crate) group: usize,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// Of a histogram, and one; or 0.
    pub(crate) grouping: u32,
}

impl Wanted<'_> {
    pub(crate) fn words(&self) -> usize {
        self.kind.words(self.grouping)
    }

    fn check(&self) -> Result<(), Refusal> {
        if !is_name(self.name) {
            return Err(Refusal::Name);
        }
        // Labels are made by the family, which has checked their names.
        if self.labels.contains('\0') {
            return Err(Refusal::Labels);
        }
        Ok(())
    }
}

/// Whether this is `[a-zA-Z_:][a-zA-Z0-9_:]*`.
pub(crate) fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    name.bytes().all(plain)
        && name
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit())
}

/// The words that a metric got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) words: Slots<'static>,
    pub(crate) entry: u32,
}

/// Attempts at slots that others fill at the same time; then the entry stays out of the index.
const MOST_ATTEMPTS: u32 = 1000;

impl Region {
    /// The words of this metric: those of an entry of the same name and labels, or of one that is made.
    ///
    /// Takes no lock. Killed anywhere, it leaves others unhindered, and at worst an entry or words
    /// that nobody uses.
    pub(crate) fn register(&self, wanted: &Wanted<'_>) -> Result<Granted, Refusal> {
        wanted.check()?;
        let mut texts = Texts::empty();
        if !texts.set(wanted) {
            return Err(Refusal::TooLong);
        }
        let hash = layout::hash(wanted.name.as_bytes(), wanted.labels.as_bytes());
        let mut own: Option<Granted> = None;
        for _ in 0..MOST_ATTEMPTS {
            let slot = match self.find(wanted, &texts, hash) {
                Found::Joined(entry) => {
                    // Another was faster, perhaps.
                    self.give_back(own);
                    return self.granted(&entry, wanted);
                }
                Found::Different => {
                    self.give_back(own);
                    return Err(Refusal::Different);
                }
                Found::Nothing(slot) => slot,
            };
            let granted = match own {
                Some(granted) => granted,
                None => self.append(wanted, &texts, hash)?,
            };
            own = Some(granted);
            // Whoever registers the same metric now has found the same slot free.
            if slot.is_none_or(|slot| self.fill_slot(slot, hash, granted.entry)) {
                break;
            }
        }
        own.ok_or(Refusal::NoEntry)
    }

    /// Words without a name, in memory that no other process reads.
    pub(crate) fn register_privately(&self, kind: Kind, grouping: u32) -> Option<Granted> {
        let unnamed = Wanted {
            name: "_",
            labels: "",
            help: "",
            group: 0,
            kind,
            unit: Unit::None,
            grouping,
        };
        let mut texts = Texts::empty();
        texts.set(&unnamed);
        self.append(&unnamed, &texts, 0).ok()
    }

    /// An entry for this metric that is ready, but in no index.
    fn append(&self, wanted: &Wanted<'_>, texts: &Texts, hash: u32) -> Result<Granted, Refusal> {
        let words = wanted.words();
        let (entry, used) = match self.pop_free(wanted) {
            Some(entry) => (entry, true),
            None => (self.new_entry(words)?, false),
        };
        entry.begin();
        let granted = self.granted(&entry, wanted);
        if let Ok(granted) = granted {
            // What the words hold of an earlier metric is taken off; lanes are never written.
            values::begin(&granted.words, wanted.kind, used);
            entry.complete(wanted, texts, hash);
        }
        granted
    }

    /// The words of an entry that this metric is a user of.
    fn granted(&self, entry: &Entry<'_>, wanted: &Wanted<'_>) -> Result<Granted, Refusal> {
        let held = entry.words();
        let layout = self.layout();
        if held.count as usize != wanted.words()
            || !layout.has_words(held.segment, held.first, held.count)
            // Pairs need even places; the entry may have been written by anyone.
            || held.count > 1 && !held.first.is_multiple_of(2)
        {
            return Err(Refusal::NoWords);
        }
        let segment = self.segment(held.segment).ok_or(Refusal::NoWords)?;
        let words = segment
            .slots(held.first as usize, held.count as usize)
            .ok_or(Refusal::NoWords)?;
        Ok(Granted {
            words,
            entry: entry.number,
        })
    }

    fn give_back(&self, granted: Option<Granted>) {
        if let Some(granted) = granted {
            self.release(granted.entry);
        }
    }

    /// Ceases to use an entry. When nobody uses it any more, it is used again for another metric.
    pub(crate) fn release(&self, number: u32) {
        if let Some(entry) = self.entry(number)
            && entry.leave()
        {
            self.forget(entry.hash(), number);
            self.push_free(&entry);
        }
    }

    /// Notes that an entry is not used again, because this process has forked: its child has copies of
    /// the handles.
    pub(crate) fn keep(&self) {
        use core::sync::atomic::Ordering::Relaxed;
        self.u64(header::KEPT as u64).fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_are_those_of_the_format() {
        for name in ["a", "_", ":", "kfree_virt_to_page", "a:b9", "A0"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "0a", "a b", "a-b", "a.b", "ä", "a\n"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
