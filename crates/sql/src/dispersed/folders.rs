//! Folders that are named by their addresses where clouds have names (the paper's Listing 2: `USE CLOUDS 'file:///securefolder'`): each is
//! declared as a cloud, if none is there, and has a name from then on.

use super::clouds::{self, Cloud, whole_url};
use super::define::all_are_there;
use crate::error::Result;
use crate::session::Session;

/// What an address of a folder begins with.
pub(super) const FILE: &str = "file://";

impl Session {
    /// Names of clouds, apart by commas, with the name of the cloud that is there for the address of each folder.
    pub(super) fn with_folders_named(&mut self, said: &str) -> Result<String> {
        // What cannot be said in the end declares nothing.
        let others = said.split(',').map(str::trim).filter(|one| !one.starts_with(FILE)).map(str::to_lowercase);
        all_are_there(&self.view()?, others)?;
        let named = said.split(',').map(str::trim).map(|one| match one.strip_prefix(FILE) {
            Some(path) => self.named_at(path),
            None => Ok(one.to_owned()),
        });
        Ok(named.collect::<Result<Vec<String>>>()?.join(", "))
    }

    /// The cloud at a folder, which is declared if there is none.
    fn named_at(&mut self, path: &str) -> Result<String> {
        // Whoever comes in from outside is not told which folders there are.
        self.rights.to_reach_out()?;
        let url = whole_url(&self.engine().dispersed, &format!("dir:{path}"))?;
        let all = clouds::all(&self.view()?)?;
        if let Some(there) = all.iter().find(|cloud| cloud.url == url) {
            return Ok(there.name.clone());
        }
        let name = free_name(path, &all);
        let told = format!("cloud {name} is declared, at {url}");
        let cloud = Cloud { name: name.clone(), url, secret_file: None };
        self.create_cloud(cloud, false)?;
        self.notices.push(told);
        Ok(name)
    }
}

/// What no cloud is called: as the folder is, with a number behind it if that is taken.
fn free_name(path: &str, all: &[Cloud]) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or("").to_lowercase();
    let name: String = last.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect();
    let name = if name.is_empty() { "folder".to_owned() } else { name };
    let is_free = |name: &String| all.iter().all(|cloud| cloud.name != *name);
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    // There are fewer clouds than numbers.
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_called_as_it_is() {
        let cloud = |name: &str| Cloud { name: name.into(), url: "dir:/x".into(), secret_file: None };
        for (path, taken, name) in [
            ("/securefolder", &[][..], "securefolder"),
            ("/mnt/Secure Share/", &["a"], "secure_share"),
            ("/mnt/a", &["a", "a_2"], "a_3"),
            ("/", &[], "folder"),
            ("/mnt/Übung", &[], "übung"),
        ] {
            let all: Vec<Cloud> = taken.iter().map(|name| cloud(name)).collect();
            assert_eq!(free_name(path, &all), name);
        }
    }
}
