//! What several test programs have in common.
#![allow(dead_code, reason = "each test program uses a part of it")]

#[cfg(target_os = "linux")]
pub(crate) mod child;
#[cfg(target_os = "linux")]
pub(crate) mod cpus;
pub(crate) mod lanes;
#[cfg(target_os = "linux")]
pub(crate) mod libc_rseq;
pub(crate) mod random;
#[cfg(target_os = "linux")]
pub(crate) mod signals;
