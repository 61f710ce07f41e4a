//! No count is lost or counted twice, whatever comes in between. Every test asserts the exact total.
//!
//! - `storm.rs`: many threads count while signals, timers and migrations hit them, and the handlers
//!   count on the same word. `operations.rs`: every operation as a counter (`counter.rs`).
//! - `mutants.rs`: counters with the known mistakes; the same storm must find each.
//! - `exact.rs`: the storms, in each setting of the process.
//! - `extremes.rs`: minimum and maximum in a storm.
//! - `fence.rs`: nothing is added behind a raised guard and a fence.
//! - `forks.rs`: processes that share the memory, and some that are killed.
//! - `live.rs`: variables in registers survive every operation.
//! - `stepped.rs`: a process that is single-stepped ends, with exact totals.
//! - `take.rs`: taking and summing while others add.
//! - `threads.rs`: first uses, ends of threads, and threads that are not registered.
//!
//! Run with `--nocapture` to see the totals, how often something came in between, and the seeds.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;

mod counter;
mod exact;
mod extremes;
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
mod fence;
#[cfg(not(countersink_portable))]
mod forks;
mod live;
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
mod mutants;
mod operations;
#[cfg(all(target_arch = "x86_64", not(countersink_portable)))]
mod stepped;
mod storm;
mod take;
mod threads;
mod timer;
