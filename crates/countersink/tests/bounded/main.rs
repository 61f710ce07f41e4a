//! Bounded counters in storms, and against a model.
//!
//! What a counter says of itself must agree with what its adders have written down: each announces an addition before and
//! confirms it afterwards, so the true sum lies in a bracket (`truth.rs`). Beside each promise stands something
//! that breaks it, and has to be found.
//!
//! - `storm.rs`: threads that are moved and interrupted by handlers, which add too;
//! - `estimates.rs`: estimates, sums, comparisons, limited additions and syncs in that storm;
//! - `mechanisms.rs`: the same, however the process counts;
//! - `killed.rs`: the same with processes that are killed;
//! - `limit.rs`: limited additions beside subtractions, millions of times at the limit;
//! - `sets.rs`: setting, beside additions and beside others that set;
//! - `forks.rs`: children that share counters or leave them;
//! - `properties.rs`: all operations and extremes on one thread, against a model;
//! - `many.rs`: neighbours, words that are used again, families, two handles of a name;
//! - `wrong.rs`: counters with the known mistakes.
//!
//! Run with `--nocapture` to see the totals and the seeds.
//!
//! Not where every addition is a locked one: there nobody is ever quiet, and little goes wrong.
#![cfg(all(target_os = "linux", not(countersink_portable)))]

#[path = "../common/mod.rs"]
mod common;
#[cfg(target_arch = "x86_64")]
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../percpu/tests/common/libc_rseq.rs"]
mod libc_rseq;
#[allow(dead_code, reason = "a part of it is used here")]
#[path = "../../../percpu/tests/common/signals.rs"]
mod signals;
#[path = "../../../percpu/tests/storms/timer.rs"]
mod timer;

mod estimates;
mod forks;
mod killed;
mod limit;
mod many;
mod mechanisms;
mod properties;
mod sets;
mod storm;
mod truth;
mod wrong;
