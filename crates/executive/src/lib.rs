//! The STREAMS executive, which knows of no descriptor: what runs modules and drivers.
//!
//! ```text
//!   ddi    message blocks and queues, with the C layouts of <sys/stream.h>, and the routines of the DDI/DKI on them
//!   exec   perimeters, the scheduler, queue pairs put in and taken out, modules and devices, timers
//! ```

pub mod ddi;
pub mod exec;
