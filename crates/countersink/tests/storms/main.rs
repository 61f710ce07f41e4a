//! Metrics in storms: every total is exact, whatever comes in between.
//!
//! Where a process is killed, it may have counted one more than it could write down; totals lie in
//! that bracket. Beside each protocol stands what would break it, and has to be found.
//!
//! - `prefork.rs`: workers that share a region, are killed and replaced;
//! - `takes.rs`: takes from several processes while others count;
//! - `extremes.rs`: shortest and longest after a take;
//! - `churn.rs`: metrics that come and go while others read;
//! - `killed.rs`: what a killed process leaves in a file;
//! - `forks.rs`: forks of a program with threads;
//! - `interrupted.rs`: forks beside a thread that registers;
//! - `early_and_late.rs`: before `main`, in handlers, in destructors;
//! - `registration.rs`: processes that register the same metrics at once, some of them killed;
//! - `spans.rs`: what spans record, and what earlier designs got wrong;
//! - `live.rs`: values while others count and take;
//! - `groups.rs`: events that are read together;
//! - `many.rs`: ten thousand counters.
//!
//! Run with `--nocapture` to see the totals and the seeds.
#![cfg(all(target_os = "linux", not(countersink_portable)))]

#[path = "../common/mod.rs"]
mod common;

mod churn;
mod early_and_late;
mod extremes;
mod forks;
mod groups;
mod interrupted;
mod killed;
mod live;
mod many;
mod prefork;
mod registration;
mod spans;
mod takes;
