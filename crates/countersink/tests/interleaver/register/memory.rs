//! What registrars share: entries, the group of the index for their names, and a free list.

use super::ENTRIES;

/// Names; 0 is none.
pub(super) const A: u8 = 1;
pub(super) const B: u8 = 2;
/// What a user of each name counts: a count that is read under another name shows.
pub(super) const COUNTS: [i8; 3] = [0, 1, 10];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum State {
    #[default]
    Never,
    Writing,
    Ready,
    Retired,
}

/// The first word of an entry.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Life {
    pub(super) state: State,
    pub(super) users: u8,
    pub(super) generation: u8,
}

impl std::fmt::Debug for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Life {
            state,
            users,
            generation,
        } = self;
        write!(f, "({state:?}, {users}, {generation})")
    }
}

/// The head of the free list: a tag, and an entry + 1, or 0.
pub(super) type Head = (u8, u8);

/// An entry with its words, which stay with it for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) life: Life,
    pub(super) name: u8,
    /// The lanes are one word here: what lanes are for is explored elsewhere.
    pub(super) lane: i8,
    pub(super) bias: i8,
    /// The next of the free list + 1, or 0.
    pub(super) next: u8,
}

impl Entry {
    pub(super) fn value(&self) -> i8 {
        self.lane + self.bias
    }

    pub(super) fn is_ready(&self) -> bool {
        self.life.state == State::Ready
    }
}

/// The last three, by name, are for the laws.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Memory {
    pub(super) entries: [Entry; ENTRIES],
    pub(super) used: u8,
    /// The slots of the group: entry + 1, or 0.
    pub(super) slots: [u8; 3],
    pub(super) free: Head,
    /// Counts that were made.
    pub(super) counted: [i8; 3],
    /// Counts that were there when their entry was retired.
    pub(super) retired: [i8; 3],
    /// Counts that resets of the name took.
    pub(super) reset: [i8; 3],
}

impl Memory {
    pub(super) fn entry(&mut self, entry: u8) -> &mut Entry {
        &mut self.entries[usize::from(entry)]
    }

    /// Ready entries of a name.
    pub(super) fn ready(&self, name: u8) -> impl Iterator<Item = &Entry> {
        let wanted = move |entry: &&Entry| entry.is_ready() && entry.name == name;
        self.entries.iter().filter(wanted)
    }

    /// How many ready entries of a name are in the index or counted on. What a registrar leaves that
    /// is killed before it has put its entry into the index is neither.
    pub(super) fn in_use(&self, name: u8) -> usize {
        let indexed = |number: u8| self.slots.contains(&(number + 1));
        let in_use = |(number, entry): &(u8, &Entry)| {
            entry.is_ready() && entry.name == name && (indexed(*number) || entry.value() != 0)
        };
        (0..).zip(&self.entries).filter(in_use).count()
    }

    /// Every count of a name is in its ready entries, or went with one, or was taken.
    pub(super) fn check_counts(&self) -> Result<(), String> {
        for name in [A, B] {
            let n = usize::from(name);
            let there: i8 = self.ready(name).map(Entry::value).sum();
            let all = there + self.retired[n] + self.reset[n];
            if all != self.counted[n] {
                let counted = self.counted[n];
                return Err(format!("counts: {all} of name {name}, and {counted} made"));
            }
        }
        Ok(())
    }

    /// What is in the free list is retired, and there once.
    pub(super) fn check_free_list(&self) -> Result<(), String> {
        let mut at = self.free.1;
        for _ in 0..ENTRIES {
            let Some(entry) = at.checked_sub(1) else {
                return Ok(());
            };
            let entry = &self.entries[usize::from(entry)];
            if entry.life.state != State::Retired {
                return Err(format!("free list: entry {} is {:?}", at - 1, entry.life));
            }
            at = entry.next;
        }
        match at {
            0 => Ok(()),
            _ => Err("free list: a ring".into()),
        }
    }
}
