//! The command as its users meet it. One program, because each links for itself.

mod bench;
mod doctor;
mod installation;
mod printing;
mod run;
