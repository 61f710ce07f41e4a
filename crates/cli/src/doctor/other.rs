//! What systems other than Linux tell: nothing of this.

use super::facts::{Memory, Perf, Rseq};

/// Restartable sequences: Linux has them.
pub(super) fn rseq() -> Rseq {
    Rseq::default()
}

/// What to do about a refused registration: Linux alone has any.
pub(super) fn refusal(_errno: u16) -> &'static str {
    "Restartable sequences need Linux."
}

/// The commands of membarrier: Linux has it.
pub(super) fn membarrier_commands() -> Vec<&'static str> {
    Vec::new()
}

/// The CPU's properties: not asked for here.
#[cfg(target_arch = "aarch64")]
pub(super) fn hardware_capabilities() -> u64 {
    0
}

/// Hardware counters: not asked for here.
pub(super) fn perf() -> Perf {
    Perf::default()
}

/// Memory: not asked for here.
pub(super) fn memory() -> Memory {
    Memory::default()
}
