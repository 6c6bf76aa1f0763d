//! The module of the verifier's page, without a page: asked, led on, lied to.

mod asked;
mod called;
mod corrupted;
mod world;
