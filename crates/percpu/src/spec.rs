//! What each per-CPU operation does, in plain Rust: the oracle that every mechanism is tested
//! against, and the text to read before the assembly.
//!
//! An operation runs in four steps. The first three happen inside a critical section and may be
//! abandoned at any point; the last is one instruction:
//!
//! 1. find the lane of the CPU that this thread is on;
//! 2. load [`Op::width`] adjacent words of that lane, and the guard word if [`Op::has_guard`];
//! 3. [`Op::decide`] what to store and what to tell the caller;
//! 4. commit: store those words at once, or end without storing.
//!
//! An attempt that is preempted, migrated or signalled before step 4 has changed nothing and
//! starts again at step 1. On the shared lane, and where lanes are locked, the same four steps are
//! one locked instruction or a compare-exchange loop; but where there is a guard, which is another word.
//! For [`Op::AddUnless`] the add comes first there, then the guard is looked at, and the add is taken back
//! on the same lane if it is up. For [`Op::AddWithinAtMost`] and [`Op::AddWithinAtLeast`] the guard is
//! looked at after the words that the compare-exchange then finds unchanged.
//!
//! Words are bits here. `i64` and `u64` differ only in which of two values is the smaller, so only
//! the minimum and the maximum come in two forms.

/// One operation with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Adds, wrapping.
    Add(u64),
    /// Adds, wrapping, and returns the lane's new value.
    AddReturn(u64),
    /// Stores `new` if the lane holds `old`; returns what it held.
    CompareExchange {
        /// The value expected.
        old: u64,
        /// The value to store.
        new: u64,
    },
    /// Stores a value and returns the one before.
    Exchange(u64),
    /// Stores the value if it is below the lane's, as `i64`.
    StoreMinSigned(i64),
    /// Stores the value if it is below the lane's, as `u64`.
    StoreMinUnsigned(u64),
    /// Stores the value if it is above the lane's, as `i64`.
    StoreMaxSigned(i64),
    /// Stores the value if it is above the lane's, as `u64`.
    StoreMaxUnsigned(u64),
    /// Adds if the guard word is zero.
    AddUnless(u64),
    /// Adds to the first of two adjacent words, if it is then no further than `most` from the second.
    AddWithin {
        /// What is added.
        n: u64,
        /// The largest distance, below 2^62.
        most: u64,
    },
    /// The same, if the guard word, as `i64`, is also at most `limit`.
    AddWithinAtMost {
        /// What is added.
        n: u64,
        /// The largest distance, below 2^62.
        most: u64,
        /// The largest guard.
        limit: i64,
    },
    /// The same, if the guard word, as `i64`, is also at least `limit`.
    AddWithinAtLeast {
        /// What is added.
        n: u64,
        /// The largest distance, below 2^62.
        most: u64,
        /// The smallest guard.
        limit: i64,
    },
    /// Adds to two adjacent words at once, each wrapping.
    AddPair([u64; 2]),
    /// Stores two adjacent words at once if the lane holds `old` in both; returns what it held.
    CompareExchangePair {
        /// The values expected.
        old: [u64; 2],
        /// The values to store.
        new: [u64; 2],
    },
}

/// What the caller is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Nothing but that it is done.
    Done,
    /// A value: the new one of [`Op::AddReturn`], the old one of [`Op::Exchange`].
    Value(u64),
    /// Whether anything was stored.
    Stored(bool),
    /// The exchange took place; this was there before.
    Exchanged([u64; 2]),
    /// Another value was there, and nothing was stored.
    Mismatch([u64; 2]),
}

/// The result of step 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decision {
    /// The words to store at once, the second one meaningless where [`Op::width`] is 1; or nothing
    /// to store.
    pub commit: Option<[u64; 2]>,
    /// What the caller is told, once the commit has run.
    pub outcome: Outcome,
}

impl Op {
    /// How many adjacent words the operation loads and stores: 1 or 2.
    pub const fn width(self) -> usize {
        match self {
            Op::AddPair(_)
            | Op::CompareExchangePair { .. }
            | Op::AddWithin { .. }
            | Op::AddWithinAtMost { .. }
            | Op::AddWithinAtLeast { .. } => 2,
            _ => 1,
        }
    }

    /// Whether the operation also loads a guard word, which lies outside the lanes.
    pub const fn has_guard(self) -> bool {
        matches!(
            self,
            Op::AddUnless(_) | Op::AddWithinAtMost { .. } | Op::AddWithinAtLeast { .. }
        )
    }

    /// Decides from the words that the lane holds and the guard (0 where there is none).
    pub fn decide(self, held: [u64; 2], guard: u64) -> Decision {
        let word = held[0];
        let one = |value: u64| Some([value, held[1]]);
        let store_if = |better: bool, value: u64| Decision {
            commit: if better { one(value) } else { None },
            outcome: Outcome::Stored(better),
        };
        let add_within = |n: u64, most: u64, allowed: bool| {
            let sum = word.wrapping_add(n);
            let distance = sum.wrapping_sub(held[1]) as i64;
            store_if(allowed && distance.unsigned_abs() <= most, sum)
        };
        match self {
            Op::Add(n) => Decision {
                commit: one(word.wrapping_add(n)),
                outcome: Outcome::Done,
            },
            Op::AddReturn(n) => {
                let sum = word.wrapping_add(n);
                Decision {
                    commit: one(sum),
                    outcome: Outcome::Value(sum),
                }
            }
            Op::CompareExchange { old, new } if word == old => Decision {
                commit: one(new),
                outcome: Outcome::Exchanged([word, 0]),
            },
            Op::CompareExchange { .. } => Decision {
                commit: None,
                outcome: Outcome::Mismatch([word, 0]),
            },
            Op::Exchange(new) => Decision {
                commit: one(new),
                outcome: Outcome::Value(word),
            },
            Op::StoreMinSigned(v) => store_if(v < word as i64, v as u64),
            Op::StoreMinUnsigned(v) => store_if(v < word, v),
            Op::StoreMaxSigned(v) => store_if(v > word as i64, v as u64),
            Op::StoreMaxUnsigned(v) => store_if(v > word, v),
            Op::AddUnless(n) => store_if(guard == 0, word.wrapping_add(n)),
            Op::AddWithin { n, most } => add_within(n, most, true),
            Op::AddWithinAtMost { n, most, limit } => add_within(n, most, guard as i64 <= limit),
            Op::AddWithinAtLeast { n, most, limit } => add_within(n, most, guard as i64 >= limit),
            Op::AddPair([a, b]) => Decision {
                commit: Some([word.wrapping_add(a), held[1].wrapping_add(b)]),
                outcome: Outcome::Done,
            },
            Op::CompareExchangePair { old, new } if held == old => Decision {
                commit: Some(new),
                outcome: Outcome::Exchanged(held),
            },
            Op::CompareExchangePair { .. } => Decision {
                commit: None,
                outcome: Outcome::Mismatch(held),
            },
        }
    }
}
