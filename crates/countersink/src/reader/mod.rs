//! Reading regions, from outside the program or inside.
//!
//! What is read may have been written by anyone: every number is checked, every loop is bounded, and
//! what cannot be right is reported as such.
//!
//! ```no_run
//! use countersink::reader::{Region, Value};
//!
//! for region in Region::of_process(1234)? {
//!     for metric in region.snapshot()?.metrics {
//!         if let Value::Counter(count) = metric.value {
//!             println!("{} {count}", countersink::reader::escape(&metric.name));
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arithmetic;
mod clock;
mod core_file;
mod entries;
mod error;
mod growth;
mod header;
mod model;
mod open;
mod os;
mod problems;
mod quantile;
mod reset;
mod snapshot;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text;
mod values;
mod words;

pub use error::{OpenError, ReadError};
pub use growth::{Growth, growth};
pub use model::{
    Bounded, Buckets, Clock, ClockKind, Extremes, Gauge, Info, Kind, Labels, Mechanism, Metric,
    Per, Refusal, Snapshot, Span, Value,
};
pub use open::{Found, Life, Pruned, RegionFile, Sighting, files_in, find, prune};
pub use reset::{ResetError, Taken};
pub use snapshot::{Region, State};
pub use text::{escape, full_name};
