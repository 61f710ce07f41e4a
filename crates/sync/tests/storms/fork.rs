//! After a fork each process has a lock of its own.
#![cfg(target_os = "linux")]
#![allow(unsafe_code)]

use super::{Lock, Locked, Twins, with_every_lock};

/// A child's lock is not its parent's: the child takes it while the parent has it again.
fn processes_do_not_share<L: Lock>() {
    let lock = Locked::<L>::new(Twins::default());
    for _ in 0..20 {
        lock.write().add();
        drop(lock.read());
        // SAFETY: the child uses this lock and ends; it allocates nothing.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let held = lock.try_read().is_some() && {
                let twins = lock.write();
                twins.add();
                lock.try_read().is_none() && twins.get().is_ok()
            };
            // SAFETY: no preconditions; without the test's own end.
            unsafe { libc::_exit(if held { 0 } else { 1 }) };
        }
        let guard = lock.write();
        let mut status = 0;
        // SAFETY: the child is ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "the child could not lock");
        drop(guard);
    }
    assert_eq!(lock.read().get(), Ok(20));
}

with_every_lock!(processes_do_not_share);

/// A child that was forked while other threads make and drop locks makes one of its own: it does not wait for memory that another thread
/// was about to take.
#[test]
fn a_child_makes_locks_of_its_own() {
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    type New = Locked<super::RawPercpuRwSem>;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    drop(New::new(Twins::default()).read());
                }
            });
        }
        for _ in 0..200 {
            // SAFETY: the child makes a lock, uses it, and ends.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                // SAFETY: no preconditions; a child that hangs is ended, and told.
                unsafe { libc::alarm(60) };
                let lock = New::new(Twins::default());
                lock.write().add();
                let is_right = lock.read().get() == Ok(1);
                // SAFETY: as above.
                unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
            }
            let mut status = 0;
            // SAFETY: the child is ours.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child hung or failed");
        }
        stop.store(true, Relaxed);
    });
}
