//! `demo`: the main job end to end, on real flights.
use crate::arguments::Demo;
use crate::context::Context;
use crate::failure::Result;

pub fn run(_: &Context, _: &Demo) -> Result<()> {
    Ok(())
}
