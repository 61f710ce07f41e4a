//! Counting in lanes that publish what they hold in batches: what batch and tree counters have in common.
//!
//! A lane holds two words, its value *v* and what it has published of it, *p*; they are never further apart
//! than the widest batch less one. What is published is kept in two words that others read: one that is
//! never below the sum of all *p*, and one that is never above it. So a reader of those two knows between
//! which values the sum of all *v* is, at any instant, whoever is killed.
//!
//! An addition that would take *v* too far from *p* moves *p* with it, in one commit of 16 bytes. Before that,
//! it moves the one published word that must not be overtaken; behind it, the other.

use core::sync::atomic::AtomicI64;
use core::sync::atomic::Ordering::AcqRel;

use countersink_percpu::{Lane, PairSlot};

use super::estimate::Estimate;

/// A lane's two words, or others that are used like them.
pub(crate) trait Pair {
    /// What they are, if only just now.
    fn look(&self) -> [i64; 2];
    /// Makes them others if they are still the old ones.
    ///
    /// # Errors
    /// What they are instead.
    fn exchange(&self, old: [i64; 2], new: [i64; 2]) -> Result<(), [i64; 2]>;
    /// Adds the same to both, whatever they are.
    fn shift(&self, n: i64);
}

/// On whatever CPU the thread is.
pub(crate) struct OnThisCpu<'a>(pub(crate) PairSlot<'a, i64>);

impl Pair for OnThisCpu<'_> {
    fn look(&self) -> [i64; 2] {
        // Exchanges nothing for nothing at worst.
        match self.0.compare_exchange([0, 0], [0, 0]) {
            Ok(held) | Err(held) => held,
        }
    }

    fn exchange(&self, old: [i64; 2], new: [i64; 2]) -> Result<(), [i64; 2]> {
        self.0.compare_exchange(old, new).map(drop)
    }

    fn shift(&self, n: i64) {
        self.0.add([n, n]);
    }
}

/// In one lane, by locked instructions.
pub(crate) struct InLane<'a>(pub(crate) PairSlot<'a, i64>, pub(crate) Lane);

impl Pair for InLane<'_> {
    fn look(&self) -> [i64; 2] {
        self.0.load(self.1).unwrap_or_default()
    }

    fn exchange(&self, old: [i64; 2], new: [i64; 2]) -> Result<(), [i64; 2]> {
        self.0.compare_exchange_locked(self.1, old, new).map(drop)
    }

    fn shift(&self, n: i64) {
        let mut held = self.look();
        while let Err(found) = self.exchange(held, held.map(|word| word.wrapping_add(n))) {
            held = found;
        }
    }
}

/// What is published to.
pub(crate) trait Published {
    /// Moves what has to move before a lane does.
    fn before(&self, step: Step);
    /// Moves the rest, behind the lane.
    fn behind(&self, step: Step);
    /// Takes back what was moved before and not used.
    fn take_back(&self, step: Step);
}

/// Something that is added to.
pub(crate) trait Word {
    /// Adds, wrapping at 2^64.
    fn add(&self, n: i128);
}

impl Word for &AtomicI64 {
    fn add(&self, n: i128) {
        if n != 0 {
            // Release: who sees a lane published sees that it was announced, and the other way round.
            self.fetch_add(n as i64, AcqRel);
        }
    }
}

/// A word that is never below what is published to it, and one that is never above.
pub(crate) struct Both<W> {
    pub(crate) upper: W,
    pub(crate) lower: W,
}

impl<W: Word> Both<W> {
    fn word(&self, upper: bool) -> &W {
        if upper { &self.upper } else { &self.lower }
    }
}

impl<W: Word> Published for Both<W> {
    fn before(&self, step: Step) {
        self.word(step.up).add(step.signed());
    }

    fn behind(&self, step: Step) {
        self.word(!step.up).add(step.signed());
    }

    fn take_back(&self, step: Step) {
        self.word(step.up).add(-step.signed());
    }
}

/// How far a lane's published word moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) up: bool,
    /// Up to 2^63 and some batches, so not an `i64`.
    pub(crate) by: u64,
}

impl Step {
    pub(crate) const NONE: Step = Step { up: true, by: 0 };

    /// The step with which a lane that holds this can add `n`: none if it need not publish.
    ///
    /// Who steps in the same direction again steps a whole batch too far, so that the next step is two batches away;
    /// who turns does not, so that there is a batch's way in both directions. So steps are rarest for those
    /// who count in one direction, and never more than two in a batch's way. What is published is even after a step up
    /// and odd after one down: that is how the direction is known.
    pub(crate) fn of(held: [i64; 2], n: i128, most: u64) -> Step {
        let distance = distance(held, n);
        if distance.unsigned_abs() <= u128::from(most) {
            return Step::NONE;
        }
        let up = distance > 0;
        // At most 2^63 + a batch.
        let exact = distance.unsigned_abs() as u64;
        if most == 0 {
            return Step { up, by: exact };
        }
        let again = (held[1] & 1 == 0) == up;
        let far = exact + if again { most } else { 0 };
        // One less, if the number published would say the other direction.
        let odd = (far ^ held[1] as u64) & 1 == 1;
        let by = far - u64::from(odd == up);
        Step { up, by }
    }

    /// The shortest that will do.
    pub(crate) fn least(held: [i64; 2], n: i128, most: u64) -> Step {
        let distance = distance(held, n);
        Step {
            up: distance > 0,
            by: distance.unsigned_abs().saturating_sub(u128::from(most)) as u64,
        }
    }

    /// What is added to a word that moves with it.
    pub(crate) fn signed(self) -> i128 {
        if self.up {
            i128::from(self.by)
        } else {
            -i128::from(self.by)
        }
    }

    /// A word that has moved with it.
    fn moved(self, word: i64) -> i64 {
        word.wrapping_add(self.signed() as i64)
    }
}

/// How far the value is from what is published, once `n` is added.
fn distance(held: [i64; 2], n: i128) -> i128 {
    i128::from(held[0].wrapping_sub(held[1])) + n
}

/// Adds where [`PairSlot::add_within`] did not.
///
/// What is more than half a batch is published as it is, which needs no look at the lane: how far its words are apart does not
/// change. Otherwise repeated while others change the lane, which is always somebody's progress.
pub(crate) fn add(pair: &impl Pair, n: i128, most: u64, published: &impl Published) {
    if n.unsigned_abs() > u128::from(most / 2) {
        let step = Step {
            up: n > 0,
            by: n.unsigned_abs() as u64,
        };
        published.before(step);
        pair.shift(n as i64);
        published.behind(step);
        return;
    }
    let mut held = pair.look();
    let mut moved = Step::NONE;
    loop {
        let step = Step::of(held, n, most);
        if moved.by > 0 && step.by > 0 && moved.up != step.up {
            published.take_back(moved);
            moved = Step::NONE;
        }
        if step.by > moved.by {
            published.before(Step {
                by: step.by - moved.by,
                ..step
            });
            moved = step;
        }
        let new = [held[0].wrapping_add(n as i64), step.moved(held[1])];
        match pair.exchange(held, new) {
            Ok(()) => {
                published.behind(step);
                published.take_back(Step {
                    by: moved.by - step.by,
                    ..moved
                });
                return;
            }
            Err(found) => held = found,
        }
    }
}

/// Adds, if `allow` moves the word before the lane, or says that it need not move; whether it did.
///
/// `allow` is called again, and what it moved is taken back, whenever the lane has changed: so it was asked while
/// the lane was as it is when this commits.
pub(crate) fn add_if(
    pair: &impl Pair,
    n: i64,
    most: u64,
    published: &impl Published,
    allow: impl Fn(Step) -> bool,
) -> bool {
    let (up, n) = (n > 0, i128::from(n));
    let mut held = pair.look();
    loop {
        let toward = |step: Step| {
            if step.up == up {
                step
            } else {
                Step { up, by: 0 }
            }
        };
        let steps = [Step::of(held, n, most), Step::least(held, n, most)].map(toward);
        let Some(step) = steps.into_iter().find(|step| allow(*step)) else {
            return false;
        };
        let new = [held[0].wrapping_add(n as i64), step.moved(held[1])];
        match pair.exchange(held, new) {
            Ok(()) => {
                published.behind(step);
                return true;
            }
            Err(found) => {
                published.take_back(step);
                held = found;
            }
        }
    }
}

/// Makes the sum over all lanes another value, and returns what it was: each addition that runs meanwhile is,
/// for itself, part of what it was or comes on top.
///
/// On the shared lane, whose exchange fails if another has set the value in between.
pub(crate) fn set(pair: &PairSlot<'_, i64>, value: i64, published: &impl Published) -> i64 {
    let mut held = pair.load(Lane::Shared).unwrap_or_default();
    loop {
        let lanes = pair.values().skip(1);
        let sum = lanes.fold(held[0], |sum, lane| sum.wrapping_add(lane[0]));
        let difference = value.wrapping_sub(sum);
        let step = Step {
            up: difference > 0,
            by: difference.unsigned_abs(),
        };
        published.before(step);
        let new = held.map(|word| word.wrapping_add(difference));
        match pair.compare_exchange_shared(held, new) {
            Ok(_) => {
                published.behind(step);
                return sum;
            }
            Err(found) => {
                published.take_back(step);
                held = found;
            }
        }
    }
}

/// The sum over all lanes of what each holds (0) or has published (1).
pub(crate) fn sum(pair: &PairSlot<'_, i64>, which: usize) -> i64 {
    pair.values()
        .fold(0, |sum, lane| sum.wrapping_add(lane[which & 1]))
}

/// How often a sum is taken again because it cannot have been.
const MOST_READS: usize = 16;

/// The sum over all lanes: what was added before, and each addition that runs meanwhile or not.
///
/// Additions and subtractions that were seen in part make sums that there never were. One that is outside
/// what the estimates before and after allow is taken again, and at last brought to the next that they allow.
pub(crate) fn sum_within(pair: &PairSlot<'_, i64>, estimate: impl Fn() -> Estimate) -> i64 {
    let mut before = estimate();
    let mut held = 0;
    for _ in 0..MOST_READS {
        let seen = sum(pair, 0);
        let after = estimate();
        held = before.hold(after, seen);
        if held == seen {
            break;
        }
        before = after;
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_wide_in_the_same_direction() {
        let up = |by| Step { up: true, by };
        let down = |by| Step { up: false, by };
        assert_eq!(Step::of([31, 0], 0, 31), Step::NONE);
        // The last one was up, as what is published is even.
        assert_eq!(Step::of([31, 0], 1, 31), up(62));
        assert_eq!(Step::of([-31, 0], -1, 31), down(31));
        assert_eq!(Step::of([-30, 1], -1, 31), down(62));
        assert_eq!(Step::of([32, 1], 1, 31), up(31));
        assert_eq!(Step::of([5, 5], 1, 0), up(1));
        assert_eq!(Step::least([31, 0], 1, 31), up(1));
        assert_eq!(Step::least([0, 0], -40, 31), down(9));
    }

    proptest::proptest! {
        #[test]
        fn a_step_suffices_and_tells_its_direction(
            most in 0..1000_u64, offset in -1000..1000_i64, published: i64, n: i64
        ) {
            let held = [published.wrapping_add(offset % (most as i64 + 1)), published];
            let value = held[0].wrapping_add(n);
            let n = i128::from(n);
            for (step, tells) in [(Step::of(held, n, most), most > 0), (Step::least(held, n, most), false)] {
                let after = step.moved(published);
                assert!(value.wrapping_sub(after).unsigned_abs() <= most, "{step:?}");
                assert!(!tells || step.by == 0 || (after & 1 == 0) == step.up, "{step:?}");
            }
        }
    }
}
