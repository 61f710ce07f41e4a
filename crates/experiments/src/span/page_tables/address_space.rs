//! Address space without memory, touched and given back piece by piece, and processes.
#![allow(unsafe_code)]

use std::io;
use std::ptr;

/// Bytes of a page.
pub(super) fn page_size() -> usize {
    // SAFETY: asks for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(0)
}

/// Addresses that were never touched, given back when dropped.
#[derive(Debug)]
pub(super) struct AddressSpace {
    start: *mut u8,
    bytes: usize,
}

impl AddressSpace {
    /// So many bytes at a multiple of `alignment`, a power of two; both are whole pages.
    pub(super) fn reserve(bytes: usize, alignment: usize) -> io::Result<Self> {
        let all = bytes
            .checked_add(alignment)
            .ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice. No memory is set aside for it.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                all,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut space = AddressSpace {
            start: start.cast(),
            bytes: all,
        };
        let before = space.start.addr().next_multiple_of(alignment) - space.start.addr();
        space.keep(before, bytes)?;
        // A huge page would need no page of ptes.
        // SAFETY: our own mapping.
        match unsafe { libc::madvise(space.start.cast(), bytes, libc::MADV_NOHUGEPAGE) } {
            0 => Ok(space),
            // A kernel without huge pages does not know the advice.
            _ if io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL) => Ok(space),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives back what is not wanted: before and behind.
    fn keep(&mut self, before: usize, bytes: usize) -> io::Result<()> {
        self.give_back_from(before + bytes)?;
        if before > 0 {
            // SAFETY: the beginning of our own mapping, which is no longer ours after this.
            if unsafe { libc::munmap(self.start.cast(), before) } != 0 {
                return Err(io::Error::last_os_error());
            }
            self.start = self.start.wrapping_add(before);
            self.bytes -= before;
        }
        Ok(())
    }

    /// Writes a byte at an offset, if there is one.
    #[inline(always)]
    pub(super) fn touch(&self, offset: usize) {
        if offset < self.bytes {
            // SAFETY: a byte of our own mapping, which nothing refers to.
            unsafe { self.start.add(offset).write_volatile(1) };
        }
    }

    /// Gives back everything from an offset on.
    #[inline(always)]
    pub(super) fn give_back_from(&mut self, offset: usize) -> io::Result<()> {
        let Some(rest) = self.bytes.checked_sub(offset).filter(|rest| *rest > 0) else {
            return Ok(());
        };
        // SAFETY: the end of our own mapping, which is no longer ours after this.
        if unsafe { libc::munmap(self.start.wrapping_add(offset).cast(), rest) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.bytes = offset;
        Ok(())
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        let _ = self.give_back_from(0);
    }
}

/// A process that ends as soon as it begins.
#[derive(Debug)]
pub(super) struct Child(libc::pid_t);

impl Child {
    /// Makes it.
    #[inline(always)]
    pub(super) fn fork() -> io::Result<Self> {
        // SAFETY: the child does nothing but end.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: ends at once, and runs nothing of the parent's.
            0 => unsafe { libc::_exit(0) },
            child => Ok(Child(child)),
        }
    }

    /// Waits for its end.
    #[inline(always)]
    pub(super) fn wait(self) -> io::Result<()> {
        loop {
            // SAFETY: our own child, whose status nobody wants.
            if unsafe { libc::waitpid(self.0, ptr::null_mut(), 0) } == self.0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_aligned_and_shrinks() {
        let mut space = AddressSpace::reserve(64 << 20, 2 << 20).expect("address space");
        assert!(space.start.addr().is_multiple_of(2 << 20));
        assert_eq!(space.bytes, 64 << 20);
        space.touch(0);
        space.touch((64 << 20) - 1);
        space.give_back_from(4096).expect("munmap");
        // Behind the end: nothing, rather than a signal.
        space.touch(4096);
        space.give_back_from(1 << 30).expect("nothing to do");
        assert_eq!(space.bytes, 4096);
        let too_much = AddressSpace::reserve(usize::MAX / 8192 * 4096, 4096).expect_err("too much");
        assert_eq!(too_much.raw_os_error(), Some(libc::ENOMEM));
    }
}
