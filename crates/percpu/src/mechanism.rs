//! How this process counts, and why.
//!
//! The choice is made once, at the first use, for the whole process; afterwards it is one word that
//! anyone can read. Making it takes no lock: two threads, or a thread and its own signal handler,
//! may make it at the same time, and the first to publish wins.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::{arch, os};

/// The choice, packed; 0 until it is made.
static CHOICE: AtomicU64 = AtomicU64::new(0);

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mechanism {
    /// Restartable sequences: an unlocked operation on the lane of the CPU.
    Rseq,
    /// `getcpu` and a locked operation on the lane of the CPU.
    LockedLanes,
    /// A locked operation on a lane that the thread was given when it first counted.
    ThreadLanes,
}

/// Who registered the threads with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Registrar {
    /// The C library, when it started each thread.
    Libc,
    /// This library, at each thread's first operation.
    Own,
}

/// Why a mechanism was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The C library registers every thread.
    LibcRegisters,
    /// The C library knows nothing of restartable sequences.
    LibcHasNone,
    /// The C library has them, but turned off (`glibc.pthread.rseq=0`) or refused.
    LibcOff,
    /// The kernel refused to register a thread; this is its error number.
    Refused(u16),
    /// No hook could be had that runs when a thread ends, which registering needs.
    NoExitHook,
    /// There are no sections for this architecture.
    NoSections,
    /// The system is not Linux.
    NotLinux,
    /// The program asked for it.
    Requested,
}

/// The mechanism of this process with its reason. Prints as a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice {
    /// What an operation does.
    pub mechanism: Mechanism,
    /// Why.
    pub reason: Reason,
    /// How many CPU lanes each segment has: the largest possible CPU number and one, or the size of
    /// the kernel's CPU masks where `/sys` does not tell.
    pub cpus: u32,
}

impl Choice {
    /// Who registers threads, where that is needed.
    pub fn registrar(&self) -> Option<Registrar> {
        match (self.mechanism, self.reason) {
            (Mechanism::Rseq, Reason::LibcRegisters) => Some(Registrar::Libc),
            (Mechanism::Rseq, _) => Some(Registrar::Own),
            _ => None,
        }
    }

    /// Where sections find a thread's `struct rseq`.
    pub(crate) fn area(&self) -> i32 {
        match (self.registrar(), arch::libc_area()) {
            (Some(Registrar::Libc), Some((offset, _))) => offset,
            (Some(_), _) => arch::own_area(),
            (None, _) => arch::closed_area(),
        }
    }

    /// The choice as one word that is never 0: mechanism, reason, error number, CPU lanes.
    fn pack(self) -> u64 {
        let mechanism = match self.mechanism {
            Mechanism::Rseq => 1,
            Mechanism::LockedLanes => 2,
            Mechanism::ThreadLanes => 3,
        };
        let (reason, error) = match self.reason {
            Reason::LibcRegisters => (0, 0),
            Reason::LibcHasNone => (1, 0),
            Reason::LibcOff => (2, 0),
            Reason::Refused(error) => (3, error),
            Reason::NoExitHook => (4, 0),
            Reason::NoSections => (5, 0),
            Reason::NotLinux => (6, 0),
            Reason::Requested => (7, 0),
        };
        mechanism | reason << 8 | u64::from(error) << 16 | u64::from(self.cpus) << 32
    }

    fn unpack(word: u64) -> Option<Self> {
        let mechanism = match word & 0xff {
            1 => Mechanism::Rseq,
            2 => Mechanism::LockedLanes,
            3 => Mechanism::ThreadLanes,
            _ => return None,
        };
        let reason = match word >> 8 & 0xff {
            0 => Reason::LibcRegisters,
            1 => Reason::LibcHasNone,
            2 => Reason::LibcOff,
            3 => Reason::Refused((word >> 16) as u16),
            4 => Reason::NoExitHook,
            5 => Reason::NoSections,
            6 => Reason::NotLinux,
            _ => Reason::Requested,
        };
        Some(Choice {
            mechanism,
            reason,
            cpus: (word >> 32) as u32,
        })
    }
}

/// The mechanism of this process; the first call chooses it.
///
/// May be called anywhere, signal handlers included: it takes no lock and allocates nothing.
pub fn choice() -> Choice {
    // Acquire pairs with the release in publish(): whoever sees a choice sees what it rests on.
    match Choice::unpack(CHOICE.load(Acquire)) {
        Some(chosen) => chosen,
        None => publish(os::decide(None)),
    }
}

/// Asks for a mechanism, before the first use.
///
/// # Errors
/// [`RequestError::TooLate`] after the first use, unless the mechanism is the one chosen;
/// [`RequestError::NotAvailable`] where this process cannot have it, and then nothing is chosen.
pub fn request(mechanism: Mechanism) -> Result<Choice, RequestError> {
    let chosen = match Choice::unpack(CHOICE.load(Acquire)) {
        Some(chosen) => chosen,
        None => {
            let offer = os::decide(Some(mechanism));
            if offer.mechanism != mechanism {
                return Err(RequestError::NotAvailable(offer));
            }
            publish(offer)
        }
    };
    if chosen.mechanism == mechanism {
        Ok(chosen)
    } else {
        Err(RequestError::TooLate(chosen))
    }
}

/// Why a requested mechanism is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The process has used another one already.
    TooLate(Choice),
    /// This process cannot have it; this is what it would get instead.
    NotAvailable(Choice),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::TooLate(chosen) => write!(f, "this process already uses {chosen}"),
            RequestError::NotAvailable(offer) => {
                write!(f, "not available in this process, which can use {offer}")
            }
        }
    }
}

impl core::error::Error for RequestError {}

/// Makes an offer the choice of the process, unless there is one.
fn publish(offer: Choice) -> Choice {
    match CHOICE.compare_exchange(0, offer.pack(), Release, Acquire) {
        Ok(_) => offer,
        Err(earlier) => Choice::unpack(earlier).unwrap_or(offer),
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mechanism::Rseq => "restartable sequences",
            Mechanism::LockedLanes => "locked operations on per-CPU lanes",
            Mechanism::ThreadLanes => "locked operations on per-thread lanes",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::LibcRegisters => "the C library registers every thread",
            Reason::LibcHasNone => {
                "the C library does not register threads, so this library registers each one"
            }
            Reason::LibcOff => {
                "the C library's registration is off, so this library registers each thread"
            }
            Reason::Refused(error) => {
                return write!(
                    f,
                    "the kernel refused to register a thread ({})",
                    os::error_text(*error)
                );
            }
            Reason::NoExitHook => {
                "no hook for the end of a thread could be had, without which none may be registered"
            }
            Reason::NoSections => {
                return write!(
                    f,
                    "there are no critical sections for {} here",
                    std::env::consts::ARCH
                );
            }
            Reason::NotLinux => "restartable sequences need Linux",
            Reason::Requested => "the program asked for it",
        })
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, because {}", self.mechanism, self.reason)
    }
}

/// The CPU that this thread is on, which may be another by the time it is looked at; `None` where the system does not tell. May be
/// called in a signal handler.
pub fn current_cpu() -> Option<u32> {
    os::current_cpu()
}

/// How many CPUs are online just now: fewer than there are lanes, where CPUs can be added. Reads a file, so not
/// for a hot path; may be called in a signal handler.
pub fn online_cpus() -> u32 {
    os::online_cpus()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_survives_packing() {
        let reasons = [
            Reason::LibcRegisters,
            Reason::LibcHasNone,
            Reason::LibcOff,
            Reason::Refused(u16::MAX),
            Reason::NoExitHook,
            Reason::NoSections,
            Reason::NotLinux,
            Reason::Requested,
        ];
        for mechanism in [
            Mechanism::Rseq,
            Mechanism::LockedLanes,
            Mechanism::ThreadLanes,
        ] {
            for reason in reasons {
                for cpus in [1, 2, 8192, u32::MAX] {
                    let choice = Choice {
                        mechanism,
                        reason,
                        cpus,
                    };
                    assert_ne!(choice.pack(), 0);
                    assert_eq!(Choice::unpack(choice.pack()), Some(choice));
                }
            }
        }
        assert_eq!(Choice::unpack(0), None);
    }

    #[test]
    fn a_choice_prints_as_a_sentence() {
        let choice = Choice {
            mechanism: Mechanism::LockedLanes,
            reason: Reason::Refused(1),
            cpus: 2,
        };
        let text = choice.to_string();
        assert!(
            text.starts_with("locked operations on per-CPU lanes, because the kernel refused"),
            "{text}"
        );
    }
}
