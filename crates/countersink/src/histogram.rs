//! Histograms.

use crate::kind::{Kind, Unit};
use crate::layout::MOST_GROUPING;
use crate::metric::{Core, Home};
use crate::reader::Buckets;
use crate::values::{self, Then};

/// How values are distributed: buckets whose width grows with the value, so that a value is known to
/// within 1 in 2 to the grouping power.
///
/// Each bucket has the number of its values and their sum, so count, sum and mean are exact.
///
/// ```
/// use countersink::{Histogram, Unit};
///
/// static SIZES: Histogram = Histogram::new("request_bytes", 3).unit(Unit::Bytes);
///
/// SIZES.record(1500);
/// SIZES.record(40);
/// let read = SIZES.read();
/// assert_eq!((read.count(), read.sum()), (2, 1540));
/// ```
#[derive(Debug)]
pub struct Histogram {
    core: Core<2>,
}

impl Histogram {
    /// A histogram with a name, as [`Counter::new`](crate::Counter::new).
    ///
    /// The grouping power is 0 to 6, larger ones count as 6. It decides the error and the address space
    /// in each lane; memory is used for what is touched:
    ///
    /// | power | error | buckets | bytes in each lane |
    /// |---:|---:|---:|---:|
    /// | 0 | 100 % | 65 | 1,040 |
    /// | 3 | 12.5 % | 496 | 7,936 |
    /// | 5 | 3.1 % | 1,920 | 30,720 |
    /// | 6 | 1.6 % | 3,776 | 60,416 |
    pub const fn new(name: &'static str, grouping: u32) -> Self {
        Histogram {
            core: Core::new(Kind::Histogram, name, grouping_field(grouping)),
        }
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
        let grouping = self.core.grouping.wrapping_sub(1);
        if let Some(words) = self.core.words()
            && let Some(bucket) = values::bucket(&words, 0, grouping, value)
        {
            bucket.add([1, value]);
        }
    }

    /// What was counted. Loads for each bucket and possible CPU.
    pub fn read(&self) -> Buckets {
        self.buckets(Then::Leave)
    }

    /// What was counted, which begins at nothing again. Each bucket is taken by itself: what others
    /// record meanwhile is in this or in the next.
    pub fn take(&self) -> Buckets {
        let taken = self.buckets(Then::Take);
        self.core.note_reset();
        taken
    }

    fn buckets(&self, then: Then) -> Buckets {
        let words = self.core.words();
        Buckets {
            grouping: self.core.grouping.wrapping_sub(1),
            buckets: words.map_or(Vec::new(), |words| then.buckets(&words, 0)),
        }
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }
}

/// A grouping power as an entry has it.
pub(crate) const fn grouping_field(grouping: u32) -> u32 {
    if grouping > MOST_GROUPING {
        MOST_GROUPING + 1
    } else {
        grouping + 1
    }
}

impl crate::family::Metric for Histogram {
    fn labelled(&self, labels: &str) -> Self {
        Histogram {
            core: self.core.labelled(labels),
        }
    }

    fn register(&self) {
        self.core.register_alone();
    }
}
