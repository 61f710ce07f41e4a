//! Runs experiments and sums up what they measure.
//!
//! An [`Experiment`](variant::Experiment) has [`Point`](variant::Point)s, where
//! [`Variant`](variant::Variant)s of one operation are measured side by side:
//! - threads are pinned inside the allowed CPUs, cores first ([`cpus`]), and start together;
//! - samples go by time and are divided by the measured time ([`threads`]);
//! - variants alternate A B B A, so drift is not taken for a difference ([`schedule`]);
//! - wall and thread time per operation are told apart, with fairness ([`runner::Sample`]);
//! - intervals hold for any distribution ([`stats`]);
//! - every result carries its machine and conditions ([`machine`]), in a form that can be read again
//!   ([`result`]), written completely or not at all ([`save`]).
//!
//! The harness knows nothing of what it measures, prints nothing, and reads no environment
//! variables. The empty loop is a variant like any other: its time is shown, never subtracted.
//!
//! # Example
//!
//! The mock runner does the operations, but invents the time. [`threads::ThreadRunner`] measures.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use countersink_harness::machine::Machine;
//! use countersink_harness::measure;
//! use countersink_harness::mock::{MockRunner, even_sample};
//! use countersink_harness::progress::Silent;
//! use countersink_harness::result::Results;
//! use countersink_harness::schedule::Plan;
//! use countersink_harness::variant::{Experiment, Point, Variant, Worker};
//!
//! /// One atomic counter, shared by all threads.
//! #[derive(Default)]
//! struct Shared(AtomicU64);
//!
//! struct Bump<'a>(&'a AtomicU64);
//!
//! impl Worker for Bump<'_> {
//!     fn run(&mut self, operations: u64) {
//!         for _ in 0..operations {
//!             self.0.fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! impl Variant for Shared {
//!     fn name(&self) -> &str {
//!         "atomic"
//!     }
//!     fn worker(&self, _thread_index: usize, _threads: usize) -> Box<dyn Worker + '_> {
//!         Box::new(Bump(&self.0))
//!     }
//!     fn check(&self, operations: &[u64]) -> Result<(), String> {
//!         let counted = self.0.load(Ordering::Relaxed);
//!         let asked: u64 = operations.iter().sum();
//!         if counted == asked { Ok(()) } else { Err(format!("{counted} of {asked}")) }
//!     }
//! }
//!
//! struct Sharing;
//!
//! impl Experiment for Sharing {
//!     fn name(&self) -> &str {
//!         "sharing"
//!     }
//!     fn points(&self) -> Vec<Point<'_>> {
//!         let point = |threads| Point::new("inc", "shared", threads).with(Shared::default());
//!         vec![point(1), point(2)]
//!     }
//! }
//!
//! // Each thread does 1000 operations, which take 5 µs for every thread that there is.
//! let mut runner =
//!     MockRunner::new(|call| even_sample(call.threads, 1000, 5000 * call.threads as u64));
//! let mut results = Results::new(Machine::detect());
//! measure::run(&Sharing, &mut runner, &Plan::quick(), &mut Silent, &mut results)?;
//!
//! let points = &results.experiments[0].points;
//! assert_eq!(points[0].wall.median, 5.0);
//! assert_eq!(points[1].wall.median, 10.0);
//! assert_eq!(points[1].fairness, 1.0);
//! # Ok::<(), measure::MeasureError>(())
//! ```

mod barrier;
pub mod clock;
pub mod compare;
pub mod cpus;
pub mod machine;
pub mod measure;
pub mod mock;
mod os;
pub mod progress;
pub mod render;
pub mod result;
pub mod runner;
pub mod save;
pub mod schedule;
pub mod self_check;
pub mod stats;
pub mod surroundings;
pub mod threads;
pub mod variant;
pub mod verdict;
