/* <xti.h>, <xti_inet.h>, <sys/tihdr.h>, <sys/timod.h>, <stropts.h> and the system's internet headers, all in one file:
 * layouts and numbers that compiled programs depend on. */
#include "../streams/harness.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/tihdr.h>
#include <sys/timod.h>
#include <xti.h>
#include <xti_inet.h>

CASE(scalars, "XNS 5.2 <xti.h> t_scalar_t") {
    check_eq(sizeof(t_scalar_t), 4);
    check_eq(sizeof(t_uscalar_t), 4);
    check((t_scalar_t)-1 < 0);
    check((t_uscalar_t)-1 > 0);
}
CASE(event_numbers, "XNS 5.2 <xti.h> events") {
    const int seen[] = {T_LISTEN, T_CONNECT, T_DATA, T_EXDATA, T_DISCONNECT, T_UDERR, T_ORDREL, T_GODATA, T_GOEXDATA};
    const int expected[] = {1, 2, 4, 8, 0x10, 0x40, 0x80, 0x100, 0x200};
    for (unsigned i = 0; i < sizeof seen / sizeof *seen; i++)
        check_eq(seen[i], expected[i]);
}
CASE(errors, "XNS 5.2 <xti.h> errors") {
    const int seen[] = {TBADADDR,  TBADOPT,    TACCES,     TBADF,        TNOADDR,  TOUTSTATE, TBADSEQ,       TSYSERR,
                        TLOOK,     TBADDATA,   TBUFOVFLW,  TFLOW,        TNODATA,  TNODIS,    TNOUDERR,      TBADFLAG,
                        TNOREL,    TNOTSUPPORT, TSTATECHNG, TNOSTRUCTYPE, TBADNAME, TBADQLEN,  TADDRBUSY,     TINDOUT,
                        TPROVMISMATCH, TRESQLEN, TRESADDR, TQFULL,       TPROTO};
    check_eq(sizeof seen / sizeof *seen, 29);
    for (int i = 0; i < 29; i++)
        check_eq(seen[i], i + 1);
}
CASE(states, "XNS 5.2 <xti.h> states") {
    const int seen[] = {T_UNINIT, T_UNBND, T_IDLE, T_OUTCON, T_INCON, T_DATAXFER, T_OUTREL, T_INREL};
    for (int i = 0; i < 8; i++)
        check_eq(seen[i], i);
}
CASE(structures, "XNS 5.2 <xti.h> structures") {
    check_eq(sizeof(struct netbuf), 8 + sizeof(void *));
    check_eq(sizeof(struct t_info), 32);
    check_eq(offsetof(struct t_info, servtype), 24);
    check_eq(offsetof(struct t_bind, qlen), sizeof(struct netbuf));
    check_eq(offsetof(struct t_call, sequence), 3 * sizeof(struct netbuf));
    check_eq(offsetof(struct t_discon, sequence), sizeof(struct netbuf) + 4);
    check_eq(offsetof(struct t_optmgmt, flags), sizeof(struct netbuf));
    check_eq(offsetof(struct t_uderr, error), 2 * sizeof(struct netbuf));
    check_eq(sizeof(struct t_unitdata), 3 * sizeof(struct netbuf));
    check_eq(sizeof(struct t_opthdr), 16);
    check_eq(sizeof(struct t_iovec), sizeof(struct iovec));
    check_eq(sizeof(struct t_linger), 8);
    check_eq(sizeof(struct t_kpalive), 8);
}
CASE(iov_max, "t_sysconf(3) _SC_T_IOV_MAX") {
    check(_SC_T_IOV_MAX >= 0);
    check_eq(T_IOV_MAX, 16);
}
CASE(option_levels, "XNS 5.2 <xti_inet.h>") {
    check_eq(XTI_GENERIC, 0xffff);
    check_eq(INET_TCP, IPPROTO_TCP);
    check_eq(INET_UDP, IPPROTO_UDP);
    check_eq(INET_IP, IPPROTO_IP);
    check_eq(T_INET_TCP, INET_TCP);
    check_eq(T_INET_UDP, INET_UDP);
    check_eq(T_INET_IP, INET_IP);
    check_eq(T_UNSPEC, -3);
    check_eq(T_ALLOPT, 0);
}
CASE(option_names_of_both_headers, "XNS 5.2 <xti_inet.h>") {
    check_eq(T_TCP_NODELAY, TCP_NODELAY);
    check_eq(T_TCP_MAXSEG, TCP_MAXSEG);
    check_eq(T_TCP_KEEPALIVE, TCP_KEEPALIVE);
    check_eq(T_UDP_CHECKSUM, UDP_CHECKSUM);
    check_eq(T_IP_OPTIONS, IP_OPTIONS);
    check_eq(T_IP_TOS, IP_TOS);
    check_eq(T_IP_TTL, IP_TTL);
    check_eq(T_IP_REUSEADDR, IP_REUSEADDR);
    check_eq(T_IP_DONTROUTE, IP_DONTROUTE);
    check_eq(T_IP_BROADCAST, IP_BROADCAST);
    check_eq(SET_TOS(T_FLASH, T_LDELAY | T_HIREL), 3 << 5 | 0x14);
}
CASE(option_lists, "XNS 5.2 T_OPT_FIRSTHDR T_OPT_NEXTHDR T_OPT_DATA") {
    t_uscalar_t words[16] = {17, INET_IP, T_IP_TOS, 0, 0, 20, INET_TCP, T_TCP_NODELAY, 0, 1};
    struct netbuf list = {sizeof words, 40, words};
    struct t_opthdr *first = T_OPT_FIRSTHDR(&list);
    check(first == (void *)words);
    check(T_OPT_DATA(first) == (void *)&words[4]);
    struct t_opthdr *second = T_OPT_NEXTHDR(&list, first);
    check(second == (void *)&words[5]);
    check_eq(second->level, INET_TCP);
    check(OPT_NEXTHDR(list.buf, list.len, first) == second);
    check(T_OPT_NEXTHDR(&list, second) == NULL);
    check(OPT_NEXTHDR(list.buf, list.len, second) == NULL);
    list.len = 35;
    check(T_OPT_NEXTHDR(&list, first) == NULL);
    list.len = 15;
    check(T_OPT_FIRSTHDR(&list) == NULL);
    words[0] = 0;
    list.len = 40;
    check(T_OPT_NEXTHDR(&list, first) == NULL);
}
CASE(primitives, "TPI 2.0 <sys/tihdr.h> PRIM_type") {
    const int seen[] = {T_CONN_REQ,    T_CONN_RES,   T_DISCON_REQ,  T_DATA_REQ,     T_EXDATA_REQ,  T_INFO_REQ,
                        T_BIND_REQ,    T_UNBIND_REQ, T_UNITDATA_REQ, T_OPTMGMT_REQ, T_ORDREL_REQ,  T_CONN_IND,
                        T_CONN_CON,    T_DISCON_IND, T_DATA_IND,    T_EXDATA_IND,   T_INFO_ACK,    T_BIND_ACK,
                        T_ERROR_ACK,   T_OK_ACK,     T_UNITDATA_IND, T_UDERROR_IND, T_OPTMGMT_ACK, T_ORDREL_IND,
                        T_OPTDATA_REQ, T_ADDR_REQ,   T_OPTDATA_IND, T_ADDR_ACK,     T_CAPABILITY_REQ, T_CAPABILITY_ACK};
    check_eq(sizeof seen / sizeof *seen, 30);
    for (int i = 0; i < 30; i++)
        check_eq(seen[i], i);
}
CASE(primitive_layouts, "TPI 2.0 <sys/tihdr.h> structures") {
    check_eq(sizeof(struct T_conn_req), 20);
    check_eq(sizeof(struct T_conn_res), 20);
    check_eq(offsetof(struct T_conn_res, SEQ_number), 16);
    check_eq(sizeof(struct T_discon_req), 8);
    check_eq(sizeof(struct T_data_req), 8);
    check_eq(sizeof(struct T_bind_req), 16);
    check_eq(sizeof(struct T_unitdata_req), 20);
    check_eq(sizeof(struct T_optmgmt_req), 16);
    check_eq(sizeof(struct T_optdata_req), 16);
    check_eq(sizeof(struct T_conn_ind), 24);
    check_eq(sizeof(struct T_info_ack), 44);
    check_eq(offsetof(struct T_info_ack, PROVIDER_flag), 40);
    check_eq(sizeof(struct T_error_ack), 16);
    check_eq(sizeof(struct T_uderror_ind), 24);
    check_eq(sizeof(struct T_addr_ack), 20);
    check_eq(sizeof(struct T_capability_ack), 56);
    check_eq(sizeof(union T_primitives), 56);
    union T_primitives any = {.type = T_ORDREL_IND};
    check_eq(any.ordrel_ind.PRIM_type, T_ORDREL_IND);
}
CASE(provider_states, "TPI 2.0 <sys/tihdr.h> CURRENT_state") {
    const int seen[] = {TS_UNBND,     TS_WACK_BREQ, TS_WACK_UREQ,  TS_IDLE,       TS_WACK_OPTREQ, TS_WACK_CREQ,
                        TS_WCON_CREQ, TS_WRES_CIND, TS_WACK_CRES,  TS_DATA_XFER,  TS_WIND_ORDREL, TS_WREQ_ORDREL,
                        TS_WACK_DREQ6, TS_WACK_DREQ7, TS_WACK_DREQ9, TS_WACK_DREQ10, TS_WACK_DREQ11, TS_NOSTATES};
    for (int i = 0; i < 18; i++)
        check_eq(seen[i], i);
}
CASE(timod_ioctls, "timod(7M)") {
    check_eq(TI_GETINFO, ('T' << 8) | 140);
    check_eq(TI_OPTMGMT, ('T' << 8) | 141);
    check_eq(TI_BIND, ('T' << 8) | 142);
    check_eq(TI_UNBIND, ('T' << 8) | 143);
    check_eq(TI_GETMYNAME, ('T' << 8) | 144);
    check_eq(TI_GETPEERNAME, ('T' << 8) | 145);
}

CASES(ENTRY(scalars), ENTRY(event_numbers), ENTRY(errors), ENTRY(states), ENTRY(structures), ENTRY(iov_max), ENTRY(option_levels),
      ENTRY(option_names_of_both_headers), ENTRY(option_lists), ENTRY(primitives), ENTRY(primitive_layouts),
      ENTRY(provider_states), ENTRY(timod_ioctls))
