//! Per-CPU memory and operations: exact counts at about the price of an unprotected addition.
//!
//! - [`Segment`] is memory in lanes, one for each CPU; [`Slot`] is the handle of a word in all of
//!   them, [`PairSlot`] of two that change together.
//! - [`choice`] tells how this process counts, and why.
//! - [`Fence`] makes sure that no operation still runs with an old view.
//! - [`local`] has the ways to count in one thread and its signal handlers.
//! - [`spec`] says in plain Rust what each operation does.
//!
#![doc = include_str!("../rseq.md")]

#[cfg(not(target_has_atomic = "64"))]
compile_error!("countersink-percpu needs 64-bit atomic operations");

mod arch;
mod block;
#[cfg(countersink_inject)]
pub mod inject;
pub mod local;
mod locked;
mod mechanism;
mod membarrier;
mod os;
mod segment;
mod slot;
pub mod spec;
mod wide;

pub use block::{Block, BlockCell, Published};
pub use mechanism::{
    Choice, Mechanism, Reason, Registrar, RequestError, choice, current_cpu, online_cpus, request,
};
pub use membarrier::{Fence, FenceError};
pub use segment::{Lane, STRIDE, Segment, SegmentError, SegmentRef, WORDS};
pub use slot::{PairSlot, Slot, Slots, Word};
