//! Counting in a region that another process has made.
#![allow(unsafe_code)]

use core::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    CWD, FallocateFlags, FileType, MemfdFlags, Mode, OFlags, SealFlags, Stat, fallocate,
    fcntl_get_seals, fstat, memfd_create, openat,
};
use rustix::io::{Errno, pread};
use rustix::process::geteuid;

use super::memory;
use crate::layout;
use crate::os::{Backing, Hindrance, Memory};
use crate::text::Text;

/// The bytes of a header that say how the region is laid out.
const FIRST_PART: usize = 256;

/// Maps the region at a path such as `/proc/PID/fd/N`, if it is whole and nobody can make it shorter
/// but we ourselves.
pub(crate) fn join(path: &CStr) -> Result<Memory, Hindrance> {
    let error = |error: Errno| Hindrance::Error(error.raw_os_error());
    let found = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(error)?;
    let status = fstat(&found).map_err(error)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Hindrance::NotJoined);
    }
    let own_link = Text::<64>::of(format_args!("/proc/self/fd/{}", found.as_raw_fd()));
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(CWD, own_link.as_c_str(), flags, Mode::empty()).map_err(error)?;
    let fd = super::memfd::above_standard(fd).map_err(error)?;
    let backing = backing(&fd, &status).ok_or(Hindrance::NotJoined)?;

    // The stack may be a handler's, and small.
    let mut header = [0; FIRST_PART];
    let read = pread(&fd, &mut header, 0).map_err(error)?;
    let layout =
        layout::of_header(header.get(..read).unwrap_or(&[])).ok_or(Hindrance::NotJoined)?;
    if u64::try_from(status.st_size) != Ok(layout.size()) {
        return Err(Hindrance::NotJoined);
    }
    if backing == Backing::File {
        // A hole that cannot be filled later is a deadly signal; here it is an error.
        fallocate(&fd, FallocateFlags::empty(), 0, layout.size()).map_err(error)?;
        // Where locks are refused, the file is found dead when its maker is.
        let _ = super::file::lock(&fd);
    }
    let start = memory::map(fd.as_fd(), layout).map_err(error)?;
    Ok(Memory {
        start,
        layout,
        backing,
        joined: true,
        file: (status.st_dev, status.st_ino),
        descriptor: fd.into_raw_fd(),
    })
}

/// A sealed memfd, or a file that only we can write to.
fn backing(fd: &OwnedFd, status: &Stat) -> Option<Backing> {
    if is_on_the_memfds_device(status) {
        let seals = fcntl_get_seals(fd).ok()?;
        let sealed = seals.contains(SealFlags::SHRINK | SealFlags::GROW);
        return sealed.then_some(Backing::Memfd);
    }
    let others = Mode::from_raw_mode(status.st_mode) & (Mode::RWXG | Mode::RWXO);
    let ours = status.st_uid == geteuid().as_raw() && others.is_empty() && status.st_nlink == 1;
    ours.then_some(Backing::File)
}

/// Whether a file lies where memfds do.
fn is_on_the_memfds_device(status: &Stat) -> bool {
    let own = memfd_create(c"countersink-probe", MemfdFlags::CLOEXEC);
    own.and_then(fstat)
        .is_ok_and(|own| own.st_dev == status.st_dev)
}
