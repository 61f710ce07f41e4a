//! Threads that wait in a queue: parking_lot_core's, or a model of it for loom.
//!
//! What is relied on: `validate`, the filter and the callbacks of one key run one after the other, since they hold the
//! lock of its queue; and a thread is in the queue from a `validate` that returned true until it is woken or has timed out.

#[cfg(not(loom))]
pub(crate) use parking_lot_core::{
    FilterOp, ParkResult, ParkToken, UnparkResult, UnparkToken, park, unpark_filter, unpark_one,
};

#[cfg(loom)]
pub(crate) use model::{
    FilterOp, ParkResult, ParkToken, UnparkResult, UnparkToken, park, unpark_filter,
};

#[cfg(loom)]
mod model {
    #![allow(unsafe_code)]
    use std::collections::VecDeque;
    use std::time::Instant;

    use loom::sync::{Arc, Condvar, Mutex};
    pub(crate) use parking_lot_core::{FilterOp, ParkResult, ParkToken, UnparkToken};

    /// As parking_lot_core's, which cannot be made from outside.
    #[derive(Debug, Default)]
    pub(crate) struct UnparkResult {
        pub(crate) unparked_threads: usize,
        pub(crate) have_more_threads: bool,
    }

    struct Waiter {
        key: usize,
        token: ParkToken,
        woken: Arc<(Mutex<Option<UnparkToken>>, Condvar)>,
    }

    loom::lazy_static! {
        static ref QUEUE: Mutex<VecDeque<Waiter>> = Mutex::new(VecDeque::new());
    }

    pub(crate) unsafe fn park(
        key: usize,
        validate: impl FnOnce() -> bool,
        before_sleep: impl FnOnce(),
        _timed_out: impl FnOnce(usize, bool),
        token: ParkToken,
        _timeout: Option<Instant>,
    ) -> ParkResult {
        let woken = Arc::new((Mutex::new(None), Condvar::new()));
        {
            let mut queue = QUEUE.lock().unwrap();
            if !validate() {
                return ParkResult::Invalid;
            }
            queue.push_back(Waiter {
                key,
                token,
                woken: Arc::clone(&woken),
            });
        }
        before_sleep();
        let mut token = woken.0.lock().unwrap();
        loop {
            if let Some(token) = token.take() {
                return ParkResult::Unparked(token);
            }
            token = woken.1.wait(token).unwrap();
        }
    }

    pub(crate) unsafe fn unpark_filter(
        key: usize,
        mut filter: impl FnMut(ParkToken) -> FilterOp,
        callback: impl FnOnce(UnparkResult) -> UnparkToken,
    ) {
        let mut queue = QUEUE.lock().unwrap();
        let (mut result, mut chosen, mut at) = (UnparkResult::default(), Vec::new(), 0);
        while at < queue.len() {
            if queue[at].key != key {
                at += 1;
                continue;
            }
            match filter(queue[at].token) {
                FilterOp::Unpark => chosen.extend(queue.remove(at)),
                FilterOp::Skip => {
                    result.have_more_threads = true;
                    at += 1;
                }
                FilterOp::Stop => {
                    result.have_more_threads = true;
                    break;
                }
            }
        }
        result.unparked_threads = chosen.len();
        let token = callback(result);
        for waiter in chosen {
            *waiter.woken.0.lock().unwrap() = Some(token);
            waiter.woken.1.notify_one();
        }
    }
}
