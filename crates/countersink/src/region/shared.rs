//! A region that is made for others.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::lanes;
use super::options::{fill, hindrance_text};
use crate::layout::{self, Layout};
use crate::os::{self, Hindrance};
use crate::reader;

/// A region for other processes to count in: they join it when `COUNTERSINK_REGION` is
/// [`path`](Self::path) in their environment, as do all that they start.
///
/// It must live until they have joined. They can, as long as they are of the same user, or root's, and see
/// this process under the same number.
#[derive(Debug)]
pub struct Shared {
    descriptor: OwnedFd,
}

impl Shared {
    /// Makes one.
    ///
    /// # Errors
    /// Where there are no memfds, or a resource limit leaves no room.
    pub fn new() -> io::Result<Self> {
        let failed = |hindrance: Hindrance| io::Error::other(hindrance_text(hindrance));
        let wanted = Layout::new(lanes(), layout::MOST_ENTRIES, 64);
        let wanted = wanted.ok_or_else(|| failed(Hindrance::Limit))?;
        let memory = os::create_memfd(wanted).map_err(failed)?;
        // SAFETY: the descriptor that was made just now.
        let descriptor = unsafe { BorrowedFd::borrow_raw(memory.descriptor) }.try_clone_to_owned();
        let filled = fill(&memory);
        // The memory stays as long as a descriptor does.
        os::abandon(&memory);
        if !filled {
            return Err(failed(Hindrance::Limit));
        }
        Ok(Shared {
            descriptor: descriptor?,
        })
    }

    /// The value for `COUNTERSINK_REGION`.
    pub fn path(&self) -> String {
        let (pid, fd) = (std::process::id(), self.descriptor.as_raw_fd());
        format!("/proc/{pid}/fd/{fd}")
    }

    /// Opens it for reading.
    ///
    /// # Errors
    /// As [`reader::Region::of_descriptor`].
    pub fn open(&self) -> Result<reader::Region, reader::OpenError> {
        let descriptor = self.descriptor.try_clone();
        let descriptor = descriptor.map_err(|error| reader::OpenError::Open {
            origin: self.path(),
            error,
        })?;
        reader::Region::of_descriptor(descriptor)
    }
}
