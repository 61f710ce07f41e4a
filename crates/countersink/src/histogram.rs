//! Histograms.

use crate::kind::{Kind, Unit};
use crate::layout::{self, histogram};
use crate::metric::{Core, Home};
use crate::reader::Buckets;
use crate::values::{self, Then};

/// How values are distributed: buckets whose width grows with the value, so that a value is known to
/// within 1 in 2 to the grouping power `G`.
///
/// ```
/// use countersink::{Histogram, Unit};
///
/// static SIZES: Histogram = Histogram::new("request_bytes").unit(Unit::Bytes);
///
/// SIZES.record(1500);
/// SIZES.record(40);
/// assert_eq!(SIZES.read().count(), 2);
/// ```
///
/// The grouping power is 0 to 7. It decides the error and the address space in each lane; memory is used
/// for what is touched:
///
/// | power | error | buckets | bytes in each lane |
/// |---:|---:|---:|---:|
/// | 0 | 100 % | 65 | 536 |
/// | 3 | 12.5 % | 496 | 3,984 |
/// | 5 | 3.1 % | 1,920 | 15,376 |
/// | 7 | 0.8 % | 7,424 | 59,408 |
#[derive(Debug)]
pub struct Histogram<const G: u32 = 3> {
    core: Core<{ histogram::WORDS }>,
    sum: bool,
}

impl<const G: u32> Histogram<G> {
    /// A histogram with a name, as [`Counter::new`](crate::Counter::new).
    pub const fn new(name: &'static str) -> Self {
        const { assert!(G <= layout::MOST_GROUPING, "the grouping power is 0 to 7") };
        Histogram {
            core: Core::new(Kind::Histogram, name, G + 1),
            sum: false,
        }
    }

    /// Keeps the sum of the values as well, so that their mean is exact; otherwise it is known as well as
    /// the values are. Costs about another count for each value.
    pub const fn with_sum(mut self) -> Self {
        self.sum = true;
        self.core.grouping |= histogram::SUM_KEPT;
        self
    }

    /// Says what it shows.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    /// Counts a value.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        let Some(words) = self.core.registered() else {
            return self.first(value);
        };
        if let Some(bucket) = values::bucket(&words, histogram::WORDS, G, value) {
            bucket.inc();
        }
        if self.sum
            && let Some(sum) = words.get(histogram::SUM)
        {
            sum.add(value);
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self, value: u64) {
        if self.core.register().is_some() && self.core.registered().is_some() {
            self.record(value);
        }
    }

    /// What was counted. Loads for each bucket and possible CPU.
    pub fn read(&self) -> Buckets {
        self.values(Then::Leave)
    }

    /// What was counted, which begins at nothing again. Each bucket is taken by itself: what others
    /// record meanwhile is in this or in the next.
    pub fn take(&self) -> Buckets {
        let taken = self.values(Then::take());
        self.core.note_reset();
        taken
    }

    fn values(&self, then: Then) -> Buckets {
        let words = self.core.words();
        Buckets {
            grouping: G,
            sum: words
                .filter(|_| self.sum)
                .map(|words| then.one(&words, histogram::SUM)),
            buckets: words.map_or(Vec::new(), |words| then.buckets(&words, histogram::WORDS)),
        }
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }
}

impl<const G: u32> crate::family::Metric for Histogram<G> {
    fn labelled(&self, labels: &str) -> Self {
        Histogram {
            core: self.core.labelled(labels),
            sum: self.sum,
        }
    }

    fn register(&self) {
        self.core.register_alone();
    }
}
