//! Where regions are found.

use std::io;
use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::model::Info;
use super::snapshot::Region;
use super::{core_file, os};

impl Region {
    /// The regions of a process: a process has several where it holds several versions of the
    /// library, and none where it does not use it. Region files that it has open or mapped count too.
    ///
    /// # Errors
    ///
    /// When there is no such process, it may not be looked into, has no region, or ends meanwhile; and
    /// when none of what looks like its regions can be read, with the first one's error.
    pub fn of_process(pid: u32) -> Result<Vec<Self>, OpenError> {
        os::of_process(pid)
    }

    /// A region file. Symbolic links are not followed, and what is not a regular file is not opened.
    pub fn open_file(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let opened = os::open_file(path)?;
        let origin = path.display().to_string();
        Region::new(opened.source, origin, opened.id, opened.holder)
    }

    /// The region in a file that is open, such as that of [`region::Shared`](crate::region::Shared).
    ///
    /// # Errors
    ///
    /// When it is not a regular file, or not a region.
    #[cfg(unix)]
    pub fn of_descriptor(descriptor: std::os::fd::OwnedFd) -> Result<Self, OpenError> {
        let origin = "an open file".to_owned();
        let opened = os::open_descriptor(descriptor.into(), &origin)?;
        Region::new(opened.source, origin, opened.id, opened.holder)
    }

    /// The regions in a core file: ELF, 64 bits, of a machine with this byte order. Metrics with words
    /// that were not dumped are left out of their snapshots.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not a core file, or holds no region.
    pub fn in_core(path: impl AsRef<Path>) -> Result<Vec<Self>, OpenError> {
        let path = path.as_ref();
        let opened = os::open_file(path)?;
        core_file::regions(opened.source, &path.display().to_string())
    }
}

/// What a look at all processes found.
#[derive(Debug, Default)]
pub struct Found {
    /// Regions, and what looks like them.
    pub regions: Vec<Sighting>,
    /// Processes that may not be looked into.
    pub hidden: usize,
}

/// A region that processes have.
#[derive(Debug)]
pub struct Sighting {
    /// Who has it, ascending; several, where one was forked from the other.
    pub pids: Vec<u32>,
    /// The region, or why it cannot be read.
    pub region: Result<Region, OpenError>,
}

/// Looks for regions in all processes. Takes a few system calls for each descriptor on the system.
///
/// # Errors
///
/// When processes cannot be listed at all.
pub fn find() -> Result<Found, OpenError> {
    os::find()
}

/// A file that has the name of a region file.
#[derive(Debug)]
pub struct RegionFile {
    /// Where it is.
    pub path: PathBuf,
    /// The region, or why it cannot be read.
    pub region: Result<Region, OpenError>,
}

/// The region files of a directory, `*.countersink`, by name.
///
/// # Errors
///
/// When the directory cannot be read, or others could have put files into it: it has to be ours (root
/// may read anyone's), not a symbolic link, and writable by its owner only.
pub fn files_in(directory: impl AsRef<Path>) -> Result<Vec<RegionFile>, OpenError> {
    os::files_in(directory.as_ref())
}

/// What [`prune`] did with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Pruned {
    /// It is gone.
    Removed(PathBuf),
    /// It is in use.
    Alive(PathBuf),
    /// It is left alone, since it cannot be told what it is; and why.
    Kept(PathBuf, String),
}

/// Removes what killed processes have left in a directory: region files that nobody has locked, and
/// half-made ones, `.countersink-*.tmp`, that are a minute old. Files that are not ours, or do not
/// begin like a region, stay.
///
/// # Errors
///
/// When the directory cannot be read, or is not trusted, as in [`files_in`].
pub fn prune(directory: impl AsRef<Path>) -> io::Result<Vec<Pruned>> {
    os::prune(directory.as_ref()).map_err(|error| match error {
        OpenError::Open { error, .. } => error,
        other => io::Error::other(other),
    })
}

/// What became of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Life {
    /// It lives.
    Alive,
    /// It is dead: nobody has its number, or the system was booted since.
    Dead,
    /// It is dead, and another one has its number.
    Reused,
    /// It cannot be told: it ran in another PID namespace, or may not be looked at.
    Unknown,
}

impl Info {
    /// What became of the process that made the region. Processes that it forked may still have it:
    /// [`Region::state`] says whether any has.
    pub fn creator(&self) -> Life {
        os::life(self)
    }
}
