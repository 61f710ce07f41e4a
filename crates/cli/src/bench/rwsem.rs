//! What `bench rwsem` takes besides, and the instructions that it shows.

use clap::{Args, ValueEnum};
use countersink_experiments::rwsem::{Op, Work, disassembly};

/// What `bench rwsem` takes besides.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct LockOptions {
    /// What is done to the locks of `rwsem`; by default all but try-write
    #[arg(long, value_name = "OP,...", value_delimiter = ',')]
    op: Vec<OpName>,

    /// Readers among the operations of `rwsem --op mixed`, in percent
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=100))]
    readers: Vec<u32>,

    /// Additions that threads of `rwsem` do with the lock, each of which needs the one before
    #[arg(long, value_name = "N", default_value_t = 0)]
    load: u32,

    /// Additions that they do without it, between one time and the next
    #[arg(long, value_name = "N", default_value_t = 0)]
    gap: u32,

    /// Show the instructions of try_read before and after the series of `rwsem`
    #[arg(long)]
    pub(super) disasm: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OpName {
    TryRead,
    Read,
    Write,
    TryWrite,
    Mixed,
}

/// The shares of readers of `mixed`, unless others are asked for.
const READERS: [u32; 2] = [95, 50];

impl LockOptions {
    pub(super) fn ops(&self) -> Vec<Op> {
        if self.op.is_empty() && self.readers.is_empty() {
            return Op::DEFAULT.to_vec();
        }
        let shares = match self.readers.is_empty() {
            true => READERS.to_vec(),
            false => self.readers.clone(),
        };
        // Who only says how many read means that they are mixed.
        let names = match self.op.is_empty() {
            true => vec![OpName::Mixed],
            false => self.op.clone(),
        };
        let ops = names.into_iter().flat_map(|name| match name {
            OpName::TryRead => vec![Op::TryRead],
            OpName::Read => vec![Op::Read],
            OpName::Write => vec![Op::Write],
            OpName::TryWrite => vec![Op::TryWrite],
            OpName::Mixed => shares.iter().copied().map(Op::Mixed).collect(),
        });
        ops.fold(Vec::new(), |mut all, op| {
            if !all.contains(&op) {
                all.push(op);
            }
            all
        })
    }

    pub(super) fn work(&self) -> Work {
        Work {
            load: self.load,
            gap: self.gap,
        }
    }
}

/// The two forms of `try_read`, as instructions.
pub(super) fn render_disassembly() -> String {
    let mut text = "\ntry_read before and after, from this program's own code\n".to_owned();
    for (what, address) in disassembly::functions() {
        text += &match super::disassembly::function(address) {
            Ok(lines) => {
                let bytes: usize = lines.iter().map(|line| line.bytes).sum();
                let instructions = lines
                    .iter()
                    .map(|line| format!("  {:4x}: {}\n", line.at, line.text));
                format!(
                    "\n{what}: {bytes} bytes\n{}",
                    instructions.collect::<String>()
                )
            }
            Err(reason) => format!("\n{what}: not known: {reason}\n"),
        };
    }
    text
}
