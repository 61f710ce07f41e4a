//! The code of functions, decoded along the way that is taken when nothing comes in between.
#![allow(unsafe_code)]

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter};

/// Longer than any probe. What lies behind a probe is decoded but not looked at.
const MOST_BYTES: usize = 512;

/// The code of a function up to its return.
pub(crate) struct Code {
    pub(crate) name: &'static str,
    pub(crate) instructions: Vec<Instruction>,
}

impl Code {
    /// Decodes without taking conditional branches.
    pub(crate) fn of(name: &'static str, function: *const ()) -> Self {
        // SAFETY: the text of this program goes on for longer than that: the probes are not at its
        // end, behind them lies the standard library.
        let bytes = unsafe { core::slice::from_raw_parts(function.cast::<u8>(), MOST_BYTES) };
        let decoder = Decoder::with_ip(64, bytes, function as u64, DecoderOptions::NONE);
        let mut instructions = Vec::new();
        for instruction in decoder {
            let flow = instruction.flow_control();
            if flow == FlowControl::Return {
                return Code { name, instructions };
            }
            instructions.push(instruction);
            if matches!(
                flow,
                FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
            ) {
                break;
            }
        }
        Code { name, instructions }.fail("no return on the straight way")
    }

    pub(crate) fn count(&self, is: impl Fn(&Instruction) -> bool) -> usize {
        self.instructions.iter().filter(|i| is(i)).count()
    }

    pub(crate) fn branches(&self) -> usize {
        self.count(|i| i.flow_control() == FlowControl::ConditionalBranch)
    }

    pub(crate) fn length(&self) -> usize {
        self.instructions.len()
    }

    /// Locked instructions: an `xchg` with memory locks without saying so.
    pub(crate) fn locked(&self) -> usize {
        self.count(|i| {
            let memory = (0..i.op_count()).any(|op| i.op_kind(op) == iced_x86::OpKind::Memory);
            i.has_lock_prefix() || (memory && i.mnemonic() == iced_x86::Mnemonic::Xchg)
        })
    }

    /// Nothing that waits or goes elsewhere: no call, so many locked instructions, nothing like `syscall`.
    pub(crate) fn assert_straight(&self, locked: usize) {
        let elsewhere = |i: &Instruction| {
            !matches!(
                i.flow_control(),
                FlowControl::Next | FlowControl::ConditionalBranch
            )
        };
        if self.count(elsewhere) > 0 {
            self.fail("it calls or jumps");
        }
        if self.locked() != locked {
            self.fail("it locks more or less often than it should");
        }
    }

    pub(crate) fn assert_at_most(&self, instructions: usize, branches: usize) {
        if self.length() > instructions {
            self.fail(&format!("more than {instructions} instructions"));
        }
        if self.branches() > branches {
            self.fail(&format!("more than {branches} branches"));
        }
    }

    pub(crate) fn listing(&self) -> String {
        let mut formatter = IntelFormatter::new();
        let mut text = format!(
            "{}: {} instructions and ret, {} branches not taken\n",
            self.name,
            self.length(),
            self.branches()
        );
        for instruction in &self.instructions {
            text.push_str("    ");
            formatter.format(instruction, &mut text);
            text.push('\n');
        }
        text
    }

    pub(crate) fn fail(&self, why: &str) -> ! {
        panic!("{why}: {}", self.listing())
    }
}
