//! One operation of each kind, by bare system calls: what will-it-scale's loops in C do.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

use super::{MISSING, Workload};

/// As much memory as is mapped at once for page faults.
const MAPPED: usize = 128 << 20;

/// What a task needs for its operations.
pub(super) enum Operation {
    OpenNeg,
    Pft {
        memory: Mapping,
        at: usize,
        page: usize,
    },
    Pipe(OwnedFd, OwnedFd),
    SchedYield,
    GetPpid,
}

/// Memory for page faults.
pub(super) struct Mapping(*mut u8);

impl Mapping {
    fn new() -> io::Result<Self> {
        // SAFETY: a new mapping.
        let memory = unsafe {
            libc::mmap(
                null_mut(),
                MAPPED,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Faults of a page each; where the kernel has no large pages, it says so, and nothing is lost.
        // SAFETY: the mapping above.
        unsafe { libc::madvise(memory, MAPPED, libc::MADV_NOHUGEPAGE) };
        Ok(Mapping(memory.cast()))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by new().
        unsafe { libc::munmap(self.0.cast(), MAPPED) };
    }
}

/// The C library's error.
fn failed<T>() -> io::Result<T> {
    Err(io::Error::last_os_error())
}

impl Operation {
    pub(super) fn new(workload: Workload) -> io::Result<Self> {
        Ok(match workload {
            Workload::OpenNeg => Operation::OpenNeg,
            Workload::Pft => Operation::Pft {
                memory: Mapping::new()?,
                at: 0,
                // SAFETY: no preconditions.
                page: unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(4096) as usize,
            },
            Workload::Pipe => {
                let (read, write) = io::pipe()?;
                Operation::Pipe(read.into(), write.into())
            }
            Workload::SchedYield => Operation::SchedYield,
            Workload::GetPpid => Operation::GetPpid,
        })
    }

    /// Does it once.
    #[inline(always)]
    pub(super) fn run(&mut self) -> io::Result<()> {
        match self {
            Operation::OpenNeg => open_missing(),
            Operation::Pft { memory, at, page } => {
                if *at == MAPPED {
                    *memory = Mapping::new()?;
                    *at = 0;
                }
                // SAFETY: inside the mapping, which is this task's.
                unsafe { memory.0.add(*at).write_volatile(0) };
                *at += *page;
                Ok(())
            }
            Operation::Pipe(read, write) => {
                let mut byte = 0_u8;
                let at = (&raw mut byte).cast();
                // SAFETY: a byte of this function.
                let done = unsafe {
                    libc::write(write.as_raw_fd(), at, 1) == 1
                        && libc::read(read.as_raw_fd(), at, 1) == 1
                };
                if done { Ok(()) } else { failed() }
            }
            Operation::SchedYield => {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
                Ok(())
            }
            Operation::GetPpid => {
                // SAFETY: no preconditions.
                std::hint::black_box(unsafe { libc::getppid() });
                Ok(())
            }
        }
    }
}

/// Opens the file that does not exist.
///
/// # Errors
/// That it does, or that it may not be looked for.
pub(super) fn open_missing() -> io::Result<()> {
    const PATH: &std::ffi::CStr = c"/tmp/nonexistent";
    debug_assert_eq!(PATH.to_str(), Ok(MISSING));
    // SAFETY: a path that ends in 0.
    let opened = unsafe { libc::open(PATH.as_ptr(), libc::O_RDONLY) };
    if opened >= 0 {
        // SAFETY: just opened, and nobody else's.
        unsafe { libc::close(opened) };
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}
