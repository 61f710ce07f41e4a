//! Running the commands.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use crate::names;

/// The variable that tells the library where to count.
const REGION: &str = "COUNTERSINK_REGION";

/// A phase: what it is called, and what it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) run: Run,
}

/// What a phase runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// A line for `sh -c`.
    Shell(String),
    /// A program and its arguments.
    Program(Vec<OsString>),
}

impl Phase {
    /// `NAME=CMD`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, line)) if !name.trim().is_empty() && !line.trim().is_empty() => Ok(Phase {
                name: name.trim().to_owned(),
                run: Run::Shell(line.to_owned()),
            }),
            _ => Err("not of the form NAME=COMMAND".to_owned()),
        }
    }

    /// The command, which is its own name.
    pub(super) fn program(command: &[OsString]) -> Self {
        let words = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned());
        Phase {
            name: words.collect::<Vec<_>>().join(" "),
            run: Run::Program(command.to_vec()),
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// Its exit status; 128 and the signal where one killed it, as shells say it.
    pub(super) status: u8,
    /// How long it took.
    pub(super) took: Duration,
}

/// Runs a command to its end, with the region that its processes are to count in.
///
/// # Errors
/// The exit status that shells use for a command that cannot be started, and the reason.
pub(super) fn run(run: &Run, region: &Path) -> Result<Ended, (u8, String)> {
    let (program, arguments): (&OsStr, &[OsString]) = match run {
        Run::Shell(line) => ("sh".as_ref(), &["-c".into(), line.into()]),
        Run::Program(command) => match command.split_first() {
            Some((program, arguments)) => (program, arguments),
            None => return Err((2, "there is no command".to_owned())),
        },
    };
    let began = Instant::now();
    let ended = Command::new(program)
        .args(arguments)
        .env(REGION, region)
        .status();
    match ended {
        Ok(ended) => Ok(Ended {
            status: status(ended),
            took: began.elapsed(),
        }),
        Err(error) => {
            let found = error.kind() != std::io::ErrorKind::NotFound;
            let program = names::escaped(&program.to_string_lossy());
            Err((
                126 + u8::from(!found),
                format!("cannot run {program}: {error}"),
            ))
        }
    }
}

fn status(ended: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    let status = match signal {
        Some(signal) => 128 + signal,
        None => ended.code().unwrap_or(1),
    };
    u8::try_from(status & 0xff).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Result<Ended, (u8, String)> {
        run(&Run::Shell(line.to_owned()), Path::new("/nowhere"))
    }

    #[test]
    fn statuses_are_those_of_shells() {
        for (line, status) in [
            ("true", 0),
            ("exit 7", 7),
            ("kill -9 $$", 137),
            ("kill -TERM $$", 143),
        ] {
            assert_eq!(shell(line).expect("it runs").status, status, "{line}");
        }
        assert_eq!(
            shell("test $COUNTERSINK_REGION = /nowhere")
                .expect("it runs")
                .status,
            0
        );
        let program = |name: &str| run(&Run::Program(vec![name.into()]), Path::new("/nowhere"));
        assert_eq!(program("/no/such/program").expect_err("nothing").0, 127);
        assert_eq!(program("/").expect_err("a folder").0, 126);
    }

    #[test]
    fn phases_have_names() {
        let phase = Phase::parse("bootup=A=1 ./server --once").expect("a phase");
        assert_eq!(phase.name, "bootup");
        assert_eq!(phase.run, Run::Shell("A=1 ./server --once".to_owned()));
        for bad in ["", "x", "=x", "x=", " = "] {
            assert!(Phase::parse(bad).is_err(), "{bad}");
        }
        let command = ["make".into(), "-j4".into()];
        assert_eq!(Phase::program(&command).name, "make -j4");
    }
}
