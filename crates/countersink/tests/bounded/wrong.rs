//! Counters with the known mistakes, and the same without, all with one lane for each adder.
//!
//! Where somebody else has to come in between for the mistake to be seen, they wait there (`pause`), so that it does not
//! depend on luck whether a test finds them.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use countersink::Estimate;

use crate::common::cpus::pause;
use crate::common::log::{self, Line};
use crate::truth::Counts;

/// The kernel's: what a lane has is folded into one word when it is a batch.
#[derive(Debug)]
pub(crate) struct Kernel {
    lanes: &'static [Line],
    folded: AtomicU64,
    batch: i64,
    /// `unlikely(abs(count)) >= batch`: so a batch is never full.
    misplaced_parenthesis: bool,
}

impl Kernel {
    pub(crate) fn new(adders: usize, batch: u32, misplaced_parenthesis: bool) -> &'static Self {
        Box::leak(Box::new(Kernel {
            lanes: log::shared(adders),
            folded: AtomicU64::new(0),
            batch: i64::from(batch),
            misplaced_parenthesis,
        }))
    }
}

impl Counts for Kernel {
    fn add(&self, adder: usize, n: i64) {
        let lane = &self.lanes[adder];
        let count = (lane.get(0) as i64).wrapping_add(n);
        let size = if self.misplaced_parenthesis {
            i64::from(count != 0)
        } else {
            count.abs()
        };
        if size >= self.batch {
            self.folded.fetch_add(count as u64, SeqCst);
            lane.set(0, 0);
        } else {
            lane.set(0, count as u64);
        }
    }

    fn estimate(&self) -> Estimate {
        Estimate {
            value: self.folded.load(SeqCst) as i64,
            bound: self.lanes.len() as u64 * (self.batch as u64 - 1),
        }
    }

    fn sum(&self) -> i64 {
        let lanes = self.lanes.iter().map(|lane| lane.get(0));
        lanes.fold(self.folded.load(SeqCst), u64::wrapping_add) as i64
    }
}

/// In which order an addition moves the words that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// One before the lane, and the other behind it: as it has to be.
    AroundTheLane,
    Behind,
    Before,
}

/// Lanes of value and published, in shared memory, so that adders can be killed in the middle of an addition.
#[derive(Debug)]
pub(crate) struct Published {
    lanes: &'static [Line],
    /// The upper and the lower word.
    words: &'static Line,
    batch: i64,
    order: Order,
    /// Whether the bound is told without what the two words are apart.
    forgets_the_gap: bool,
}

const VALUE_AND_PUBLISHED: usize = 0;

impl Published {
    pub(crate) fn new(
        adders: usize,
        batch: u32,
        order: Order,
        forgets_the_gap: bool,
    ) -> &'static Self {
        Box::leak(Box::new(Published {
            lanes: log::shared(adders),
            words: &log::shared(1)[0],
            batch: i64::from(batch),
            order,
            forgets_the_gap,
        }))
    }

    /// In one word, so that both change at once.
    fn lane(&self, adder: usize) -> [i32; 2] {
        let held = self.lanes[adder].get(VALUE_AND_PUBLISHED);
        [(held >> 32) as i32, held as i32]
    }

    fn commit(&self, adder: usize, [value, published]: [i32; 2]) {
        let held = u64::from(value as u32) << 32 | u64::from(published as u32);
        self.lanes[adder].set(VALUE_AND_PUBLISHED, held);
    }

    fn move_word(&self, upper: bool, n: i32) {
        let word = self.words.word(usize::from(!upper));
        pause();
        word.fetch_add(i64::from(n) as u64, SeqCst);
        pause();
    }

    /// Publishes what killed adders have left, while nobody adds: or what one of them leaves between the words hides what
    /// others do wrong later.
    pub(crate) fn repair(&self) {
        let published = (0..self.lanes.len()).map(|adder| i64::from(self.lane(adder)[1]));
        let published = published.sum::<i64>() as u64;
        (0..2).for_each(|word| self.words.set(word, published));
    }
}

impl Counts for Published {
    fn add(&self, adder: usize, n: i64) {
        let [value, published] = self.lane(adder);
        let value = value + n as i32;
        let apart = value - published;
        if i64::from(apart).abs() < self.batch {
            return self.commit(adder, [value, published]);
        }
        let up = apart > 0;
        let (before, behind): (&[bool], &[bool]) = match self.order {
            Order::AroundTheLane => (&[up], &[!up]),
            Order::Behind => (&[], &[up, !up]),
            Order::Before => (&[up, !up], &[]),
        };
        before
            .iter()
            .for_each(|upper| self.move_word(*upper, apart));
        self.commit(adder, [value, value]);
        behind
            .iter()
            .for_each(|upper| self.move_word(*upper, apart));
    }

    fn estimate(&self) -> Estimate {
        let [high, low] = [0, 1].map(|word| self.words.get(word) as i64);
        let gap = high.abs_diff(low);
        let slack = self.lanes.len() as u64 * (self.batch as u64 - 1);
        Estimate {
            value: low.min(high) + (gap / 2) as i64,
            bound: slack
                + if self.forgets_the_gap {
                    0
                } else {
                    gap.div_ceil(2)
                },
        }
    }

    fn sum(&self) -> i64 {
        (0..self.lanes.len())
            .map(|adder| i64::from(self.lane(adder)[0]))
            .sum()
    }
}
