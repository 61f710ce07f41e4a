//! Exchanging the memory under a region's handles.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munlock, munmap};

use super::{memfd, memory};
use crate::os::{Backing, Hindrance, Memory};

/// Puts a new memfd where a region is, filled in by `fill`; only the ranges in `open`, offset and bytes,
/// ascending, can be used then. The old descriptor is closed if it still is the region's.
pub(crate) fn replace(
    old: &Memory,
    fill: &dyn Fn(&Memory) -> bool,
    open: &[(u64, u64)],
) -> Result<Memory, Hindrance> {
    let error = |error: Errno| Hindrance::Error(error.raw_os_error());
    if old.layout.size() > memory::most_bytes(true) {
        return Err(Hindrance::Limit);
    }
    let fd = memfd::sealed(old.layout).map_err(error)?;
    let whole = Memory {
        file: memory::file(&fd).map_err(error)?,
        start: memory::map(fd.as_fd(), old.layout).map_err(error)?,
        backing: Backing::Memfd,
        joined: false,
        ..*old
    };
    let filled = fill(&whole);
    // SAFETY: mapped above, and used by nobody after fill().
    let _ = unsafe { munmap(whole.start.as_ptr().cast(), old.layout.size() as usize) };
    if !filled {
        return Err(Hindrance::Limit);
    }
    put(old, &fd, open).map_err(error)?;
    close_if_ours(old);
    Ok(Memory {
        start: old.start,
        descriptor: fd.into_raw_fd(),
        ..whole
    })
}

/// Maps the new memory over the old one, each piece in one step, so that a thread which counts
/// meanwhile finds either.
fn put(old: &Memory, fd: &OwnedFd, open: &[(u64, u64)]) -> Result<(), Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let mut at = 0;
    for (offset, bytes) in open {
        put_piece(old, fd.as_fd(), at, offset - at, ProtFlags::empty())?;
        put_piece(old, fd.as_fd(), *offset, *bytes, access)?;
        at = offset + bytes;
    }
    put_piece(
        old,
        fd.as_fd(),
        at,
        old.layout.size() - at,
        ProtFlags::empty(),
    )
}

fn put_piece(
    old: &Memory,
    fd: BorrowedFd<'_>,
    offset: u64,
    bytes: u64,
    access: ProtFlags,
) -> Result<(), Errno> {
    if bytes == 0 {
        return Ok(());
    }
    let start = old.start.as_ptr().wrapping_add(offset as usize);
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: over a part of our own mapping, with memory that is used in the same way.
    unsafe {
        let start = mmap(start.cast(), bytes as usize, access, flags, fd, offset)?;
        let _ = munlock(start, bytes as usize);
        let _ = madvise(start, bytes as usize, Advice::LinuxNoHugepage);
        if access.is_empty() {
            let _ = madvise(start, bytes as usize, Advice::LinuxDontDump);
        }
    }
    Ok(())
}

/// A daemon may have closed the descriptor, and the number may be its own file now.
fn close_if_ours(old: &Memory) {
    let descriptor = old.descriptor;
    if descriptor < 0 {
        return;
    }
    // SAFETY: looked at, not owned.
    let fd = unsafe { BorrowedFd::borrow_raw(descriptor) };
    if fstat(fd).is_ok_and(|status| (status.st_dev, status.st_ino) == old.file) {
        // SAFETY: the region's own descriptor, which nobody else uses.
        unsafe { rustix::io::close(descriptor) };
    }
}
