//! Other systems: private memory only.

use core::ffi::CStr;
use core::ptr::NonNull;
use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Backing, Hindrance, Identity, Memory};
use crate::layout::Layout;

/// What the environment asks for: there is nothing to ask for here.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the same as on Linux")]
pub(crate) enum Setting {
    Join(&'static CStr),
    Directory(&'static CStr),
    None,
}

pub(crate) fn setting() -> Setting {
    Setting::None
}

pub(crate) fn join(_: &CStr) -> Result<Memory, Hindrance> {
    Err(Hindrance::System)
}

pub(crate) fn create_file(
    _: &CStr,
    _: &Identity,
    _: Layout,
    _: &dyn Fn(&Memory) -> bool,
) -> Result<Memory, Hindrance> {
    Err(Hindrance::System)
}

pub(crate) fn remove_file(_: &CStr, _: &Identity, _: &Memory) {}

pub(crate) fn create_memfd(_: Layout) -> Result<Memory, Hindrance> {
    Err(Hindrance::System)
}

/// Memory that is taken when it is touched, as far as the system does that.
pub(crate) fn private(wanted: Layout) -> Result<Memory, Hindrance> {
    let small = Layout::new(
        wanted.cpus,
        wanted.entries.min(4096),
        wanted.segments.min(4),
    );
    let layout = small.ok_or(Hindrance::System)?;
    let allocation = allocation(layout).ok_or(Hindrance::Limit)?;
    // SAFETY: the size is not zero.
    #[allow(unsafe_code)]
    let start = unsafe { alloc_zeroed(allocation) };
    Ok(Memory {
        start: NonNull::new(start).ok_or(Hindrance::Limit)?,
        layout,
        backing: Backing::Private,
        joined: false,
        file: (0, 0),
        descriptor: -1,
    })
}

fn allocation(layout: Layout) -> Option<Allocation> {
    Allocation::from_size_align(usize::try_from(layout.size()).ok()?, 4096).ok()
}

pub(crate) fn open_part(_: &Memory, _: u64, _: u64) -> bool {
    true
}

pub(crate) fn abandon(memory: &Memory) {
    if let Some(allocation) = allocation(memory.layout) {
        // SAFETY: allocated with this layout by private().
        #[allow(unsafe_code)]
        unsafe {
            dealloc(memory.start.as_ptr(), allocation);
        }
    }
}

pub(crate) fn page() -> Option<NonNull<u8>> {
    let page: &'static mut [u64; 512] = Box::leak(Box::new([0; 512]));
    Some(NonNull::from(page).cast())
}

pub(crate) fn identity() -> Identity {
    let mut program = [0; 64];
    let name = std::env::current_exe().ok();
    let name = name.as_ref().and_then(|path| path.file_name());
    let name = name.map(|name| name.as_encoded_bytes()).unwrap_or_default();
    for (place, byte) in program[..63].iter_mut().zip(name) {
        *place = *byte;
    }
    Identity {
        pid: std::process::id(),
        uid: 0,
        start_time: 0,
        pid_namespace: 0,
        boot: [0; 16],
        program,
    }
}

pub(crate) fn uses_tsc_clock_source() -> bool {
    false
}

pub(crate) fn real_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

pub(crate) fn forks() -> u32 {
    0
}

/// Forks are not watched here.
pub(crate) struct Gate;

impl Gate {
    pub(crate) fn enter() -> Self {
        Gate
    }
}

/// There are no forks, so nothing to begin anew.
pub(crate) fn clear_private(_: &Memory, _: u64, _: u64) -> bool {
    true
}

/// There is no other memory to count in.
pub(crate) fn replace(
    _: &Memory,
    _: &dyn Fn(&Memory) -> bool,
    _: &[(u64, u64)],
) -> Result<Memory, Hindrance> {
    Err(Hindrance::System)
}
