//! What several test programs have in common.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod child;
pub(crate) mod cpus;
pub(crate) mod fork;
pub(crate) mod log;
pub(crate) mod random;
pub(crate) mod raw;
pub(crate) mod read;
