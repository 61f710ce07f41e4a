//! What a process knows of a counter's batches.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use countersink_percpu::{BlockCell, Slots};

use super::words::Words;

/// The counter's batch, and the widest one of which the counter's words are known to say it.
#[derive(Debug)]
pub(crate) struct Local {
    /// How far a lane may be from what it has published: the batch less one.
    most: AtomicU64,
    /// The counter's words. Empty until `most` is right, and the counter's words say it.
    ready: BlockCell<4>,
    /// 0 until then. It only rises, so relaxed.
    widest: AtomicU64,
    /// The batch that was asked for; 0 is the default.
    asked: u32,
}

impl Local {
    pub(crate) const fn new(asked: u32) -> Self {
        Local {
            most: AtomicU64::new(0),
            ready: BlockCell::new(),
            widest: AtomicU64::new(0),
            asked,
        }
    }

    /// The same for another counter.
    pub(crate) fn same(&self) -> Self {
        Local::new(self.asked)
    }

    /// How far a lane may be from what it has published.
    #[inline(always)]
    pub(crate) fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }

    /// Where to count, once all is prepared.
    #[inline(always)]
    pub(crate) fn ready(&self) -> &BlockCell<4> {
        &self.ready
    }

    /// Says in the counter's words how wide its batches are, before anything is counted with them. Several threads at once
    /// do the same.
    pub(crate) fn prepare(&self, all: Slots<'static>) {
        if self.ready.get().is_some() {
            return;
        }
        let batch = match self.asked {
            0 => default(),
            asked => asked,
        };
        if let Some(words) = Words::of(&all, 0) {
            self.widen(&words, batch);
            self.most.store(u64::from(batch) - 1, Relaxed);
            // Others have the same words.
            let _ = self.ready.publish(all);
        }
    }

    /// The same for an addition with another batch.
    #[inline(always)]
    pub(crate) fn widen(&self, words: &Words<'_>, batch: u32) {
        if u64::from(batch) > self.widest.load(Relaxed) {
            words.widen(batch);
            self.widest.fetch_max(u64::from(batch), Relaxed);
        }
    }
}

/// What the kernel takes.
fn default() -> u32 {
    countersink_percpu::online_cpus().saturating_mul(2).max(32)
}
