//! Who tells the kernel where a thread's `struct rseq` is.
//!
//! glibc does so from 2.35 on, for every thread that it starts, and then nobody else may. Where it
//! does not, each thread registers its own area at its first operation, and takes that back when it
//! ends: the kernel writes to the area, and the memory is gone then.
//!
//! All of it may run in a signal handler.
#![allow(unsafe_code)]

use core::ffi::c_void;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use super::Place;
use crate::arch;
use crate::mechanism::{Reason, Registrar};

/// What the kernel knows as the size of the first version; accepted by every kernel.
const AREA_SIZE: u32 = 32;
/// The four bytes before every abort handler.
const SIGNATURE: u32 = 0x5305_3053;
const FLAG_UNREGISTER: i32 = 1;

/// The state of a thread's registration, kept behind its own area.
mod state {
    pub(super) const NEW: u32 = 0;
    pub(super) const REGISTERED: u32 = 1;
    /// Refused by the kernel, or taken back at the thread's end: the shared lane from here on. The
    /// error number is in the upper half.
    pub(super) const OVER: u32 = 2;

    pub(super) fn refused(error: u16) -> u32 {
        OVER | u32::from(error) << 16
    }
}

/// `struct rseq` with what we keep behind it.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
    flags: AtomicU32,
    node_id: AtomicU32,
    mm_cid: AtomicU32,
    padding: AtomicU32,
    state: AtomicU32,
}

/// This thread's own area.
fn own_area() -> &'static Area {
    // SAFETY: the offset leads to the thread's own area, which arch reserves in static TLS, 32-byte
    // aligned, with this layout. It lives as long as the thread, and the reference is not given to
    // another.
    unsafe { &*arch::thread_address(arch::own_area()).cast::<Area>() }
}

/// Decides who registers. The calling thread is registered afterwards, if any can be.
pub(super) fn decide() -> Result<Registrar, Reason> {
    match arch::libc_area() {
        // glibc's size says whether it registers; a single thread may still have been refused.
        Some((_, size)) if size != 0 => Ok(Registrar::Libc),
        _ => {
            let key = exit_key().ok_or(Reason::NoExitHook)?;
            register(own_area(), key)?;
            Ok(Registrar::Own)
        }
    }
}

/// Where a thread counts that the C library should have registered.
pub(super) fn place_by_libc(cpus: u32) -> Place {
    let Some((offset, _)) = arch::libc_area() else {
        return Place::SharedLane;
    };
    // SAFETY: glibc's area, of at least 8 bytes, lives as long as the thread. The kernel writes the
    // field, hence the atomic.
    let cpu = unsafe { AtomicU32::from_ptr(arch::thread_address(offset + 4).cast()) };
    by_cpu_id(cpu.load(Relaxed), cpus)
}

/// Where a thread counts that registers itself, which it does here.
pub(super) fn place_by_own(cpus: u32) -> Place {
    let area = own_area();
    let Some(key) = exit_key() else {
        return Place::SharedLane;
    };
    match register(area, key) {
        Ok(()) => by_cpu_id(area.cpu_id.load(Relaxed), cpus),
        Err(_) => Place::SharedLane,
    }
}

fn by_cpu_id(cpu: u32, cpus: u32) -> Place {
    if cpu < cpus {
        Place::Section
    } else {
        Place::SharedLane
    }
}

/// Registers this thread, once.
fn register(area: &'static Area, key: libc::pthread_key_t) -> Result<(), Reason> {
    match area.state.load(Relaxed) {
        state::NEW => {}
        state::REGISTERED => return Ok(()),
        over => return Err(Reason::Refused((over >> 16) as u16)),
    }
    // A handler that counts could come in between and register as well.
    let _masked = Masked::all();
    if area.state.load(Relaxed) == state::REGISTERED {
        return Ok(());
    }
    // SAFETY: the key is ours; the value only has to differ from null for the hook to run.
    if unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(area).cast()) } != 0 {
        area.state.store(state::OVER, Relaxed);
        return Err(Reason::NoExitHook);
    }
    // A section that ran before this left its descriptor here; the kernel expects none.
    area.rseq_cs.store(0, Relaxed);
    match rseq(area, 0) {
        Ok(()) => {
            area.state.store(state::REGISTERED, Relaxed);
            Ok(())
        }
        Err(error) => {
            area.state.store(state::refused(error), Relaxed);
            Err(Reason::Refused(error))
        }
    }
}

/// Runs at the end of each thread that registered itself.
///
/// Runs after the destructors of Rust's thread-locals, so those still count on CPU lanes; whatever
/// counts later finds an unregistered thread and uses the shared lane.
unsafe extern "C" fn at_thread_end(_: *mut c_void) {
    let area = own_area();
    let _masked = Masked::all();
    if area.state.swap(state::OVER, Relaxed) == state::REGISTERED {
        // The kernel sets cpu_id to "not registered". A failure leaves the registration as it was;
        // there is nothing else to do about it.
        let _ = rseq(area, FLAG_UNREGISTER);
    }
}

fn rseq(area: &'static Area, flags: i32) -> Result<(), u16> {
    // SAFETY: the C library's error number of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above. A handler that counts must leave the number as it was.
    let before = unsafe { *errno };
    // SAFETY: the area is 32 bytes, 32-byte aligned, and unregistered before its thread's memory goes.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rseq,
            core::ptr::from_ref(area),
            AREA_SIZE,
            flags,
            SIGNATURE,
        )
    };
    if result == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    let error = unsafe { errno.replace(before) };
    Err(error as u16)
}

/// The key whose destructor is [`at_thread_end`], made at the first call; 0 stands for none yet.
fn exit_key() -> Option<libc::pthread_key_t> {
    /// The key and one, so that 0 can mean none.
    static KEY: AtomicU32 = AtomicU32::new(0);
    // Acquire and release: a thread that finds the key may use it.
    if let Some(key) = KEY.load(Acquire).checked_sub(1) {
        return Some(key);
    }
    let mut key = 0;
    // SAFETY: the destructor has the right type and stays mapped, see pin.rs.
    if unsafe { libc::pthread_key_create(&mut key, Some(at_thread_end)) } != 0 {
        return None;
    }
    // glibc allocates memory to set a key beyond its first 32, which a signal handler must not do.
    if cfg!(target_env = "gnu") && key >= 32 {
        delete(key);
        return None;
    }
    match KEY.compare_exchange(0, key + 1, Release, Acquire) {
        Ok(_) => Some(key),
        Err(earlier) => {
            delete(key);
            earlier.checked_sub(1)
        }
    }
}

fn delete(key: libc::pthread_key_t) {
    // SAFETY: made by us and given to nobody.
    unsafe { libc::pthread_key_delete(key) };
}

/// All signals blocked while it lives.
struct Masked(libc::sigset_t);

impl Masked {
    fn all() -> Self {
        // SAFETY: both sets are plain data that the calls fill; neither can fail with these operands.
        unsafe {
            let mut all = core::mem::zeroed();
            let mut before = core::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            Masked(before)
        }
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // SAFETY: the set that was in force before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}
