//! The ways to count with a bound: ours, and one shared word.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use countersink::{BatchCounter, Member, TreeCounter};
use countersink_percpu::{Segment, Slot};

/// A way to count.
pub trait Way: Send + Sync + Sized {
    /// What it is called.
    const NAME: &'static str;
    /// What a loop holds in registers.
    type Handle<'a>: Copy
    where
        Self: 'a;
    /// A counter with this batch.
    ///
    /// # Errors
    /// For want of memory.
    fn new(batch: u32) -> Result<Self, String>;
    /// Its handle.
    fn handle(&self) -> Self::Handle<'_>;
    /// Adds.
    fn add(handle: Self::Handle<'_>, n: i64);
    /// What can be read without looking at the lanes.
    fn read(handle: Self::Handle<'_>) -> i64;
    /// The sum, when nobody adds.
    fn sum(&self) -> i64;
    /// How far a read may be from the sum; `None` for those that read sums, or promise nothing.
    fn bound(&self) -> Option<u64>;
    /// A read, and how far off it may be.
    fn estimate(&self) -> (i64, Option<u64>) {
        (Self::read(self.handle()), self.bound())
    }
}

/// A bare addition to the CPU's word, which is what the others are held against. It cannot be read but by a sum.
#[derive(Debug)]
pub(super) struct PerCpu(Segment);

impl Way for PerCpu {
    const NAME: &'static str = "percpu";
    type Handle<'a> = Slot<'a, i64>;
    fn new(_: u32) -> Result<Self, String> {
        Segment::private()
            .map(PerCpu)
            .map_err(|error| error.to_string())
    }
    fn handle(&self) -> Slot<'_, i64> {
        self.0.slot(0).expect("a segment has words")
    }
    #[inline(always)]
    fn add(handle: Slot<'_, i64>, n: i64) {
        handle.add(n);
    }
    #[inline(always)]
    fn read(handle: Slot<'_, i64>) -> i64 {
        handle.sum()
    }
    fn sum(&self) -> i64 {
        self.handle().sum()
    }
    fn bound(&self) -> Option<u64> {
        None
    }
}

/// A [`BatchCounter`], through a handle in registers.
#[derive(Debug)]
pub struct Carry(BatchCounter);

impl Way for Carry {
    const NAME: &'static str = "carry";
    type Handle<'a> = Member<'a>;
    fn new(batch: u32) -> Result<Self, String> {
        let name = match batch {
            1 => "bench_carry_1",
            8 => "bench_carry_8",
            32 => "bench_carry_32",
            128 => "bench_carry_128",
            1024 => "bench_carry_1024",
            _ => "bench_carry",
        };
        let counter = BatchCounter::new(name).batch(batch);
        counter.member().ok_or("there is no memory")?;
        Ok(Carry(counter))
    }
    fn handle(&self) -> Member<'_> {
        self.0.member().expect("there was memory")
    }
    #[inline(always)]
    fn add(handle: Member<'_>, n: i64) {
        handle.add(n);
    }
    #[inline(always)]
    fn read(handle: Member<'_>) -> i64 {
        handle.read()
    }
    fn sum(&self) -> i64 {
        self.0.sum()
    }
    fn bound(&self) -> Option<u64> {
        Some(self.0.bound())
    }
    fn estimate(&self) -> (i64, Option<u64>) {
        let estimate = self.0.estimate();
        (estimate.value, Some(estimate.bound))
    }
}

/// A [`TreeCounter`].
#[derive(Debug)]
pub struct Tree(TreeCounter);

impl Way for Tree {
    const NAME: &'static str = "tree";
    type Handle<'a> = &'a TreeCounter;
    fn new(batch: u32) -> Result<Self, String> {
        let name = match batch {
            1 => "bench_tree_1",
            8 => "bench_tree_8",
            32 => "bench_tree_32",
            128 => "bench_tree_128",
            1024 => "bench_tree_1024",
            _ => "bench_tree",
        };
        Ok(Tree(TreeCounter::new(name).batch(batch)))
    }
    fn handle(&self) -> &TreeCounter {
        &self.0
    }
    #[inline(always)]
    fn add(handle: &TreeCounter, n: i64) {
        handle.add(n);
    }
    #[inline(always)]
    fn read(handle: &TreeCounter) -> i64 {
        handle.read()
    }
    fn sum(&self) -> i64 {
        self.0.sum()
    }
    fn bound(&self) -> Option<u64> {
        let (under, over) = self.0.bound();
        Some(under.max(over))
    }
    fn estimate(&self) -> (i64, Option<u64>) {
        let estimate = self.0.estimate();
        (estimate.value, Some(estimate.bound))
    }
}

/// One word and locked additions, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Atomic(AtomicI64);

impl Way for Atomic {
    const NAME: &'static str = "atomic";
    type Handle<'a> = &'a AtomicI64;
    fn new(_: u32) -> Result<Self, String> {
        Ok(Atomic::default())
    }
    fn handle(&self) -> &AtomicI64 {
        &self.0
    }
    #[inline(always)]
    fn add(handle: &AtomicI64, n: i64) {
        handle.fetch_add(n, Relaxed);
    }
    #[inline(always)]
    fn read(handle: &AtomicI64) -> i64 {
        handle.load(Relaxed)
    }
    fn sum(&self) -> i64 {
        self.0.load(Relaxed)
    }
    fn bound(&self) -> Option<u64> {
        Some(0)
    }
}
