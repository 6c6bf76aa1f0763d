//! What a session may do: all of it where the program's own user is the one who asks, less where others come in from outside.

use crate::error::{Error, Result};

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Change rows, tables and settings of the database.
    pub writes: bool,
    /// Read and write files of the machine it runs on, with COPY.
    pub host_files: bool,
}

impl Rights {
    /// Whatever there is to do.
    pub const ALL: Rights = Rights { writes: true, host_files: true };

    pub(crate) fn to_write(self) -> Result<()> {
        match self.writes {
            true => Ok(()),
            false => Err(Error::Misuse("this user is a reader, who changes nothing".into())),
        }
    }

    /// PUBLISH writes folders of the machine, and tells other machines of a table.
    pub(crate) fn to_publish(self) -> Result<()> {
        self.to_write()?;
        match self.host_files {
            true => Ok(()),
            false => Err(Error::NotSupported("PUBLISH by users who come in from outside".into())),
        }
    }

    /// A published table is read from a folder of this machine, or from another one that this one reaches; so is a cloud.
    pub(crate) fn to_reach_out(self) -> Result<()> {
        self.to_write()?;
        match self.host_files {
            true => Ok(()),
            false => Err(Error::NotSupported(
                "servers and clouds that users name who come in from outside: whoever runs the server says where they are".into(),
            )),
        }
    }

    pub(crate) fn to_host_files(self) -> Result<()> {
        match self.host_files {
            true => Ok(()),
            false => Err(Error::NotSupported("COPY with files of the server: use STDIN and STDOUT".into())),
        }
    }
}
