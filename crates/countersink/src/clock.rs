//! The clock of spans.
//!
//! The cycle counter, where the kernel has found the counters of all CPUs to agree: the CPU says that
//! it is invariant, and the kernel takes its own time from it. Elsewhere the monotonic clock, unless the
//! program asks for the cycle counter nevertheless ([`request`]); spans whose thread changed CPU are
//! thrown away then.
//!
//! With the cycle counter, one `rdtscp` reads the time and the CPU together.

use core::sync::atomic::AtomicU8;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

mod cycles;
mod monotonic;

/// What spans are measured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The cycle counter, the same on all CPUs.
    Cycles,
    /// The cycle counter, perhaps not the same on all CPUs.
    CyclesOfEachCpu,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl Source {
    /// The number in a region's header.
    pub(crate) fn code(self) -> u32 {
        match self {
            Source::Cycles => 1,
            Source::CyclesOfEachCpu => 2,
            Source::Monotonic => 3,
        }
    }

    fn of(code: u8) -> Option<Self> {
        match code {
            1 => Some(Source::Cycles),
            2 => Some(Source::CyclesOfEachCpu),
            3 => Some(Source::Monotonic),
            _ => None,
        }
    }
}

/// The choice; 0 until it is made.
static SOURCE: AtomicU8 = AtomicU8::new(0);

/// What this process's spans are measured with; the first call chooses.
pub fn source() -> Source {
    match Source::of(SOURCE.load(Acquire)) {
        Some(source) => source,
        None => publish(offer()),
    }
}

/// Asks for a clock, before the first use of any metric.
///
/// # Errors
/// The clock that is used, if one was chosen before, or if this machine does not have the one asked
/// for: [`Source::Cycles`] where the counters of the CPUs are not known to agree, either of the two where
/// there is no cycle counter that tells the CPU.
pub fn request(source: Source) -> Result<(), Source> {
    let available = match source {
        Source::Monotonic => true,
        Source::CyclesOfEachCpu => cycles::exist(),
        Source::Cycles => offer() == Source::Cycles,
    };
    if !available {
        return Err(self::source());
    }
    let chosen = publish(source);
    if chosen == source {
        Ok(())
    } else {
        Err(chosen)
    }
}

fn offer() -> Source {
    if cycles::exist() && cycles::are_invariant() && crate::os::uses_tsc_clock_source() {
        Source::Cycles
    } else {
        Source::Monotonic
    }
}

fn publish(offer: Source) -> Source {
    match SOURCE.compare_exchange(0, offer.code() as u8, AcqRel, Acquire) {
        Ok(_) => offer,
        Err(earlier) => Source::of(earlier).unwrap_or(offer),
    }
}

/// A moment, and the CPU on which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// In ticks of the clock: cycles, or nanoseconds.
    pub ticks: u64,
    /// The CPU.
    pub cpu: u32,
}

/// Reads the clock and the CPU together, as a span does at its start and its end.
#[inline(always)]
pub fn now() -> Moment {
    // The choice was made before; a branch that is always the same.
    match SOURCE.load(core::sync::atomic::Ordering::Relaxed) {
        1 | 2 => cycles::now(),
        3 => monotonic::now(),
        _ => first_now(),
    }
}

#[cold]
fn first_now() -> Moment {
    source();
    now()
}

/// Ticks of this process's spans in nanoseconds, rounded: those of histograms of
/// [`Span::read`](crate::Span::read), and differences of [`Moment`]s.
pub fn in_nanoseconds(ticks: u64) -> u64 {
    let rate = crate::region::existing().map_or(0, crate::region::Region::ticks_per_second);
    let rate = if rate == 0 { ticks_per_second() } else { rate };
    nanoseconds(ticks, rate)
}

/// The ticks, now, of the clock with this number; `None` if this process does not have it.
pub(crate) fn ticks_of(code: u32) -> Option<u64> {
    match code {
        1 | 2 => cycles::exist().then(|| cycles::now().ticks),
        3 => Some(monotonic::nanoseconds()),
        _ => None,
    }
}

/// Ticks in nanoseconds, rounded.
pub(crate) fn nanoseconds(ticks: u64, ticks_per_second: u64) -> u64 {
    let rate = u128::from(ticks_per_second.max(1));
    let nanoseconds = (u128::from(ticks) * 1_000_000_000 + rate / 2) / rate;
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}

/// Ticks and the monotonic clock in nanoseconds at one moment, as well as that can be had.
pub(crate) fn pair() -> (u64, u64) {
    if source() == Source::Monotonic {
        let now = monotonic::nanoseconds();
        return (now, now);
    }
    // The reading that was interrupted least.
    let readings = (0..5).map(|_| {
        let before = cycles::now().ticks;
        let nanoseconds = monotonic::nanoseconds();
        let after = cycles::now().ticks;
        let took = after.wrapping_sub(before);
        (took, before.wrapping_add(took / 2), nanoseconds)
    });
    let best = readings.min_by_key(|reading| reading.0);
    best.map_or((0, 0), |(_, ticks, nanoseconds)| (ticks, nanoseconds))
}

/// How fast the clock ticks. With the cycle counter this waits until a quarter of a millisecond has
/// passed since the region was made, to compare it with the monotonic clock: to 1 in 10,000 about. Readers
/// compare again, over a longer time.
pub(crate) fn ticks_per_second() -> u64 {
    const WAIT: u64 = 250_000;
    if source() == Source::Monotonic {
        return 1_000_000_000;
    }
    let (ticks, nanoseconds) = pair();
    // A clock that stands still, as where it may not be read, is not waited for without end.
    for _ in 0..100_000 {
        let (later_ticks, later) = pair();
        let passed = later.saturating_sub(nanoseconds);
        if passed >= WAIT {
            let ticked = later_ticks.saturating_sub(ticks);
            let rate = u128::from(ticked) * 1_000_000_000 / u128::from(passed);
            return u64::try_from(rate).unwrap_or(u64::MAX).max(1);
        }
        core::hint::spin_loop();
    }
    1_000_000_000
}
