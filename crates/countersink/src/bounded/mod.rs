//! Counters that can be asked while they count: of what they are known to be without a sum, and within which bound.

mod batch;
mod carry;
mod carrying;
mod estimate;
mod local;
mod many;
mod shape;
mod tree;
#[cfg(all(test, loom))]
mod weak_memory;
mod words;

pub use batch::BatchCounter;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) use carrying::forked;
pub use estimate::Estimate;
pub use many::{BatchCounters, Member};
pub use tree::TreeCounter;

use countersink_percpu::{Lane, PairSlot, Slots};

/// Makes words 0 that an earlier counter had, in all lanes.
///
/// Lanes are never written elsewhere but on their CPU, since an addition there may be in the middle. Here nobody has a handle of
/// the words any more, and what is left in a lane would widen the bound of the next counter for ever.
pub(crate) fn clear(all: &Slots<'_>) {
    for at in (0..all.len()).step_by(2) {
        let Some(pair) = all.pair(at) else { continue };
        let cpus = u32::try_from(pair.lanes() - 1).unwrap_or(u32::MAX);
        clear_lane(&pair, Lane::Shared);
        clear_lane(&pair, Lane::Bias);
        (0..cpus).for_each(|cpu| clear_lane(&pair, Lane::Cpu(cpu)));
    }
}

fn clear_lane(pair: &PairSlot<'_>, lane: Lane) {
    let held = pair.load(lane).unwrap_or_default();
    // Untouched pages stay untouched.
    if held != [0, 0] {
        let _ = pair.compare_exchange_locked(lane, held, [0, 0]);
    }
}
