//! `PercpuRwSem` in a process without sections: an `RwSem`, which says so. A program of its own, since what a process counts by is
//! decided once.
#![cfg(not(loom))]

use countersink_percpu::{FenceError, Mechanism};
use countersink_sync::{PercpuRwSem, percpu};

static LOCK: PercpuRwSem<[u64; 2]> = PercpuRwSem::new([0; 2]);
const THREADS: usize = 4;
const OPERATIONS: u64 = 20_000;

#[test]
fn without_sections_it_is_an_rwsem() {
    // Where there are none anyway, nothing is to be asked for.
    let _ = countersink_percpu::request(Mechanism::LockedLanes);
    let reason = percpu::availability().expect_err("there are no sections");
    assert!(matches!(reason, FenceError::NoSections(_)), "{reason}");
    println!("{reason}");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..OPERATIONS {
                    if number % 4 == thread as u64 {
                        let mut words = LOCK.write();
                        words[0] += 1;
                        words[1] += 1;
                    } else if number % 4 == 3 {
                        let words = LOCK.try_read();
                        assert!(words.is_none_or(|words| words[0] == words[1]));
                    } else {
                        let words = LOCK.read();
                        assert_eq!(words[0], words[1]);
                    }
                }
            });
        }
    });
    assert_eq!(*LOCK.read(), [OPERATIONS; 2]);
    assert!(!LOCK.is_locked());
    assert!(format!("{LOCK:?}").contains("20000"));
}
