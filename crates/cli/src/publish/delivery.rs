//! What is published, brought to whoever serves it.

use std::path::PathBuf;

use counterfoil::Error;
use counterfoil::publishing::{Account, Network, TableLedger, Target, VerifierPage};
use counterfoil_publish::Publication;

use super::authorities;
use crate::arguments::{Delivery, Owned};
use crate::failure::{Result, misuse};
use crate::terminal::{self, Working};

/// Who is told, and how they are called. They are known before anything is signed.
pub struct Recipients {
    targets: Vec<(String, Target)>,
    network: Network,
}

impl Recipients {
    /// A folder, and others by their addresses.
    pub fn of(out: Option<&PathBuf>, to: &[String], delivery: &Delivery) -> Result<Self> {
        let folder = out.map(|out| (out.display().to_string(), Target::Folder(out.clone())));
        let mut targets = Vec::from_iter(folder);
        for address in to {
            let target = Target::parse(address)?;
            if matches!(target, Target::Folder(_)) {
                let refused = misuse("a folder is not told over a network").at(address);
                return Err(refused.advise("name it with --out").into());
            }
            targets.push((target.to_string(), target));
        }
        let mut recipients = Self { targets, network: network(delivery)? };
        recipients.look_at_the_key()?;
        Ok(recipients)
    }

    /// Those that a command on keys names.
    pub fn of_owned(owned: &Owned) -> Result<Self> {
        Self::of(owned.out.as_ref(), &owned.to, &owned.delivery)
    }

    /// A key for buckets is there before anything is signed, and read once.
    fn look_at_the_key(&mut self) -> Result<()> {
        let is_wanted = self.targets.iter().any(|(_, target)| matches!(target, Target::Bucket(_)));
        if is_wanted && self.network.account.is_none() {
            self.network.account = Some(Account::from_environment().map_err(Error::from)?);
        }
        Ok(())
    }

    /// Whether nobody is told.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Where readers find it: the first of those who are told.
    pub fn server(&self) -> Result<String> {
        match self.targets.first() {
            Some((_, target)) => Ok(target.server(&self.network)?),
            None => Ok(String::new()),
        }
    }

    /// Brings each of them up to date. One that cannot be told keeps nobody else from being told: a mirror that is silent would hold
    /// back a revocation from all behind it.
    pub fn deliver(&self, publication: &mut Publication<TableLedger>, place: &str) -> Result<()> {
        let mut failures: Vec<Error> = Vec::new();
        for (name, target) in &self.targets {
            let delivered = {
                let _working = Working::begin(if matches!(target, Target::Folder(_)) { "writing" } else { "sending" });
                target.deliver(publication, &self.network, &|| false).map_err(|error| error.at(place))
            };
            match delivered {
                Ok(delivered) => terminal::done(format_args!("{name}: {delivered}")),
                Err(error) => failures.push(error),
            }
        }
        self.name_the_page(publication);
        let failed = failures.len();
        let Some(last) = failures.pop() else { return Ok(()) };
        for failure in failures {
            terminal::note(failure);
        }
        let told = self.targets.len() - failed;
        if told > 0 {
            terminal::note(format_args!("{told} of {} were told", self.targets.len()));
        }
        Err(last.into())
    }

    /// Says how readers are to check the page, where one goes out.
    fn name_the_page(&self, publication: &Publication<TableLedger>) {
        if let Some(page) = &self.network.page {
            let table = &publication.definition().name;
            terminal::done(format_args!("index.html is the verifier's page, SHA-256 {}: tell readers", page.sha256()));
            terminal::done(format_args!("link to it with: #owner={}&table={}", publication.owner(), in_a_link(table)));
        }
    }
}

fn network(delivery: &Delivery) -> Result<Network> {
    let account = delivery.s3_secret_file.as_ref().map(Account::from_file).transpose().map_err(Error::from)?;
    let page = delivery.page.as_ref().map(VerifierPage::from_file).transpose().map_err(Error::from)?;
    Ok(Network { authorities: authorities(&delivery.reach)?, account, page })
}

/// A table's name as the part behind `#` of an address has it.
fn in_a_link(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let escape = |byte: u8| if plain(byte) { char::from(byte).into() } else { format!("%{byte:02X}") };
    name.bytes().map(escape).collect()
}
