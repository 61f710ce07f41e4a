//! The second table: several threads bump one counter.

use std::marker::PhantomData;
use std::sync::{Mutex, OnceLock};

use countersink_harness::variant::{Variant, Worker};
use countersink_percpu::Segment;
use countersink_percpu::local::{Atomic, LocalCounter, PerCpu};

use super::ops::Op;
use super::sums::{Sum, check_sum};

/// One counter that all threads reach.
pub(super) trait SharedCounter: Send + Sync + Sized {
    /// The way.
    type Way<'a>: LocalCounter
    where
        Self: 'a;
    /// What the variant is called.
    const NAME: &'static str;
    /// A counter at zero.
    fn new() -> Result<Self, String>;
    /// Its handle.
    fn way(&self) -> Self::Way<'_>;
}

/// One word and locked instructions, alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct OneWord(Atomic);

impl SharedCounter for OneWord {
    type Way<'a> = &'a Atomic;
    const NAME: &'static str = "atomic";
    fn new() -> Result<Self, String> {
        Ok(OneWord::default())
    }
    fn way(&self) -> &Atomic {
        &self.0
    }
}

/// A word in each lane and sections.
#[derive(Debug)]
pub(super) struct Sections(Segment);

impl SharedCounter for Sections {
    type Way<'a> = PerCpu<'a>;
    const NAME: &'static str = "percpu";
    fn new() -> Result<Self, String> {
        Segment::private()
            .map(Sections)
            .map_err(|error| error.to_string())
    }
    fn way(&self) -> PerCpu<'_> {
        PerCpu(self.0.slot(0).expect("a segment has a first word"))
    }
}

/// A word in each lane, getcpu and locked instructions: what counting costs where there are no
/// sections.
#[derive(Debug)]
pub(super) struct LockedLanes(Segment);

impl SharedCounter for LockedLanes {
    type Way<'a> = PerCpu<'a>;
    const NAME: &'static str = "locked-lanes";
    fn new() -> Result<Self, String> {
        Segment::private_locked()
            .map(LockedLanes)
            .map_err(|error| error.to_string())
    }
    fn way(&self) -> PerCpu<'_> {
        PerCpu(self.0.slot(0).expect("a segment has a first word"))
    }
}

/// A variant of the second table.
pub(super) struct Shared<'a, S, O> {
    counter: OnceLock<Result<S, String>>,
    sums: &'a Mutex<Vec<Sum>>,
    column: String,
    op: PhantomData<fn() -> O>,
}

impl<'a, S: SharedCounter, O: Op> Shared<'a, S, O> {
    /// `column` names the column in the list of sums.
    pub(super) fn new(sums: &'a Mutex<Vec<Sum>>, column: String) -> Self {
        Shared {
            counter: OnceLock::new(),
            sums,
            column,
            op: PhantomData,
        }
    }
}

impl<S: SharedCounter, O: Op> Variant for Shared<'_, S, O> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Bump::<S, O> {
            counter: self.counter.get_or_init(S::new).as_ref().ok(),
            total: 0,
            op: PhantomData,
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        match self.counter.get_or_init(S::new) {
            Ok(counter) => {
                let found = counter.way().read();
                check_sum(
                    self.sums,
                    S::NAME,
                    &self.column,
                    O::EFFECT,
                    operations,
                    found,
                )
            }
            Err(error) => Err(error.clone()),
        }
    }
}

struct Bump<'a, S, O> {
    counter: Option<&'a S>,
    total: i64,
    op: PhantomData<fn() -> O>,
}

impl<S: SharedCounter, O: Op> Worker for Bump<'_, S, O> {
    fn run(&mut self, operations: u64) {
        // Without a counter nothing is counted, and the check says why.
        let Some(counter) = self.counter else { return };
        let way = counter.way();
        let mut total = self.total;
        for _ in 0..operations {
            total = total.wrapping_add(O::apply(&way));
        }
        self.total = std::hint::black_box(total);
    }
}
