//! vsftpd: a process for each session, in pid and network namespaces of its own, chrooted, another user, and with its sandbox
//! confined by a seccomp filter that kills.

use headwater_e2e::lab::{noise, source};
use headwater_e2e::{Lab, Running, both, native, network};
use headwater_testkit::needs;

use super::{configure, fetched, shown};

const CONFIGURATION: &str = "
listen=YES
background=NO
listen_address=127.0.0.1
listen_port={port}
anonymous_enable=YES
no_anon_password=YES
anon_root={folder}/files
secure_chroot_dir=/var/run/vsftpd/empty
seccomp_sandbox={sandbox}
isolate=YES
use_sendfile={sendfile}
pasv_address=127.0.0.1
";

fn serve(lab: &Lab, sandbox: &str, sendfile: &str) -> (Running, u16) {
    std::fs::create_dir_all("/var/run/vsftpd/empty").expect("root may");
    let files = lab.path("files");
    std::fs::create_dir(&files).expect("the lab's folder is writable");
    for (name, size) in [("small", 100), ("large", 6 << 20)] {
        std::fs::write(files.join(name), noise(size)).expect("it is writable");
    }
    let port = network::free_port();
    let folder = shown(&lab.path(""));
    let values = [
        ("port", &*port.to_string()),
        ("folder", folder.trim_end_matches('/')),
        ("sandbox", sandbox),
        ("sendfile", sendfile),
    ];
    configure(lab, "vsftpd.conf", CONFIGURATION, &values);
    let mut c = lab.command("vsftpd");
    c.arg(lab.path("vsftpd.conf"));
    (lab.serve(c, port), port)
}

/// Sessions that stay with what the filter of this version lets the C library of today do, which is not much more.
#[test]
fn confined_sessions() {
    needs!("root", "vsftpd", "python3");
    both(|lab| {
        let (_server, port) = serve(lab, "YES", "YES");
        let mut c = lab.command("/usr/bin/python3");
        c.arg(source("py/ftp.py")).arg(port.to_string());
        lab.run(c).text()
    });
}

/// Why `downloads` are without: natively too the filter kills a session that sends a file. Should this fail, vsftpd has learnt it.
#[test]
fn the_sandbox_allows_no_download() {
    needs!("root", "vsftpd", "curl");
    let (_lab, output) = native(|lab| {
        let (_server, port) = serve(lab, "YES", "YES");
        let mut c = lab.plain("curl");
        c.args(["-sS", "-q", &format!("ftp://127.0.0.1:{port}/small")]);
        lab.run(c)
    });
    // The session's connection ends in place of an answer.
    assert_eq!(output.status.code(), Some(56), "{output:?}");
}

#[test]
fn downloads() {
    needs!("root", "vsftpd", "curl");
    for sendfile in ["YES", "NO"] {
        both(|lab| {
            let (_server, port) = serve(lab, "NO", sendfile);
            let url = |name: &str| format!("ftp://127.0.0.1:{port}/{name}");
            // The listing has a date; that it comes at all is what counts.
            assert!(fetched(lab, &url("")).0 > 0);
            ["small", "large", "large", "small"].map(|name| fetched(lab, &url(name)))
        });
    }
}
