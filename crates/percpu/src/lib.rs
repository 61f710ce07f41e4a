//! Per-CPU memory and operations.

#[cfg(not(target_has_atomic = "64"))]
compile_error!("countersink-percpu needs 64-bit atomic operations");

mod arch;
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

pub use mechanism::{Choice, Mechanism, Reason, Registrar, RequestError, choice, request};
pub use membarrier::{Fence, FenceError};
pub use segment::{Lane, STRIDE, Segment, SegmentError, WORDS};
pub use slot::{PairSlot, Slot, Slots, Word};
