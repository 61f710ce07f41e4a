//! Counters that can be asked while they count: of what they are known to be without a sum, and within which bound.

mod batch;
mod carry;
mod carrying;
mod estimate;
mod local;
mod many;
mod words;

pub use batch::BatchCounter;
pub(crate) use carrying::forked;
pub use estimate::Estimate;
pub use many::{BatchCounters, Member};
pub(crate) use words::Words;
