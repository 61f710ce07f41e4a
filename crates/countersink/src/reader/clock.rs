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
    // SAFETY: every x86-64 has the instruction; where it is forbidden to user space, so it is to the
    // region's program, which then does not use it.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> Option<u64> {
    None
}
