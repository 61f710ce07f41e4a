//! Memory that children which are forked later share.
#![allow(unsafe_code)]

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

/// Something made of atomics, in memory of its own that forked children share.
#[derive(Debug)]
pub(crate) struct Shared<T> {
    value: NonNull<T>,
}

// SAFETY: as a Box of the same.
unsafe impl<T: Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Puts a value there. It must mean the same in every process, so it holds no pointers; and it is not dropped.
    pub(crate) fn new(value: T) -> io::Result<Self> {
        const { assert!(!std::mem::needs_drop::<T>() && align_of::<T>() <= 4096) };
        // SAFETY: a new mapping, which nothing else has.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>().max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let value_at = NonNull::new(memory.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: as large as needed, aligned to a page, and nobody else's.
        unsafe { value_at.write(value) };
        Ok(Shared { value: value_at })
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: written by new(), mapped until dropped.
        unsafe { self.value.as_ref() }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by new() with this size.
        unsafe { libc::munmap(self.value.as_ptr().cast(), size_of::<T>().max(1)) };
    }
}
