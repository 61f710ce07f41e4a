//! A known number of adjacent words, and the place in a `static` where its handle is kept.
#![allow(unsafe_code)]

use core::fmt;
use core::marker::PhantomData;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crate::arch::At;
use crate::segment::Segment;
use crate::slot::{PairSlot, Slot, Slots, Word};

/// The handle of `N` adjacent words: [`Slots`] with a length that the compiler knows, so that which
/// words there are is checked when the program is built.
pub struct Block<'a, const N: usize> {
    at: At,
    segment: PhantomData<&'a Segment>,
}

impl<'a, const N: usize> Block<'a, N> {
    /// One of the words.
    #[inline(always)]
    pub fn slot<const I: usize, T: Word>(&self) -> Slot<'a, T> {
        const { assert!(I < N, "there are fewer words") };
        // SAFETY: one of the words that from() was promised.
        unsafe { Slot::new(self.at.add(I)) }
    }

    /// Word `I` and the next as a pair.
    #[inline(always)]
    pub fn pair<const I: usize, T: Word>(&self) -> PairSlot<'a, T> {
        const { assert!(I.is_multiple_of(2) && I + 1 < N, "no pair begins here") };
        // SAFETY: two of the words; a block begins at an even place.
        unsafe { PairSlot::new(self.at.add(I)) }
    }
}

impl<'a> Slots<'a, u64> {
    /// The first `N` words; `None` if there are fewer, or if `N` is more than 1 and they do not begin
    /// at an even place in their lane.
    #[inline]
    pub fn block<const N: usize>(&self) -> Option<Block<'a, N>> {
        let at = self.at();
        let aligned = N == 1 || at.word.addr().is_multiple_of(2 * size_of::<u64>());
        (aligned && self.len() >= N).then_some(Block {
            at,
            segment: PhantomData,
        })
    }
}

/// Where a handle of at least `N` words is kept that is not there from the start: a `static` begins
/// empty, whoever needs the words first gets some and publishes them.
///
/// Reading one costs two loads and a comparison; publishing takes no lock, and may happen in a signal
/// handler.
pub struct BlockCell<const N: usize> {
    /// Null until published, and written last.
    word: AtomicPtr<u64>,
    lanes_and_area: AtomicU64,
    count: AtomicUsize,
}

impl<const N: usize> BlockCell<N> {
    /// An empty cell.
    pub const fn new() -> Self {
        BlockCell {
            word: AtomicPtr::new(null_mut()),
            lanes_and_area: AtomicU64::new(0),
            count: AtomicUsize::new(0),
        }
    }

    /// The first `N` words; `None` while the cell is empty.
    #[inline(always)]
    pub fn get(&self) -> Option<Block<'static, N>> {
        Some(Block {
            at: self.at()?,
            segment: PhantomData,
        })
    }

    /// All words; `None` while the cell is empty.
    #[inline(always)]
    pub fn slots(&self) -> Option<Slots<'static>> {
        let at = self.at()?;
        // SAFETY: what was published, which lives forever.
        Some(unsafe { Slots::new(at, self.count.load(Relaxed)) })
    }

    #[inline(always)]
    fn at(&self) -> Option<At> {
        // Acquire pairs with the release in publish(): whoever sees the word sees the rest.
        let word = self.word.load(Acquire);
        (!word.is_null()).then(|| At::of_parts(word, self.lanes_and_area.load(Relaxed)))
    }

    /// Fills the cell, unless somebody has; returns what it holds then, and whether that is ours.
    ///
    /// # Errors
    /// The words themselves, and nothing was published, if they are fewer than `N`, do not begin at
    /// an even place where `N` is more than 1, or if somebody who publishes at the same time has another number of words or of
    /// lanes, or another mechanism: what is published must be of one kind.
    pub fn publish(&self, words: Slots<'static>) -> Result<Published, Slots<'static>> {
        let Some(block) = words.block::<N>() else {
            return Err(words);
        };
        let (word, lanes_and_area) = block.at.parts();
        // These are the same for all who publish here, so it does not matter whose are stored.
        let lanes = self
            .lanes_and_area
            .compare_exchange(0, lanes_and_area, AcqRel, Acquire);
        let count = self.count.compare_exchange(0, words.len(), AcqRel, Acquire);
        if !same(lanes, lanes_and_area) || !same(count, words.len()) {
            return Err(words);
        }
        match self
            .word
            .compare_exchange(null_mut(), word, AcqRel, Acquire)
        {
            Ok(_) => Ok(Published::Ours(words)),
            Err(theirs) => {
                let at = At::of_parts(theirs, lanes_and_area);
                // SAFETY: what another has published, of the same kind.
                Ok(Published::Theirs(unsafe { Slots::new(at, words.len()) }))
            }
        }
    }
}

/// What a cell holds after [`BlockCell::publish`].
#[derive(Clone, Copy, Debug)]
pub enum Published {
    /// The words that were to be published.
    Ours(Slots<'static>),
    /// Those of somebody who was first.
    Theirs(Slots<'static>),
}

/// Whether a value was stored or was there.
fn same<T: PartialEq>(exchanged: Result<T, T>, value: T) -> bool {
    match exchanged {
        Ok(_) => true,
        Err(held) => held == value,
    }
}

impl<const N: usize> Default for BlockCell<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> fmt::Debug for BlockCell<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockCell").field(&self.slots()).finish()
    }
}

impl<const N: usize> Clone for Block<'_, N> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize> Copy for Block<'_, N> {}

impl<const N: usize> fmt::Debug for Block<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Block").field("at", &self.at).finish()
    }
}

// SAFETY: as for the handles that it is made of.
unsafe impl<const N: usize> Send for Block<'_, N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Block<'_, N> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment() -> &'static Segment {
        Box::leak(Box::new(Segment::private().expect("memory")))
    }

    #[test]
    fn the_first_to_publish_wins() {
        let segment = segment();
        let cell = BlockCell::<2>::new();
        assert!(cell.get().is_none() && cell.slots().is_none());
        let mine = segment.slots(0, 4).expect("words");
        assert!(matches!(cell.publish(mine), Ok(Published::Ours(_))));
        let other = segment.slots(8, 4).expect("words");
        let Ok(Published::Theirs(held)) = cell.publish(other) else {
            panic!("the first is there");
        };
        mine.get(3).expect("a word").add(5);
        assert_eq!(held.get(3).expect("a word").sum(), 5);
        let block = cell.get().expect("published");
        block.pair::<0, u64>().add([1, 2]);
        assert_eq!(block.slot::<1, u64>().sum(), 2);
        assert_eq!(cell.slots().expect("published").len(), 4);
    }

    #[test]
    fn words_of_another_kind_are_not_published() {
        let segment = segment();
        let cell = BlockCell::<2>::new();
        let refused = |first, count| {
            let words = segment.slots(first, count).expect("words");
            cell.publish(words).is_err()
        };
        assert!(refused(0, 1), "too few");
        assert!(refused(1, 2), "at an odd place");
        assert!(cell.get().is_none());
        assert!(!refused(0, 2));
        assert!(refused(0, 4), "more than there are");
    }
}
