//! Whether a region's clock runs as fast as it says.

use super::model::{Clock, ClockKind};
use super::os;
use super::problems::Problems;

/// Over less time than this, reading two clocks one after the other makes too much of a difference.
#[cfg(target_arch = "x86_64")]
const LEAST_NANOSECONDS: u64 = 100_000_000;

/// Compares the clock of a region that is in use with that of this machine, where they are the same.
pub(super) fn check(clock: &Clock, boot: &[u8; 16], problems: &mut Problems) {
    let is_cycles = matches!(clock.kind, ClockKind::Cycles | ClockKind::CyclesOfEachCpu);
    if is_cycles && clock.ticks_per_second > 0 && os::boot().is_some_and(|ours| ours == *boot) {
        let now = (cycles(), os::monotonic().as_nanos());
        if let (Some(cycles), Ok(nanoseconds)) = (now.0, u64::try_from(now.1)) {
            compare(clock, cycles, nanoseconds, problems);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn compare(clock: &Clock, cycles: u64, nanoseconds: u64, problems: &mut Problems) {
    let (Some(ticks), Some(passed)) = (
        cycles.checked_sub(clock.ticks),
        nanoseconds.checked_sub(clock.nanoseconds),
    ) else {
        problems.add(
            "times may be wrong: the region's clock was set when this machine's had not got there"
                .to_owned(),
        );
        return;
    };
    if passed < LEAST_NANOSECONDS {
        return;
    }
    let measured = u128::from(ticks) * 1_000_000_000 / u128::from(passed);
    let said = u128::from(clock.ticks_per_second);
    if measured.abs_diff(said) * 1000 > said {
        problems.add(format!(
            "times may be wrong: the region says that its clock has {said} ticks a second, and now it has {measured}"
        ));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn compare(_: &Clock, _: u64, _: u64, _: &mut Problems) {}

/// The cycle counter, where it is known how to read the one that regions use.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn cycles() -> Option<u64> {
    // SAFETY: every x86-64 has the instruction. A process can forbid it to itself (`PR_SET_TSC`); no
    // program that wants to read times of others does.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> Option<u64> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// What is said about a clock of 2 GHz that began at 0, after a time and some cycles.
    fn said(nanoseconds: u64, cycles: u64) -> Vec<String> {
        let clock = Clock {
            kind: ClockKind::Cycles,
            ticks_per_second: 2_000_000_000,
            ticks: 1000,
            nanoseconds: 1000,
        };
        let mut problems = Problems::default();
        compare(&clock, cycles + 1000, nanoseconds + 1000, &mut problems);
        problems.into_sentences()
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
        compare(&clock, 1, 1, &mut problems);
        assert_eq!(problems.into_sentences().len(), 1);
    }
}
