//! What somebody who was let in may do, as long as that holds.

use std::time::{Duration, Instant};

use counterfoil::{Result, Role, UserInfo, Users};

/// How long a user who is removed may go on.
const LOOKED: Duration = Duration::from_secs(1);

/// What somebody who was let in may do.
pub struct Pass {
    role: Role,
    /// Of a user; nobody else loses it.
    user: Option<(Users, UserInfo)>,
    looked: Instant,
}

impl Pass {
    /// Of whoever comes where nobody is asked.
    pub fn of_anybody() -> Self {
        Pass { role: Role::Writer, user: None, looked: Instant::now() }
    }

    /// Of a user who has shown that it is this one; none if it was removed meanwhile.
    ///
    /// # Errors
    /// Those of reading.
    pub fn of(users: Users, name: &str) -> Result<Option<Self>> {
        let user = users.find(name)?;
        Ok(user.map(|user| Pass { role: user.role, user: Some((users, user)), looked: Instant::now() }))
    }

    /// What may be done with it.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether the user is still the one that came in. It is looked at once in a second.
    ///
    /// # Errors
    /// Those of reading.
    pub fn holds(&mut self) -> Result<bool> {
        let Some((users, user)) = &self.user else { return Ok(true) };
        if self.looked.elapsed() < LOOKED {
            return Ok(true);
        }
        self.looked = Instant::now();
        Ok(users.find(&user.name)?.as_ref() == Some(user))
    }
}
