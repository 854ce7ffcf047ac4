//! A program over smol, whose waits by inline system calls nobody sees.

use headwater_e2e::{Lab, both, network};

const PROGRAM: &str = env!("CARGO_BIN_EXE_smol-echo");

fn talk(serve: &str, call: &str) -> Lab {
    both(|lab| {
        let port = network::free_port();
        let command = |role: &str| {
            let mut c = lab.command(PROGRAM);
            c.args([role, &port.to_string()]);
            c
        };
        let server = lab.serve(command(serve), port);
        let said = lab.run(command(call)).text();
        server.stop(libc::SIGTERM);
        said
    })
}

#[test]
fn its_connections_stay_with_the_kernel() {
    talk("serve", "call").assert_not_carried();
}

/// Connections that were carried before smol has them leave the rings when it first waits.
#[test]
fn carried_connections_leave_the_rings() {
    let lab = talk("serve-late", "call-late");
    let carried = lab.lines().iter().map(|l| l.shm_tx).max();
    assert!(carried > Some(8 * 90 * 2000), "{}", lab.lines_text());
    assert!(lab.lines_text().contains("unseen"), "{}", lab.lines_text());
}

/// Where one end alone waits so, in either role.
#[test]
fn with_a_peer_that_is_seen() {
    talk("serve-late", "call");
    talk("serve", "call-late");
}
