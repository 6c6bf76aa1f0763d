//! A program `ssh` that leads to a server of SFTP.
//!
//! It is the system's: keys, agents, host aliases and jumps are as the user has set them up, and who is asked for a password is nobody.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use counterfoil_disperse::Failure;
use russh_sftp::client::Config;
use russh_sftp::client::error::Error;
use russh_sftp::client::rawsession::RawSftpSession;
use russh_sftp::protocol::{Packet, StatusCode};
use tokio::io::{AsyncReadExt as _, join, sink};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::address::{Address, Place};
use crate::pace::Pace;

/// Bytes of a packet at most: four times what a server sends of a file at once, and what OpenSSH sends at most.
const PACKET_BYTES_MAX: u32 = 256 << 10;
/// What is kept of what the program complains of.
const COMPLAINT_BYTES_MAX: u64 = 4 << 10;
const COMPLAINT_LETTERS_MAX: usize = 200;
const CONNECT_SECONDS: u64 = 5;
/// How long a program that is at its end may take to say so.
const END_PATIENCE: Duration = Duration::from_millis(500);
const RENAME: &str = "posix-rename@openssh.com";
const SYNC: &str = "fsync@openssh.com";

/// A connection: closed when it is dropped, whatever the server says.
pub(super) struct Session {
    pub raw: RawSftpSession,
    program: Mutex<(Child, JoinHandle<String>)>,
    renames_over: bool,
    syncs: bool,
}

fn command(address: &Address, key_file: Option<&str>) -> Result<Command, Failure> {
    let Place::Sftp { user, host, port, known_hosts, .. } = &address.place else {
        return Err(Failure::Refused("this is not reached by ssh".into()));
    };
    let mut command = Command::new("ssh");
    // Nobody is asked, nobody unknown is trusted, and nothing of this machine is lent to the server.
    for option in
        ["BatchMode=yes", "StrictHostKeyChecking=yes", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no"]
    {
        command.arg("-o").arg(option);
    }
    // A connection of its own, which ends with it.
    for option in ["ControlMaster=no", "ControlPath=none", "PermitLocalCommand=no", "RequestTTY=no", "LogLevel=ERROR"] {
        command.arg("-o").arg(option);
    }
    command.arg("-o").arg(format!("ConnectTimeout={CONNECT_SECONDS}"));
    if let Some(file) = known_hosts {
        command
            .arg("-o")
            .arg(format!("UserKnownHostsFile=\"{}\"", unfolded(file)))
            .args(["-o", "GlobalKnownHostsFile=none"]);
    }
    if let Some(file) = key_file {
        command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(unfolded(Path::new(file)));
    }
    if let Some(port) = port {
        command.arg("-p").arg(port.to_string());
    }
    command.arg("-l").arg(user).args(["-s", "--"]).arg(host.trim_matches(['[', ']'])).arg("sftp");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Whoever stops this program at a terminal does not mean that one.
    command.process_group(0);
    Ok(command)
}

/// A path in which ssh finds nothing to fill in.
fn unfolded(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%%")
}

impl Session {
    pub async fn open(address: &Address, key_file: Option<&str>, patience: Duration) -> Result<Self, Failure> {
        let mut program = command(address, key_file)?.spawn().map_err(|error| {
            Failure::Unreachable(format!("the program ssh cannot be started ({error}): install OpenSSH's client"))
        })?;
        let (Some(input), Some(output), Some(complaints)) =
            (program.stdin.take(), program.stdout.take(), program.stderr.take())
        else {
            return Err(Failure::Unreachable("the program ssh has no pipes".into()));
        };
        let config = Config {
            max_packet_len: PACKET_BYTES_MAX,
            // Ours is shorter, and tells them apart.
            request_timeout_secs: patience.as_secs().saturating_mul(2).max(2),
            ..Config::default()
        };
        let raw = RawSftpSession::new_with_config(join(output, input), config);
        let complaint = tokio::spawn(complaint(complaints));
        let program = Mutex::new((program, complaint));
        let mut session = Self { raw, program, renames_over: false, syncs: false };
        match session.raw.init().await {
            Ok(version) => {
                session.renames_over = version.extensions.contains_key(RENAME);
                session.syncs = version.extensions.contains_key(SYNC);
                Ok(session)
            }
            Err(error) => Err(session.failure(error).await),
        }
    }

    /// What a request brings, if it does while there is time.
    pub async fn asks<T>(&self, pace: &Pace, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match pace.hold(asked).await? {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.failure(error).await),
        }
    }

    /// Why a request failed: the server says why, or the program is at its end, or what came made no sense.
    async fn failure(&self, error: Error) -> Failure {
        if let Error::Status(status) = &error {
            return refused(status.status_code, &status.error_message);
        }
        let mut program = self.program.lock().await;
        let (program, complaint) = &mut *program;
        match timeout(END_PATIENCE, program.wait()).await {
            Ok(_) => {
                let complaint = timeout(END_PATIENCE, complaint).await;
                ended(&complaint.ok().and_then(Result::ok).unwrap_or_default())
            }
            Err(_) => Failure::Malformed("what the server says does not fit what it was asked".into()),
        }
    }

    /// Has a file on a server's disk before it counts, where the server can.
    pub async fn sync(&self, handle: &str) -> Result<(), Error> {
        if self.syncs { self.raw.fsync(handle).await.map(drop) } else { Ok(()) }
    }

    /// Puts a file in another's place.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        if !self.renames_over {
            // What is there has the same name, so it is the same file, or a broken one. A cut between both leaves none, and the file is
            // written again: its rows were not told of yet.
            if_there(self.raw.remove(to).await)?;
            return self.raw.rename(from, to).await.map(drop);
        }
        let text = |path: &str| [&(path.len() as u32).to_be_bytes()[..], path.as_bytes()].concat();
        match self.raw.extended(RENAME, [text(from), text(to)].concat()).await? {
            Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
            Packet::Status(status) => Err(Error::Status(status)),
            _ => Err(Error::UnexpectedPacket),
        }
    }
}

/// Nothing there is no error.
pub(super) fn if_there<T>(done: Result<T, Error>) -> Result<Option<T>, Error> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Error::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(None),
        Err(error) => Err(error),
    }
}

/// A line of what somebody else says.
fn line(text: &str) -> String {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    last.chars().map(|letter| if letter.is_control() { '?' } else { letter }).take(COMPLAINT_LETTERS_MAX).collect()
}

fn refused(code: StatusCode, message: &str) -> Failure {
    let what = format!("{code:?} ({})", line(message));
    match code {
        StatusCode::NoConnection | StatusCode::ConnectionLost => Failure::Unreachable(what),
        StatusCode::BadMessage => Failure::Malformed(what),
        // A full disk has no word of its own there.
        _ => Failure::Refused(what),
    }
}

/// The program has ended: what it complained of says why.
fn ended(complaint: &str) -> Failure {
    if complaint.contains("Host key verification failed") || complaint.contains("IDENTIFICATION HAS CHANGED") {
        return Failure::Refused(
            "its host key is not among the known ones: look whether it is the right machine, and put its key \
                                 into known_hosts (ssh-keyscan)"
                .into(),
        );
    }
    if complaint.contains("Permission denied") {
        return Failure::Refused(format!("ssh: {}; secret_file names the key's file", line(complaint)));
    }
    match line(complaint) {
        nothing if nothing.is_empty() => Failure::Unreachable("ssh: the connection ended".into()),
        line => Failure::Unreachable(format!("ssh: {line}")),
    }
}

async fn complaint(mut complaints: ChildStderr) -> String {
    let mut kept = Vec::new();
    drop((&mut complaints).take(COMPLAINT_BYTES_MAX).read_to_end(&mut kept).await);
    // The rest is read as well: the program would wait for somebody to do so.
    drop(tokio::io::copy(&mut complaints, &mut sink()).await);
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{ended, refused};
    use counterfoil_disperse::Failure;
    use russh_sftp::protocol::StatusCode;

    #[test]
    fn what_ends_a_connection_is_told_apart() {
        assert!(
            matches!(ended("Host key verification failed.\r\n"), Failure::Refused(what) if what.contains("known_hosts"))
        );
        let denied = "me@example.com: Permission denied (publickey).\r\n";
        assert!(matches!(ended(denied), Failure::Refused(what) if what.contains("secret_file")));
        let refused_here = "ssh: connect to host example.com port 22: Connection refused\r\n";
        assert!(matches!(ended(refused_here), Failure::Unreachable(what) if what.contains("refused")));
        assert!(matches!(ended(""), Failure::Unreachable(_)));
        assert!(
            matches!(refused(StatusCode::Failure, "no\x1b[1m room"), Failure::Refused(what) if !what.contains('\x1b'))
        );
    }
}
