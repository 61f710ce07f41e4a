//! Counters, gauges, spans and histograms that other processes can read while the program counts.

mod layout;
pub mod reader;
