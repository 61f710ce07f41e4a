//! Counters, gauges, spans and histograms that other processes can read while the program counts.
//!
//! A `static` is the whole set-up:
//!
//! ```
//! use countersink::{Counter, Span};
//!
//! static REQUESTS: Counter = Counter::new("requests").help("Requests that were answered");
//! static ANSWER: Span = Span::new("answer").help("From request to answer");
//!
//! fn answer() {
//!     let _running = ANSWER.start(); // stops when it is dropped
//!     REQUESTS.inc();
//! }
//! # answer();
//! # assert_eq!((REQUESTS.sum(), ANSWER.read().events), (1, 1));
//! ```
//!
//! The first use of any metric makes the process's *region*, a memfd that `countersink show PID` reads; with
//! `COUNTERSINK_DIR` or `COUNTERSINK_REGION` in the environment, or with [`region::configure`], it is elsewhere.
//! The program never fails because of its metrics: where something cannot be had they count in private memory, and
//! [`region::status`] and each metric's `home()` say so.
//!
//! **Children that are forked share the region that their parent has by then.** A prefork server whose parent
//! counts nothing calls [`region::status`] before it forks; otherwise each worker makes a region of its own,
//! which is gone when the worker is.
//!
//! - [`Counter`], [`Gauge`], [`Span`], [`Histogram`]: what can be counted;
//! - [`event_group!`]: counters that are declared together;
//! - [`Family`]: one metric for each set of label values;
//! - [`clock`]: what spans are measured with;
//! - [`reader`]: reading regions, of any process.

#[cfg(not(target_has_atomic = "64"))]
compile_error!("countersink needs 64-bit atomic operations");

mod bounded;
pub mod clock;
mod counter;
mod family;
mod gauge;
#[doc(hidden)]
pub mod group;
mod histogram;
mod kind;
mod layout;
mod metric;
mod os;
pub mod reader;
pub mod region;
mod span;
mod text;
mod values;

pub use bounded::{BatchCounter, BatchCounters, Estimate, Member, TreeCounter};
pub use counter::Counter;
pub use family::{Family, Metric};
pub use gauge::Gauge;
pub use group::NoEvent;
pub use histogram::Histogram;
pub use kind::Unit;
pub use metric::Home;
pub use span::{Running, Span};
