//! What processes took, by the system's account.
#![cfg_attr(unix, allow(unsafe_code))]

use std::time::Instant;

use countersink_harness::result::Times;

/// Whose time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// This process and those that it waited for.
    All,
    /// Only those that it waited for.
    Children,
}

/// Since when.
#[derive(Debug)]
pub(crate) struct Since {
    who: Who,
    /// User and system time then, in seconds.
    used: Option<[f64; 2]>,
    at: Instant,
}

impl Since {
    pub(crate) fn now(who: Who) -> Since {
        Since {
            who,
            used: used(who),
            at: Instant::now(),
        }
    }

    /// What was used since, in seconds. `None` where the system does not tell.
    pub(crate) fn times(&self) -> Option<Times> {
        let elapsed_s = self.at.elapsed().as_secs_f64();
        let [before, now] = [self.used?, used(self.who)?];
        Some(Times {
            user_s: now[0] - before[0],
            system_s: now[1] - before[1],
            elapsed_s,
        })
    }
}

#[cfg(unix)]
fn used(who: Who) -> Option<[f64; 2]> {
    let of = |who| {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: there is room for what it writes, and it has written all of it where it does not fail.
        let usage = unsafe {
            match libc::getrusage(who, usage.as_mut_ptr()) {
                0 => usage.assume_init(),
                _ => return None,
            }
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Some([usage.ru_utime, usage.ru_stime].map(seconds))
    };
    let children = of(libc::RUSAGE_CHILDREN)?;
    match who {
        Who::Children => Some(children),
        Who::All => {
            let own = of(libc::RUSAGE_SELF)?;
            Some([own[0] + children[0], own[1] + children[1]])
        }
    }
}

#[cfg(not(unix))]
fn used(_: Who) -> Option<[f64; 2]> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_runs_takes_time() {
        let since = Since::now(Who::All);
        let mut sum = 0_u64;
        let is_told = loop {
            sum = std::hint::black_box(sum.wrapping_add(1));
            let found = since.times().expect("times");
            if found.user_s + found.system_s > 0.0 {
                break found.elapsed_s > 0.0;
            }
        };
        assert!(is_told);
    }
}
