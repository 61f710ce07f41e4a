//! What Linux tells.
#![allow(unsafe_code)]

use std::fs;
use std::io;
use std::ptr;

use libc::{c_long, c_ulong};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{MembarrierQuery, membarrier_query};

use super::facts::{Memory, Perf, Rseq};

const AVAILABLE: &str = "available";

/// Keys of the auxiliary vector that libc does not name yet.
const AT_RSEQ_FEATURE_SIZE: c_ulong = 27;
const AT_RSEQ_ALIGN: c_ulong = 28;

/// Restartable sequences.
pub(super) fn rseq() -> Rseq {
    Rseq {
        system_call: Some(rseq_call()),
        feature_size_bytes: auxiliary(AT_RSEQ_FEATURE_SIZE),
        alignment_bytes: auxiliary(AT_RSEQ_ALIGN),
        libc_size_bytes: libc_size(),
    }
}

/// A call that can only fail: how it fails tells whether the system call is there.
fn rseq_call() -> String {
    let (area, size, flags, signature) =
        (ptr::null::<u8>(), 0 as c_ulong, 0 as c_ulong, 0 as c_ulong);
    // SAFETY: no area, so nothing is registered: EINVAL where rseq is known.
    unsafe { libc::syscall(libc::SYS_rseq, area, size, flags, signature) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINVAL) => "present".to_owned(),
        Some(libc::ENOSYS) => "the kernel does not have it, or a filter hides it".to_owned(),
        Some(libc::EPERM | libc::EACCES) => format!("a filter (seccomp) refuses it: {error}"),
        _ => error.to_string(),
    }
}

fn auxiliary(key: c_ulong) -> Option<u64> {
    // SAFETY: no preconditions.
    let value = unsafe { libc::getauxval(key) };
    (value != 0).then_some(value)
}

/// What to do about a refused registration.
pub(super) fn refusal(errno: u16) -> &'static str {
    match i32::from(errno) {
        libc::EPERM | libc::EACCES => {
            "Under a container or sandbox, allow the system call rseq in its seccomp profile; old \
             profiles do not know it."
        }
        libc::ENOSYS => {
            "The kernel is older than Linux 4.18 or built without CONFIG_RSEQ, or a seccomp profile \
             hides the system call rseq; old profiles do not know it."
        }
        libc::EINVAL | libc::EBUSY => {
            "Something else in this process has probably registered the thread, which can be done \
             once; let the C library do it."
        }
        _ => "The error number says why.",
    }
}

/// The C library's `__rseq_size`, by name: it may not have one.
fn libc_size() -> Option<u32> {
    // SAFETY: looks a name up; where it is defined it is an unsigned int, constant since the start.
    unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        size.as_ref().copied()
    }
}

/// The commands of membarrier that matter here.
pub(super) fn membarrier_commands() -> Vec<&'static str> {
    let known = membarrier_query();
    let commands = [
        ("private_expedited", MembarrierQuery::PRIVATE_EXPEDITED),
        (
            "private_expedited_rseq",
            MembarrierQuery::PRIVATE_EXPEDITED_RSEQ,
        ),
    ];
    commands
        .into_iter()
        .filter(|(_, command)| known.contains(*command))
        .map(|(name, _)| name)
        .collect()
}

/// The CPU's properties as the kernel tells them.
#[cfg(target_arch = "aarch64")]
pub(super) fn hardware_capabilities() -> u64 {
    auxiliary(libc::AT_HWCAP).unwrap_or(0)
}

/// Hardware counters.
pub(super) fn perf() -> Perf {
    const CYCLES: u64 = 0;
    const INSTRUCTIONS: u64 = 1;
    Perf {
        cycles: Some(perf_event(CYCLES)),
        instructions: Some(perf_event(INSTRUCTIONS)),
        paranoid: number("/proc/sys/kernel/perf_event_paranoid"),
    }
}

/// Opens a hardware event of this process, and closes it.
fn perf_event(config: u64) -> String {
    /// The first version of `perf_event_attr`: 64 bytes.
    const SIZE: u64 = 64;
    /// Hardware events.
    const TYPE: u64 = 0;
    /// Off at first; neither in the kernel nor in the hypervisor.
    const FLAGS: u64 = 1 | 1 << 5 | 1 << 6;
    // Type and size are 32 bits each, in the order of the bytes.
    let first = if cfg!(target_endian = "little") {
        TYPE | SIZE << 32
    } else {
        TYPE << 32 | SIZE
    };
    let attributes = [first, config, 0, 0, 0, FLAGS, 0, 0];
    // The C library passes whole registers on, so each argument fills one.
    let (this_process, any_cpu, no_group, no_flags) =
        (0 as c_long, -1 as c_long, -1 as c_long, 0 as c_ulong);
    // SAFETY: the kernel reads the 64 bytes; a descriptor that it returns is closed and used for
    // nothing else.
    let result = unsafe {
        let event = libc::syscall(
            libc::SYS_perf_event_open,
            attributes.as_ptr(),
            this_process,
            any_cpu,
            no_group,
            no_flags,
        );
        if event >= 0 {
            libc::close(event as libc::c_int);
        }
        event
    };
    if result >= 0 {
        return AVAILABLE.to_owned();
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "the CPU shows no counters, as in many virtual machines".to_owned()
        }
        Some(libc::EACCES | libc::EPERM) => {
            format!("not allowed ({error}); see kernel.perf_event_paranoid")
        }
        Some(libc::ENOSYS) => "the kernel has no perf events, or a filter hides them".to_owned(),
        _ => error.to_string(),
    }
}

/// Memory.
pub(super) fn memory() -> Memory {
    Memory {
        hugetlb_kib: hugetlb_sizes(),
        memlock_limit_bytes: getrlimit(Resource::Memlock).current,
        overcommit: number("/proc/sys/vm/overcommit_memory"),
        memfd: Some(memfd()),
    }
}

fn memfd() -> String {
    match rustix::fs::memfd_create("countersink-doctor", rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(_) => AVAILABLE.to_owned(),
        Err(error) => io::Error::from(error).to_string(),
    }
}

fn hugetlb_sizes() -> Vec<u64> {
    let folders = fs::read_dir("/sys/kernel/mm/hugepages")
        .into_iter()
        .flatten()
        .flatten();
    let size = |folder: fs::DirEntry| {
        let name = folder.file_name().into_string().ok()?;
        name.strip_prefix("hugepages-")?
            .strip_suffix("kB")?
            .parse()
            .ok()
    };
    let mut sizes: Vec<u64> = folders.filter_map(size).collect();
    sizes.sort_unstable();
    sizes
}

fn number<T: std::str::FromStr>(path: &str) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
