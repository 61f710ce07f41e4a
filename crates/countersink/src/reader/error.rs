//! Why a region cannot be opened or read: one sentence each.

use std::io;

/// Why there is no region to read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No process has this number.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The process may not be looked into.
    #[error("process {0} belongs to someone else, or may not be looked into")]
    NotOurs(u32),
    /// The process has neither a region in memory nor a region file.
    #[error("process {0} has no region: it does not use countersink, or counts in private memory")]
    NoRegion(u32),
    /// The process ended in between.
    #[error("process {0} ended while it was being looked at")]
    Ended(u32),
    /// The system refused to open or read it.
    #[error("cannot open {origin}: {error}")]
    Open {
        /// What was to be opened.
        origin: String,
        /// What the system said.
        error: io::Error,
    },
    /// A symbolic link, a directory, a pipe, a device.
    #[error("{origin} is {what}, not a regular file")]
    NotRegular {
        /// What was to be opened.
        origin: String,
        /// What it is instead.
        what: &'static str,
    },
    /// It has the name of a memfd, and lies on another file system.
    #[error("{origin} is named like a region and is not a memfd")]
    NotMemfd {
        /// What was to be opened.
        origin: String,
    },
    /// The header is not one of this format.
    #[error("{origin} is not a region: {why}")]
    NotRegion {
        /// What was opened.
        origin: String,
        /// What is wrong with it.
        why: String,
    },
    /// The header is not complete.
    #[error(
        "{origin} is not complete: it is being set up, or its process was killed while it set it up"
    )]
    NotReady {
        /// What was opened.
        origin: String,
    },
    /// A later or earlier format.
    #[error("{origin} has version {version} of the format, and this reader knows version {known}", known = crate::layout::VERSION)]
    OtherVersion {
        /// What was opened.
        origin: String,
        /// Its version.
        version: u32,
    },
    /// A core file without a region, or a file that is no core file.
    #[error("{origin} {why}")]
    NoCore {
        /// The file.
        origin: String,
        /// What it lacks.
        why: String,
    },
    /// Others could have put files into the directory.
    #[error("the directory {origin} is not trusted: {why}")]
    NotTrusted {
        /// The directory.
        origin: String,
        /// Why.
        why: String,
    },
    /// Processes are found on Linux only.
    #[error("regions of processes can be found on Linux only")]
    NotLinux,
}

/// Why a region that was opened could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It is not there any more: its process ended, or the file was cut off.
    #[error("{origin} went away while it was being read")]
    Gone {
        /// What was read.
        origin: String,
    },
    /// The system refused to read it.
    #[error("cannot read {origin}: {error}")]
    Read {
        /// What was read.
        origin: String,
        /// What the system said.
        error: io::Error,
    },
}
