//! The texts of the scenarios.

#[rustfmt::skip]
pub(super) const SCENARIOS: &[(&str, &str)] = &[
("whoever waits gets nothing that a script took back", "
    1 BLPOP q 0
    0 EVAL \"redis.call('RPUSH', KEYS[1], 'a') return redis.call('LPOP', KEYS[1])\" 1 q
    0 MULTI ; RPUSH q a ; LPOP q ; EXEC
    0 MULTI ; RPUSH q a ; DEL q ; SET q v ; EXEC
    0 DEL q ; RPUSH q b c
    0 LRANGE q 0 -1
"),
("those who wait are served in order, after the whole of a transaction", "
    1 BLPOP q 0
    2 BRPOP q 0
    3 HELLO 3
    3 BLPOP p q 0
    0 MULTI ; RPUSH q a ; RPUSH q b ; LLEN q ; EXEC
    0 EVAL \"redis.call('RPUSH', 'q', 'c', 'd') return redis.call('LLEN', 'q')\" 0
    0 LRANGE q 0 -1
"),
("of several keys the one counts that became ready first", "
    1 BLPOP a b 0
    0 MULTI ; RPUSH b 1 ; RPUSH a 2 ; EXEC
    2 BZPOPMIN z y 0
    0 MULTI ; ZADD y 5 m ; ZADD z 1 n ; EXEC
    1 XREAD BLOCK 0 STREAMS s t $ $
    0 MULTI ; XADD t 1-1 f v ; XADD s 1-1 f v ; EXEC
    1 XREAD BLOCK 0 STREAMS s t 0 0
    2 BLMPOP 0 2 a c LEFT COUNT 5
    2 BLMPOP 0 2 c d LEFT COUNT 2
    0 MULTI ; RPUSH d 1 2 3 ; RPUSH c 9 ; EXEC
    3 BZMPOP 0 2 e f MAX COUNT 2
    0 ZADD f 1 a 2 b 3 c
    0 KEYS *
    0 XADD v 1-0 f v
    1 XREAD BLOCK 0 STREAMS v w $ $
    0 MULTI ; RENAME v w ; XADD v 2-0 f v ; EXEC
    2 BLPOP g h 0
    0 MULTI ; SET g v ; DEL g ; RPUSH h 1 ; RPUSH g 2 ; EXEC
"),
("elements go from list to list", "
    1 BLMOVE a b LEFT LEFT 0
    2 BLMOVE b c LEFT RIGHT 0
    3 BRPOP c 0
    0 RPUSH a x
    0 EXISTS a b c
    1 BLMOVE a a LEFT RIGHT 0
    0 RPUSH a 1 2
    0 LRANGE a 0 -1
    1 DEL a
    1 BRPOPLPUSH a s 0
    0 SET s v
    0 RPUSH a x y
    0 LRANGE a 0 -1
    0 DEL s
    1 BLMOVE a s LEFT LEFT 0
    0 LRANGE s 0 -1
"),
("who waits for a list sleeps on while the key is something else", "
    1 BLPOP k 0
    2 BZPOPMIN k 0
    3 XREAD BLOCK 0 STREAMS k $
    0 SET k v
    0 DEL k ; HSET k f v ; DEL k
    0 RPUSH k a
    0 ZADD k 1 m
    0 XADD k 5-5 f v
    0 TYPE k
"),
("a stream that was deleted begins anew", "
    0 XADD s 10-0 f v
    1 XREAD BLOCK 0 STREAMS s $
    0 DEL s ; XADD s 5-0 f v
    0 XADD s 11-0 f v
    2 XREAD COUNT 1 BLOCK 0 STREAMS s 11-0
    0 MULTI ; XADD s 12-0 f v ; XADD s 13-0 f v ; EXEC
    2 XREAD BLOCK 0 STREAMS s s 13-0 12-0
    2 XREAD BLOCK 0 STREAMS s 99-0
    0 XADD s 14-0 f v ; XADD s 100-0 f v
"),
("a key becomes ready in many ways", "
    0 RPUSH l 1 2 3 ; ZADD z 1 a 2 b ; XADD x 1-1 f v
    1 BLPOP q 0
    0 RENAME l q
    1 BLPOP r 0
    0 COPY q r
    1 BLPOP t 0
    0 LMOVE q t LEFT LEFT
    1 BLPOP u 0
    0 SELECT 1 ; RPUSH u a ; MOVE u 0 ; SELECT 0
    1 BZPOPMAX w 0
    0 ZUNIONSTORE w 1 z
    1 BZPOPMIN v 0
    0 ZRANGESTORE v z 0 -1
    1 BZPOPMIN i 0
    0 ZINCRBY i 2 m
    1 XREAD BLOCK 0 STREAMS y 0
    0 RENAME x y
    1 BLPOP none 0
    0 LPUSHX none a ; LINSERT none BEFORE a b
    0 RPUSH none z
    1 SELECT 3 ; BLPOP q 0
    0 RPUSH q wrong-database
    0 SELECT 3 ; RPUSH q right
    0 SELECT 0 ; KEYS *
"),
("a waiting client is let go", "
    1 BLPOP q 0 ; PING after
    0 CLIENT UNBLOCK #1
    1 BLMOVE q p LEFT LEFT 0
    0 CLIENT UNBLOCK #1 TIMEOUT
    1 BRPOPLPUSH q p 0
    0 CLIENT UNBLOCK #1
    1 XREAD BLOCK 0 STREAMS s $
    0 CLIENT UNBLOCK #1 TIMEOUT
    1 BZPOPMIN z 0
    0 CLIENT UNBLOCK #1 ERROR
    1 BLMPOP 0 1 q LEFT
    0 CLIENT UNBLOCK #1 TIMEOUT
    1 HELLO 3
    1 BZMPOP 0 1 z MIN
    0 CLIENT UNBLOCK #1 TIMEOUT
    1 BLMOVE q p LEFT LEFT 0
    0 CLIENT UNBLOCK #1 TIMEOUT
    0 CLIENT UNBLOCK #1 ; CLIENT UNBLOCK #1 NOPE ; CLIENT UNBLOCK 0 ; CLIENT UNBLOCK x ; CLIENT UNBLOCK #0
    0 RPUSH q a ; LRANGE q 0 -1
"),
("time is up", "
    1 BLPOP q 0.01 ; BRPOP q p 0.01 ; BLMOVE q p LEFT LEFT 0.01 ; BRPOPLPUSH q p 0.01 ; BLMPOP 0.01 1 q LEFT
    1 BZPOPMIN z 0.01 ; BZPOPMAX z 0.01 ; BZMPOP 0.01 1 z MIN ; XREAD BLOCK 10 STREAMS s $ ; XREAD BLOCK 10 STREAMS s 0
    1 HELLO 3
    1 BLPOP q 0.01 ; BRPOP q p 0.01 ; BLMOVE q p LEFT LEFT 0.01 ; BRPOPLPUSH q p 0.01 ; BLMPOP 0.01 1 q LEFT
    1 BZPOPMIN z 0.01 ; BZPOPMAX z 0.01 ; BZMPOP 0.01 1 z MIN ; XREAD BLOCK 10 STREAMS s $ ; XREAD BLOCK 10 STREAMS s 0
    1 BLPOP q -1 ; BLPOP q abc ; BLPOP q 1e400 ; BZPOPMIN z nan ; XREAD BLOCK -1 STREAMS s $ ; XREAD BLOCK 1.5 STREAMS s 0
"),
("nobody waits in a transaction", "
    1 MULTI ; BLPOP q 0 ; BLMOVE q p LEFT LEFT 0 ; BZPOPMIN z 0 ; XREAD BLOCK 0 STREAMS s $ ; BLMPOP 0 1 q LEFT ; BZMPOP 0 1 z MIN ; EXEC
    2 HELLO 3
    2 MULTI ; BLPOP q 0 ; BLMOVE q p LEFT LEFT 0 ; BZPOPMIN z 0 ; XREAD BLOCK 0 STREAMS s $ ; BLMPOP 0 1 q LEFT ; BZMPOP 0 1 z MIN ; EXEC
    0 EVAL \"return redis.pcall('BLPOP', 'q', 0)\" 0 ; EVAL \"return redis.pcall('BLMPOP', 0, 1, 'q', 'LEFT')\" 0 ; EVAL \"return redis.pcall('XREAD', 'BLOCK', 0, 'STREAMS', 's', '$')\" 0
"),
("whoever has gone takes nothing", "
    1 BLPOP q 0
    2 BLPOP q 0
    3 BLPOP q 0
    1 !half
    2 !close
    0 RPUSH q a b
    0 LRANGE q 0 -1
    1 BLPOP p 0
    0 CLIENT KILL ID #1
    0 RPUSH p a ; LRANGE p 0 -1
    2 !half BLPOP none 0
    3 !half SET k v ; INCR n ; GET k ; BLPOP none 0 ; SET never x
    0 GET k ; GET never ; RPUSH none x ; LRANGE none 0 -1
    1 !half RPUSH many 1 2 3 ; LRANGE many 0 -1 ; QUIT ; SET never y
    0 EXISTS many never
"),
("commands behind one that waits run when it is served", "
    1 BLPOP q 0 ; SET after 1 ; BLPOP q 0 ; GET after
    2 BLPOP q 0 ; APPEND after 2
    0 GET after ; RPUSH q a
    0 GET after ; RPUSH q b ; GET after
    0 GET after ; RPUSH q c ; GET after
    0 GET after
"),
("watched keys", "
    1 WATCH k
    0 SET k v
    1 MULTI ; GET k ; EXEC
    1 WATCH k ; SET k own ; MULTI ; GET k ; EXEC
    1 WATCH k ; UNWATCH
    0 SET k w
    1 MULTI ; GET k ; EXEC ; EXEC
    1 WATCH none other ; MULTI ; GET none
    0 DEL none ; HDEL none f ; EXPIRE none 10
    1 EXEC
    1 WATCH none ; MULTI ; GET none
    0 RPUSH none a ; DEL none
    1 EXEC
    1 WATCH k ; MULTI ; DISCARD
    0 SET k x
    1 MULTI ; GET k ; EXEC
    1 WATCH k
    0 SET k x
    1 MULTI ; NOSUCH ; EXEC
    1 WATCH k ; MULTI ; GET k
    0 FLUSHALL
    1 EXEC
    1 WATCH k ; MULTI ; GET k
    0 FLUSHALL
    1 EXEC
    0 SET k v PX 100000 ; SET gone v
    1 SELECT 1 ; WATCH k ; SELECT 0 ; MULTI ; GET k
    0 SET k in-0
    1 EXEC
    1 WATCH gone ; MULTI ; PING
    0 !pause PEXPIRE gone 1
    1 EXEC
    1 WATCH k ; MULTI ; WATCH j ; UNWATCH ; PING ; EXEC
    1 WATCH ; WATCH k ; MULTI ; WATCH ; EXEC
    0 SADD s a
    1 WATCH s ; MULTI ; PING
    0 SREM s b ; SADD s a
    1 EXEC
    1 WATCH s ; MULTI ; PING
    0 EVAL \"redis.call('SADD', KEYS[1], 'new') error('boom')\" 1 s
    1 EXEC
    2 BLPOP list 0
    1 WATCH list ; MULTI ; PING
    0 RPUSH list a
    1 EXEC
"),
("a member that moves to where it is already", "
    0 SADD from a b ; SADD to a
    1 WATCH to ; MULTI ; PING
    0 SMOVE from to a
    1 EXEC
    1 WATCH to ; MULTI ; PING
    0 SMOVE from to b
    1 EXEC
    1 WATCH bits ; MULTI ; PING
    0 SETBIT bits 9 0 ; SETBIT bits 9 0
    1 EXEC
    1 WATCH sorted ; MULTI ; PING
    0 SORT none STORE sorted
    1 EXEC
    1 BLPOP sorted 0
    0 SORT from ALPHA STORE sorted ; RPUSH l 3 1 2 ; SORT l STORE sorted
    0 LRANGE sorted 0 -1
"),
("transactions go wrong", "
    1 MULTI ; SHUTDOWN NOSAVE ; SHUTDOWN ; SET k v ; EXEC ; EXISTS k
    1 SHUTDOWN ABORT ; SHUTDOWN x ; SHUTDOWN SAVE NOSAVE ; SHUTDOWN ABORT NOW ; MULTI ; MONITOR ; EXEC ; MONITOR x ; PING
    1 EXEC ; DISCARD ; MULTI ; MULTI ; EXEC
    1 MULTI ; GET ; SET k v ; EXEC ; EXISTS k
    1 MULTI ; SET k v ; INCR k ; LPUSH k x ; GET k ; EXEC
    1 MULTI ; NOSUCH ; DISCARD ; MULTI ; SET k w ; DISCARD ; GET k
    1 MULTI ; CLIENT NOPE ; EXEC ; MULTI ; CONFIG GET ; EXEC ; MULTI ; OBJECT ENCODING ; EXEC
    1 MULTI ; EXEC x ; PING ; EXEC
    1 MULTI ; DISCARD x ; EXEC
    1 MULTI ; EVALSHA 0123456789012345678901234567890123456789 0 ; EVAL \"return {1, {err = 'E x'}}\" 0 ; EVAL \"error('boom')\" 0 ; SCRIPT LOAD \"return 1\" ; EXEC
    1 MULTI ; SELECT 2 ; SET two 2 ; SELECT 99 ; EXEC ; GET two ; SELECT 0 ; GET two
    1 MULTI ; HELLO 3 ; HGETALL h ; ZSCORE z m ; HELLO 2 ; HGETALL h ; EXEC ; PING
    1 MULTI ; RESET ; EXEC ; MULTI ; QUIT ; EXEC
    2 MULTI ; PING ; ECHO x
    2 CLIENT SETNAME n ; CLIENT GETNAME ; AUTH x ; RESET x ; EXEC
    2 MULTI ; EXEC ; MULTI ; CLIENT REPLY NOPE ; PUBLISH c m ; EXEC
    2 multi ; exec ; Multi ; gEt k ; eXec
"),
("subscribers of RESP 2 may do little", "
    1 SUBSCRIBE a b ; SUBSCRIBE a ; PSUBSCRIBE c* ?
    0 PUBLISH a one ; PUBLISH c two ; PUBLISH cc three ; PUBLISH none four ; PUBSUB CHANNELS ; PUBSUB NUMSUB a b none ; PUBSUB NUMPAT
    1 PING ; PING x ; PING x y ; GET k ; MULTI ; EXEC ; EXEC x ; HELLO 3 ; CLIENT ID ; NOSUCH ; GET ; AUTH x ; SELECT 1 ; EVAL x 0 ; UNWATCH ; DISCARD
    1 UNSUBSCRIBE none ; UNSUBSCRIBE a ; PUNSUBSCRIBE c* none ; UNSUBSCRIBE ; PUNSUBSCRIBE ; UNSUBSCRIBE ; PING
    1 GET k ; SUBSCRIBE a ; RESET ; GET k
    0 PUBLISH a nobody
    1 SUBSCRIBE a ; QUIT ; PING
    1 SUBSCRIBE a
    0 CLIENT KILL TYPE pubsub
    0 PUBLISH a nobody
    2 PUBLISH ; PUBLISH a ; PUBLISH a b c ; SUBSCRIBE ; PSUBSCRIBE ; PUBSUB ; PUBSUB NOPE ; PUBSUB CHANNELS a b ; PUBSUB NUMPAT x
"),
("subscribers of RESP 3 may do everything", "
    1 HELLO 3
    1 SUBSCRIBE a ; PSUBSCRIBE *
    1 SET k v ; GET k ; PING ; PING x ; MULTI ; GET k ; EXEC
    0 PUBLISH a one
    0 MULTI ; PUBLISH a two ; SET k w ; PUBLISH a three ; EXEC
    0 EVAL \"redis.call('PUBLISH', 'a', 'four') redis.call('PUBLISH', 'a', 'five') return redis.call('PUBLISH', 'none', 'six')\" 0
    1 BLPOP q 0
    0 PUBLISH a while-waiting ; RPUSH q x ; PUBLISH a after
    1 UNSUBSCRIBE ; PUNSUBSCRIBE ; UNSUBSCRIBE
    1 HELLO 2
    1 SUBSCRIBE a ; GET k ; UNSUBSCRIBE
"),
("subscribing in a transaction", "
    1 MULTI ; SUBSCRIBE a ; EXEC
    1 GET k ; UNSUBSCRIBE ; GET k
    1 MULTI ; PING ; UNSUBSCRIBE ; EXEC ; PING
"),
("the end of a transaction and messages", "
    1 SUBSCRIBE c
    2 BLPOP q 0
    0 MULTI ; PUBLISH c 1 ; RPUSH q a ; PUBLISH c 2 ; EXEC
    0 EVAL \"redis.call('PUBLISH', 'c', '3') redis.call('RPUSH', 'q', 'b') error('boom')\" 0
    0 LRANGE q 0 -1
    0 EVAL_RO \"return redis.pcall('PUBLISH', 'c', '4')\" 0
"),
("scripts go wrong in the middle, and what they did stays", "
    0 EVAL \"redis.call('SET', 'a', 1) redis.call('INCR', 'a') redis.call('LPUSH', 'a', 'x') redis.call('SET', 'b', 1)\" 0
    0 MGET a b
    0 EVAL \"redis.call('SET', 'c', 1) error('boom')\" 0 ; GET c
    0 EVAL \"redis.call('SET', 'd', 1) return redis.error_reply('MINE x')\" 0 ; GET d
    0 EVAL \"local e = redis.pcall('INCR', 'nope', 'x') return {e, e.err, type(e)}\" 0
    0 EVAL \"return {1, 2.9, 'x', true, false, nil, 3}\" 0 ; EVAL \"return {ok = 'fine', err = 'bad'}\" 0 ; EVAL \"return {{{{}}}}\" 0
    0 EVAL \"return redis.call('TYPE', 'a')\" 0 ; EVAL \"return redis.call('TYPE', 'a').ok\" 0 ; EVAL \"return redis.call('PING')\" 0
    1 HELLO 3
    1 EVAL \"return {1, 2.9, 'x', true, false, nil, 3}\" 0 ; EVAL \"return {double = 1.5}\" 0 ; EVAL \"return {map = {a = {set = {b = true}}}}\" 0
    1 EVAL \"redis.setresp(3) return redis.call('HGETALL', 'none')\" 0 ; EVAL \"return redis.call('HGETALL', 'none')\" 0 ; EVAL \"return true\" 0 ; EVAL \"redis.setresp(3) return true\" 0 ; EVAL \"return false\" 0
    0 EVAL \"return 1\" ; EVAL \"return 1\" x ; EVAL \"return 1\" -1 ; EVAL \"return 1\" 2 a ; EVAL \"return (\" 0 ; EVAL \"return KEYS[1] .. ARGV[1]\" 1 k a
    0 EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 ; SCRIPT LOAD \"return 1\" ; EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0 ; SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db x
    0 SCRIPT FLUSH ; EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0 ; EVALSHA short 0 ; SCRIPT KILL ; SCRIPT NOPE
    0 EVAL_RO \"return redis.call('SET', 'a', 1)\" 0 ; EVAL_RO \"return redis.call('GET', 'c')\" 0 ; EVAL \"redis.call('SELECT', 5) redis.call('SET', 'five', 1)\" 0 ; GET five
    0 SELECT 5 ; GET five ; EVAL \"return redis.call('GET', 'five')\" 0
"),
("hello", "
    1 HELLO ; HELLO 2 ; HELLO 3 ; HELLO ; PING ; HELLO 4 ; HELLO x ; HELLO 2 SETNAME n ; CLIENT GETNAME ; HELLO 2 NOPE ; HELLO 3 AUTH default any ; HELLO 3 AUTH bob any ; HELLO 2 AUTH default
    1 HELLO 3 SETNAME \"a b\" ; HELLO 2 SETNAME ; AUTH x ; AUTH default x ; AUTH bob x ; AUTH a b c ; CLIENT GETNAME
    2 HELLO 3
    2 GET none ; BLPOP none 0.01 ; HGETALL none ; ZSCORE none m ; SMEMBERS none ; MULTI ; GET none ; EXEC ; RESET ; GET none ; HGETALL none
    2 SELECT 4 ; CLIENT SETNAME n ; MULTI ; RESET ; CLIENT GETNAME ; SET in-0 v ; WATCH k ; RESET
    0 GET in-0
"),
("clients by name and number", "
    1 CLIENT SETNAME one ; CLIENT GETNAME ; CLIENT ID ; CLIENT INFO ; CLIENT SETNAME \"\" ; CLIENT GETNAME ; CLIENT SETNAME \"a b\" ; CLIENT SETNAME a\\n
    1 SELECT 3 ; MULTI ; GET k
    2 HELLO 3 ; SUBSCRIBE a b ; PSUBSCRIBE c
    3 BLPOP q 0
    0 CLIENT LIST ; CLIENT LIST TYPE normal ; CLIENT LIST TYPE pubsub ; CLIENT LIST ID #1 #2 ; CLIENT LIST ID 0 ; CLIENT LIST ID x ; CLIENT LIST TYPE x ; CLIENT LIST x
    0 CLIENT KILL nope ; CLIENT KILL ID 999999 ; CLIENT KILL ID x ; CLIENT KILL ID 0 ; CLIENT KILL TYPE x ; CLIENT KILL ID #1 SKIPME x ; CLIENT KILL ID ; CLIENT KILL USER nobody
    0 CLIENT KILL ID #0 ; PING ; CLIENT KILL ID #1 ; CLIENT KILL ID #1 ; CLIENT KILL ID #3
    0 RPUSH q a ; LLEN q
    0 CLIENT KILL ID #0 SKIPME no ; PING
    1 MULTI ; CLIENT KILL ID #1 SKIPME no ; SET after v ; EXEC ; PING
    0 GET after
    0 CLIENT NOPE ; CLIENT ID x ; CLIENT ; CLIENT SETNAME ; CLIENT NO-EVICT on ; CLIENT NO-EVICT x ; CLIENT GETREDIR
"),
("without replies", "
    1 ~0 CLIENT REPLY OFF ; ~0 SET k v ; ~0 GET k ; ~0 NOSUCH ; ~1 CLIENT REPLY ON ; GET k
    1 ~0 CLIENT REPLY SKIP ; ~0 SET k w ; GET k ; CLIENT REPLY ON ; CLIENT REPLY x ; GET k
    1 ~0 CLIENT REPLY SKIP ; ~0 CLIENT REPLY SKIP ; ~0 PING ; PING x
    1 ~0 CLIENT REPLY OFF ; ~0 MULTI ; ~0 SET k x ; ~0 EXEC ; ~1 CLIENT REPLY ON ; GET k
    1 ~0 CLIENT REPLY OFF ; ~2 SUBSCRIBE a b ; ~0 PING ; ~1 PSUBSCRIBE c ; ~1 UNSUBSCRIBE a ; ~0 SUBSCRIBE ; ~1 UNSUBSCRIBE ; ~1 PUNSUBSCRIBE ; ~1 CLIENT REPLY ON ; PING
    2 HELLO 3
    2 ~0 CLIENT REPLY OFF ; ~2 SUBSCRIBE a b ; ~0 PING ; ~1 PSUBSCRIBE c ; ~1 UNSUBSCRIBE a ; ~0 SUBSCRIBE ; ~1 UNSUBSCRIBE ; ~1 PUNSUBSCRIBE ; ~1 CLIENT REPLY ON ; PING
    2 ~0 CLIENT REPLY SKIP ; ~2 SUBSCRIBE a b ; PING ; ~2 UNSUBSCRIBE
    3 ~0 CLIENT REPLY OFF ; ~0 BLPOP q 0
    0 RPUSH q x
    3 ~1 CLIENT REPLY ON ; LLEN q
    3 ~0 CLIENT REPLY SKIP ; ~0 BLPOP q 0
    0 RPUSH q x
    3 PING ; ~0 CLIENT REPLY SKIP ; ~0 BLPOP q 0.01 ; PING after
"),
("lines for people", "
    1 ~1 !raw PING\\r\\n
    1 ~2 !raw set k \"a\\x41\"\\nget k\\n
    1 ~1 !raw \\r\\n\\n\\r\\n  ping   x  \\r\\n
    1 ~1 !raw *0\\r\\n*-1\\r\\nPING\\r\\n
    1 ~2 !raw *1\\r\\n$0\\r\\n\\r\\n*1\\r\\n$4\\r\\nPING\\r\\n
    1 ~1 !raw GET 'k\\r\\n
    1 ~1 !raw GET \"k\"x\\r\\n
    1 ~1 !raw *1\\r\\n+PING\\r\\n
    1 ~1 !raw *abc\\r\\n
    1 ~1 !raw *2147483648\\r\\n
    1 ~1 !raw *1\\r\\n$-5\\r\\n
    1 ~1 !raw *1\\r\\n$536870913\\r\\n
    1 ~1 !raw *1\\r\\n$99999999999999999999\\r\\n
    1 ~2 !raw PING\\r\\n*1\\r\\n:4\\r\\nPING\\r\\n
    1 ~0 !raw *1\\r\\n$4\\r\\nPI
    1 !close
"),
("settings and the like", "
    0 CONFIG GET maxmemory-policy ; CONFIG GET DATABASES ; CONFIG GET nosuch ; CONFIG GET ; CONFIG SET nosuch 1 ; CONFIG SET maxmemory-policy ; CONFIG NOPE ; CONFIG RESETSTAT ; CONFIG GET databases maxmemory-policy nosuch
    0 SLOWLOG LEN ; SLOWLOG GET ; SLOWLOG GET x ; SLOWLOG GET -2 ; SLOWLOG RESET ; SLOWLOG NOPE ; SLOWLOG ; SLOWLOG LEN x ; SLOWLOG GET 1 2
    0 ROLE ; WAIT 0 0 ; LASTSAVE x ; DBSIZE x ; COMMAND NOPE ; COMMAND COUNT x ; COMMAND INFO nosuch ; OBJECT NOPE k ; MEMORY NOPE ; XINFO NOPE k ; NOSUCH a b c ; QUIT x
    1 HELLO 3
    1 CONFIG GET maxmemory-policy ; COMMAND INFO nosuch ; ROLE ; SLOWLOG GET
"),
];

/// Scenarios with the password `secret`.
#[rustfmt::skip]
pub(super) const PROTECTED: &[(&str, &str)] = &[
("a stranger learns nothing", "
    1 PING ; GET ; NOSUCH x ; GET k ; MULTI ; EXEC ; EXEC x ; CLIENT ID ; SUBSCRIBE c ; HELLO ; HELLO 3 ; HELLO 9 ; INFO ; COMMAND ; QUIT
    1 AUTH wrong ; AUTH default wrong ; AUTH bob secret ; AUTH ; AUTH a b c ; HELLO 3 AUTH default wrong ; HELLO 3 AUTH bob secret ; HELLO 2 SETNAME x ; RESET
    1 ~1 !raw *11\\r\\n
    1 ~1 !raw *1\\r\\n$16385\\r\\n
    1 ~1 !raw PING\\r\\n
    1 AUTH secret ; PING ; AUTH wrong ; PING ; SET k v ; RESET ; GET k ; AUTH default secret ; GET k
    2 HELLO 3 AUTH default secret SETNAME me ; CLIENT GETNAME ; GET k ; HELLO ; RESET ; HELLO
    3 AUTH secret ; MULTI ; AUTH wrong ; GET k ; EXEC ; GET k ; DEL k
"),
];
