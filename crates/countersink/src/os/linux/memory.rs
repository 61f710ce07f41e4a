//! Mappings of regions.
#![allow(unsafe_code)]

use core::mem::MaybeUninit;
use core::ptr::{NonNull, null, null_mut};
use std::os::fd::{BorrowedFd, OwnedFd};

use super::keeping_errno;
use crate::layout::{ENTRIES_IN_UNIT, Layout};
use crate::os::{Backing, Hindrance, Memory};
use rustix::io::Errno;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munlock,
    munmap,
};

/// Layouts from the one that is wanted down to the smallest, as limits allow: a file larger than the
/// limit would be a deadly signal, and the program needs address space for itself.
pub(super) fn layouts(wanted: Layout, file: bool) -> impl Iterator<Item = Layout> {
    let most = most_bytes(file);
    core::iter::successors(Some(wanted), |layout| smaller(*layout))
        .filter(move |layout| layout.size() <= most)
}

/// How large a region may be.
pub(super) fn most_bytes(file: bool) -> u64 {
    let address_space = limit(libc::RLIMIT_AS).map_or(isize::MAX as u64, |bytes| bytes / 8);
    let file_size = limit(libc::RLIMIT_FSIZE).unwrap_or(u64::MAX);
    if file {
        address_space.min(file_size)
    } else {
        address_space
    }
}

/// A limit, if there is one. A sandbox that does not tell has none that kills.
fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limits = MaybeUninit::<libc::rlimit64>::uninit();
    // SAFETY: the kernel writes the structure if it succeeds.
    let limit = unsafe {
        let none = null::<libc::rlimit64>();
        let call = || libc::syscall(libc::SYS_prlimit64, 0, resource, none, limits.as_mut_ptr());
        keeping_errno(call).ok()?;
        limits.assume_init().rlim_cur
    };
    (limit != libc::RLIM64_INFINITY).then_some(limit)
}

/// Half of it, if that is still a layout and less.
fn smaller(layout: Layout) -> Option<Layout> {
    let entries = (layout.entries / 2).next_multiple_of(ENTRIES_IN_UNIT);
    let segments = (layout.segments / 4).max(1);
    let half = Layout::new(layout.cpus, entries, segments)?;
    (half != layout).then_some(half)
}

/// A file's device and inode.
pub(super) fn file(fd: &OwnedFd) -> Result<(u64, u64), Errno> {
    let status = rustix::fs::fstat(fd)?;
    Ok((status.st_dev, status.st_ino))
}

/// Maps a whole region of a memfd or file without access: its parts are opened as they are needed.
pub(super) fn map(fd: BorrowedFd<'_>, layout: Layout) -> Result<NonNull<u8>, Errno> {
    let bytes = bytes(layout)?;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let start = unsafe {
        mmap(
            null_mut(),
            bytes,
            ProtFlags::empty(),
            MapFlags::SHARED,
            fd,
            0,
        )
    }?;
    prepare(start.cast(), bytes)
}

/// Memory of this process only, with the layout of a region.
pub(crate) fn private(wanted: Layout) -> Result<Memory, Hindrance> {
    let mut hindrance = Hindrance::Limit;
    for layout in layouts(wanted, false) {
        match map_private(layout) {
            Ok(start) => {
                return Ok(Memory {
                    start,
                    layout,
                    backing: Backing::Private,
                    joined: false,
                    file: (0, 0),
                    descriptor: -1,
                });
            }
            Err(error) => hindrance = Hindrance::Error(error.raw_os_error()),
        }
    }
    Err(hindrance)
}

fn map_private(layout: Layout) -> Result<NonNull<u8>, Errno> {
    let bytes = bytes(layout)?;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: as above.
    let start = unsafe { mmap_anonymous(null_mut(), bytes, ProtFlags::empty(), flags) }?;
    prepare(start.cast(), bytes)
}

fn bytes(layout: Layout) -> Result<usize, Errno> {
    usize::try_from(layout.size()).map_err(|_| Errno::NOMEM)
}

/// Keeps what is not used out of memory, of core files and of `mlockall`.
fn prepare(start: *mut u8, bytes: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: our own mapping. Where the kernel does not take the advice, nothing else changes.
    unsafe {
        // A program that locked its future mappings has locked this one, though nothing of it is there.
        let _ = munlock(start.cast(), bytes);
        // A huge page would put the lanes of all CPUs into one page.
        let _ = madvise(start.cast(), bytes, Advice::LinuxNoHugepage);
        let _ = madvise(start.cast(), bytes, Advice::LinuxDontDump);
    }
    NonNull::new(start).ok_or(Errno::NOMEM)
}

/// Makes a part of a region usable; both numbers are multiples of the page size.
pub(crate) fn open_part(memory: &Memory, offset: u64, bytes: u64) -> bool {
    let inside = offset
        .checked_add(bytes)
        .is_some_and(|end| end <= memory.layout.size());
    if !inside {
        return false;
    }
    let start = memory.start.as_ptr().wrapping_add(offset as usize);
    // SAFETY: a part of our own mapping, which nobody has used without access.
    unsafe {
        let open = MprotectFlags::READ | MprotectFlags::WRITE;
        if mprotect(start.cast(), bytes as usize, open).is_err() {
            return false;
        }
        let _ = madvise(start.cast(), bytes as usize, Advice::LinuxDoDump);
    }
    true
}

/// Makes a part of private memory read as zeros again; whether it could.
pub(crate) fn clear_private(memory: &Memory, offset: u64, bytes: u64) -> bool {
    let start = memory.start.as_ptr().wrapping_add(offset as usize);
    // SAFETY: a part of our own mapping, which is used through atomics and sections only.
    bytes == 0
        || unsafe {
            // What the program has locked since would stay as it is.
            let _ = munlock(start.cast(), bytes as usize);
            madvise(start.cast(), bytes as usize, Advice::LinuxDontNeed).is_ok()
        }
}

/// Gives back a region that nobody has used.
pub(crate) fn abandon(memory: &Memory) {
    // SAFETY: our own mapping and descriptor, known to nobody else.
    unsafe {
        let _ = munmap(memory.start.as_ptr().cast(), memory.layout.size() as usize);
        if memory.descriptor >= 0 {
            rustix::io::close(memory.descriptor);
        }
    }
}

/// A page of zeros that lives as long as the process.
pub(crate) fn page() -> Option<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping.
    let page = unsafe { mmap_anonymous(null_mut(), 4096, access, MapFlags::PRIVATE) };
    NonNull::new(page.ok()?.cast())
}
