//! A critical section on the lane of the CPU: the only way here that several threads can share.

use super::{Context, LocalCounter};
use crate::Slot;

/// A word in every lane, changed by sections.
///
/// Where: thread, handler, nested handler, fault handler; any thread. A signal aborts a section that
/// has not committed, so nothing comes in between. Memory: 8 bytes in each lane.
#[derive(Clone, Copy, Debug)]
pub struct PerCpu<'a>(pub Slot<'a, i64>);

impl LocalCounter for PerCpu<'_> {
    const NAME: &'static str = "percpu";
    const CONTEXTS: &'static [Context] = &[
        Context::Thread,
        Context::Handler,
        Context::NestedHandler,
        Context::FaultHandler,
    ];
    const BYTES: usize = size_of::<i64>();

    /// The sum over all lanes.
    #[inline(always)]
    fn read(&self) -> i64 {
        self.0.sum()
    }

    /// Changes the bias; no lane is written.
    #[inline(always)]
    fn set(&self, value: i64) {
        self.0.replace(value);
    }

    #[inline(always)]
    fn inc(&self) {
        self.0.inc();
    }

    #[inline(always)]
    fn add(&self, n: i64) {
        self.0.add(n);
    }

    /// Adds and returns the new value *of the lane*.
    #[inline(always)]
    fn add_return(&self, n: i64) -> i64 {
        self.0.add_return(n)
    }
}
