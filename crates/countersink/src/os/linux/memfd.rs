//! The default: a memfd, which vanishes with the last process.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, Mode, SealFlags, fchmod, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::memory;
use crate::layout::Layout;
use crate::os::{Backing, Hindrance, Memory};

/// A memfd with as much of the wanted layout as limits allow.
pub(crate) fn create(wanted: Layout) -> Result<Memory, Hindrance> {
    let mut hindrance = Hindrance::Limit;
    for layout in memory::layouts(wanted, true) {
        match make(layout) {
            Ok(memory) => return Ok(memory),
            Err(error) => hindrance = Hindrance::Error(error.raw_os_error()),
        }
    }
    Err(hindrance)
}

fn make(layout: Layout) -> Result<Memory, Errno> {
    let fd = sealed(layout)?;
    let start = memory::map(fd.as_fd(), layout)?;
    Ok(Memory {
        start,
        layout,
        backing: Backing::Memfd,
        joined: false,
        file: memory::file(&fd)?,
        descriptor: fd.into_raw_fd(),
    })
}

/// A memfd of the full size, which nobody can make shorter: that would kill whoever writes there.
pub(super) fn sealed(layout: Layout) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC;
    let fd = match memfd_create(c"countersink", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know that seal.
        Err(Errno::INVAL) => memfd_create(c"countersink", flags),
        made => made,
    }?;
    let fd = above_standard(fd)?;
    let _ = fchmod(&fd, Mode::RUSR | Mode::WUSR);
    ftruncate(&fd, layout.size())?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// A program that closed its standard output must not find a region there.
pub(super) fn above_standard(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    fcntl_dupfd_cloexec(&fd, 3)
}
