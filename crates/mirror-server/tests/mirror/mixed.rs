//! What a mirror serves that puts together what was served at different times.

use counterfoil_mirror::wire::Standing;
use counterfoil_mirror::{MemoryShelf, reply};
use counterfoil_proof::bytes::Writer;

use crate::court::Moment;
use crate::files::Files;

/// A mirror that serves what moments say, each file by its own.
#[derive(Clone)]
pub struct Mixed {
    pub manifest: Vec<u8>,
    pub summaries: Vec<Vec<u8>>,
    pub standing: Standing,
    pub shelf: MemoryShelf,
}

impl Mixed {
    pub fn of(moment: &Moment) -> Self {
        let Moment { manifest, summaries, standing, shelf } = moment.clone();
        Self { manifest, summaries, standing, shelf }
    }

    pub fn served(&self, file: &str, question: &[u8]) -> Option<Vec<u8>> {
        match file {
            "manifest" => Some(self.manifest.clone()),
            "head" => Some(self.standing.to_bytes()),
            "answer" => reply(&mut self.shelf.clone(), question).ok(),
            "summaries/0" => {
                let mut writer = Writer::default();
                self.summaries.iter().for_each(|summary| {
                    writer.string(summary);
                });
                Some(writer.0)
            }
            _ => None,
        }
    }

    /// Writes it as files, whose head says what it says.
    pub fn write(&self, files: &mut Files, place: &str) {
        files.write(place, &self.shelf, &self.manifest, &self.summaries);
        files.stand(place, self.standing.last, self.standing.first);
    }
}
