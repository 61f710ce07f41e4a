//! A [`BatchCounter`] in a static, as programs have it: what finding it costs.

use std::sync::OnceLock;

use countersink::BatchCounter;
use countersink_harness::variant::{Lent, PerThread, Variant, Worker};

use super::Amounts;
use super::variants::{check, run};

/// The statics, by their batch, and a loop for each: a reference to one of several would be a register again.
macro_rules! statics {
    ($($name:ident = $batch:literal, $text:literal;)*) => {
        $(static $name: BatchCounter = BatchCounter::new($text).batch($batch);)*

        fn counter(batch: u32) -> &'static BatchCounter {
            match batch {
                $($batch => &$name,)*
                _ => &DEFAULT,
            }
        }

        fn run_static(batch: u32, amounts: Amounts, operations: u64, next: &mut u64) {
            match batch {
                $($batch => run(amounts, operations, next, |n| $name.add(n)),)*
                _ => run(amounts, operations, next, |n| DEFAULT.add(n)),
            }
        }
    };
}

static DEFAULT: BatchCounter = BatchCounter::new("bench_static");

statics! {
    BY_1 = 1, "bench_static_1";
    BY_8 = 8, "bench_static_8";
    BY_32 = 32, "bench_static_32";
    BY_128 = 128, "bench_static_128";
    BY_1024 = 1024, "bench_static_1024";
}

/// Adding to a static.
pub(super) struct Adds {
    batch: u32,
    amounts: Amounts,
    /// What it held when the point began.
    held: OnceLock<i64>,
    next: PerThread<u64>,
}

impl Adds {
    pub(super) fn new(batch: u32, amounts: Amounts) -> Self {
        Adds {
            batch,
            amounts,
            held: OnceLock::new(),
            next: PerThread::new(),
        }
    }

    fn held(&self) -> i64 {
        *self.held.get_or_init(|| counter(self.batch).sum())
    }
}

impl Variant for Adds {
    fn name(&self) -> &str {
        "carry-static"
    }

    fn worker(&self, thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
        self.held();
        Box::new(Add {
            batch: self.batch,
            amounts: self.amounts,
            next: self.next.lend(thread_index, || 0),
        })
    }

    fn check(&self, operations: &[u64]) -> Result<(), String> {
        let grown = counter(self.batch).sum().wrapping_sub(self.held());
        check(self.amounts, operations, grown)
    }
}

struct Add<'a> {
    batch: u32,
    amounts: Amounts,
    next: Lent<'a, u64>,
}

impl Worker for Add<'_> {
    fn run(&mut self, operations: u64) {
        run_static(self.batch, self.amounts, operations, &mut self.next);
    }
}
