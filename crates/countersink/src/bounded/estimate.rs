//! What is known of a counter without looking at its lanes.

/// A value and how far off it may be: the sum was within this distance of it, at the moment when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The value.
    pub value: i64,
    /// The farthest that the sum was from it; `u64::MAX` where nothing is known.
    pub bound: u64,
}

impl Estimate {
    /// Of a counter that counts nowhere.
    pub(crate) const NOTHING: Estimate = Estimate { value: 0, bound: 0 };

    /// The middle between what is never below what lanes have published and what is never above it; a sum may be
    /// further off by what lanes have not published.
    #[inline(always)]
    pub(crate) fn between(low: i64, high: i64, slack: i64) -> Self {
        // Never negative, but as large as the amounts that are being added.
        let gap = high.wrapping_sub(low) as u64;
        Estimate {
            value: low.wrapping_add((gap / 2) as i64),
            bound: match slack {
                i64::MAX => u64::MAX,
                slack => gap.div_ceil(2).saturating_add(slack.max(0) as u64),
            },
        }
    }

    /// A sum that was taken between this estimate and a later one; if there was none such, the next to it that
    /// there may have been.
    pub(crate) fn hold(self, later: Estimate, sum: i64) -> i64 {
        // As distances, so that sums may wrap.
        let bound = |estimate: Estimate| i128::from(estimate.bound);
        let moved = i128::from(later.value.wrapping_sub(self.value));
        let low = (-bound(self)).min(moved - bound(later));
        let high = bound(self).max(moved + bound(later));
        let distance = i128::from(sum.wrapping_sub(self.value)).clamp(low, high);
        self.value.wrapping_add(distance as i64)
    }

    /// The smallest and the largest that the sum can have been; not less or more than an `i64` can be.
    pub fn range(self) -> (i64, i64) {
        let bound = i64::try_from(self.bound).unwrap_or(i64::MAX);
        if self.bound == u64::MAX {
            return (i64::MIN, i64::MAX);
        }
        (
            self.value.saturating_sub(bound),
            self.value.saturating_add(bound),
        )
    }
}
