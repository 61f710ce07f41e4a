//! The real runner: pinned threads, a start barrier, measured time.
//!
//! Threads are started anew for each sample. That costs some tens of µs, none of them timed, and
//! means that nothing of one variant is left while another one is measured: no parked threads, no
//! scheduling history, no thread-local state. What must survive (arrays) belongs to the variant.
//!
//! One sample on one thread: pin, create the worker, warm it; wait for the others; find the batch
//! size, all threads at once, as contention changes it, or try the one of the sample before; wait again; look at what the kernel counts ([`crate::surroundings`]);
//! wait once more; then batches until the time is over. Whose time is over first sets a flag for the others. Nobody sleeps until then: a thread that woke
//! would take a CPU from one that is measured. The clock is looked at after half of the time that is left, and after a sixteenth at the latest, so some twenty
//! times in a sample however short the batches are, as that is a system call on machines without a fast clock.

use std::any::Any;
use std::thread::{self, Builder, ScopedJoinHandle};

use crate::barrier::{Aborted, Barrier};
use crate::clock::{self, Clock, RealClock};
use crate::cpus::{Placement, Topology};
use crate::runner::{RunError, Runner, Sample, Target};
use crate::surroundings::{Steal, Timing, Watch};
use crate::variant::{Variant, Worker};

/// A batch takes at least this long, and less than twice as long if operations take equally long:
/// long against the look at the flag, short against a sample.
pub(crate) const BATCH_NS: u64 = 20_000;

/// No operation is faster than 0.02 ns; larger batches would mean that the clock is stuck.
const MAX_BATCH: u64 = 1 << 20;

/// A batch must take long enough this many times in a row, so that one interruption does not pass
/// for a long batch.
const CONFIRMATIONS: u32 = 3;

/// Runs variants on real threads.
#[derive(Clone, Debug)]
pub struct ThreadRunner<C = RealClock> {
    topology: Topology,
    clock: C,
    resolution_ns: u64,
}

impl ThreadRunner {
    /// A runner on the CPUs that the calling thread may use.
    pub fn new() -> ThreadRunner {
        ThreadRunner::with(Topology::detect(), RealClock::new())
    }
}

impl Default for ThreadRunner {
    fn default() -> ThreadRunner {
        ThreadRunner::new()
    }
}

impl<C: Clock> ThreadRunner<C> {
    /// A runner on the given CPUs with the given clock.
    pub fn with(topology: Topology, clock: C) -> ThreadRunner<C> {
        ThreadRunner {
            resolution_ns: clock::resolution_ns(&clock),
            topology,
            clock,
        }
    }

    /// The CPUs that threads are placed on.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }
}

impl<C: Clock> Runner for ThreadRunner<C> {
    fn sample(
        &mut self,
        variant: &dyn Variant,
        threads: usize,
        target: Target,
        batches: &[u64],
    ) -> Result<Sample, RunError> {
        if threads == 0 {
            return Err(RunError::NoThreads);
        }
        if threads > 1 && matches!(target, Target::Operations(_)) {
            return Err(RunError::FixedWithThreads(threads));
        }
        let placement = self.topology.place(threads);
        let barrier = Barrier::new(threads, placement.oversubscribed);
        let job = Job {
            variant,
            threads,
            target,
            batches,
            placement: &placement,
            barrier: &barrier,
            clock: &self.clock,
        };
        let steal = Steal::begin(&placement.cpus);
        let timings = job.run()?;
        let steal_ns = steal.end();
        let start = timings.iter().map(|t| t.start_ns).min().unwrap_or(0);
        let end = timings.iter().map(|t| t.end_ns).max().unwrap_or(0);
        Ok(Sample {
            elapsed_ns: end.saturating_sub(start),
            threads: timings.into_iter().map(|t| t.thread).collect(),
            oversubscribed: placement.oversubscribed,
            shared_cores: placement.shared_cores,
            steal_ns,
        })
    }

    fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }
}

/// One sample, as its threads see it.
struct Job<'a> {
    variant: &'a dyn Variant,
    threads: usize,
    target: Target,
    batches: &'a [u64],
    placement: &'a Placement,
    barrier: &'a Barrier,
    clock: &'a dyn Clock,
}

impl Job<'_> {
    /// Starts the threads and collects what they found.
    fn run(&self) -> Result<Vec<Timing>, RunError> {
        thread::scope(|scope| {
            let mut handles = Vec::with_capacity(self.threads);
            let mut refused = None;
            for index in 0..self.threads {
                let name = format!("measure-{index}");
                match Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || self.thread(index))
                {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        refused = Some(error);
                        self.barrier.abort();
                        break;
                    }
                }
            }
            let timings = collect(handles);
            match refused {
                Some(error) => Err(RunError::Spawn(error)),
                None => timings,
            }
        })
    }

    /// What each thread does.
    fn thread(&self, index: usize) -> Result<Timing, Aborted> {
        let _guard = self.barrier.abort_on_panic();
        let cpu = self.placement.pin(index);
        let mut worker = self.variant.worker(index, self.threads);
        worker.warm();
        self.barrier.wait(1)?;
        match self.target {
            Target::Time(length) => {
                let known = self.batches.get(index).copied();
                let (batch, untimed) = batch_of(&mut *worker, self.clock, known);
                let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
                let mut timing = self.time(cpu, |start_ns| {
                    let mut looks = Looks::new(self.clock, start_ns, length_ns);
                    run_until_stopped(&mut *worker, batch, self.barrier, &mut looks)
                })?;
                timing.thread.batch = batch;
                timing.thread.untimed_ops = untimed;
                Ok(timing)
            }
            Target::Operations(count) => self.time(cpu, |_| {
                worker.run(count);
                count
            }),
        }
    }

    /// Times what does operations and says how many, from when all threads are here. It is told when it began.
    fn time(&self, cpu: Option<usize>, body: impl FnOnce(u64) -> u64) -> Result<Timing, Aborted> {
        self.barrier.wait(2)?;
        let watch = Watch::begin(self.clock, cpu);
        self.barrier.wait(3)?;
        Ok(watch.time(self.clock, body))
    }
}

/// The measuring loop. At least one batch, however late the thread got to run.
#[inline(never)]
fn run_until_stopped(
    worker: &mut dyn Worker,
    batch: u64,
    barrier: &Barrier,
    looks: &mut Looks<'_>,
) -> u64 {
    let mut ops = 0;
    loop {
        for _ in 0..looks.batches {
            worker.run(batch);
            ops += batch;
            if barrier.is_stopped() {
                return ops;
            }
        }
        if looks.is_over() {
            barrier.stop();
            return ops;
        }
    }
}

/// When a thread looks at the clock.
struct Looks<'a> {
    clock: &'a dyn Clock,
    start_ns: u64,
    length_ns: u64,
    /// Batches until the next look.
    batches: u64,
    done: u64,
    last_ns: u64,
    /// Looks since the clock went on.
    still: u32,
}

impl<'a> Looks<'a> {
    /// A look takes place at least after this part of the time.
    const PART: u64 = 16;
    /// A clock that shows the same time so often does not go.
    const STILL: u32 = 8;

    fn new(clock: &'a dyn Clock, start_ns: u64, length_ns: u64) -> Looks<'a> {
        Looks {
            clock,
            start_ns,
            length_ns,
            batches: 1,
            done: 0,
            last_ns: start_ns,
            still: 0,
        }
    }

    /// Whether the time is over; if not, says after how many batches to look again.
    #[cold]
    fn is_over(&mut self) -> bool {
        self.done += self.batches;
        let now = self.clock.now_ns();
        self.still = if now > self.last_ns {
            0
        } else {
            self.still + 1
        };
        self.last_ns = now;
        let elapsed = now.saturating_sub(self.start_ns);
        let left = self.length_ns.saturating_sub(elapsed);
        let wait = (left / 2).min(self.length_ns / Self::PART);
        // While no time has been seen to pass, there is no telling how long a batch takes.
        let of_batch = (elapsed / self.done).max(1);
        self.batches = if elapsed == 0 {
            1
        } else {
            (wait / of_batch).max(1)
        };
        left == 0 || self.still >= Self::STILL
    }
}

/// The batch size, and how many operations it took to find it. One that is known is tried once,
/// which also warms what the thread needs.
fn batch_of(worker: &mut dyn Worker, clock: &dyn Clock, known: Option<u64>) -> (u64, u64) {
    let Some(batch) = known.filter(|batch| *batch > 0) else {
        return find_batch(worker, clock, CONFIRMATIONS);
    };
    let start = clock.now_ns();
    worker.run(batch);
    let took = clock.now_ns().saturating_sub(start);
    if (BATCH_NS / 2..BATCH_NS * 4).contains(&took) {
        return (batch, batch);
    }
    // Contention is not what it was.
    let (found, done) = find_batch(worker, clock, CONFIRMATIONS);
    (found, batch + done)
}

/// The batch size, and how many operations it took to find it.
fn find_batch(worker: &mut dyn Worker, clock: &dyn Clock, confirmations: u32) -> (u64, u64) {
    let mut batch = 1;
    let mut done = 0;
    let mut takes_long_enough = |batch| {
        done += batch;
        let start = clock.now_ns();
        worker.run(batch);
        clock.now_ns().saturating_sub(start) >= BATCH_NS
    };
    while batch < MAX_BATCH && !(0..confirmations).all(|_| takes_long_enough(batch)) {
        batch *= 2;
    }
    (batch, done)
}

/// Waits for all threads. The first panic wins; without one, nobody was sent home.
fn collect(
    handles: Vec<ScopedJoinHandle<'_, Result<Timing, Aborted>>>,
) -> Result<Vec<Timing>, RunError> {
    let mut timings = Vec::with_capacity(handles.len());
    let mut panic = None;
    for handle in handles {
        match handle.join() {
            Ok(Ok(timing)) => timings.push(timing),
            Ok(Err(Aborted)) => {}
            Err(payload) => panic = panic.or(Some(message(&*payload))),
        }
    }
    match panic {
        Some(message) => Err(RunError::Panicked(message)),
        None => Ok(timings),
    }
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MockClock;

    /// Operations of 10 ns each; one call is interrupted for 1 ms.
    struct Interrupted<'a> {
        clock: &'a MockClock,
        calls_until: u32,
    }

    impl Worker for Interrupted<'_> {
        fn run(&mut self, operations: u64) {
            let interruption = if self.calls_until == 0 { 1_000_000 } else { 0 };
            self.calls_until = self.calls_until.wrapping_sub(1);
            self.clock.advance(10 * operations + interruption);
        }
    }

    fn batch_found(calls_until: u32, confirmations: u32) -> u64 {
        let clock = MockClock::new(0);
        let mut worker = Interrupted {
            clock: &clock,
            calls_until,
        };
        find_batch(&mut worker, &clock, confirmations).0
    }

    #[test]
    fn an_interruption_does_not_make_batches_short() {
        for calls_until in 0..20 {
            // The smallest power of two that takes 20 µs.
            assert_eq!(batch_found(calls_until, CONFIRMATIONS), 2048);
        }
    }

    /// One that is known is tried, and kept if it takes about 20 µs.
    #[test]
    fn a_known_batch_size_is_tried() {
        // The search ends with 3 batches of 2048, after one of each smaller power of two.
        let search = 2047 + 3 * 2048;
        for (known, batch, untimed) in [
            (3000, 3000, 3000),
            (100, 2048, 100 + search),
            (100_000, 2048, 100_000 + search),
            (0, 2048, search),
        ] {
            let clock = MockClock::new(0);
            let mut worker = Interrupted {
                clock: &clock,
                calls_until: u32::MAX,
            };
            let found = batch_of(&mut worker, &clock, Some(known));
            assert_eq!(found, (batch, untimed), "{known}");
        }
    }

    /// However short batches are against a sample, the clock is looked at a few times, and the time is kept to a batch.
    #[test]
    fn time_is_kept_with_few_looks() {
        for (batch_ns, length_ns) in [
            (20_000, 2_000_000),
            (20_000, 250_000_000),
            (3_000_000, 2_000_000),
            (1, 1_000_000),
        ] {
            let clock = MockClock::new(0);
            let mut looks = Looks::new(&clock, 0, length_ns);
            let mut count = 0;
            loop {
                clock.advance(looks.batches * batch_ns);
                count += 1;
                if looks.is_over() {
                    break;
                }
            }
            let over = clock.now_ns() - length_ns;
            assert!(
                over <= batch_ns,
                "{over} ns too late with batches of {batch_ns} ns"
            );
            assert!(count <= 40, "{count} looks");
        }
    }

    /// The test above finds a search that believes the first long batch.
    #[test]
    fn without_confirmation_an_interruption_makes_batches_short() {
        assert_eq!(batch_found(0, 1), 1);
    }
}
