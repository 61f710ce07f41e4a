//! The seed's own method, faults included, and which of its conclusions survive the right one.
//!
//! Each way gets zeroed counters and five loops of 33,554,432 iterations, each run once, in the seed's
//! order: inc, add, cpu_local_inc, read, add_return. The faults: one sample, so no spread; all of one
//! way before the next, so drift is taken for a difference; the last warm pass has the length of the
//! first way's counters, a third of trivalue's; trivalue's add_return alone runs with interrupts off
//! (handlers put off, here), which it does not need; the 16 hot words share two cache lines; whole
//! nanoseconds, the rest cut off.

use std::hint::black_box;
use std::time::Instant;

use countersink_harness::cpus::Topology;
use countersink_harness::result::PointResult;
use countersink_percpu::local::{Atomic, Local, LocalCounter, TriValue};
#[cfg(unix)]
use countersink_percpu::local::{Deferred, Sigmask, deferred};

use super::counters::{Counters, Packed, View};
use super::published::Verdict;
use super::{COLUMNS, HOT, ITERATIONS, LEN, STRIDE};

/// A row: the variant's name, and ns per iteration in the order of [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The variant that stands for the seed's way.
    pub variant: &'static str,
    /// Whole nanoseconds.
    pub ns: [u64; COLUMNS.len()],
}

/// Measures all rows on one CPU, and tells before each which one comes.
///
/// # Errors
/// If a thread or memory could not be had.
pub fn run(mut at: impl FnMut(&str)) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    type Measure = fn() -> Result<Row, String>;
    let ways: &[(&str, Measure)] = &[
        (Atomic::NAME, || row::<Atomic>(Atomic::add_return)),
        #[cfg(unix)]
        (Sigmask::NAME, || row::<Sigmask>(Sigmask::add_return)),
        #[cfg(unix)]
        (Deferred::NAME, || row::<Deferred>(Deferred::add_return)),
        #[cfg(unix)]
        (TriValue::NAME, || {
            row::<TriValue>(|counter, n| deferred::masked(|| counter.add_return(n)))
        }),
        #[cfg(not(unix))]
        (TriValue::NAME, || row::<TriValue>(TriValue::add_return)),
        (Local::NAME, || row::<Local>(Local::add_return)),
    ];
    for (name, measure) in ways {
        at(name);
        rows.push(on_one_cpu(*measure)?);
    }
    Ok(rows)
}

/// On a thread of its own, pinned as the seed's boot CPU is, where it can be.
fn on_one_cpu(measure: fn() -> Result<Row, String>) -> Result<Row, String> {
    let placement = Topology::detect().place(1);
    let thread = std::thread::Builder::new().spawn(move || {
        placement.pin(0);
        measure()
    });
    let thread = thread.map_err(|error| format!("a thread could not be started: {error}"))?;
    thread
        .join()
        .map_err(|_| "the measuring thread panicked".to_owned())?
}

fn row<W>(add_return: impl Fn(&W, i64) -> i64) -> Result<Row, String>
where
    W: LocalCounter + Default,
{
    let counters = Packed::<W, LEN>::new()?;
    let hot = Packed::<W, HOT>::new()?;
    let (array, hot) = (counters.view(), hot.view());
    let mut total = 0_i64;
    let inc = time(|n| array.at(n).inc());
    warm(array, LEN);
    let add = time(|n| array.at(n).add(1234));
    warm(array, LEN);
    let cpu_local_inc = time(|n| hot.at(n % HOT).inc());
    warm(array, LEN);
    let read = time(|n| total = total.wrapping_add(array.at(n).read()));
    // The length of the first way's counters, whatever this way's are.
    warm(array, LEN * Atomic::BYTES / W::BYTES);
    let returned = time(|n| total = total.wrapping_add(add_return(array.at(n), 7)));
    black_box(total);
    Ok(Row {
        variant: W::NAME,
        ns: [inc, add, returned, cpu_local_inc, read],
    })
}

fn warm<W: LocalCounter>(counters: &[W; LEN], count: usize) {
    let sum = counters
        .iter()
        .take(count)
        .fold(0_i64, |sum, counter| sum.wrapping_add(counter.read()));
    black_box(sum);
}

/// The seed's loop: whole nanoseconds per iteration.
#[inline(always)]
fn time(mut body: impl FnMut(usize)) -> u64 {
    let start = Instant::now();
    let mut n = 0;
    for _ in 0..ITERATIONS {
        body(n);
        n = (n + STRIDE) % LEN;
    }
    let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    elapsed / ITERATIONS
}

/// Something that the thread concludes from its table.
#[derive(Clone, Copy, Debug)]
pub struct Conclusion {
    /// In words.
    pub claim: &'static str,
    /// What it comes to on one machine: in each of these columns the first variant is faster than the
    /// second.
    faster: &'static [(usize, &'static str, &'static str)],
}

/// What the thread concludes and one machine can confirm. That no way is the best everywhere takes
/// several machines.
pub const CONCLUSIONS: [Conclusion; 4] = [
    Conclusion {
        claim: "atomic_long is the right choice on no platform: local_t bumps faster",
        faster: &[
            (0, "local", "atomic"),
            (1, "local", "atomic"),
            (2, "local", "atomic"),
            (3, "local", "atomic"),
        ],
    },
    Conclusion {
        claim: "on x86 local_t is faster than trivalue, hot or not",
        faster: &[
            (0, "local", "trivalue"),
            (1, "local", "trivalue"),
            (2, "local", "trivalue"),
            (3, "local", "trivalue"),
        ],
    },
    Conclusion {
        claim: "in the cache, trivalue is faster than atomic_long",
        faster: &[(3, "trivalue", "atomic")],
    },
    Conclusion {
        claim: "reading three words costs more than reading one",
        faster: &[(4, "local", "trivalue"), (4, "atomic", "trivalue")],
    },
];

impl Conclusion {
    /// Whether it follows from the literal method's figures: whole nanoseconds, no spread.
    pub fn by_published_method(&self, rows: &[Row]) -> Verdict {
        let ns = |variant: &str, column: usize| {
            let row = rows.iter().find(|row| row.variant == variant)?;
            Some(row.ns[column])
        };
        self.judge(
            |column, fast, slow| match (ns(fast, column), ns(slow, column)) {
                (Some(fast), Some(slow)) if fast < slow => Verdict::Held,
                (Some(fast), Some(slow)) if fast > slow => Verdict::Reversed,
                _ => Verdict::CannotTell,
            },
        )
    }

    /// Whether it follows from the right method's intervals.
    pub fn by_right_method(&self, points: &[PointResult]) -> Verdict {
        self.judge(|column, fast, slow| Verdict::of(points, column, fast, slow))
    }

    /// One reversed comparison refutes it; all must hold to confirm it.
    fn judge(&self, compare: impl Fn(usize, &str, &str) -> Verdict) -> Verdict {
        let verdicts = self
            .faster
            .iter()
            .map(|&(column, fast, slow)| compare(column, fast, slow));
        verdicts.fold(Verdict::Held, |all, one| match (all, one) {
            (Verdict::Reversed, _) | (_, Verdict::Reversed) => Verdict::Reversed,
            (Verdict::CannotTell, _) | (_, Verdict::CannotTell) => Verdict::CannotTell,
            _ => Verdict::Held,
        })
    }
}
