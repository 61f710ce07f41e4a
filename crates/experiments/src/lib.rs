//! The experiments of Countersink, one module each. Every module opens with the seed that it
//! reproduces.
//!
//! They describe what is measured; `countersink-harness` measures, and the `countersink` command
//! shows the results.

#[cfg(unix)]
pub mod batch;

pub mod check_before_set;
pub mod local;
pub mod rwsem;
#[cfg(unix)]
mod shared_memory;
pub mod span;
#[cfg(target_os = "linux")]
pub mod workload;
