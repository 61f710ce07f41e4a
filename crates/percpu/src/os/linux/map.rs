//! Memory for segments.
#![allow(unsafe_code)]

use core::ptr::{NonNull, null_mut};
use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Zeroed memory, mapped until dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: plain memory; who reads and writes it how is the segment's business.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this process; a forked child gets a copy.
    pub(crate) fn private(bytes: usize) -> io::Result<Self> {
        Self::anonymous(bytes, MapFlags::PRIVATE)
    }

    /// Memory that children forked later share.
    pub(crate) fn shared(bytes: usize) -> io::Result<Self> {
        Self::anonymous(bytes, MapFlags::SHARED)
    }

    fn anonymous(bytes: usize, kind: MapFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice. Lanes are sparse, so no swap
        // is reserved for them.
        let start = unsafe {
            mmap_anonymous(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                kind | MapFlags::NORESERVE,
            )
        }?;
        Self::adopt(start.cast(), bytes)
    }

    /// Memory of a file or memfd, from `offset` on.
    pub(crate) fn of_fd(bytes: usize, fd: BorrowedFd<'_>, offset: u64) -> io::Result<Self> {
        let size = u64::try_from(rustix::fs::fstat(fd)?.st_size).unwrap_or(0);
        if offset
            .checked_add(bytes as u64)
            .is_none_or(|end| end > size)
        {
            // Touching a page beyond the end is a deadly signal.
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("the file has {size} bytes; a segment at {offset} needs {bytes}"),
            ));
        }
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            mmap(
                null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                offset,
            )
        }?;
        Self::adopt(start.cast(), bytes)
    }

    fn adopt(start: *mut u8, bytes: usize) -> io::Result<Self> {
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        // A huge page would put the lanes of all CPUs into one page, and 2 MiB behind a counter.
        // SAFETY: our own mapping. Advice that the kernel does not take changes nothing.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
        Ok(Mapping { start, bytes })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, not used after this.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
