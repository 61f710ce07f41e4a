//! Architectures without sections: nobody is registered.

use super::Place;
use crate::mechanism::{Reason, Registrar};

/// Decides who registers: nobody.
pub(super) fn decide() -> Result<Registrar, Reason> {
    Err(Reason::NoSections)
}

/// Where a thread counts that the C library should have registered.
pub(super) fn place_by_libc(_cpus: u32) -> Place {
    Place::SharedLane
}

/// Where a thread counts that registers itself.
pub(super) fn place_by_own(_cpus: u32) -> Place {
    Place::SharedLane
}
