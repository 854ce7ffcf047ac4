//! The arms of users: commands before each program that is run.

pub mod user;
