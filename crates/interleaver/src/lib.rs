//! Explores every interleaving of a small protocol over a few virtual CPUs: which thread runs where
//! at each step, every preemption and migration, and within a budget every signal and kill.
//!
//! Thread-model checkers know threads. Per-CPU protocols also need CPUs: a restartable sequence
//! (rseq, here a *critical section*) is atomic only against what happens on its own CPU, and only
//! because the kernel aborts it. A protocol is written as a state machine ([`Protocol`]); one step
//! is one access to memory. [`Explorer::explore`] visits each reachable state once, breadth first,
//! checks the protocol's laws there, and answers with a [`Report`], or with a [`Failure`] that
//! holds a shortest trace from the start to the first state at fault.
//!
//! # What is modelled
//!
//! - At most one thread runs on a CPU at a time. At each step any live thread may be the next to
//!   run, on any CPU that it is not kept from ([`Explorer::pin`]).
//! - A section that is preempted, migrated or signalled before its commit has run is aborted: its
//!   registers are lost and its thread goes on at the abort point. Once the commit has run, the
//!   section is over and nothing aborts it, as in Linux.
//! - A signal pushes a handler's frame onto a thread. Handlers run operations too, and are
//!   signalled in their turn.
//! - A kill (SIGKILL) stops a thread for good, between any two steps. Memory stays as it is.
//! - A fence (`MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`) aborts the sections of its own process, one
//!   CPU after the other ([`Step::Fence`]).
//! - Deadlock: live threads, and none of them can step. On request also a cycle: threads that can
//!   step for ever ([`Explorer::forbid_cycles`]).
//!
//! # What is not modelled
//!
//! **Weak memory.** Steps are sequentially consistent: a store is seen by every step after it. A
//! protocol that holds here still needs the argument for its acquire and release orderings, which
//! is made where each ordering is used, and its loom tests where there are some.
//!
//! Nor time, fairness, priorities, signal masks, or what the compiler and the assembler do.
//! The result holds for the CPUs, threads and budgets explored, and for no others.
//!
//! # Example
//!
//! Two threads bump the counter of the CPU that they are on: load, then store. Inside a section
//! no update is lost. With the same two steps outside one, the explorer finds how one is.
//!
//! ```
//! use countersink_interleaver::{Explorer, Kind, Place, Protocol, Step, World};
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! enum Pc {
//!     Begin,
//!     Load,
//!     Store { lane: usize, value: u32 },
//!     Done,
//! }
//!
//! struct Bump {
//!     restartable: bool,
//! }
//!
//! impl Protocol for Bump {
//!     type Memory = [u32; 2]; // one lane for each CPU
//!     type Frame = Pc;
//!
//!     fn start(&self) -> (Self::Memory, Vec<Pc>) {
//!         ([0, 0], vec![Pc::Begin, Pc::Begin])
//!     }
//!     fn step(&self, at: Place, pc: &mut Pc, lanes: &mut [u32; 2]) -> Step {
//!         *pc = match *pc {
//!             Pc::Begin => Pc::Load,
//!             Pc::Load => Pc::Store { lane: at.cpu, value: lanes[at.cpu] },
//!             Pc::Store { lane, value } => {
//!                 lanes[lane] = value + 1;
//!                 Pc::Done
//!             }
//!             Pc::Done => return Step::Finished,
//!         };
//!         Step::Ran
//!     }
//!     fn in_section(&self, pc: &Pc) -> bool {
//!         self.restartable && matches!(pc, Pc::Load | Pc::Store { .. })
//!     }
//!     fn abort(&self, pc: &mut Pc) {
//!         *pc = Pc::Begin;
//!     }
//!     fn check_final(&self, world: &World<[u32; 2], Pc>) -> Result<(), String> {
//!         match world.memory.iter().sum() {
//!             2 => Ok(()),
//!             n => Err(format!("{n} counted, of 2")),
//!         }
//!     }
//! }
//!
//! let report = Explorer::new(2).explore(&Bump { restartable: true })?;
//! assert!(report.finals > 0);
//!
//! let lost = Explorer::new(2).explore(&Bump { restartable: false }).unwrap_err();
//! assert_eq!(lost.kind, Kind::Law);
//! assert_eq!(lost.message, "1 counted, of 2");
//! println!("{lost}"); // the steps that lead there, one a line
//! # Ok::<(), countersink_interleaver::Failure>(())
//! ```

mod cycle;
mod explorer;
mod protocol;
mod report;
mod world;

pub use explorer::Explorer;
pub use protocol::{Place, Protocol, Step};
pub use report::{Failure, Kind, Report};
pub use world::{Life, Thread, World};
