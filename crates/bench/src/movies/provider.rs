//! Providers that run as processes of their own: this program once more.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use counterfoil_provider::{Limits, Tokens};

use crate::Failure;

/// A provider that runs as a process.
pub struct Running {
    child: Child,
    /// Its address, with its pin.
    pub url: String,
    /// The file of the client's token.
    pub token: String,
}

impl Running {
    /// Starts one over a folder, which is made.
    pub fn start(folder: &Path) -> Result<Self, Failure> {
        std::fs::create_dir(folder)?;
        let file = folder.join("token-of-the-client");
        let token = Tokens::in_folder(folder).add("bench", Duration::from_secs(86_400))?;
        std::fs::write(&file, token.reveal())?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([super::PROVIDER.as_ref(), folder.as_os_str()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut url)?;
        let token = std::path::absolute(file)?.display().to_string();
        Ok(Self { child, url: url.trim().to_owned(), token })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs as a provider until nobody has its input open any more.
pub fn provide(folder: &Path) -> Result<(), Failure> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let options =
        counterfoil_provider::Options { folder: folder.to_owned(), listen, limits: Limits::default(), note: |_| () };
    counterfoil_provider::serve(options, |url| {
        println!("{url}");
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    })?;
    Ok(())
}
