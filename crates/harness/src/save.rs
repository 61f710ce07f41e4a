//! Writes a file completely or not at all.
//!
//! The text goes to a temporary file beside the target, which then takes the target's name. Symlinks are
//! followed, so the link stays. Devices and pipes, which cannot be replaced, are written to;
//! `/dev/stdout` and `/dev/stderr` go through the process's own streams.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Links to follow before a loop is suspected; Linux allows 40.
const MAX_LINKS: usize = 40;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The path names a directory.
    #[error("cannot write {}: it is a directory", .0.display())]
    IsDirectory(PathBuf),
    /// The directory that the file would be in does not exist.
    #[error("cannot write {}: there is no directory {}", .path.display(), .directory.display())]
    NoDirectory {
        /// The file.
        path: PathBuf,
        /// The directory that is missing.
        directory: PathBuf,
    },
    /// The file exists and is marked read-only.
    #[error("cannot write {}: it is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// The symlinks go round in a circle.
    #[error("cannot write {}: too many symlinks", .0.display())]
    LinkLoop(PathBuf),
    /// The directory takes no new file, which would have to be complete before it replaces the old one.
    #[error("cannot write {}: cannot create a file in {}: {error}", .path.display(), .directory.display())]
    NoNewFile {
        /// The file.
        path: PathBuf,
        /// Its directory.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Anything else that the system says.
    #[error("cannot write {}: {error}", .path.display())]
    Failed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Where the text goes.
enum Target {
    Stdout,
    Stderr,
    /// Something that is not a regular file: written to as it is.
    Stream {
        /// Opening a pipe waits for its reader.
        is_device: bool,
    },
    /// A regular file, which may not exist yet.
    File {
        path: PathBuf,
        directory: PathBuf,
        existing: Option<Permissions>,
    },
}

/// Writes the file. When it fails, the file is what it was before, and nothing else is left. (What a
/// device or a pipe has taken is gone; a process killed in the middle leaves a hidden
/// `.countersink-…` file.)
///
/// # Errors
/// See [`SaveError`].
pub fn save(path: &Path, contents: &[u8]) -> Result<(), SaveError> {
    let written = match resolve(path)? {
        Target::Stdout => write_through(io::stdout().lock(), contents),
        Target::Stderr => write_through(io::stderr().lock(), contents),
        Target::Stream { .. } => open_stream(path).and_then(|file| write_through(file, contents)),
        Target::File {
            path: target,
            directory,
            existing,
        } => {
            let file = temporary(path, &directory)?;
            replace(&target, file, existing, contents)
        }
    };
    written.map_err(|error| failed(path, error))
}

/// Looks whether [`save`] will be able to write the file, before a long run. Leaves nothing
/// behind. It tries a temporary file in the directory, but cannot foresee a disk that fills up.
///
/// # Errors
/// See [`SaveError`].
pub fn check_writable(path: &Path) -> Result<(), SaveError> {
    match resolve(path)? {
        Target::Stdout | Target::Stderr | Target::Stream { is_device: false } => Ok(()),
        Target::Stream { is_device: true } => match open_stream(path) {
            Ok(_) => Ok(()),
            Err(error) => Err(failed(path, error)),
        },
        Target::File { directory, .. } => temporary(path, &directory).map(drop),
    }
}

fn failed(path: &Path, error: io::Error) -> SaveError {
    SaveError::Failed {
        path: path.to_owned(),
        error,
    }
}

fn resolve(path: &Path) -> Result<Target, SaveError> {
    if path == Path::new("/dev/stdout") {
        return Ok(Target::Stdout);
    }
    if path == Path::new("/dev/stderr") {
        return Ok(Target::Stderr);
    }
    let ends_in_separator = path
        .as_os_str()
        .to_string_lossy()
        .ends_with(std::path::is_separator);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) if is_link_loop(path) => return Err(SaveError::LinkLoop(path.to_owned())),
        Err(error) => return Err(failed(path, error)),
    };
    match metadata {
        Some(found) if found.is_dir() => Err(SaveError::IsDirectory(path.to_owned())),
        None if ends_in_separator => Err(SaveError::IsDirectory(path.to_owned())),
        Some(found) if !found.is_file() => Ok(Target::Stream {
            is_device: is_device(&found),
        }),
        Some(found) if found.permissions().readonly() => Err(SaveError::ReadOnly(path.to_owned())),
        found => resolve_file(path, found.map(|found| found.permissions())),
    }
}

fn resolve_file(path: &Path, existing: Option<Permissions>) -> Result<Target, SaveError> {
    let target = follow_links(path).ok_or_else(|| SaveError::LinkLoop(path.to_owned()))?;
    let directory = match target.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => return Err(failed(path, io::ErrorKind::InvalidInput.into())),
    };
    if !directory.is_dir() {
        return Err(SaveError::NoDirectory {
            path: path.to_owned(),
            directory,
        });
    }
    Ok(Target::File {
        path: target,
        directory,
        existing,
    })
}

/// The path with its last component's symlinks followed, whether or not they lead to a file.
/// `None` if there is no end.
fn follow_links(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else {
            return Some(path);
        };
        path = match path.parent() {
            Some(parent) => parent.join(next),
            None => next,
        };
    }
    None
}

fn is_link_loop(path: &Path) -> bool {
    follow_links(path).is_none()
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_char_device() || metadata.file_type().is_block_device()
}

#[cfg(not(unix))]
fn is_device(_metadata: &Metadata) -> bool {
    true
}

fn open_stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

fn write_through(mut to: impl Write, contents: &[u8]) -> io::Result<()> {
    to.write_all(contents)?;
    to.flush()
}

/// A temporary file for `path` in its directory, gone when dropped.
fn temporary(path: &Path, directory: &Path) -> Result<NamedTempFile, SaveError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".countersink-").suffix(".tmp");
    // As any new file, not private as temporary files are; the umask applies.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
        .tempfile_in(directory)
        .map_err(|error| SaveError::NoNewFile {
            path: path.to_owned(),
            directory: directory.to_owned(),
            // The kind alone: the whole error names a temporary file that means nothing to anyone.
            error: error.kind().into(),
        })
}

fn replace(
    path: &Path,
    mut file: NamedTempFile,
    existing: Option<Permissions>,
    contents: &[u8],
) -> io::Result<()> {
    file.write_all(contents)?;
    if let Some(permissions) = existing {
        file.as_file().set_permissions(permissions)?;
    }
    // Before the new name: after a crash, the name must not lead to an empty file.
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
