//! What a process knows of a counter's batches.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use countersink_percpu::{BlockCell, Slots};

use super::carrying;

/// The counter's batch, and the widest one of which the counter's words are known to say it.
#[derive(Debug)]
pub(crate) struct Local<const N: usize> {
    /// How far a lane may be from what it has published: the batch less one.
    most: AtomicU64,
    /// The counter's words. Empty until `most` is right, and the counter's words say it.
    ready: BlockCell<N>,
    /// 0 until then. It only rises, so relaxed.
    widest: AtomicU64,
    /// The batch that was asked for; 0 is the default.
    asked: u32,
}

impl<const N: usize> Local<N> {
    pub(crate) const fn new(asked: u32) -> Self {
        Local {
            most: AtomicU64::new(0),
            ready: BlockCell::new(),
            widest: AtomicU64::new(0),
            asked,
        }
    }

    /// With a batch that was asked for, which is at least 1.
    pub(crate) const fn with_batch(batch: u32) -> Self {
        Local::new(if batch == 0 { 1 } else { batch })
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
    pub(crate) fn ready(&self) -> &BlockCell<N> {
        &self.ready
    }

    /// Makes words ready to be counted in. Several threads at once do the same.
    pub(crate) fn prepare(
        &self,
        words: Slots<'static>,
        default: impl Fn() -> u32,
        widen: impl Fn(u32),
    ) {
        if self.ready.get().is_some() {
            return;
        }
        let batch = match self.asked {
            0 => default(),
            asked => asked,
        };
        carrying::prepare();
        self.widen(batch, widen);
        self.most.store(u64::from(batch) - 1, Relaxed);
        // Others have the same words.
        let _ = self.ready.publish(words);
    }

    /// Says in the counter's words, by `widen`, how wide its batches are, before anything is counted with them.
    #[inline(always)]
    pub(crate) fn widen(&self, batch: u32, widen: impl Fn(u32)) {
        if u64::from(batch) > self.widest.load(Relaxed) {
            widen(batch);
            self.widest.fetch_max(u64::from(batch), Relaxed);
        }
    }
}
