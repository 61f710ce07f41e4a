//! The first table: one thread walks counters of its own.

use std::marker::PhantomData;
use std::sync::Mutex;

use countersink_harness::variant::{Lent, PerThread, Variant, Worker};

use super::counters::{Counters, View};
use super::ops::{Op, Walk};
use super::sums::{Sum, check_sum};

/// A variant of the first table: one thread, its own counters.
pub(super) struct Walked<'a, C, O, K> {
    name: &'static str,
    memory: PerThread<Result<C, String>>,
    sums: &'a Mutex<Vec<Sum>>,
    column: String,
    kind: PhantomData<fn() -> (O, K)>,
}

impl<'a, C, O: Op, K> Walked<'a, C, O, K> {
    /// `column` names the column in the list of sums.
    pub(super) fn new(name: &'static str, sums: &'a Mutex<Vec<Sum>>, column: String) -> Self {
        Walked {
            name,
            memory: PerThread::new(),
            sums,
            column,
            kind: PhantomData,
        }
    }
}

impl<C: Counters + Send, O: Op, K: Walk> Variant for Walked<'_, C, O, K> {
    fn name(&self) -> &str {
        self.name
    }

    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        Box::new(Walker::<C, O, K> {
            memory: self.memory.lend(thread_index, C::new),
            position: 0,
            total: 0,
            kind: PhantomData,
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        if C::COUNT == 0 {
            return Ok(());
        }
        let mut found = 0_i64;
        let mut failed = None;
        self.memory.visit(|_, memory| match memory {
            Ok(counters) => found = found.wrapping_add(counters.sum()),
            Err(error) => failed = Some(error.clone()),
        });
        if let Some(error) = failed {
            return Err(error);
        }
        check_sum(
            self.sums,
            self.name,
            &self.column,
            O::EFFECT,
            operations,
            found,
        )
    }
}

struct Walker<'a, C, O, K> {
    memory: Lent<'a, Result<C, String>>,
    position: usize,
    total: i64,
    kind: PhantomData<fn() -> (O, K)>,
}

impl<C: Counters, O: Op, K: Walk> Worker for Walker<'_, C, O, K> {
    fn warm(&mut self) {
        if let Ok(counters) = &*self.memory {
            counters.warm();
        }
    }

    fn run(&mut self, operations: u64) {
        // Without memory nothing is counted, and the check says why.
        let Ok(counters) = &*self.memory else { return };
        let view = counters.view();
        let (mut position, mut total) = (self.position, self.total);
        for _ in 0..operations {
            total = total.wrapping_add(O::apply(view.at(K::index(position))));
            position = K::next(position);
        }
        (self.position, self.total) = (position, std::hint::black_box(total));
    }
}
