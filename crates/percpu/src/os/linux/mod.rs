//! Linux.

mod cpus;
mod map;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod pin;
#[cfg_attr(
    not(all(target_arch = "x86_64", target_pointer_width = "64")),
    path = "no_registration.rs"
)]
mod registration;

pub(crate) use cpus::{current as current_cpu, online as online_cpus};
pub(crate) use map::Mapping;

use super::Place;
use crate::arch;
use crate::mechanism::{Choice, Mechanism, Reason, Registrar};

/// What this process can have; the request, where it can be met.
pub(crate) fn decide(request: Option<Mechanism>) -> Choice {
    let cpus = cpus::possible();
    let (mechanism, reason) = match request {
        Some(Mechanism::LockedLanes) => (Mechanism::LockedLanes, Reason::Requested),
        _ => match registration::decide() {
            Ok(Registrar::Libc) => (Mechanism::Rseq, Reason::LibcRegisters),
            Ok(Registrar::Own) if arch::libc_area().is_some() => (Mechanism::Rseq, Reason::LibcOff),
            Ok(Registrar::Own) => (Mechanism::Rseq, Reason::LibcHasNone),
            Err(reason) => (Mechanism::LockedLanes, reason),
        },
    };
    Choice {
        mechanism,
        reason,
        cpus,
    }
}

/// Where this thread counts, after a section found no lane for it among `cpus`.
pub(crate) fn place_in_sections(choice: Choice, cpus: u32) -> Place {
    match choice.registrar() {
        Some(Registrar::Libc) => registration::place_by_libc(cpus),
        Some(Registrar::Own) => registration::place_by_own(cpus),
        None => Place::SharedLane,
    }
}

/// Where this thread counts in a segment whose lanes are locked.
pub(crate) fn place_in_locked_lanes(cpus: u32) -> Place {
    match cpus::current() {
        Some(cpu) if cpu < cpus => Place::LockedLane(cpu),
        _ => Place::SharedLane,
    }
}

/// The system's text for an error number.
pub(crate) fn error_text(error: u16) -> std::io::Error {
    std::io::Error::from_raw_os_error(i32::from(error))
}
