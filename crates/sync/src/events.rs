//! What happens to locks, counted if somebody wants to know.

/// What can happen to an [`RwSem`](crate::RwSem). The names are those under which the kernel counts, as far as it has them.
///
/// At rest: attempts are successes and failures, `rlock` and `rlock_fail` are all readers that did not get the lock at once,
/// and whoever slept was woken or gave up waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each has its text in lock_events!")]
pub enum Event {
    Rtrylock,
    RtrylockRetry,
    RtrylockFail,
    Wtrylock,
    WtrylockFail,
    RlockSteal,
    Rlock,
    RlockFail,
    RlockHandoff,
    Wlock,
    WlockFail,
    WlockHandoff,
    OptRlock,
    OptWlock,
    OptFail,
    SleepReader,
    SleepWriter,
    WakeReader,
    WakeWriter,
    SleepTimeout,
    Handoff,
}

/// Counts the events of a class of locks, or none. Made by [`lock_events!`](crate::lock_events).
pub trait Events: 'static {
    /// Whether anything is counted.
    const COUNTS: bool;
    /// Counts one.
    fn count(event: Event);
    /// Counts several.
    fn add(event: Event, n: u64);
}

/// Counts nothing, and is no code.
#[derive(Debug)]
pub struct NoEvents;

impl Events for NoEvents {
    const COUNTS: bool = false;
    #[inline(always)]
    fn count(_: Event) {}
    #[inline(always)]
    fn add(_: Event, _: u64) {}
}

/// Declares a class of locks whose events are counted under a name: `countersink show` shows them while the program runs.
///
/// ```
/// use countersink_sync::rwsem::{DefaultTryRead, RawRwSem};
/// use countersink_sync::lock_api::RwLock;
///
/// countersink_sync::lock_events! {
///     /// What happens to the locks of the table.
///     pub TABLE_LOCK: TableLock = "table_lock"
/// }
///
/// let table: RwLock<RawRwSem<DefaultTryRead, TableLock>, u32> = RwLock::new(1);
/// assert_eq!(*table.try_read().expect("it is free"), 1);
/// assert_eq!(TABLE_LOCK.read()[0], ("table_lock_rtrylock", 1));
/// ```
///
/// Locks of different classes are told apart by the names of their classes; all locks of one class count together. Each event
/// is a [`Counter`](countersink::Counter): about as long as an unprotected addition.
#[macro_export]
macro_rules! lock_events {
    ($(#[$attribute:meta])* $visibility:vis $name:ident: $class:ident = $group:literal $(,)?) => {
        $crate::lock_events! {
            @events $(#[$attribute])* $visibility $name: $class = $group;
            /// Attempts to read without waiting
            rtrylock Rtrylock,
            /// Times that such an attempt was repeated, as others came and went
            rtrylock_retry RtrylockRetry,
            /// Attempts to read that failed
            rtrylock_fail RtrylockFail,
            /// Attempts to write without waiting
            wtrylock Wtrylock,
            /// Attempts to write that failed
            wtrylock_fail WtrylockFail,
            /// Readers that came in past others who were waiting
            rlock_steal RlockSteal,
            /// Readers that got the lock after they had not got it at once
            rlock Rlock,
            /// Readers that gave up waiting
            rlock_fail RlockFail,
            /// Readers that the lock was handed to
            rlock_handoff RlockHandoff,
            /// Writers that got the lock after they had not got it at once
            wlock Wlock,
            /// Writers that gave up waiting
            wlock_fail WlockFail,
            /// Writers that the lock was handed to
            wlock_handoff WlockHandoff,
            /// Readers that got the lock while they span
            opt_rlock OptRlock,
            /// Writers that got the lock while they span
            opt_wlock OptWlock,
            /// Times that spinning was given up
            opt_fail OptFail,
            /// Times that a reader went to sleep
            sleep_reader SleepReader,
            /// Times that a writer went to sleep
            sleep_writer SleepWriter,
            /// Times that a sleeping reader was woken
            wake_reader WakeReader,
            /// Times that a sleeping writer was woken
            wake_writer WakeWriter,
            /// Times that a sleeper woke by itself: it had slept too long, or gave up
            sleep_timeout SleepTimeout,
            /// Times that a sleeper had waited too long, and asked that the lock be handed over
            handoff Handoff,
        }
    };
    (
        @events $(#[$attribute:meta])* $visibility:vis $name:ident: $class:ident = $group:literal;
        $($(#[doc = $help:literal])+ $event:ident $variant:ident),+ $(,)?
    ) => {
        $crate::countersink::event_group! {
            $(#[$attribute])*
            $visibility static $name: $class = $group { $($(#[doc = $help])+ $event),+ }
        }

        impl $crate::Events for $class {
            const COUNTS: bool = true;

            #[inline(always)]
            fn count(event: $crate::Event) {
                match event {
                    $($crate::Event::$variant => $name.$event.inc(),)+
                    _ => {}
                }
            }

            #[inline(always)]
            fn add(event: $crate::Event, n: u64) {
                match event {
                    $($crate::Event::$variant => $name.$event.add(n),)+
                    _ => {}
                }
            }
        }
    };
}
