//! Making sure that no section still runs with an old view.
//!
//! For the few operations that change something which sections look at, and must know when none of
//! them can commit on what was there before.

use crate::mechanism::{Mechanism, choice};

/// The right to stop all sections of this process for a moment.
///
/// Getting it takes milliseconds once a process has threads, so get it at construction.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    _made_by_new: (),
}

/// Why there is no fence: some of these make sections run that the kernel will not stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FenceError {
    /// The process uses no sections, so there is nothing to stop.
    #[error("this process uses {0}, which no fence stops")]
    NoSections(Mechanism),
    /// The kernel has no `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ` (Linux 5.10), or refuses it; this is
    /// the error number.
    #[error("the kernel refused membarrier for restartable sequences (error {0})")]
    Refused(i32),
}

impl Fence {
    /// Registers the process.
    ///
    /// # Errors
    /// See [`FenceError`].
    pub fn new() -> Result<Self, FenceError> {
        match choice().mechanism {
            Mechanism::Rseq => register().map(|()| Fence { _made_by_new: () }),
            other => Err(FenceError::NoSections(other)),
        }
    }

    /// When this returns, every section of this process that was running when it was called has
    /// committed or been aborted, and no thread runs with an older view of memory.
    ///
    /// Of this process only: sections of others on shared memory go on. A system call and an
    /// interrupt to each CPU that runs one of this process's threads; microseconds.
    ///
    /// # Errors
    /// [`FenceError::Refused`], which a registered process does not get.
    pub fn all_cpus(&self) -> Result<(), FenceError> {
        membarrier()
    }
}

#[cfg(target_os = "linux")]
mod call {
    use super::FenceError;
    use rustix::thread::{MembarrierCommand, membarrier};

    fn refused(error: rustix::io::Errno) -> FenceError {
        FenceError::Refused(error.raw_os_error())
    }

    pub(super) fn register() -> Result<(), FenceError> {
        membarrier(MembarrierCommand::RegisterPrivateExpeditedRseq).map_err(refused)
    }

    pub(super) fn membarrier_all() -> Result<(), FenceError> {
        membarrier(MembarrierCommand::PrivateExpeditedRseq).map_err(refused)
    }
}
#[cfg(target_os = "linux")]
use call::{membarrier_all as membarrier, register};

#[cfg(not(target_os = "linux"))]
fn register() -> Result<(), FenceError> {
    membarrier()
}

#[cfg(not(target_os = "linux"))]
fn membarrier() -> Result<(), FenceError> {
    Err(FenceError::NoSections(choice().mechanism))
}
