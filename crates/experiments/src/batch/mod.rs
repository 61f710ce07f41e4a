//! Seed `004_d532f168f1f08558` (Mateusz Guzik, May 2024): the kernel's `percpu_counter` with a
//! compare-exchange instead of disabled interrupts.
//!
//! The seed turns the fast path of `percpu_counter_add_batch` into an unlocked compare-exchange loop, says that this brings
//! 1 % for failed look-ups of paths, and shows, in its second mail, the fast path inlined. Here the same algorithms run in user space,
//! beside [`BatchCounter`](countersink::BatchCounter), which keeps everything in the lanes and publishes to two
//! words without a lock:
//! - what an addition costs at each batch, by ones and by mixed amounts, at each number of threads;
//! - what a read costs;
//! - how far reads are off ([`accuracy`]), against what each way promises;
//! - how large the call sites are: [`sizes`].
//!
//! The seed's code as it was quoted has a misplaced parenthesis, `unlikely(abs(count + amount)) >= batch`, which compares a truth
//! value with the batch, so that nothing is ever folded. It stands in the tests of this crate only, where the
//! bound catches it.

pub mod accuracy;
pub mod kernel;
pub mod sizes;
mod statics;
mod variants;
mod ways;

use std::collections::BTreeMap;

use countersink_harness::variant::{Experiment, Point};
use countersink_percpu::choice;

pub use ways::{Atomic, Carry, Tree, Way};

/// Adding.
pub const ADD: &str = "add";
/// Reading, while nobody adds.
pub const READ: &str = "read";
/// The batches that are measured.
pub const BATCHES: [u32; 5] = [1, 8, 32, 128, 1024];
/// The batch of those aims that name one.
pub const AIMED: u32 = 32;

/// What is added: always 1, or amounts from -3 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amounts {
    /// 1.
    Ones,
    /// From -3 to 12, in an order that does not repeat soon.
    Mixed,
}

impl Amounts {
    /// All of them.
    pub const ALL: [Amounts; 2] = [Amounts::Ones, Amounts::Mixed];

    /// The pattern of a point.
    pub fn pattern(self, batch: u32) -> String {
        match self {
            Amounts::Ones => format!("batch {batch}"),
            Amounts::Mixed => format!("batch {batch}, mixed"),
        }
    }
}

/// The experiment.
#[derive(Debug)]
pub struct BatchExperiment {
    threads: Vec<usize>,
}

impl BatchExperiment {
    /// At these thread counts.
    pub fn new(threads: &[usize]) -> Self {
        BatchExperiment {
            threads: threads.to_vec(),
        }
    }
}

impl Experiment for BatchExperiment {
    fn name(&self) -> &str {
        "batch"
    }

    fn points(&self) -> Vec<Point<'_>> {
        let mut points = Vec::new();
        for &threads in &self.threads {
            for batch in BATCHES {
                let of = |amounts| variants::add(batch, amounts, threads);
                points.extend(Amounts::ALL.map(of));
            }
            points.push(variants::read(AIMED, threads));
        }
        points
    }

    fn conditions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([("mechanism".to_owned(), choice().to_string())])
    }
}
