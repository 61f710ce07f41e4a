//! Batch counters.

use core::cmp::Ordering;

use super::estimate::Estimate;
use super::local::Local;
use super::many::{BatchCounters, Member};
use super::words::Words;
use crate::kind::{Kind, Unit};
use crate::metric::{Core, Home};

/// A counter that goes up and down and can be asked while it counts: roughly how many, is it more than that, may it
/// be more still. What the Linux kernel calls `percpu_counter`.
///
/// Each CPU counts by itself and publishes what it has when that is a *batch*: so [`read`](Self::read) is one load,
/// and the sum is within [`bound`](Self::bound) of it, at every instant, whatever is killed.
///
/// ```
/// use countersink::BatchCounter;
///
/// static JOBS: BatchCounter = BatchCounter::new("jobs").help("Jobs that wait");
///
/// JOBS.add(100);
/// JOBS.dec();
/// assert_eq!(JOBS.sum(), 99);
/// let estimate = JOBS.estimate();
/// assert!(estimate.value.abs_diff(99) <= estimate.bound);
/// assert!(JOBS.compare(1_000_000).is_lt()); // known without a sum
/// assert!(JOBS.limited_add(1_000_000, 50)); // not beyond a million
/// ```
///
/// Counting costs a little more than a [`Counter`](crate::Counter) does, and two locked instructions more when a
/// batch is full. It may be done where a counter may: in signal handlers, before `main`, after a fork.
/// Values wrap at 2⁶³, as those of `i64` do.
///
/// Nothing corresponds to what the kernel does when a CPU goes offline: lanes stay, and are part of every sum.
#[derive(Debug)]
pub struct BatchCounter {
    core: Core<4>,
    local: Local<4>,
}

impl BatchCounter {
    /// A counter with a name, as [`Counter::new`](crate::Counter::new), and with the default batch: 32, or twice
    /// the number of online CPUs if that is more.
    pub const fn new(name: &'static str) -> Self {
        BatchCounter {
            core: Core::new(Kind::Batch, name, 1),
            local: Local::new(0),
        }
    }

    /// Many counters, whose words lie side by side; see [`BatchCounters`].
    pub const fn many(name: &'static str, count: u32) -> BatchCounters {
        BatchCounters::new(name, count)
    }

    /// With another batch, at least 1: the larger, the cheaper is counting, and the larger is the bound. With a batch of 1 reads
    /// are exact when nobody counts.
    pub const fn batch(mut self, batch: u32) -> Self {
        self.local = Local::with_batch(batch);
        self
    }

    /// Says what it counts.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    /// Adds one.
    #[inline(always)]
    pub fn inc(&self) {
        self.add(1);
    }

    /// Subtracts one.
    #[inline(always)]
    pub fn dec(&self) {
        self.add(-1);
    }

    /// Subtracts, wrapping.
    #[inline(always)]
    pub fn sub(&self, n: i64) {
        self.add(n.wrapping_neg());
    }

    /// Adds, wrapping.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        let added = match self.local.ready().get() {
            Some(block) => block.pair::<0, i64>().try_add_within(n, self.local.most()),
            None => false,
        };
        if !added {
            self.carry(n);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&self, n: i64) {
        if let Some(member) = self.member() {
            member.carry(n);
        }
    }

    /// Adds, with another batch than the counter's: what it publishes then is within this one. A wider one widens the
    /// [bound](Self::bound) for ever.
    #[inline(always)]
    pub fn add_batch(&self, n: i64, batch: u32) {
        if let Some(member) = self.member() {
            member.add_batch(n, batch);
        }
    }

    /// Adds and never publishes: for counters that are read by [`sum`](Self::sum) only. From the first such call on, nothing is
    /// known of the counter without a sum: the bound is `u64::MAX`, and [`limited_add`](Self::limited_add) refuses.
    #[inline(always)]
    pub fn add_local(&self, n: i64) {
        if let Some(member) = self.member() {
            member.add_local(n);
        }
    }

    /// Subtracts and never publishes; see [`add_local`](Self::add_local).
    #[inline(always)]
    pub fn sub_local(&self, n: i64) {
        self.add_local(n.wrapping_neg());
    }

    /// About how many: within [`bound`](Self::bound) of the sum. One load.
    #[inline(always)]
    pub fn read(&self) -> i64 {
        self.member().map_or(0, |member| member.read())
    }

    /// The same, or 0 if that is less: for what cannot be negative.
    #[inline(always)]
    pub fn read_positive(&self) -> i64 {
        self.read().max(0)
    }

    /// [`read`](Self::read) and [`bound`](Self::bound) of one moment. Loads of three words.
    pub fn estimate(&self) -> Estimate {
        self.member().map_or(Estimate::NOTHING, Member::estimate)
    }

    /// How far the sum can be from what is [read](Self::read). At rest it is (possible CPUs + 1) × (widest batch − 1); while
    /// additions are publishing, half of what they publish more; what was killed in the middle of that stays until
    /// [`sync`](Self::sync).
    pub fn bound(&self) -> u64 {
        self.estimate().bound
    }

    /// How many: everything added before, and of what is added meanwhile each addition or not. Loads for each possible CPU.
    ///
    /// Of a counter that only goes up, this is a value that it had during the call. One that also goes down may be seen
    /// with a part of what happened meanwhile; it is looked at again then if the estimates of before and
    /// after exclude what was seen, and the value returned is always one that they allow.
    pub fn sum(&self) -> i64 {
        self.member().map_or(0, |member| member.sum())
    }

    /// The same, or 0 if that is less.
    pub fn sum_positive(&self) -> i64 {
        self.sum().max(0)
    }

    /// Whether it is less than, equal to or greater than a value: by the estimate where that is enough, by the sum
    /// otherwise.
    pub fn compare(&self, rhs: i64) -> Ordering {
        self.compare_batch(rhs, 1)
    }

    /// The same; if what is estimated is nearer than with a batch like this it is not relied on. For those who want more sums
    /// than [`compare`](Self::compare) takes, which knows what batches there were.
    pub fn compare_batch(&self, rhs: i64, batch: u32) -> Ordering {
        self.member()
            .map_or(0.cmp(&rhs), |member| member.compare_batch(rhs, batch))
    }

    /// Adds, if the sum is then still at most `limit`; for a negative `n`, at least `limit`. Whether it did.
    ///
    /// With subtractions and such additions of one limit only, the sum never passes the limit, at any instant. Among
    /// others, it was still on this side of the limit at one moment during the call.
    /// It refuses only if the upper end of what was known ([`estimate`](Self::estimate)) and `n` passed the limit: where
    /// the sum and `n` are twice the bound away from it, it does not.
    #[inline(always)]
    pub fn limited_add(&self, limit: i64, n: i64) -> bool {
        self.member()
            .is_some_and(|member| member.limited_add(limit, n))
    }

    /// Makes it another value, and returns what it was. Each addition that runs meanwhile is, for itself, part of what
    /// it was or comes on top.
    pub fn set(&self, value: i64) -> i64 {
        self.member().map_or(0, |member| member.set(value))
    }

    /// Makes estimates as good again as they were before another process was killed in the middle of an addition; whether it did. No other process
    /// that shares the counter may be in the middle of one. Where a thread of this process is, this gives up.
    pub fn sync(&self) -> bool {
        self.member().is_none_or(|member| member.sync())
    }

    /// Where it counts. Registers it, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }

    /// The counter as a value that a loop holds in registers: two loads less for each addition. Registers it, if nothing
    /// has; `None` where there is no memory at all.
    #[inline(always)]
    pub fn member(&self) -> Option<Member<'_>> {
        match self.local.ready().get() {
            Some(block) => Some(Member::new(
                Words {
                    pair: block.pair::<0, i64>(),
                    slack: block.pair::<2, i64>(),
                },
                &self.local,
            )),
            None => self.first(),
        }
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> Option<Member<'_>> {
        let all = self.core.words()?;
        let words = Words::of(&all, 0)?;
        words.prepare(all, &self.local);
        Some(Member::new(words, &self.local))
    }
}

impl crate::family::Metric for BatchCounter {
    fn labelled(&self, labels: &str) -> Self {
        BatchCounter {
            core: self.core.labelled(labels),
            local: self.local.same(),
        }
    }

    fn register(&self) {
        self.core.register_alone();
        self.first();
    }
}
