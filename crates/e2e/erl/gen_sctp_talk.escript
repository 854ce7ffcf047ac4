#!/usr/bin/env escript
%% A conversation by gen_sctp: `serve ADDRESS PORT passive|active CALLERS` and `call ADDRESS PORT SERVER-PORT ROUNDS WAY`.
%% A caller sends messages on all its streams, and asks for the end in its own way.
-include_lib("kernel/include/inet_sctp.hrl").

-define(STREAMS, 8).
%% Through loss, a timer that has backed off four times is one of 31 s.
-define(PATIENCE, 60000).

main(["serve", Address, Port, Mode, Callers]) ->
    serve(open(Address, list_to_integer(Port)), list_to_atom(Mode), list_to_integer(Callers));
main(["call", Address, Port, Server, Rounds, Way]) ->
    call(Address, Port, Server, list_to_integer(Rounds), list_to_atom(Way));
main(["call_usrsctp", Address, Server, Port]) ->
    call_usrsctp(Address, Server, Port).

open(Address, Port) ->
    {ok, Ip} = inet:parse_address(Address),
    {ok, S} = gen_sctp:open(Port, [{ip, Ip}, {active, false}, {recbuf, 1 bsl 20}, {sndbuf, 1 bsl 20},
                                   {sctp_initmsg, #sctp_initmsg{num_ostreams = ?STREAMS, max_instreams = ?STREAMS}},
                                   {sctp_nodelay, true}]),
    S.

%% The server: echoes on the same stream, until so many associations have ended.

serve(S, Mode, Callers) ->
    ok = gen_sctp:listen(S, true),
    io:format("ready~n"),
    serve(S, Mode, Callers, 0).

serve(S, _, 0, Echoed) ->
    ok = gen_sctp:close(S),
    io:format("echoed ~p~n", [Echoed]);
serve(S, Mode, Left, Echoed) ->
    case next(S, Mode) of
        #sctp_assoc_change{state = comm_up, outbound_streams = Out, inbound_streams = In} ->
            io:format("up ~p ~p~n", [Out, In]),
            serve(S, Mode, Left, Echoed);
        #sctp_assoc_change{state = shutdown_comp} ->
            io:format("shut down~n"),
            serve(S, Mode, Left - 1, Echoed);
        #sctp_assoc_change{state = comm_lost} ->
            io:format("lost~n"),
            serve(S, Mode, Left - 1, Echoed);
        {#sctp_sndrcvinfo{assoc_id = Id}, <<"peel off">>} ->
            {ok, Own} = gen_sctp:peeloff(S, Id),
            io:format("peeled off~n"),
            N = serve_one(Own, Id, Mode, 0),
            serve(S, Mode, Left - 1, Echoed + N);
        {Info = #sctp_sndrcvinfo{}, Data} ->
            ok = echo(S, Info, Data),
            serve(S, Mode, Left, Echoed + 1);
        _ ->
            serve(S, Mode, Left, Echoed)
    end.

%% An association with a socket of its own.
serve_one(S, Id, Mode, Echoed) ->
    case next(S, Mode) of
        {Info = #sctp_sndrcvinfo{assoc_id = Id}, Data} ->
            ok = echo(S, Info, Data),
            serve_one(S, Id, Mode, Echoed + 1);
        #sctp_assoc_change{state = State, assoc_id = Id} when State =:= shutdown_comp; State =:= comm_lost ->
            ok = gen_sctp:close(S),
            io:format("shut down alone~n"),
            Echoed;
        _ ->
            serve_one(S, Id, Mode, Echoed)
    end.

echo(S, #sctp_sndrcvinfo{stream = Stream, ppid = Ppid, assoc_id = Id}, Data) ->
    gen_sctp:send(S, #sctp_sndrcvinfo{stream = Stream, ppid = Ppid, assoc_id = Id}, Data).

next(S, passive) ->
    case gen_sctp:recv(S, ?PATIENCE) of
        {ok, {_, _, Ancillary, Data}} -> what(Ancillary, Data);
        %% What an abort has left unsent.
        {error, {_, _, Failed = #sctp_send_failed{}}} -> Failed
    end;
next(S, active) ->
    ok = inet:setopts(S, [{active, once}]),
    receive
        {sctp, S, _, _, {Ancillary, Data}} -> what(Ancillary, Data);
        {sctp_error, S, _, _, {_, Failed = #sctp_send_failed{}}} -> Failed
    after ?PATIENCE -> error(nothing_came)
    end.

what([Info], Data) when is_binary(Data) -> {Info, Data};
what([Info], Data) when is_list(Data) -> {Info, list_to_binary(Data)};
what(_, Event) -> Event.

%% The caller.

call(Address, Port, Server, Rounds, Way) ->
    {S, Id} = connected(Address, Port, Server),
    {ok, [{sctp_status, #sctp_status{state = established, outstrms = ?STREAMS}}]} =
        inet:getopts(S, [{sctp_status, #sctp_status{assoc_id = Id}}]),
    {ok, [{sctp_rtoinfo, #sctp_rtoinfo{initial = Initial}}]} =
        inet:getopts(S, [{sctp_rtoinfo, #sctp_rtoinfo{assoc_id = Id}}]),
    true = Initial > 0,
    Way =:= peel_off andalso (ok = gen_sctp:send(S, Id, 0, <<"peel off">>)),
    Bytes = lists:sum([round(S, Id, N) || N <- lists:seq(1, Rounds)]),
    finish(S, Id, Way),
    ok = gen_sctp:close(S),
    io:format("bytes ~p~n", [Bytes]).

connected(Address, Port, Server) ->
    [At, ServerPort] = string:split(Server, ":"),
    {ok, Ip} = inet:parse_address(At),
    S = open(Address, list_to_integer(Port)),
    {ok, #sctp_assoc_change{state = comm_up, assoc_id = Id, outbound_streams = ?STREAMS}} =
        gen_sctp:connect(S, Ip, list_to_integer(ServerPort), []),
    {S, Id}.

%% One message on each stream, then all the answers: in order within their streams.
round(S, Id, N) ->
    Size = case N rem 4 of 0 -> 20000; 1 -> 1; 2 -> 1400; 3 -> 5000 end,
    Sent = [{Stream, list_to_binary([Stream, binary:copy(<<N>>, Size - 1)])} || Stream <- lists:seq(0, ?STREAMS - 1)],
    [ok = gen_sctp:send(S, #sctp_sndrcvinfo{stream = Stream, ppid = N, assoc_id = Id}, Data) || {Stream, Data} <- Sent],
    Answers = [answer(S, N) || _ <- Sent],
    Sent = lists:sort(Answers),
    Size * ?STREAMS.

answer(S, N) ->
    case next(S, passive) of
        {#sctp_sndrcvinfo{stream = Stream, ppid = N}, Data} -> {Stream, Data};
        {Other = #sctp_sndrcvinfo{}, _} -> error({not_an_answer, Other});
        _ -> answer(S, N)
    end.

finish(S, Id, Way) when Way =:= eof; Way =:= peel_off ->
    ok = gen_sctp:eof(S, #sctp_assoc_change{assoc_id = Id}),
    await(S, shutdown_comp);
finish(S, Id, abort) ->
    ok = gen_sctp:abort(S, #sctp_assoc_change{assoc_id = Id}),
    await(S, comm_lost);
finish(_, _, close) ->
    ok.

await(S, State) ->
    case next(S, passive) of
        #sctp_assoc_change{state = State} -> ok;
        _ -> await(S, State)
    end.

%% usrsctp's echo server has streams as it likes, and its Nagle waits for delayed acknowledgements of longer messages.
call_usrsctp(Address, Server, Port) ->
    {ok, Own} = inet:parse_address(Address),
    {ok, Ip} = inet:parse_address(Server),
    {ok, S} = gen_sctp:open(0, [{ip, Own}, {active, false}, {sctp_nodelay, true}]),
    {ok, #sctp_assoc_change{state = comm_up, assoc_id = Id}} = gen_sctp:connect(S, Ip, list_to_integer(Port), []),
    [begin
         Data = binary:copy(<<N>>, N * 30),
         ok = gen_sctp:send(S, Id, 0, Data),
         {_, Data} = answered(S)
     end || N <- lists:seq(1, 40)],
    ok = gen_sctp:eof(S, #sctp_assoc_change{assoc_id = Id}),
    await(S, shutdown_comp),
    ok = gen_sctp:close(S),
    io:format("echoed 40~n").

answered(S) ->
    case next(S, passive) of
        {Info, Data} -> {Info, Data};
        _ -> answered(S)
    end.
