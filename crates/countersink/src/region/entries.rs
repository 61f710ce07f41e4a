//! Entries: what a metric is, and who uses it.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::Region;
use super::register::Wanted;
use crate::layout::{self, entry};

/// The first word of an entry: everything that decides whether it may be used, so that one
/// compare-exchange decides it.
///
/// ```text
/// bits 0-7     state
/// bits 8-31    users: handles that are to be dropped before the entry is used again
/// bits 32-63   generation: rises whenever the entry is used for another metric
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life(pub(crate) u64);

pub(crate) const WRITING: u64 = 1;
pub(crate) const READY: u64 = 2;
pub(crate) const RETIRED: u64 = 3;

const STATE: u64 = 0xff;
const USER: u64 = 1 << 8;
const USERS: u64 = 0xff_ffff << 8;
const GENERATION: u64 = 1 << 32;

impl Life {
    pub(crate) fn state(self) -> u64 {
        self.0 & STATE
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn users(self) -> u64 {
        (self.0 & USERS) / USER
    }

    /// One user more; the most there can be are too many to be counted down again.
    fn with_user(self) -> Self {
        if self.0 & USERS == USERS {
            self
        } else {
            Life(self.0 + USER)
        }
    }

    fn without_user(self) -> Self {
        if self.0 & USERS == USERS {
            self
        } else {
            Life(self.0 - USER)
        }
    }

    /// The same generation without users.
    fn in_state(self, state: u64) -> Self {
        Life(self.0 & !(STATE | USERS) | state)
    }

    fn next_generation(self) -> Self {
        Life(self.0.wrapping_add(GENERATION))
    }
}

/// Texts of an entry as words: name, labels and help text, one behind the other.
pub(super) struct Texts {
    words: [u64; entry::TEXT_LENGTH / 8],
    name: usize,
    labels: usize,
    help: usize,
}

impl Texts {
    pub(super) const fn empty() -> Self {
        Texts {
            words: [0; entry::TEXT_LENGTH / 8],
            name: 0,
            labels: 0,
            help: 0,
        }
    }

    /// Takes over texts, in place: the stack may be a handler's. `false` if name and labels do not fit; a
    /// help text that does not fit is cut off.
    pub(super) fn set(&mut self, wanted: &Wanted<'_>) -> bool {
        let (name, labels) = (wanted.name.len(), wanted.labels.len());
        if name > entry::MOST_NAME || name + labels > entry::TEXT_LENGTH {
            return false;
        }
        let room = entry::TEXT_LENGTH - name - labels;
        (self.name, self.labels) = (name, labels);
        self.help = wanted.help.floor_char_boundary(room);
        self.put(0, wanted.name);
        self.put(name, wanted.labels);
        self.put(name + labels, &wanted.help[..self.help]);
        true
    }

    fn put(&mut self, start: usize, text: &str) {
        for (at, byte) in (start..).zip(text.bytes()) {
            if let Some(word) = self.words.get_mut(at / 8) {
                let mut bytes = word.to_ne_bytes();
                bytes[at % 8] = byte;
                *word = u64::from_ne_bytes(bytes);
            }
        }
    }
}

/// What an entry says of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) segment: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// An entry that is open. Everything in it may have been written by another process, so whoever reads
/// a number checks it.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    region: &'a Region,
    offset: u64,
    pub(crate) number: u32,
}

impl Region {
    pub(crate) fn entry(&self, number: u32) -> Option<Entry<'_>> {
        self.open_entry(number).then(|| Entry {
            region: self,
            offset: self.layout().entries_offset() + u64::from(number) * layout::ENTRY as u64,
            number,
        })
    }
}

impl Entry<'_> {
    fn get(&self, field: usize) -> u32 {
        self.region.u32(self.offset + field as u64).load(Relaxed)
    }

    fn put(&self, field: usize, value: u32) {
        self.region
            .u32(self.offset + field as u64)
            .store(value, Relaxed);
    }

    pub(crate) fn life(&self) -> Life {
        // Acquire pairs with the release in set_life(): whoever sees a ready entry sees all of it.
        let life = self.region.u64(self.offset + entry::LIFE as u64);
        Life(life.load(Acquire))
    }

    fn set_life(&self, life: Life) {
        let place = self.region.u64(self.offset + entry::LIFE as u64);
        place.store(life.0, Release);
    }

    fn exchange_life(&self, old: Life, new: Life) -> bool {
        let life = self.region.u64(self.offset + entry::LIFE as u64);
        life.compare_exchange(old.0, new.0, AcqRel, Relaxed).is_ok()
    }

    /// Takes an entry that nobody uses: a new one, or one off a free list. Readers and registrars let
    /// it be until it is ready.
    pub(super) fn begin(&self) {
        self.set_life(self.life().next_generation().in_state(WRITING));
    }

    pub(crate) fn words(&self) -> Words {
        Words {
            segment: self.get(entry::SEGMENT),
            first: self.get(entry::WORD),
            count: self.get(entry::WORDS),
        }
    }

    pub(super) fn set_words(&self, words: Words) {
        self.put(entry::SEGMENT, words.segment);
        self.put(entry::WORD, words.first);
        self.put(entry::WORDS, words.count);
    }

    /// The number of its kind.
    pub(super) fn kind(&self) -> u32 {
        self.get(entry::KIND)
    }

    pub(super) fn hash(&self) -> u32 {
        self.get(entry::HASH)
    }

    pub(super) fn next(&self) -> u32 {
        self.get(entry::NEXT)
    }

    pub(super) fn set_next(&self, next: u32) {
        self.put(entry::NEXT, next);
    }

    /// Writes what the metric is, and makes the entry ready, with one user.
    pub(super) fn complete(&self, wanted: &Wanted<'_>, texts: &Texts, hash: u32) {
        self.put(entry::KIND, wanted.kind.code());
        self.put(entry::UNIT, wanted.unit.code());
        self.put(entry::GROUPING, wanted.grouping);
        self.put(entry::HASH, hash);
        self.put_lengths(wanted, texts);
        let created = self.region.u64(self.offset + entry::CREATED as u64);
        created.store(crate::os::real_time(), Relaxed);
        self.put(entry::PID, std::process::id());
        for (number, word) in texts.words.iter().enumerate() {
            self.text(number).store(*word, Relaxed);
        }
        self.set_life(self.life().in_state(READY).with_user());
    }

    /// Two lengths in a word each, in the order in which they lie in memory.
    fn put_lengths(&self, wanted: &Wanted<'_>, texts: &Texts) {
        let both = |first: usize, second: usize| {
            let (first, second) = ((first as u16).to_ne_bytes(), (second as u16).to_ne_bytes());
            u32::from_ne_bytes([first[0], first[1], second[0], second[1]])
        };
        const { assert!(entry::GROUP_LENGTH == entry::NAME_LENGTH + 2) };
        const { assert!(entry::HELP_LENGTH == entry::LABELS_LENGTH + 2) };
        self.put(entry::NAME_LENGTH, both(texts.name, wanted.group));
        self.put(entry::LABELS_LENGTH, both(texts.labels, texts.help));
    }

    fn text(&self, word: usize) -> &core::sync::atomic::AtomicU64 {
        self.region
            .u64(self.offset + (entry::TEXT + 8 * word) as u64)
    }

    /// Whether name and labels are these. What is compared may change meanwhile; whoever then
    /// exchanges the life that was there before has compared the right ones.
    pub(super) fn is_named(&self, wanted: &Wanted<'_>, texts: &Texts) -> bool {
        let lengths = |at: usize| self.get(at).to_ne_bytes();
        let [a, b, _, _] = lengths(entry::NAME_LENGTH);
        let [c, d, _, _] = lengths(entry::LABELS_LENGTH);
        let name = usize::from(u16::from_ne_bytes([a, b]));
        let labels = usize::from(u16::from_ne_bytes([c, d]));
        if (name, labels) != (wanted.name.len(), wanted.labels.len()) {
            return false;
        }
        let bytes = name + labels;
        let whole = bytes / 8;
        let equal = |number: usize| self.text(number).load(Relaxed) ^ texts.words[number];
        if (0..whole).any(|number| equal(number) != 0) {
            return false;
        }
        let rest = bytes % 8;
        rest == 0
            || equal(whole).to_ne_bytes()[..rest]
                .iter()
                .all(|byte| *byte == 0)
    }

    /// Whether it counts the same in the same way.
    pub(super) fn is_like(&self, wanted: &Wanted<'_>) -> bool {
        self.get(entry::KIND) == wanted.kind.code()
            && self.get(entry::UNIT) == wanted.unit.code()
            && self.get(entry::GROUPING) == wanted.grouping
            && self.get(entry::WORDS) as usize == wanted.words()
    }

    /// Becomes one of the users of a ready entry, if its life is still this.
    pub(super) fn join(&self, life: Life) -> bool {
        life.state() == READY && life.users() > 0 && self.exchange_life(life, life.with_user())
    }

    /// Ceases to be one of the users; whether that was the last one, so that the entry is the
    /// caller's now, to be used again.
    pub(super) fn leave(&self) -> bool {
        loop {
            let life = self.life();
            if life.state() != READY || life.users() == 0 {
                return false;
            }
            let last = life.users() == 1;
            let next = if last {
                life.in_state(RETIRED)
            } else {
                life.without_user()
            };
            if self.exchange_life(life, next) {
                return last;
            }
        }
    }
}
