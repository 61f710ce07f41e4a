//! Faults on demand, for tests: the lock without some of its parts. Nothing of it is in a program.

/// Nobody asks for a handoff.
pub const NO_HANDOFF: u32 = 1;
/// Who leaves wakes nobody.
pub const NO_WAKE: u32 = 2;

/// Of readers that wait, one is woken.
pub const ONE_READER: u32 = 3;

#[cfg(any(test, loom))]
static PRESENT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Makes a fault present.
#[cfg(any(test, loom))]
pub fn set(mutant: u32) {
    PRESENT.store(mutant, std::sync::atomic::Ordering::SeqCst);
}

#[cfg(any(test, loom))]
pub(crate) fn is(mutant: u32) -> bool {
    PRESENT.load(std::sync::atomic::Ordering::SeqCst) == mutant
}

#[cfg(not(any(test, loom)))]
#[inline(always)]
pub(crate) fn is(_: u32) -> bool {
    false
}
