//! What the harness asks of the operating system. Both files have the same functions; everything
//! else in the crate is portable.
//!
//! `--cfg countersink_portable` selects the portable file on Linux too, so that it can be tested.

#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod linux;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
pub(crate) use linux::*;

#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
mod portable;
#[cfg(not(all(target_os = "linux", not(countersink_portable))))]
pub(crate) use portable::*;
