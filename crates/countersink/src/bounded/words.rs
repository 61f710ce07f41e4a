//! The words of batch counters: where lanes publish, and how wide batches are.

use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use countersink_percpu::{Lane, PairSlot, Slots};

use super::carry::{self, Both, OnThisCpu, Step};
use super::carrying::{self, Carrying};
use super::estimate::Estimate;
use super::local::Local;

/// Attempts that others' publishing makes fail.
const MOST_ATTEMPTS: usize = 16;

/// One counter's words.
///
/// The pair is value and published in each lane; in the bias lane, it is what the lanes publish to: the word that
/// is never below the sum of what they have published, and the one that is never above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    pub(crate) pair: PairSlot<'a, i64>,
    /// In the bias lane, the first: how much all lanes together may have that is not published; `i64::MAX` where some do not
    /// publish at all. It only rises.
    pub(crate) slack: PairSlot<'a, i64>,
}

impl<'a> Words<'a> {
    /// Those of one of the counters of an entry: their pairs, and behind them that of the slack.
    #[inline(always)]
    pub(crate) fn of(all: &Slots<'a>, index: usize) -> Option<Self> {
        let counters = all.len().checked_sub(2)?;
        let at = (2 * index < counters).then_some(2 * index)?;
        Some(Words {
            pair: all.pair(at)?.signed(),
            slack: all.pair(counters)?.signed(),
        })
    }

    #[inline(always)]
    fn published(&self) -> Both<&'a AtomicI64> {
        published(self.pair)
    }

    /// Notes that batches are at least so wide, before any is.
    pub(crate) fn widen(&self, batch: u32) {
        let most = u64::from(batch.max(1) - 1);
        let slack = i64::try_from(self.pair.lanes().saturating_mul(most));
        self.slack_word()
            .fetch_max(slack.unwrap_or(i64::MAX - 1), AcqRel);
    }

    /// Makes all words of the counter's entry ready to be counted in.
    pub(crate) fn prepare(&self, all: Slots<'static>, local: &Local<4>) {
        local.prepare(all, default_batch, |batch| self.widen(batch));
    }

    #[inline(always)]
    fn slack_word(&self) -> &'a AtomicI64 {
        let [word, _] = self.slack.bias_words();
        word
    }

    /// How much all lanes together may have that is not published.
    #[inline(always)]
    pub(crate) fn unpublished(&self) -> i64 {
        self.slack_word().load(Acquire)
    }

    /// What is known without looking at the lanes.
    pub(crate) fn estimate(&self) -> Estimate {
        let [upper, lower] = self.pair.load(Lane::Bias).unwrap_or_default();
        // Afterwards: what was unpublished then was within a batch that had been noted by now.
        Estimate::between(lower, upper, self.unpublished())
    }

    /// What is most likely.
    #[inline(always)]
    pub(crate) fn read(&self) -> i64 {
        let [upper, lower] = self.pair.load(Lane::Bias).unwrap_or_default();
        Estimate::between(lower, upper, 0).value
    }

    /// Adds where the lane has to publish, or where the attempt was aborted.
    #[inline(always)]
    pub(crate) fn carry(&self, n: i64, most: u64) {
        // The words themselves, so that a loop keeps them in registers.
        carry(self.pair, n, most);
    }

    /// Adds without publishing, so that nothing is known of the sum but by looking at all lanes.
    #[inline(always)]
    pub(crate) fn add_local(&self, n: i64) {
        if self.unpublished() != i64::MAX {
            self.slack_word().store(i64::MAX, Release);
        }
        self.pair.first().add(n);
    }

    /// Adds if the sum is on this side of the limit afterwards, as far as can be told without looking at the lanes.
    #[inline(always)]
    pub(crate) fn limited_add(&self, limit: i64, n: i64, most: u64) -> bool {
        let Both { upper, lower } = self.published();
        let slack = self.unpublished();
        // Saturated, which refuses; the carry tells exactly. And so does what is not known at all.
        let added = if slack == i64::MAX {
            false
        } else if n > 0 {
            let limit = limit.saturating_sub(slack);
            limit > i64::MIN && self.pair.try_add_within_at_most(n, most, upper, limit)
        } else {
            let limit = limit.saturating_add(slack);
            limit < i64::MAX && self.pair.try_add_within_at_least(n, most, lower, limit)
        };
        added || n == 0 || limited_carry(self.slack, self.pair, [limit, n], most)
    }

    /// See [`carry::set`].
    pub(crate) fn set(&self, value: i64) -> i64 {
        let _carrying = Carrying::begin();
        carry::set(&self.pair, value, &self.published())
    }

    /// The sum over all lanes, as the estimates allow it.
    pub(crate) fn sum(&self) -> i64 {
        carry::sum_within(&self.pair, || self.estimate())
    }

    /// Makes the two words what the lanes have published; whether it did. Not while a thread of this process is in the middle
    /// of publishing.
    pub(crate) fn sync(&self) -> bool {
        (0..MOST_ATTEMPTS).any(|_| self.try_sync().unwrap_or(false))
    }

    /// Nobody was in the middle while the two words and the lanes were loaded, since nobody has begun from before to
    /// after. If the two are still the same then, nobody is now: whoever publishes moves one of the two first, and from there they only
    /// come back to what they were with nobody in the middle and nothing published in all.
    fn try_sync(&self) -> Option<bool> {
        let begun = carrying::quiet()?;
        let held = self.pair.load(Lane::Bias)?;
        let published = carry::sum(&self.pair, 1);
        if carrying::begun() != Some(begun) {
            return None;
        }
        let exchanged = self.pair.compare_exchange_bias(held, [published; 2]);
        Some(exchanged.is_ok())
    }
}

/// What the kernel takes.
fn default_batch() -> u32 {
    countersink_percpu::online_cpus().saturating_mul(2).max(32)
}

#[inline(always)]
fn published(pair: PairSlot<'_, i64>) -> Both<&AtomicI64> {
    let [upper, lower] = pair.bias_words();
    Both { upper, lower }
}

#[cold]
#[inline(never)]
fn carry(pair: PairSlot<'_, i64>, n: i64, most: u64) {
    let _carrying = Carrying::begin();
    carry::add(&OnThisCpu(pair), i128::from(n), most, &published(pair));
}

#[cold]
#[inline(never)]
fn limited_carry(
    slack: PairSlot<'_, i64>,
    pair: PairSlot<'_, i64>,
    [limit, n]: [i64; 2],
    most: u64,
) -> bool {
    let _carrying = Carrying::begin();
    let words = Words { slack, pair };
    let published = published(pair);
    let up = n > 0;
    let word = if up { published.upper } else { published.lower };
    let allow = |step: Step| {
        let slack = words.unpublished();
        if slack == i64::MAX {
            return false;
        }
        let mut held = word.load(Acquire);
        loop {
            let by = i128::from(step.by) + i128::from(slack);
            let allowed = if up {
                i128::from(held) + by <= i128::from(limit)
            } else {
                i128::from(held) - by >= i128::from(limit)
            };
            if !allowed || step.by == 0 {
                return allowed;
            }
            let moved = held.wrapping_add(step.signed() as i64);
            match word.compare_exchange_weak(held, moved, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(newer) => held = newer,
            }
        }
    };
    carry::add_if(&OnThisCpu(pair), n, most, &published, allow)
}
