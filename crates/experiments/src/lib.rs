//! The experiments of Countersink, one module each. Every module opens with the seed that it
//! reproduces.
//!
//! They describe what is measured; `countersink-harness` measures, and the `countersink` command
//! shows the results.

pub mod batch;
pub mod local;
pub mod span;
