//! How far reads are off while others add, against what is promised.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};

use super::kernel::{Kernel, Masked, Nested};
use super::variants::MIXED;
use super::ways::{Atomic, Carry, Tree, Way};

/// What was seen of one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accuracy {
    /// The way.
    pub way: &'static str,
    /// Reads.
    pub reads: u64,
    /// The farthest that a read was from the sum, as far as that is certain: additions in progress may or may not be in
    /// it, and each is taken to be as the read has it.
    pub worst: u64,
    /// The bound that was promised when it was worst.
    pub bound: u64,
    /// Reads that were further off than was promised.
    pub broken: u64,
}

/// Watches all ways, one after the other, each for so long, with this batch and so many threads that add.
///
/// # Errors
/// For want of memory; a sum that is not what was added.
pub fn watch_all(batch: u32, threads: usize, time: Duration) -> Result<Vec<Accuracy>, String> {
    Ok(vec![
        watch::<Carry>(batch, threads, time)?,
        watch::<Kernel>(batch, threads, time)?,
        watch::<Nested>(batch, threads, time)?,
        watch::<Masked>(batch, threads, time)?,
        watch::<Atomic>(batch, threads, time)?,
        watch::<Tree>(batch, threads, time)?,
    ])
}

/// What a thread has announced and done, up and down, on a cache line of its own. Each only grows.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Log {
    announced: [AtomicI64; 2],
    done: [AtomicI64; 2],
}

impl Log {
    /// Adds, announced before and noted behind.
    #[inline(always)]
    fn add<W: Way>(&self, way: W::Handle<'_>, n: i64) {
        let side = usize::from(n < 0);
        let by = n.abs();
        let grow = |word: &AtomicI64| word.store(word.load(Relaxed) + by, Release);
        grow(&self.announced[side]);
        // Pairs with the fence in look(): who sees the addition sees it announced.
        fence(Release);
        W::add(way, n);
        grow(&self.done[side]);
    }
}

/// What all threads have written into one column of their logs.
fn side(logs: &[Log], which: impl Fn(&Log) -> &AtomicI64) -> i64 {
    logs.iter().map(|log| which(log).load(Acquire)).sum()
}

/// Watches one way.
///
/// # Errors
/// As [`watch_all`].
pub fn watch<W: Way>(batch: u32, threads: usize, time: Duration) -> Result<Accuracy, String> {
    let way = W::new(batch)?;
    let held = way.sum();
    let logs: Vec<Log> = (0..threads).map(|_| Log::default()).collect();
    let stop = AtomicBool::new(false);
    let mut seen = Accuracy {
        way: W::NAME,
        reads: 0,
        worst: 0,
        bound: way.bound().unwrap_or(0),
        broken: 0,
    };
    std::thread::scope(|scope| {
        for log in &logs {
            let (way, stop) = (&way, &stop);
            scope.spawn(move || {
                let handle = way.handle();
                let amounts = MIXED.iter().cycle();
                // Where it stops does not matter: what was done is in the log.
                amounts
                    .take_while(|_| !stop.load(Relaxed))
                    .for_each(|n| log.add::<W>(handle, *n));
            });
        }
        let end = Instant::now() + time;
        while Instant::now() < end {
            for _ in 0..100 {
                look(&way, held, &logs, &mut seen);
            }
        }
        stop.store(true, Relaxed);
    });
    let done = side(&logs, |log| &log.done[0]) - side(&logs, |log| &log.done[1]);
    let sum = way.sum().wrapping_sub(held);
    if sum != done {
        return Err(format!("{}: {done} were added, {sum} counted", W::NAME));
    }
    Ok(seen)
}

/// One read, held against the least and the most that the sum was while it was read.
fn look<W: Way>(way: &W, held: i64, logs: &[Log], seen: &mut Accuracy) {
    // Ups that are done before are in the sum; downs that are announced after may be. Acquire pairs with the release
    // of the adders: what was done is counted for whoever reads afterwards.
    let up = side(logs, |log| &log.done[0]);
    let down = side(logs, |log| &log.done[1]);
    let (read, bound) = way.estimate();
    // Pairs with the fence in add(): the logs are read behind the counter.
    fence(Acquire);
    let (read, bound) = (read.wrapping_sub(held), bound.unwrap_or(u64::MAX));
    let most_up = side(logs, |log| &log.announced[0]);
    let most_down = side(logs, |log| &log.announced[1]);
    let (low, high) = (up - most_down, most_up - down);
    let off = (low - read).max(read - high).max(0).unsigned_abs();
    seen.reads += 1;
    if off >= seen.worst {
        (seen.worst, seen.bound) = (off, bound);
    }
    seen.broken += u64::from(off > bound);
}
