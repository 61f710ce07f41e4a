//! Per-CPU memory and operations.
pub mod spec;
