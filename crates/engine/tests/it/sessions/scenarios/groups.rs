//! The texts of scenarios about consumer groups and clients that wait in them.

#[rustfmt::skip]
pub(super) const GROUPS: &[(&str, &str)] = &[
("an entry goes to one consumer of each group", "
    0 XGROUP CREATE s g $ MKSTREAM ; XGROUP CREATE s h $
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    2 XREADGROUP GROUP g b BLOCK 0 STREAMS s >
    3 HELLO 3
    3 XREADGROUP GROUP h a BLOCK 0 STREAMS s >
    0 XADD s 1-1 f v
    0 XADD s 2-1 f v
    0 XPENDING s g ; XPENDING s h ; XINFO GROUPS s ; XINFO CONSUMERS s g ; XINFO STREAM s
    1 XREADGROUP GROUP g a STREAMS s 0
    0 XACK s g 1-1 1-1 9-9 ; XACK s h 1-1 ; XPENDING s g - + 10 ; XINFO STREAM s FULL
"),
("those who wait in a group are served in order, after the whole of a transaction", "
    0 XGROUP CREATE s g 0 MKSTREAM
    1 XREADGROUP GROUP g a COUNT 1 BLOCK 0 STREAMS s >
    2 XREADGROUP GROUP g b COUNT 2 BLOCK 0 STREAMS s >
    3 XREAD BLOCK 0 STREAMS s $
    0 MULTI ; XADD s 1-1 f v ; XADD s 2-1 f v ; XADD s 3-1 f v ; XADD s 4-1 f v ; EXEC
    0 XINFO GROUPS s
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 EVAL \"redis.call('XADD', 'empty', '1-1', 'f', 'v') redis.call('XADD', 's', '5-1', 'f', 'v') return 1\" 0
    0 XPENDING s g
"),
("a group is destroyed under those who wait", "
    0 XGROUP CREATE s g $ MKSTREAM ; XGROUP CREATE s h $ ; XGROUP CREATE t g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; PING after
    2 XREADGROUP GROUP h a BLOCK 0 STREAMS s >
    3 XREADGROUP GROUP g b BLOCK 0 STREAMS t s > >
    0 XGROUP DESTROY s g ; XGROUP DESTROY s g
    0 XADD s 1-1 f v
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    1 HELLO 3
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS t >
    0 MULTI ; XADD t 1-1 f v ; XGROUP DESTROY t g ; EXEC
    1 XREADGROUP GROUP h a BLOCK 0 STREAMS s >
    0 MULTI ; XGROUP DESTROY s h ; XGROUP CREATE s h $ ; EXEC
    0 XGROUP SETID s h 0
    0 XGROUP CREATE s other $ ; XGROUP DESTROY s other
"),
("a stream is deleted under those who wait", "
    0 XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; PING after
    2 XREAD BLOCK 0 STREAMS s $
    3 BLPOP s 0
    0 DEL s
    0 XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 SET s v
    0 DEL s ; XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 MULTI ; DEL s ; RPUSH s x ; EXEC
    0 DEL s ; XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 MULTI ; DEL s ; XADD s 1-1 f v ; EXEC
    0 XGROUP CREATE s g $
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 RENAME s t
    0 XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 RENAME t s
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 RENAME s s1
    0 XGROUP CREATE s1 h 0
    1 XREADGROUP GROUP h a STREAMS s1 > ; XREADGROUP GROUP h a BLOCK 0 STREAMS s1 >
    0 !pause PEXPIRE s1 1
    0 XGROUP CREATE s g $ MKSTREAM
    1 HELLO 3
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 SELECT 1 ; FLUSHDB ; SELECT 0 ; FLUSHDB
    0 XGROUP CREATE s g $ MKSTREAM ; XGROUP CREATE t g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s t > >
    0 MULTI ; DEL t ; XADD s 1-1 f v ; EXEC
    0 XGROUP CREATE t g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s t > >
    0 FLUSHALL
    0 XGROUP CREATE t g $ MKSTREAM ; XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s t > >
    0 MULTI ; DEL t ; RPUSH u 1 ; SADD s x ; DEL s ; SADD s x ; EXEC
"),
("a position that goes back wakes nobody until something is added", "
    0 XADD s 1-1 f v ; XADD s 2-1 f v ; XGROUP CREATE s g $
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 XGROUP SETID s g 0 ; PERSIST s ; EXPIRE s 1000 ; XTRIM s MAXLEN 1 ; XSETID s 9-1 ; XACK s g 1-1 ; XGROUP CREATECONSUMER s g b
    0 XADD s 10-1 f v
    0 XPENDING s g
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s 9-1 ; XREADGROUP GROUP g nobody BLOCK 0 STREAMS s 0
"),
("nobody waits in a group inside a transaction or a script", "
    0 XGROUP CREATE s g $ MKSTREAM
    1 MULTI ; XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; XREADGROUP GROUP g a BLOCK 0 STREAMS s 0 ; EXEC
    2 HELLO 3
    2 MULTI ; XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; XADD s 1-1 f v ; XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; EXEC
    0 EVAL \"return redis.pcall('XREADGROUP', 'GROUP', 'g', 'a', 'BLOCK', 0, 'STREAMS', 's', '>')\" 0 ; EVAL \"return redis.pcall('XREADGROUP', 'GROUP', 'g', 'a', 'STREAMS', 's', '0')\" 0
    0 EVAL_RO \"return redis.call('XREADGROUP', 'GROUP', 'g', 'a', 'STREAMS', 's', '0')\" 0 ; EVAL_RO \"return redis.call('XPENDING', 's', 'g')\" 0 ; EVAL_RO \"return redis.call('XGROUP', 'DESTROY', 's', 'g')\" 0
"),
("a client that waits in a group is let go", "
    0 XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s > ; PING after
    0 CLIENT LIST ; CLIENT UNBLOCK #1 TIMEOUT
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    0 CLIENT UNBLOCK #1 ERROR
    1 XREADGROUP GROUP g a BLOCK 10 STREAMS s >
    1 HELLO 3
    1 XREADGROUP GROUP g a BLOCK 10 STREAMS s >
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    1 !close
    2 XREADGROUP GROUP g b BLOCK 0 NOACK STREAMS s >
    0 XADD s 1-1 f v
    0 XPENDING s g ; XINFO CONSUMERS s g
    2 XREADGROUP GROUP g b BLOCK -1 STREAMS s > ; XREADGROUP GROUP g b BLOCK 1.5 STREAMS s > ; XREADGROUP GROUP g b BLOCK x STREAMS s >
"),
("groups and watched keys", "
    0 XADD s 1-1 f v ; XGROUP CREATE s g 0
    1 WATCH s ; MULTI ; PING
    0 XREADGROUP GROUP g a STREAMS s > ; XACK s g 1-1 ; XCLAIM s g b 0 1-1 FORCE ; XAUTOCLAIM s g c 0 0 ; XGROUP SETID s g 0 ; XGROUP CREATECONSUMER s g d ; XGROUP DELCONSUMER s g c ; XSETID s 5-5
    1 EXEC
    1 WATCH s ; MULTI ; PING
    0 XGROUP DESTROY s g
    1 EXEC
    1 WATCH s ; MULTI ; PING
    0 XGROUP CREATE s g 0
    1 EXEC
    1 WATCH s ; MULTI ; PING
    0 XDEL s 1-1
    1 EXEC
    1 WATCH none ; MULTI ; PING
    0 XGROUP CREATE none g 0 MKSTREAM
    1 EXEC
"),
("a read after waiting has its limit", "
    0 XGROUP CREATE s g $ MKSTREAM
    1 XREADGROUP GROUP g a BLOCK 0 STREAMS s >
    2 XREAD BLOCK 0 STREAMS s $
    0 EVAL \"for i = 1, 1500 do redis.call('XADD', 's', i .. '-1', 'f', 'v') end\" 0
    0 XINFO GROUPS s
"),
("groups move and are copied with their stream", "
    0 XADD s 1-1 f v ; XADD s 2-1 f v ; XGROUP CREATE s g 0 ; XREADGROUP GROUP g a COUNT 1 STREAMS s >
    0 COPY s t ; XACK s g 1-1 ; XPENDING s g ; XPENDING t g ; RENAME t u ; XPENDING u g - + 10 ; MOVE u 1 ; SELECT 1 ; XINFO GROUPS u ; XREADGROUP GROUP g a STREAMS u 0 ; SELECT 0
    0 XDEL s 2-1 1-1 ; XINFO GROUPS s ; XGROUP DESTROY s g ; XINFO STREAM s ; XINFO GROUPS s ; XLEN s ; EXISTS s
"),
];
