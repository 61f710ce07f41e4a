//! Whether a region's clock runs as fast as it says.

use super::model::{Clock, ClockKind};
use super::os;
use super::problems::Problems;

/// Over less time than this, what passes between reading two clocks makes too much of a difference.
const LEAST_NANOSECONDS: u64 = 100_000_000;
/// How often the two are read, for once with nothing in between.
const ATTEMPTS: usize = 8;

/// The monotonic clock, and the cycle counter before and after it was read.
#[derive(Clone, Copy, Debug)]
struct Pair {
    nanoseconds: u64,
    before: u64,
    after: u64,
}

/// Compares the clock of a region that is in use with that of this machine, where they are the same.
pub(super) fn check(clock: &Clock, boot: &[u8; 16], problems: &mut Problems) {
    let is_cycles = matches!(clock.kind, ClockKind::Cycles | ClockKind::CyclesOfEachCpu);
    if !is_cycles || clock.ticks_per_second == 0 || os::boot() != Some(*boot) {
        return;
    }
    let pairs = (0..ATTEMPTS).filter_map(|_| {
        Some(Pair {
            before: cycles()?,
            nanoseconds: u64::try_from(os::monotonic().as_nanos()).ok()?,
            after: cycles()?,
        })
    });
    if let Some(pair) = pairs.min_by_key(|pair| pair.after.wrapping_sub(pair.before)) {
        compare(clock, pair, problems);
    }
}

/// The rate may be off by a thousandth.
fn compare(clock: &Clock, now: Pair, problems: &mut Problems) {
    let passed = now.nanoseconds.checked_sub(clock.nanoseconds);
    let ticks = [now.before, now.after].map(|cycles| cycles.checked_sub(clock.ticks));
    let (Some(passed), [Some(least), Some(most)]) = (passed, ticks) else {
        problems.add(
            "times may be wrong: the region's clock was set when this machine's had not got there"
                .to_owned(),
        );
        return;
    };
    if passed < LEAST_NANOSECONDS {
        return;
    }
    let rate = |ticks: u64| u128::from(ticks) * 1_000_000_000 / u128::from(passed);
    let (low, high) = (rate(least), rate(most));
    let said = u128::from(clock.ticks_per_second);
    if low * 1000 > said * 1001 || high * 1000 < said * 999 {
        problems.add(format!(
            "times may be wrong: the region says that its clock has {said} ticks a second, and it has {low}"
        ));
    }
}

/// The cycle counter, where it is known how to read the one that regions use.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable)))]
#[allow(unsafe_code)]
fn cycles() -> Option<u64> {
    // SAFETY: every x86-64 has the instruction, and this process has not forbidden it to itself.
    crate::os::may_read_cycles().then(|| unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(countersink_portable))))]
fn cycles() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said about a clock of 2 GHz that began at 0, after a time and some cycles.
    fn said_after(nanoseconds: u64, cycles: u64, between: u64) -> Vec<String> {
        let clock = Clock {
            kind: ClockKind::Cycles,
            ticks_per_second: 2_000_000_000,
            ticks: 1000,
            nanoseconds: 1000,
        };
        let mut problems = Problems::default();
        let now = Pair {
            nanoseconds: nanoseconds + 1000,
            before: cycles + 1000,
            after: cycles + 1000 + between,
        };
        compare(&clock, now, &mut problems);
        problems.into_sentences()
    }

    fn said(nanoseconds: u64, cycles: u64) -> Vec<String> {
        said_after(nanoseconds, cycles, 0)
    }

    #[test]
    fn what_passes_between_two_clocks_is_allowed_for() {
        let second = 1_000_000_000;
        assert_eq!(said(second, 1_990_000_000).len(), 1);
        assert_eq!(said_after(second, 1_990_000_000, 9_000_000), [""; 0]);
        assert_eq!(said_after(second, 1_990_000_000, 7_000_000).len(), 1);
    }

    #[test]
    fn a_clock_may_be_off_by_a_thousandth() {
        let second = 1_000_000_000;
        assert_eq!(said(second, 2 * second), [""; 0]);
        assert_eq!(said(second, 2_002_000_000), [""; 0]);
        assert_eq!(said(second, 2_002_000_001).len(), 1);
        assert_eq!(said(second, 1_997_999_999).len(), 1);
        assert_eq!(said(second / 10 - 1, 5), [""; 0]);
        assert_eq!(said(u64::MAX - 1000, u64::MAX - 1000).len(), 1);
    }

    #[test]
    fn a_clock_from_the_future_is_reported() {
        let clock = Clock {
            kind: ClockKind::Cycles,
            ticks_per_second: 1,
            ticks: 2,
            nanoseconds: 0,
        };
        let mut problems = Problems::default();
        let now = Pair {
            nanoseconds: 1,
            before: 1,
            after: 1,
        };
        compare(&clock, now, &mut problems);
        assert_eq!(problems.into_sentences().len(), 1);
    }
}
