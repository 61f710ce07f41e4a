//! On request: a file, which can be read after a crash.
#![allow(unsafe_code)]

use core::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, fallocate, fstat, mkdirat,
    openat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{memfd, memory};
use crate::layout::Layout;
use crate::os::{Backing, Hindrance, Identity, Memory};
use crate::text::Text;

/// A file in a directory, with as much of the wanted layout as limits allow. `fill` completes the region
/// before others see the file.
pub(crate) fn create(
    directory: &CStr,
    identity: &Identity,
    wanted: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Hindrance> {
    let directory = open_directory(directory)?;
    let mut hindrance = Hindrance::Limit;
    for layout in memory::layouts(wanted, true) {
        match make(&directory, identity, layout, fill) {
            Ok(memory) => return Ok(memory),
            Err(error) => hindrance = Hindrance::Error(error.raw_os_error()),
        }
    }
    Err(hindrance)
}

/// The directory, made if it is missing; only one that nobody but us can write to.
fn open_directory(path: &CStr) -> Result<OwnedFd, Hindrance> {
    let error = |error: Errno| Hindrance::Error(error.raw_os_error());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(CWD, path, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(CWD, path, Mode::RWXU).map_err(error)?;
            openat(CWD, path, flags, Mode::empty())
        }
        opened => opened,
    };
    let directory = opened.map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => Hindrance::Directory,
        errno => error(errno),
    })?;
    let status = fstat(&directory).map_err(error)?;
    let ours = status.st_uid == geteuid().as_raw();
    let closed = Mode::from_raw_mode(status.st_mode) & (Mode::RWXG | Mode::RWXO) == Mode::empty();
    let real = FileType::from_raw_mode(status.st_mode) == FileType::Directory;
    if ours && closed && real {
        Ok(directory)
    } else {
        Err(Hindrance::Directory)
    }
}

fn make(
    directory: &OwnedFd,
    identity: &Identity,
    layout: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Errno> {
    // Two threads may be here at once; each makes a file of its own, and one of them stays.
    let number = identity_number(identity);
    let temporary = Text::<128>::of(format_args!(".countersink-{number}.tmp"));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(
        directory,
        temporary.as_c_str(),
        flags,
        Mode::RUSR | Mode::WUSR,
    )?;
    let made = complete(directory, &temporary, fd, identity, layout, fill);
    if made.is_err() {
        let _ = unlinkat(directory, temporary.as_c_str(), AtFlags::empty());
    }
    made
}

fn complete(
    directory: &OwnedFd,
    temporary: &Text<128>,
    fd: OwnedFd,
    identity: &Identity,
    layout: Layout,
    fill: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Errno> {
    let fd = memfd::above_standard(fd)?;
    lock(&fd)?;
    // All of it, now: a hole that cannot be filled later is a deadly signal.
    fallocate(&fd, FallocateFlags::empty(), 0, layout.size())?;
    let memory = Memory {
        start: memory::map(fd.as_fd(), layout)?,
        layout,
        backing: Backing::File,
        joined: false,
        file: memory::file(&fd)?,
        descriptor: -1,
    };
    let name = name(identity);
    let placed = if fill(&memory) {
        renameat_with(
            directory,
            temporary.as_c_str(),
            directory,
            name.as_c_str(),
            RenameFlags::empty(),
        )
    } else {
        Err(Errno::IO)
    };
    if let Err(error) = placed {
        memory::abandon(&memory);
        return Err(error);
    }
    Ok(Memory {
        descriptor: fd.into_raw_fd(),
        ..memory
    })
}

/// `PROGRAM.PID.START.countersink`: no two processes of a boot have the same.
fn name(identity: &Identity) -> Text<128> {
    let end = identity.program.iter().position(|byte| *byte == 0);
    let program = &identity.program[..end.unwrap_or(identity.program.len())];
    let mut text = Text::<128>::empty();
    for byte in program {
        let plain = byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        text.push(if plain { *byte } else { b'_' });
    }
    text.append(format_args!(
        ".{}.{}.countersink",
        identity.pid, identity.start_time
    ));
    text
}

fn identity_number(identity: &Identity) -> impl core::fmt::Display {
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static MADE: AtomicU32 = AtomicU32::new(0);
    Text::<64>::of(format_args!(
        "{}-{}-{}",
        identity.pid,
        identity.start_time,
        MADE.fetch_add(1, Relaxed)
    ))
}

/// Takes the lock that says "alive". It belongs to the open file, so it lasts until the last process
/// that has the file open or mapped is gone, whoever closes the descriptor.
fn lock(fd: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: plain numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    // SAFETY: the structure lives as long as the call. `errno` is put back: this may run in a handler.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::fcntl(fd.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock);
        let error = *errno;
        *errno = before;
        if result == 0 {
            Ok(())
        } else {
            Err(Errno::from_raw_os_error(error))
        }
    }
}
