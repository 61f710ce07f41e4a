//! Quantiles of histograms.

use super::model::{Buckets, Clock, Span};
use crate::layout::{bucket_end, bucket_start, buckets};

impl Buckets {
    /// The value below or at which a part `q` of all values lies, by nearest rank, in the buckets'
    /// unit: 0.5 is the median, 0 the smallest, 1 the largest.
    ///
    /// Within a bucket nothing is known, so it is the middle of the bucket of that rank. The error is at
    /// most half of the bucket's width: 1 in 2 to the grouping power, and half of that. `None` without values, or where `q`
    /// is not a part.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let all: u128 = self.buckets.iter().map(|bucket| u128::from(bucket.1)).sum();
        if all == 0 || !(0.0..=1.0).contains(&q) {
            return None;
        }
        // What a float cannot tell apart is far less than a bucket.
        let rank = ((q * all as f64).ceil() as u128).clamp(1, all);
        let mut below = 0;
        let bucket = self.buckets.iter().find(|bucket| {
            below += u128::from(bucket.1);
            below >= rank
        })?;
        self.middle(bucket.0)
    }

    /// The mean of the values, rounded down: exact where their sum is kept, and has not wrapped; otherwise as if each value
    /// lay in the middle of its bucket, with an error as that of a quantile. `None` without values.
    pub fn mean(&self) -> Option<u64> {
        let count: u128 = self.buckets.iter().map(|bucket| u128::from(bucket.1)).sum();
        let middles = self.buckets.iter().map(|bucket| {
            let middle = self.middle(bucket.0).unwrap_or(0);
            // The sum over 7,424 buckets may be more than fits.
            u128::from(middle).saturating_mul(u128::from(bucket.1))
        });
        let sum = match self.sum {
            Some(sum) => u128::from(sum),
            None => middles.fold(0, u128::saturating_add),
        };
        u64::try_from(sum.checked_div(count)?).ok()
    }

    fn middle(&self, number: usize) -> Option<u64> {
        let (low, high) = self.bounds(number)?;
        Some(low + (high - low) / 2)
    }

    /// The smallest and the largest value that a bucket takes; `None` if there is no such bucket.
    pub fn bounds(&self, number: usize) -> Option<(u64, u64)> {
        let exists =
            self.grouping <= crate::layout::MOST_GROUPING && number < buckets(self.grouping);
        exists.then(|| {
            (
                bucket_start(self.grouping, number),
                bucket_end(self.grouping, number),
            )
        })
    }
}

impl Span {
    /// The time in nanoseconds below or at which a part `q` of all events lies: see
    /// [`Buckets::quantile`]. `clock` is that of the snapshot. `None` without a histogram or events.
    ///
    /// It lies between the shortest and the longest time where these are known.
    pub fn percentile(&self, q: f64, clock: &Clock) -> Option<u64> {
        let ticks = self.histogram.as_ref()?.quantile(q)?;
        let time = clock.nanoseconds_of(ticks);
        Some(
            self.times
                .map_or(time, |times| time.max(times.min).min(times.max)),
        )
    }
}
