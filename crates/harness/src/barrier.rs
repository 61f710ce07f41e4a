//! The start barrier of one sample.
//!
//! Threads wait for each other by spinning, so that they start together, at three stages: when they
//! are warm, when they know the batch size, and when they are about to be timed. A thread that panics aborts the barrier, so that the others
//! do not wait for it.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// A thread panicked or could not be started: there will be no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aborted;

/// On a cache line of its own (two, for prefetchers that fetch pairs), as threads look at it between
/// batches.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Flag(AtomicBool);

#[derive(Debug)]
pub(crate) struct Barrier {
    /// Only read while threads are timed.
    stop: Flag,
    aborted: AtomicBool,
    /// Arrivals, over all stages.
    arrived: AtomicUsize,
    /// Stages that all threads have arrived at.
    released: AtomicUsize,
    threads: usize,
    /// Whether waiting threads give up their CPU: somebody whom they wait for may need it.
    yields: bool,
}

impl Barrier {
    /// A barrier of so many threads.
    pub(crate) fn new(threads: usize, yields: bool) -> Barrier {
        Barrier {
            stop: Flag::default(),
            aborted: AtomicBool::new(false),
            arrived: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            threads,
            yields,
        }
    }

    /// Waits until all threads are at the stage. To be called for 1, then for 2, and so on.
    pub(crate) fn wait(&self, stage: usize) -> Result<(), Aborted> {
        // AcqRel: the last thread to arrive has seen what the others did before they arrived.
        let arrived = self.arrived.fetch_add(1, Ordering::AcqRel) + 1;
        if arrived == stage * self.threads {
            // Pairs with the load below.
            self.released.store(stage, Ordering::Release);
        }
        while self.released.load(Ordering::Acquire) < stage {
            if self.aborted.load(Ordering::Relaxed) {
                return Err(Aborted);
            }
            if self.yields {
                thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
        Ok(())
    }

    /// Ends the timed part.
    pub(crate) fn stop(&self) {
        // Relaxed: no data goes with it.
        self.stop.0.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.0.load(Ordering::Relaxed)
    }

    /// Sends everyone home.
    pub(crate) fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Aborts the barrier if the calling thread panics while the guard lives.
    pub(crate) fn abort_on_panic(&self) -> AbortOnPanic<'_> {
        AbortOnPanic(self)
    }
}

#[derive(Debug)]
pub(crate) struct AbortOnPanic<'a>(&'a Barrier);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_passes_a_stage_before_all_have_arrived() {
        const THREADS: usize = 4;
        let barrier = Barrier::new(THREADS, true);
        let before = [AtomicUsize::new(0), AtomicUsize::new(0)];
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for stage in 1..=2 {
                        before[stage - 1].fetch_add(1, Ordering::Relaxed);
                        barrier.wait(stage).expect("not aborted");
                        assert_eq!(before[stage - 1].load(Ordering::Relaxed), THREADS);
                    }
                });
            }
        });
    }

    #[test]
    fn an_abort_sends_waiting_threads_home() {
        let barrier = Barrier::new(2, true);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait(1));
            barrier.abort();
            assert_eq!(waiting.join().expect("no panic"), Err(Aborted));
        });
        assert!(barrier.is_stopped());
    }
}
