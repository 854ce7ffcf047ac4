//! dovecot: its log-in processes, chrooted and of another user, hand each connection on to a process for that mailbox.

use headwater_e2e::{both, lab, network};
use headwater_testkit::needs;

use super::{configure, shown};

const CONFIGURATION: &str = "
base_dir = {folder}/base
log_path = {folder}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
mail_location = maildir:{folder}/mail
mail_uid = nobody
mail_gid = nogroup
first_valid_uid = 1
first_valid_gid = 1
import_environment = TZ LD_PRELOAD HEADWATER_SOCKETS HEADWATER_DIR HEADWATER_STATS_FILE
passdb {
  driver = static
  args = password=secret
}
userdb {
  driver = static
  args = uid=nobody gid=nogroup home={folder}/mail
}
service imap-login {
  inet_listener imap {
    port = {port}
  }
  inet_listener imaps {
    port = 0
  }
}
";

#[test]
fn mail_is_stored_and_fetched() {
    needs!("root", "dovecot-imapd", "python3");
    both(|lab| {
        let mail = lab.path("mail");
        std::fs::create_dir(&mail).expect("the lab's folder is writable");
        std::os::unix::fs::chown(&mail, Some(65534), Some(65534)).expect("root may");
        let port = network::free_port();
        let folder = shown(&lab.path(""));
        let values = [
            ("folder", folder.trim_end_matches('/')),
            ("port", &*port.to_string()),
        ];
        configure(lab, "dovecot.conf", CONFIGURATION, &values);
        let mut c = lab.command("dovecot");
        c.args(["-F", "-c"]).arg(lab.path("dovecot.conf"));
        let _server = lab.serve(c, port);
        let mut c = lab.command("/usr/bin/python3");
        c.arg(lab::source("py/imap.py")).arg(port.to_string());
        lab.run(c).text()
    });
}
