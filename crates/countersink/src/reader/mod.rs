//! Reading regions, from outside the program or inside.
//!
//! What is read may have been written by anyone: every number is checked, every loop is bounded, and
//! what cannot be right is reported as such.

mod model;

pub use model::{
    Buckets, Clock, ClockKind, Extremes, Gauge, Info, Kind, Labels, Mechanism, Metric, Per, Refusal, Snapshot, Span,
    Value,
};
