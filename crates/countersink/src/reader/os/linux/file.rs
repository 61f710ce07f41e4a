//! Files that anyone may have put there.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, OFlags, SeekFrom, Stat, fstat, open, openat, seek};
use rustix::io::Errno;

use super::Opened;
use super::life::Process;
use super::lock;
use crate::reader::source::Source;
use crate::reader::{OpenError, State};
use crate::region::Attached;

/// Who may have a region.
#[derive(Debug)]
pub(in crate::reader) enum Holder {
    /// A core file, or memory.
    Nobody,
    /// Processes that had it when it was found.
    Processes(Vec<Process>),
    /// Whoever has locked it.
    Locker(Arc<File>),
}

pub(in crate::reader) fn state(holder: &Holder) -> State {
    match holder {
        Holder::Nobody => State::Dead,
        Holder::Processes(processes) if processes.iter().any(Process::is_alive) => State::Alive,
        Holder::Processes(_) => State::Dead,
        Holder::Locker(file) => match lock::is_locked(file) {
            Ok(true) => State::Alive,
            Ok(false) => State::Dead,
            Err(_) => State::Unknown,
        },
    }
}

pub(in crate::reader) fn open_file(path: &Path) -> Result<Opened, OpenError> {
    let origin = path.display().to_string();
    let (file, stat) = open_at(CWD, path, OFlags::NOFOLLOW, OFlags::RDONLY, &origin)?;
    Ok(opened(file, &stat))
}

/// A file that somebody has opened. It lives as long as the caller has it.
pub(in crate::reader) fn open_descriptor(file: File, origin: &str) -> Result<Opened, OpenError> {
    let stat = fstat(&file).map_err(|error| OpenError::Open {
        origin: origin.to_owned(),
        error: error.into(),
    })?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(OpenError::NotRegular {
            origin: origin.to_owned(),
            what: "something else",
        });
    }
    Ok(Opened {
        holder: Holder::Processes(Process::own().into_iter().collect()),
        ..opened(file, &stat)
    })
}

/// Maps the region in a file, to be written to.
pub(in crate::reader) fn attach(file: &File) -> Result<Attached, String> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let path = CString::new(path).map_err(|error| error.to_string())?;
    Attached::new(&path)
}

/// A region file that was opened.
pub(super) fn opened(file: File, stat: &Stat) -> Opened {
    let file = Arc::new(file);
    Opened {
        source: Box::new(Regular(Arc::clone(&file))),
        id: Some(id(stat)),
        holder: Holder::Locker(file),
    }
}

/// Opens a regular file, and nothing else: opening a pipe or a device can hang, or do something.
pub(super) fn open_at(
    directory: impl std::os::fd::AsFd,
    path: &Path,
    follow: OFlags,
    access: OFlags,
    origin: &str,
) -> Result<(File, Stat), OpenError> {
    let (place, stat) = look_at(directory, path, follow, origin)?;
    Ok((reopen(&place, access, origin)?, stat))
}

/// Finds out what a path leads to, without opening it. Anything but a regular file is an error.
pub(super) fn look_at(
    directory: impl std::os::fd::AsFd,
    path: &Path,
    follow: OFlags,
    origin: &str,
) -> Result<(OwnedFd, Stat), OpenError> {
    let failed = |error: Errno| OpenError::Open {
        origin: origin.to_owned(),
        error: error.into(),
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC | follow;
    let place = openat(directory, path, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&place).map_err(failed)?;
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok((place, stat)),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(OpenError::NotRegular {
        origin: origin.to_owned(),
        what,
    })
}

/// Opens what a path descriptor stands for.
pub(super) fn reopen(place: &OwnedFd, access: OFlags, origin: &str) -> Result<File, OpenError> {
    let path = format!("/proc/self/fd/{}", place.as_raw_fd());
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Ok(file) => Ok(file.into()),
        Err(error) => Err(OpenError::Open {
            origin: origin.to_owned(),
            error: error.into(),
        }),
    }
}

/// Device and inode.
pub(super) fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// A regular file: it can be shortened at any time, so it is read and not mapped.
#[derive(Debug)]
pub(super) struct Regular(pub(super) Arc<File>);

impl Source for Regular {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        // Offsets that the system does not know are not there.
        match i64::try_from(offset) {
            Ok(_) => self.0.read_at(buffer, offset),
            Err(_) => Ok(0),
        }
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        match seek(&self.0, SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            // A hole up to the end, or beyond the end.
            Err(Errno::NXIO) => Ok(None),
            // The file system does not know about holes.
            Err(_) => Ok(Some(offset)),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn file(&self) -> Option<&File> {
        Some(&self.0)
    }
}

/// The memory of a process, at its addresses.
#[derive(Debug)]
pub(super) struct Memory(pub(super) File);

impl Source for Memory {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.0.read_at(buffer, offset) {
            // Nothing is mapped there.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
            result => result,
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}
