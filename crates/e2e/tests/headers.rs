//! Each header compiles alone, and all together in any order with the system's, as C and as C++, without a warning.

use headwater_e2e::lab::source;
use headwater_testkit::needs;
use std::io::Write;
use std::process::{Command, Stdio};

const OURS: [&str; 15] = [
    "xti.h",
    "xti_inet.h",
    "tiuser.h",
    "netconfig.h",
    "netdir.h",
    "stropts.h",
    "sys/conf.h",
    "sys/stream.h",
    "sys/stropts.h",
    "sys/tihdr.h",
    "sys/timod.h",
    "sys/tiuser.h",
    "sys/tpicommon.h",
    "sys/xti_sctp.h",
    "headwater.h",
];
const SYSTEMS: [&str; 6] = [
    "netinet/in.h",
    "netinet/tcp.h",
    "netinet/udp.h",
    "netdb.h",
    "unistd.h",
    "sys/socket.h",
];
const USE: &str = "int main(void) { return 0; }\n";

fn compiles(headers: &[&str], rest: &str) {
    let includes: String = headers
        .iter()
        .map(|h| format!("#include <{h}>\n"))
        .collect();
    for language in ["-xc -std=c99", "-xc -std=gnu90", "-xc++ -std=c++11"] {
        for macros in ["", "-D_GNU_SOURCE", "-D_XOPEN_SOURCE=600"] {
            accepted(language, macros, &format!("{includes}{rest}"));
        }
    }
}

fn accepted(language: &str, flags: &str, text: &str) {
    let flags = format!("{language} {flags} -Wall -Wextra -pedantic -Werror -fsyntax-only");
    let mut cc = Command::new("cc")
        .args(flags.split_whitespace())
        .arg("-I")
        .arg(source("../../include"))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cc is installed");
    let mut input = cc.stdin.take().expect("a pipe");
    input.write_all(text.as_bytes()).expect("cc reads");
    drop(input);
    let said = cc.wait_with_output().expect("cc ends");
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{flags}\n{text}{errors}");
}

#[test]
fn every_header_stands_alone() {
    needs!("gcc", "g++", "libc6-dev");
    for header in OURS {
        compiles(&[header], USE);
    }
}

#[test]
fn headers_go_together_in_any_order() {
    needs!("gcc", "g++", "libc6-dev");
    let mut all: Vec<&str> = OURS.iter().chain(&SYSTEMS).copied().collect();
    for turn in 0..all.len() {
        all.rotate_left(1);
        if turn % 2 == 1 {
            all.reverse();
        }
        compiles(&all, USE);
    }
}

/// The order of the manual pages of System V, and what a program takes from headers that describe the inside of the kernel.
#[test]
fn programs_have_the_types_of_modules() {
    needs!("gcc", "g++", "libc6-dev");
    let text = "#include <sys/types.h>\n#include <sys/stream.h>\n#include <sys/stropts.h>\n#include <sys/conf.h>\n\
        static char name[FMNAMESZ + 1];\n\
        static int is_data(const mblk_t *m) { return m->b_datap->db_type == M_DATA || m->b_datap->db_type >= QPCTL; }\n\
        static long room(const queue_t *q) { return (long)q->q_hiwat - (long)q->q_count; }\n\
        static struct module_info info = {7, \"mine\", 0, INFPSZ, 5120, 1024};\n\
        int main(void) {\n\
            struct fmodsw known; struct cdevsw driver; struct streamtab table; struct qinit side; struct iocblk asked;\n\
            dblk_t block; mblk_t message; queue_t queue; struct stroptions options; struct linkblk link; frtn_t back;\n\
            message.b_datap = &block; block.db_type = M_PROTO; queue.q_count = 0; queue.q_hiwat = info.mi_hiwat;\n\
            side.qi_minfo = &info; table.st_rdinit = &side; known.f_str = &table; driver.d_str = &table;\n\
            asked.ioc_count = TRANSPARENT; options.so_flags = SO_WROFF | SO_HIWAT; link.l_index = BPRI_HI; back.free_arg = name;\n\
            return is_data(&message) + (int)room(&queue) + (known.f_str == driver.d_str) + (asked.ioc_count == 0) +\n\
                (options.so_flags == 0) + link.l_index + (back.free_arg == name);\n\
        }\n";
    for language in ["-xc -std=c99", "-xc -std=gnu90", "-xc++ -std=c++11"] {
        accepted(language, "", text);
    }
}

/// libtirpc's headers have some of the structures too, and come first: docs/xti-porting.md.
#[test]
fn headers_go_together_behind_those_of_libtirpc() {
    needs!("gcc", "g++", "libc6-dev", "libtirpc-dev");
    let rest = "#include <netdir.h>\n#include <stropts.h>\n#include <sys/timod.h>\n\
        int main(void) {\n\
            struct netbuf name; struct t_bind bound; struct t_call call; CLIENT *client = 0; struct netconfig *net = 0;\n\
            name.len = 0; name.buf = 0; bound.addr = name; call.addr = name;\n\
            return t_bind(0, &bound, &bound) + t_connect(0, &call, &call) + (client == 0) + (net == getnetconfigent(\"tcp\"));\n\
        }\n";
    for header in ["xti.h", "tiuser.h"] {
        let text = format!("#include <rpc/rpc.h>\n#include <{header}>\n{rest}");
        for language in ["-xc -std=gnu99", "-xc++ -std=c++11"] {
            // Its folder behind ours, and before.
            for place in ["-idirafter", "-isystem"] {
                accepted(language, &format!("{place} /usr/include/tirpc"), &text);
            }
        }
    }
}

/// XNS 5.2 wants <xti_inet.h> included by its name; before, <xti.h> was enough.
#[test]
fn older_programs_have_the_options_of_tcp_from_xti_h() {
    needs!("gcc", "g++", "libc6-dev");
    let text =
        "#include <xti.h>\nint main(void) { return INET_TCP + TCP_NODELAY + INET_IP + IP_TOS; }\n";
    accepted("-xc -std=gnu90", "", text);
    accepted("-xc -std=c99", "-D_GNU_SOURCE", text);
}
