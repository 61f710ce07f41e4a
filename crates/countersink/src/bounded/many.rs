//! Many batch counters side by side.

use core::cmp::Ordering;

use countersink_percpu::Slots;

use super::estimate::Estimate;
use super::local::Local;
use super::words::Words;
use crate::kind::{Kind, Unit};
use crate::layout::MOST_BATCHES;
use crate::metric::{Core, Home};

/// Batch counters of one name and batch, told apart by their index: 16 bytes in each lane for each. As
/// [`BatchCounter`](crate::BatchCounter) otherwise.
///
/// ```
/// use countersink::{BatchCounter, BatchCounters};
///
/// static QUEUED: BatchCounters = BatchCounter::many("queued", 64).help("Jobs of each queue");
///
/// let seventh = QUEUED.get(7).expect("there are 64");
/// seventh.add(5);
/// assert_eq!((seventh.sum(), QUEUED.get(8).map(|queue| queue.sum())), (5, Some(0)));
/// ```
#[derive(Debug)]
pub struct BatchCounters {
    core: Core<4>,
    local: Local<4>,
}

impl BatchCounters {
    /// So many counters, from 1 to 4095; a reader sees them with a label `index`.
    pub(super) const fn new(name: &'static str, count: u32) -> Self {
        assert!(
            1 <= count && count <= MOST_BATCHES,
            "from 1 to 4095 counters"
        );
        BatchCounters {
            core: Core::new(Kind::Batch, name, count),
            local: Local::new(0),
        }
    }

    /// With another batch, as [`BatchCounter::batch`](crate::BatchCounter::batch).
    pub const fn batch(mut self, batch: u32) -> Self {
        self.local = Local::with_batch(batch);
        self
    }

    /// Says what they count.
    pub const fn help(mut self, help: &'static str) -> Self {
        self.core.help = help;
        self
    }

    /// Says in what unit.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.core.unit = unit;
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.core.grouping as usize
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// One of them; `None` from [`len`](Self::len) on, and where there is no memory for them.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Member<'_>> {
        let words = match self.local.ready().slots() {
            Some(words) => words,
            None => self.first()?,
        };
        Some(Member::new(Words::of(&words, index)?, &self.local))
    }

    #[cold]
    #[inline(never)]
    fn first(&self) -> Option<Slots<'static>> {
        let all = self.core.words()?;
        Words::of(&all, 0)?.prepare(all, &self.local);
        Some(all)
    }

    /// Where they count. Registers them, if nothing has.
    pub fn home(&self) -> Home {
        self.core.home()
    }
}

/// One of many [`BatchCounters`]. Its methods are those of [`BatchCounter`](crate::BatchCounter).
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    words: Words<'static>,
    /// The batch less one.
    most: u64,
    local: &'a Local<4>,
}

impl<'a> Member<'a> {
    #[inline(always)]
    pub(super) fn new(words: Words<'static>, local: &'a Local<4>) -> Self {
        let most = local.most();
        Member { words, most, local }
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

    /// Adds, wrapping.
    #[inline(always)]
    pub fn add(&self, n: i64) {
        if !self.words.pair.try_add_within(n, self.most) {
            self.carry(n);
        }
    }

    #[inline(always)]
    pub(super) fn carry(&self, n: i64) {
        self.words.carry(n, self.most);
    }

    /// Subtracts, wrapping.
    #[inline(always)]
    pub fn sub(&self, n: i64) {
        self.add(n.wrapping_neg());
    }

    /// As [`BatchCounter::add_batch`](crate::BatchCounter::add_batch).
    #[inline(always)]
    pub fn add_batch(&self, n: i64, batch: u32) {
        self.local.widen(batch, |batch| self.words.widen(batch));
        let most = u64::from(batch.max(1) - 1);
        if !self.words.pair.try_add_within(n, most) {
            self.words.carry(n, most);
        }
    }

    /// As [`BatchCounter::add_local`](crate::BatchCounter::add_local).
    #[inline(always)]
    pub fn add_local(&self, n: i64) {
        self.words.add_local(n);
    }

    /// As [`BatchCounter::sub_local`](crate::BatchCounter::sub_local).
    #[inline(always)]
    pub fn sub_local(&self, n: i64) {
        self.words.add_local(n.wrapping_neg());
    }

    /// As [`BatchCounter::read`](crate::BatchCounter::read).
    #[inline(always)]
    pub fn read(&self) -> i64 {
        self.words.read()
    }

    /// As [`BatchCounter::read_positive`](crate::BatchCounter::read_positive).
    #[inline(always)]
    pub fn read_positive(&self) -> i64 {
        self.read().max(0)
    }

    /// As [`BatchCounter::estimate`](crate::BatchCounter::estimate).
    pub fn estimate(self) -> Estimate {
        self.words.estimate()
    }

    /// As [`BatchCounter::bound`](crate::BatchCounter::bound).
    pub fn bound(&self) -> u64 {
        self.estimate().bound
    }

    /// As [`BatchCounter::sum`](crate::BatchCounter::sum).
    pub fn sum(&self) -> i64 {
        self.words.sum()
    }

    /// As [`BatchCounter::sum_positive`](crate::BatchCounter::sum_positive).
    pub fn sum_positive(&self) -> i64 {
        self.sum().max(0)
    }

    /// As [`BatchCounter::compare`](crate::BatchCounter::compare).
    pub fn compare(&self, rhs: i64) -> Ordering {
        self.compare_batch(rhs, 1)
    }

    /// As [`BatchCounter::compare_batch`](crate::BatchCounter::compare_batch).
    pub fn compare_batch(&self, rhs: i64, batch: u32) -> Ordering {
        let mut estimate = self.words.estimate();
        let asked = u64::from(batch.max(1) - 1).saturating_mul(self.words.pair.lanes());
        estimate.bound = estimate.bound.max(asked);
        match estimate.range() {
            (low, _) if low > rhs => Ordering::Greater,
            (_, high) if high < rhs => Ordering::Less,
            _ => self.sum().cmp(&rhs),
        }
    }

    /// As [`BatchCounter::limited_add`](crate::BatchCounter::limited_add).
    #[inline(always)]
    pub fn limited_add(&self, limit: i64, n: i64) -> bool {
        self.words.limited_add(limit, n, self.most)
    }

    /// As [`BatchCounter::set`](crate::BatchCounter::set).
    pub fn set(&self, value: i64) -> i64 {
        self.words.set(value)
    }

    /// As [`BatchCounter::sync`](crate::BatchCounter::sync).
    pub fn sync(&self) -> bool {
        self.words.sync()
    }
}
