//! Sockets of the parent, in the child of a fork. An association by packets belongs to the process that has the stack it is in; so do
//! listening sockets and one-to-many sockets with associations. In a child such a socket is *remote*: each verb is a call to the owner.
//!
//! ```text
//!   owner: program, stack, sockets                     child
//!     serving  background     <-- presence (SEQPACKET) --    says by its end that the child is gone, and brings new lines
//!     owner    who has what   <-- lines (STREAM) ---------   verbs   requests and answers (wire), a line per call at a time (link)
//!                             --- bells (eventfd) -------->          what blocking calls and poll(2) wait at
//! ```
//!
//! The socket pair of the presence is made before the fork, so that nobody else can reach the owner, and a child that changes its user
//! still does. A child's own children get a presence by its call. Lines and presences are close-on-exec, but for the presence that an
//! [`exec`] passes on.
//!
//! A socket lives until the program and all others have closed it. An owner that ends before that leaves a [`keeper`]; one that is killed
//! takes its sockets along, and calls give ECONNRESET.

use std::cell::Cell;

use headwater_host::lifecycle::{self, End, Moment, Part};
use headwater_host::process;
use headwater_host::sync::Ordering;
use headwater_sctp_stack::stack;

use super::{Socket, face};

mod exec;
mod forking;
mod keeper;
mod link;
mod owner;
mod serving;
mod verbs;
#[doc(hidden)]
pub mod wire;

#[doc(hidden)]
pub use self::exec::inherit;
pub use verbs::Remote;

thread_local! {
    static NEVER_WAITS: Cell<bool> = const { Cell::new(false) };
}

/// No call of this thread may wait, whatever the socket says: it serves others.
#[inline]
pub fn never_waits() -> bool {
    NEVER_WAITS.with(Cell::get)
}

fn wait_never(on: bool) {
    NEVER_WAITS.with(|never| never.set(on));
}

fn has_left() -> bool {
    keeper::has_left()
}

/// Once, before anything asks for the stack, where the parts are told how the process ends.
pub fn start() {
    stack::is_watched();
    stack::look_after_forks();
    lifecycle::add(Part::SctpSockets, forking::before, forking::after);
    lifecycle::add_told(Part::SctpSockets, told);
    if let Some(text) = headwater_host::env::take(self::exec::VARIABLE) {
        inherit(&text);
    }
}

fn told(moment: &mut Moment) {
    match moment {
        Moment::Saving { here, variables } => self::exec::save(*here, variables),
        Moment::Exit => exiting(),
        Moment::Ending(how) => {
            face::tell_counts();
            ended(*how == End::Exec);
        }
        Moment::Counting => face::tell_counts(),
        Moment::Leaving => face::exiting(),
        Moment::Confining | Moment::Exec => {}
        Moment::Stays => keeper::stay(),
        Moment::Spawned => self::exec::spawned(),
    }
}

/// The process ends by exit(3): sockets before the stack.
fn exiting() {
    if !process::is_borrowed() {
        ended(false);
        let _ = std::panic::catch_unwind(face::exiting);
    }
    let _ = std::panic::catch_unwind(stack::exiting);
}

/// The process ends, or its image by an exec, before anything of it is let go.
fn ended(exec: bool) {
    let _ = std::panic::catch_unwind(|| {
        keeper::leave();
        if exec {
            self::exec::let_go();
        }
    });
}

/// The program's last descriptor of it is gone. True: that is all, since it is another process's, or others still have it. Ends of
/// associations that other processes hold too are let go without a word.
pub fn closing(socket: &Socket) -> bool {
    if let Some(remote) = socket.remote.get() {
        remote.close();
        return true;
    }
    if has_left() {
        return true;
    }
    if owner::SHARED.load(Ordering::Acquire) != 0 {
        let mut owner = owner::OWNER.enter();
        if owner.as_mut().is_some_and(|owner| owner.keeps(socket)) {
            return true;
        }
    }
    forking::let_go_of_shared(socket);
    false
}
