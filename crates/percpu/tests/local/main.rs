//! The ways to count locally lose nothing, wherever a signal comes in between.
//!
//! - `model.rs`: each way against a plain `i64`, one thread.
//! - `deferred.rs`, `trivalue.rs`: what these two promise besides.
//! - `stepped.rs`: a signal at every instruction boundary of every operation, and a second one at
//!   every boundary after the first, by a tracer that single-steps a child (`tracee.rs`).
//! - `storm.rs`: timers and another thread send signals while a thread counts as fast as it can.
//! - `fault.rs`: handlers of faults count.
//! - `mutants.rs`: the mistakes that the ways avoid. The same drivers must find each of them.
//!
//! Run with `--nocapture` to see how much each test covered.

#[cfg(unix)]
mod deferred;
mod model;
#[cfg(unix)]
mod signals;
#[cfg(unix)]
mod trivalue;
mod ways;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod board;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod fault;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod mutants;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod stepped;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod storm;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracee;
