//! What <sys/stream.h> says of structures and numbers is what the library has.

use core::mem::{offset_of, size_of};
use std::io::Write;
use std::process::{Command, Stdio};

use headwater_testkit::needs;

use super::*;

/// A claim about each field's place, and about the size.
macro_rules! structure {
    ($claims:ident, $type:ident as $c:literal: $($field:ident)*) => {
        $claims.push_str(&format!("_Static_assert(sizeof({}) == {}, \"\");\n", $c, size_of::<$type>()));
        $($claims.push_str(&format!(
            "_Static_assert(offsetof({}, {}) == {}, \"\");\n", $c, stringify!($field), offset_of!($type, $field)
        ));)*
    };
}

macro_rules! numbers {
    ($claims:ident: $($name:ident)*) => {
        $($claims.push_str(&format!("_Static_assert({0} == {1}, \"{0}\");\n", stringify!($name), $name as i64));)*
    };
}

#[test]
fn the_header_has_the_librarys_layouts_and_numbers() {
    needs!("gcc", "libc6-dev");
    let mut claims = String::from("#include <sys/stream.h>\n#include <stddef.h>\n");
    structure!(claims, mblk_t as "mblk_t": b_next b_prev b_cont b_rptr b_wptr b_datap b_band b_flag b_pad2);
    structure!(claims, dblk_t as "dblk_t": db_frtnp db_base db_lim db_ref db_type db_iswhat db_size db_msgaddr db_filler);
    structure!(claims, free_rtn as "frtn_t": free_func free_arg);
    structure!(claims, queue_t as "queue_t": q_qinfo q_first q_last q_next q_link q_ptr q_count q_flag q_minpsz q_maxpsz
        q_hiwat q_lowat q_bandp q_nband q_pad1 q_pad2);
    structure!(claims, qband as "qband_t": qb_next qb_count qb_first qb_last qb_hiwat qb_lowat qb_flag qb_pad1);
    structure!(claims, qinit as "struct qinit": qi_putp qi_srvp qi_qopen qi_qclose qi_qadmin qi_minfo qi_mstat);
    structure!(claims, streamtab as "struct streamtab": st_rdinit st_wrinit st_muxrinit st_muxwinit);
    structure!(claims, module_info as "struct module_info": mi_idnum mi_idname mi_minpsz mi_maxpsz mi_hiwat mi_lowat);
    structure!(claims, iocblk as "struct iocblk": ioc_cmd ioc_cr ioc_id ioc_count ioc_error ioc_rval ioc_filler);
    structure!(claims, copyreq as "struct copyreq": cq_cmd cq_cr cq_id cq_addr cq_size cq_flag cq_private cq_filler);
    structure!(claims, copyresp as "struct copyresp": cp_cmd cp_cr cp_id cp_rval cp_pad1 cp_pad2 cp_private cp_filler);
    structure!(claims, stroptions as "struct stroptions": so_flags so_readopt so_wroff so_minpsz so_maxpsz so_hiwat so_lowat
        so_band so_erropt so_maxblk so_copyopt);
    structure!(claims, linkblk as "struct linkblk": l_qtop l_qbot l_index l_pad);
    numbers!(claims: M_DATA M_PROTO M_BREAK M_PASSFP M_SIG M_DELAY M_CTL M_IOCTL M_SETOPTS M_RSE QPCTL M_IOCACK M_IOCNAK
        M_PCPROTO M_PCSIG M_READ M_FLUSH M_STOP M_START M_HANGUP M_ERROR M_COPYIN M_COPYOUT M_IOCDATA M_PCRSE M_STOPI
        M_STARTI M_UNHANGUP FLUSHR FLUSHW FLUSHRW FLUSHBAND FLUSHDATA FLUSHALL NOERROR TRANSPARENT MSGMARK MSGNOLOOP
        MSGDELIM MSGNOGET BPRI_LO BPRI_MED BPRI_HI QENAB QWANTR QWANTW QFULL QREADR QUSE QNOENB QOLD QBACK QHLIST QB_FULL
        QB_WANTW QB_BACK INFPSZ MODOPEN CLONEOPEN SO_ALL SO_READOPT SO_WROFF SO_MINPSZ SO_MAXPSZ SO_HIWAT SO_LOWAT
        SO_MREADON SO_MREADOFF SO_NDELON SO_NDELOFF SO_ISTTY SO_ISNTTY SO_TOSTOP SO_TONSTOP SO_BAND SO_DELIM SO_NODELIM
        SO_STRHOLD SO_ERROPT SO_COPYOPT SO_MAXBLK);
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let mut cc = Command::new("cc")
        .args([
            "-std=gnu11",
            "-Wall",
            "-Werror",
            "-fsyntax-only",
            "-I",
            include,
            "-xc",
            "-",
        ])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cc is installed");
    let mut input = cc.stdin.take().expect("a pipe");
    input.write_all(claims.as_bytes()).expect("cc reads");
    drop(input);
    let said = cc.wait_with_output().expect("cc ends");
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
}
