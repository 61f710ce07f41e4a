//! Every operation does what [`countersink_percpu::spec`] says, on every kind of lane, in every
//! process: with each mechanism, registrar and reason, and where a thread or a segment is an
//! exception in its process.
//!
//! - `case.rs`: one operation against [`Op::decide`](countersink_percpu::spec::Op::decide).
//! - `suite.rs`: all operations at the edges, and random sequences of them.
//! - `processes.rs`: each setting in a process of its own (Linux).
//! - `segments.rs`: segments and threads that are exceptions in their process (Linux).
//! - `portable.rs`: lanes by thread (`--cfg countersink_portable`, and systems other than Linux).

#[path = "../common/mod.rs"]
mod common;

mod case;
#[cfg(any(countersink_portable, not(target_os = "linux")))]
mod portable;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(all(target_os = "linux", not(countersink_portable)))]
mod segments;
mod suite;
