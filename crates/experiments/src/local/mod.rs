//! Seed `000_b3954b3e1fe7339b` (Rusty Russell and Mathieu Desnoyers, December 2008): the ways to bump
//! a local counter, measured.
//!
//! The seed measures four ways in the kernel: `atomic_long`, interrupts off around the bump
//! (`irqsave/rest`), `trivalue`, and `local_t`; for inc, add, add_return and read on an array of
//! 1,048,576 counters walked with a stride of 514,001, and for an inc of 16 hot per-CPU words. The
//! last column is not comparable with the others: it is always in the cache.
//!
//! Here interrupts are signals, irqsave comes in two forms (`sigmask` is the literal one, `deferred`
//! the one that user space can afford), and `percpu` is new. Besides the seed's columns:
//! - `hot`, one counter again and again, which shows latency; `rotating`, 16 counters on 16 cache
//!   lines in turn, which shows throughput; both with `plain` as the floor;
//! - `loop`, the loop without a bump, never subtracted;
//! - a second table: one counter that several threads share.
//!
//! What the seed got wrong is not done here: memory is populated and the counters of each way warmed
//! in full before each sample (the seed warms the length of the first way), all results are kept, the
//! sums are checked, and the ways alternate. [`as_published`] does it the seed's way.

pub mod as_published;
mod counters;
mod floor;
mod ops;
pub mod published;
mod shared;
mod sums;
mod walk;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use countersink_harness::variant::{Experiment, Point, Variant};
use countersink_percpu::choice;
use countersink_percpu::local::{Atomic, Local, LocalCounter, PerCpu, TriValue};
#[cfg(unix)]
use countersink_percpu::local::{Deferred, Sigmask};

pub use sums::Sum;

use counters::{InLanes, InSegments, Packed, Spread, percpu_bytes};
use floor::{NoCounters, Plain};
use ops::{Add, AddReturn, InTurn, Inc, Op, Read, Same, Strided, StridedHot, Walk};
use shared::{LockedLanes, OneWord, Sections, Shared};
use walk::Walked;

/// The counters of the array.
pub const LEN: usize = 1024 * 1024;
/// The seed's stride through it.
pub const STRIDE: usize = 514_001;
/// The seed's iterations.
pub const ITERATIONS: u64 = 32 * LEN as u64;
/// The hot words, and the counters taken in turn.
pub const HOT: usize = 16;

/// The columns of the first table, as the seed orders them: operation and pattern.
pub const COLUMNS: [(&str, &str); 5] = [
    ("inc", "strided"),
    ("add", "strided"),
    ("add_return", "strided"),
    ("cpu_local_inc", "hot"),
    ("read", "strided"),
];

/// The experiment.
#[derive(Debug)]
pub struct LocalExperiment {
    /// The thread counts of the second table.
    threads: Vec<usize>,
    /// Whether to run the seed's fixed iterations instead of everything else.
    fixed: bool,
    sums: Mutex<Vec<Sum>>,
}

impl LocalExperiment {
    /// Both tables; the second at these thread counts.
    pub fn new(threads: &[usize]) -> Self {
        LocalExperiment {
            threads: threads.to_vec(),
            fixed: false,
            sums: Mutex::default(),
        }
    }

    /// The first table with the seed's 33,554,432 iterations for each sample.
    pub fn fixed() -> Self {
        LocalExperiment {
            threads: Vec::new(),
            fixed: true,
            sums: Mutex::default(),
        }
    }

    /// The sums of all points measured so far, each checked.
    pub fn sums(&self) -> Vec<Sum> {
        self.sums
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn seed_columns(&self) -> Vec<Point<'_>> {
        let points = vec![
            self.strided::<Inc>(),
            self.strided::<Add>(),
            self.strided::<AddReturn>(),
            self.hot_words("cpu_local_inc"),
            self.strided::<Read>(),
        ];
        if !self.fixed {
            return points;
        }
        points
            .into_iter()
            .map(|point| point.fixed(ITERATIONS))
            .collect()
    }

    fn strided<O: Op>(&self) -> Point<'_> {
        let mut point = Point::new(O::NAME, "strided", 1);
        self.each_way::<O, Strided, LEN>(&mut point);
        self.way::<InSegments<LEN>, O, Strided>(&mut point, PerCpu::NAME);
        self.way::<NoCounters, O, Strided>(&mut point, "loop");
        point
    }

    fn hot_words(&self, op: &str) -> Point<'_> {
        let mut point = Point::new(op, "hot", 1);
        self.each_way::<Inc, StridedHot, HOT>(&mut point);
        self.way::<InLanes<HOT, 1>, Inc, StridedHot>(&mut point, PerCpu::NAME);
        self.way::<Packed<Plain, HOT>, Inc, StridedHot>(&mut point, Plain::NAME);
        self.way::<NoCounters, Inc, StridedHot>(&mut point, "loop");
        point
    }

    /// The counters of each way that a thread owns, packed.
    fn each_way<'a, O: Op, K: Walk, const N: usize>(&'a self, point: &mut Point<'a>) {
        self.way::<Packed<Atomic, N>, O, K>(point, Atomic::NAME);
        #[cfg(unix)]
        self.way::<Packed<Sigmask, N>, O, K>(point, Sigmask::NAME);
        #[cfg(unix)]
        self.way::<Packed<Deferred, N>, O, K>(point, Deferred::NAME);
        self.way::<Packed<TriValue, N>, O, K>(point, TriValue::NAME);
        self.way::<Packed<Local, N>, O, K>(point, Local::NAME);
    }

    /// One counter, or 16 in turn, each on a cache line of its own.
    fn spread<K: Walk>(&self, pattern: &str) -> Point<'_> {
        let mut point = Point::new(Inc::NAME, pattern, 1);
        self.way::<Spread<Atomic, HOT>, Inc, K>(&mut point, Atomic::NAME);
        #[cfg(unix)]
        self.way::<Spread<Sigmask, HOT>, Inc, K>(&mut point, Sigmask::NAME);
        #[cfg(unix)]
        self.way::<Spread<Deferred, HOT>, Inc, K>(&mut point, Deferred::NAME);
        self.way::<Spread<TriValue, HOT>, Inc, K>(&mut point, TriValue::NAME);
        self.way::<Spread<Local, HOT>, Inc, K>(&mut point, Local::NAME);
        self.way::<InLanes<HOT, 8>, Inc, K>(&mut point, PerCpu::NAME);
        self.way::<Spread<Plain, HOT>, Inc, K>(&mut point, Plain::NAME);
        self.way::<NoCounters, Inc, K>(&mut point, "loop");
        point
    }

    fn way<'a, C, O, K>(&'a self, point: &mut Point<'a>, name: &'static str)
    where
        C: counters::Counters + Send + 'a,
        O: Op,
        K: Walk,
    {
        let variant = Walked::<C, O, K>::new(name, &self.sums, point.label());
        point.variants.push(Box::new(variant));
    }

    fn shared<O: Op>(&self, threads: usize) -> Point<'_> {
        let mut point = Point::new(O::NAME, "shared", threads);
        let column = point.label();
        let variants: [Box<dyn Variant + '_>; 3] = [
            Box::new(Shared::<OneWord, O>::new(&self.sums, column.clone())),
            Box::new(Shared::<LockedLanes, O>::new(&self.sums, column.clone())),
            Box::new(Shared::<Sections, O>::new(&self.sums, column)),
        ];
        point.variants.extend(variants);
        point
    }
}

impl Experiment for LocalExperiment {
    fn name(&self) -> &str {
        "local"
    }

    fn points(&self) -> Vec<Point<'_>> {
        let mut points = self.seed_columns();
        if self.fixed {
            return points;
        }
        points.push(self.spread::<Same>("hot"));
        points.push(self.spread::<InTurn>("rotating"));
        for &threads in &self.threads {
            points.push(self.shared::<Inc>(threads));
            points.push(self.shared::<Add>(threads));
            points.push(self.shared::<AddReturn>(threads));
            points.push(self.shared::<Read>(threads));
        }
        points
    }

    fn conditions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("mechanism".to_owned(), choice().to_string())])
    }
}

/// What the array takes with each way, in bytes: the seed's 8 MB against 24 MB.
pub fn memory() -> Vec<(&'static str, usize)> {
    vec![
        (Atomic::NAME, LEN * Atomic::BYTES),
        #[cfg(unix)]
        (Sigmask::NAME, LEN * Sigmask::BYTES),
        #[cfg(unix)]
        (Deferred::NAME, LEN * Deferred::BYTES),
        (TriValue::NAME, LEN * TriValue::BYTES),
        (Local::NAME, LEN * Local::BYTES),
        (PerCpu::NAME, percpu_bytes(LEN)),
    ]
}
