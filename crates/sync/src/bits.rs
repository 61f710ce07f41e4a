//! Bits of words, written always or only where they change.
//!
//! A write makes the cache line this CPU's alone, and every other that reads it has to fetch it again. The *checked* forms read
//! first and write only what changes: they cost a comparison more where something does change, and leave the
//! line shared where nothing does. `bench check-before-set` says from which share of unchanged bits on that pays.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The word that a bit is in, and its mask there.
#[inline(always)]
const fn place(bit: usize) -> (usize, u64) {
    (bit / 64, 1 << (bit % 64))
}

/// Bits of `[u64]`: bit `n` is bit `n % 64` of word `n / 64`.
///
/// # Panics
/// All panic, as an index does, if there is no such word.
///
/// ```
/// use countersink_sync::Bits;
///
/// let mut words = [0_u64; 2];
/// words.set(70);
/// assert_eq!(words, [0, 1 << 6]);
/// assert!(words.test_and_set_checked(70));
/// ```
pub trait Bits {
    /// Whether it is set.
    fn test(&self, bit: usize) -> bool;
    /// Sets it.
    fn set(&mut self, bit: usize);
    /// Sets it; writes only if it was clear.
    fn set_checked(&mut self, bit: usize);
    /// Clears it.
    fn clear(&mut self, bit: usize);
    /// Clears it; writes only if it was set.
    fn clear_checked(&mut self, bit: usize);
    /// Makes it what it was not. There is no checked form, as it always changes.
    fn change(&mut self, bit: usize);
    /// Makes it what is given.
    fn assign(&mut self, bit: usize, value: bool);
    /// Makes it what is given; writes only if it was not.
    fn assign_checked(&mut self, bit: usize, value: bool);
    /// Sets it; whether it was set.
    fn test_and_set(&mut self, bit: usize) -> bool;
    /// Sets it, and writes only if it was clear; whether it was set.
    fn test_and_set_checked(&mut self, bit: usize) -> bool;
    /// Clears it; whether it was set.
    fn test_and_clear(&mut self, bit: usize) -> bool;
    /// Clears it, and writes only if it was set; whether it was.
    fn test_and_clear_checked(&mut self, bit: usize) -> bool;
}

impl Bits for [u64] {
    #[inline]
    fn test(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        self[word] & mask != 0
    }

    #[inline]
    fn set(&mut self, bit: usize) {
        let (word, mask) = place(bit);
        self[word] |= mask;
    }

    #[inline]
    fn set_checked(&mut self, bit: usize) {
        let (word, mask) = place(bit);
        let word = &mut self[word];
        if *word & mask == 0 {
            *word |= mask;
        }
    }

    #[inline]
    fn clear(&mut self, bit: usize) {
        let (word, mask) = place(bit);
        self[word] &= !mask;
    }

    #[inline]
    fn clear_checked(&mut self, bit: usize) {
        let (word, mask) = place(bit);
        let word = &mut self[word];
        if *word & mask != 0 {
            *word &= !mask;
        }
    }

    #[inline]
    fn change(&mut self, bit: usize) {
        let (word, mask) = place(bit);
        self[word] ^= mask;
    }

    #[inline]
    fn assign(&mut self, bit: usize, value: bool) {
        if value {
            self.set(bit)
        } else {
            self.clear(bit)
        }
    }

    #[inline]
    fn assign_checked(&mut self, bit: usize, value: bool) {
        if value {
            self.set_checked(bit);
        } else {
            self.clear_checked(bit);
        }
    }

    #[inline]
    fn test_and_set(&mut self, bit: usize) -> bool {
        let was = self.test(bit);
        self.set(bit);
        was
    }

    #[inline]
    fn test_and_set_checked(&mut self, bit: usize) -> bool {
        let was = self.test(bit);
        if !was {
            self.set(bit);
        }
        was
    }

    #[inline]
    fn test_and_clear(&mut self, bit: usize) -> bool {
        let was = self.test(bit);
        self.clear(bit);
        was
    }

    #[inline]
    fn test_and_clear_checked(&mut self, bit: usize) -> bool {
        let was = self.test(bit);
        if was {
            self.clear(bit);
        }
        was
    }
}

/// Bits of `[AtomicU64]`, as [`Bits`], for threads that share them. Each operation is atomic, and so is each checked one, as if
/// it had happened when it read.
///
/// Those that only write order nothing. Those that test and write are acquire and release together where they write, and
/// acquire where a checked one finds that it need not.
///
/// # Panics
/// All panic, as an index does, if there is no such word.
pub trait AtomicBits {
    /// Whether it is set. Orders nothing.
    fn test(&self, bit: usize) -> bool;
    /// Sets it.
    fn set(&self, bit: usize);
    /// Sets it; writes only if it was clear.
    fn set_checked(&self, bit: usize);
    /// Clears it.
    fn clear(&self, bit: usize);
    /// Clears it; writes only if it was set.
    fn clear_checked(&self, bit: usize);
    /// Makes it what it was not. There is no checked form, as it always changes.
    fn change(&self, bit: usize);
    /// Makes it what is given.
    fn assign(&self, bit: usize, value: bool);
    /// Makes it what is given; writes only if it was not.
    fn assign_checked(&self, bit: usize, value: bool);
    /// Sets it; whether it was set. Of several that do so at once, one is told that it was not.
    fn test_and_set(&self, bit: usize) -> bool;
    /// Sets it, and writes only if it was clear; whether it was set.
    fn test_and_set_checked(&self, bit: usize) -> bool;
    /// Clears it; whether it was set.
    fn test_and_clear(&self, bit: usize) -> bool;
    /// Clears it, and writes only if it was set; whether it was.
    fn test_and_clear_checked(&self, bit: usize) -> bool;
}

impl AtomicBits for [AtomicU64] {
    #[inline]
    fn test(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        self[word].load(Relaxed) & mask != 0
    }

    #[inline]
    fn set(&self, bit: usize) {
        let (word, mask) = place(bit);
        self[word].fetch_or(mask, Relaxed);
    }

    #[inline]
    fn set_checked(&self, bit: usize) {
        if !AtomicBits::test(self, bit) {
            AtomicBits::set(self, bit);
        }
    }

    #[inline]
    fn clear(&self, bit: usize) {
        let (word, mask) = place(bit);
        self[word].fetch_and(!mask, Relaxed);
    }

    #[inline]
    fn clear_checked(&self, bit: usize) {
        if AtomicBits::test(self, bit) {
            AtomicBits::clear(self, bit);
        }
    }

    #[inline]
    fn change(&self, bit: usize) {
        let (word, mask) = place(bit);
        self[word].fetch_xor(mask, Relaxed);
    }

    #[inline]
    fn assign(&self, bit: usize, value: bool) {
        if value {
            AtomicBits::set(self, bit);
        } else {
            AtomicBits::clear(self, bit);
        }
    }

    #[inline]
    fn assign_checked(&self, bit: usize, value: bool) {
        if AtomicBits::test(self, bit) != value {
            self.assign(bit, value);
        }
    }

    #[inline]
    fn test_and_set(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        self[word].fetch_or(mask, AcqRel) & mask != 0
    }

    #[inline]
    fn test_and_set_checked(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        let word = &self[word];
        word.load(Acquire) & mask != 0 || word.fetch_or(mask, AcqRel) & mask != 0
    }

    #[inline]
    fn test_and_clear(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        self[word].fetch_and(!mask, AcqRel) & mask != 0
    }

    #[inline]
    fn test_and_clear_checked(&self, bit: usize) -> bool {
        let (word, mask) = place(bit);
        let word = &self[word];
        word.load(Acquire) & mask != 0 && word.fetch_and(!mask, AcqRel) & mask != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::catch_unwind;

    use proptest::prelude::*;

    use super::*;

    const WORDS: usize = 3;
    const BITS: usize = 64 * WORDS;

    /// What all operations do to a set of numbers; what they return.
    fn model(set: &mut BTreeSet<usize>, op: usize, bit: usize) -> bool {
        let was = set.contains(&bit);
        let now = match op {
            0 => was,
            1 | 2 | 6 | 7 | 10 | 11 => true,
            3 | 4 | 8 | 9 | 12 | 13 => false,
            _ => !was,
        };
        if now {
            set.insert(bit);
        } else {
            set.remove(&bit);
        }
        matches!(op, 0 | 10..) && was
    }

    macro_rules! apply {
        ($trait:ident, $words:expr, $op:expr, $bit:expr) => {{
            let (words, bit) = ($words, $bit);
            let mut told = false;
            match $op {
                0 => told = $trait::test(words, bit),
                1 => $trait::set(words, bit),
                2 => $trait::set_checked(words, bit),
                3 => $trait::clear(words, bit),
                4 => $trait::clear_checked(words, bit),
                5 => $trait::change(words, bit),
                6 => $trait::assign(words, bit, true),
                7 => $trait::assign_checked(words, bit, true),
                8 => $trait::assign(words, bit, false),
                9 => $trait::assign_checked(words, bit, false),
                10 => told = $trait::test_and_set(words, bit),
                11 => told = $trait::test_and_set_checked(words, bit),
                12 => told = $trait::test_and_clear(words, bit),
                _ => told = $trait::test_and_clear_checked(words, bit),
            }
            told
        }};
    }

    const OPS: usize = 14;

    proptest! {
        #[test]
        fn are_a_set_of_numbers(ops in prop::collection::vec((0..OPS, 0..BITS), 0..200)) {
            let mut set = BTreeSet::new();
            let mut words = [0_u64; WORDS];
            let atomics = [const { AtomicU64::new(0) }; WORDS];
            for (op, bit) in ops {
                let told = model(&mut set, op, bit);
                prop_assert_eq!(apply!(Bits, &mut words[..], op, bit), told, "{} {}", op, bit);
                prop_assert_eq!(apply!(AtomicBits, &atomics[..], op, bit), told, "{} {}", op, bit);
                let all: BTreeSet<_> = (0..BITS).filter(|bit| Bits::test(&words[..], *bit)).collect();
                prop_assert_eq!(&all, &set);
                prop_assert_eq!(atomics.each_ref().map(|word| word.load(Relaxed)), words);
            }
        }
    }

    #[test]
    fn beyond_the_last_word_is_a_panic_as_with_slices() {
        for op in 0..OPS {
            for bit in [BITS, BITS + 63, usize::MAX] {
                let plain = catch_unwind(|| {
                    let mut words = [0_u64; WORDS];
                    apply!(Bits, &mut words[..], op, bit)
                });
                let atomics = [const { AtomicU64::new(0) }; WORDS];
                let atomic = catch_unwind(|| apply!(AtomicBits, &atomics[..], op, bit));
                for result in [plain, atomic] {
                    let message = *result
                        .expect_err("a panic")
                        .downcast::<String>()
                        .expect("text");
                    assert!(message.starts_with("index out of bounds"), "{message}");
                }
            }
        }
    }

    /// A checked operation that finds nothing to do does not write: these words cannot be written.
    #[test]
    fn checked_ones_do_not_write_what_is_so() {
        static ONES: [u64; 1] = [u64::MAX];
        let words = std::ptr::from_ref(&ONES[..]);
        assert!(unwritten(words));
    }

    /// In memory that is read only.
    #[allow(unsafe_code)]
    fn unwritten(words: *const [u64]) -> bool {
        // SAFETY: atomics are laid out as their values; that nothing is written is what is tested, or the test dies.
        let atomics = unsafe { &*(words as *const [AtomicU64]) };
        atomics.set_checked(5);
        AtomicBits::assign_checked(atomics, 5, true);
        AtomicBits::test_and_set_checked(atomics, 5)
    }

    /// Of threads that race for bits, each bit has one winner.
    #[test]
    fn one_thread_sets_each_bit() {
        let words: Vec<AtomicU64> = (0..64).map(|_| AtomicU64::new(0)).collect();
        let won = std::thread::scope(|scope| {
            let race = |checked| {
                let words = &words;
                move || {
                    let set = |bit: &usize| match checked {
                        true => !words.test_and_set_checked(*bit),
                        false => !words.test_and_set(*bit),
                    };
                    (0..64 * 64).filter(set).count()
                }
            };
            let threads: Vec<_> = (0..4).map(|at| scope.spawn(race(at % 2 == 0))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .sum::<usize>()
        });
        assert_eq!(won, 64 * 64);
    }
}
