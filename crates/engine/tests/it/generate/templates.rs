//! The templates of generated commands. Adding a command? Add a template for each of its forms.

#[rustfmt::skip]
pub(crate) const TEMPLATES: &[&str] = &[
    // Strings
    "GET <s>", "SET <s> <v>", "SET <k> <v>",
    "SET <s> <v> [{NX|XX}] [GET] [{EX <seconds>|PX <ms>|EXAT <at>|PXAT <atms>|KEEPTTL}] [{NX|KEEPTTL|GET}]",
    "SETEX <s> <seconds> <v>", "PSETEX <s> <ms> <v>", "SETNX <s> <v>", "GETSET <s> <v>", "GETDEL <s>",
    "GETEX <s> [{EX <seconds>|PX <ms>|EXAT <at>|PXAT <atms>|PERSIST}]",
    "MGET <k>+", "MSET (<s> <v>)+", "MSETNX (<s> <v>)+", "APPEND <s> <v>", "STRLEN <s>",
    "INCR <s>", "DECR <s>", "INCRBY <s> <i>", "DECRBY <s> <i>", "INCRBYFLOAT <s> <float>", "INCRBYFLOAT <s> <float>",
    "GETRANGE <s> <i> <i>", "SUBSTR <s> <i> <i>", "SETRANGE <s> <offset> <v>",
    // Bitmaps
    "SETBIT <s> <bit> {0|1|<n>}", "SETBIT <s> <bit> 1", "GETBIT <s> <bit>", "GETBIT <s> <i>", "BITCOUNT <s>", "BITCOUNT <s> <i> <i> [{BIT|BYTE|NIBBLE}]", "BITCOUNT <s> <i>",
    "BITPOS <s> {0|1|2|<i>}", "BITPOS <s> {0|1} <i> [<i>]", "BITPOS <s> {0|1} <i> <i> [{BIT|BYTE|NIBBLE}]", "BITOP {AND|OR|XOR|NOT|NAND} <s> <s>+", "BITOP {AND|OR|XOR} <s> <s> <s>", "BITOP NOT <s> <s>",
    "BITFIELD <s> ({GET|NOPE} <field> <bit>)+", "BITFIELD <s> [OVERFLOW {WRAP|SAT|FAIL|NOPE}] {SET|INCRBY} <field> <bit> <i> [GET <field> <bit>]", "BITFIELD <s> OVERFLOW {WRAP|SAT|FAIL} {SET|INCRBY} {i5|u5|i8|u8} {0|3|#1} <i> OVERFLOW SAT INCRBY i64 #0 <i>",
    "BITFIELD <s>", "BITFIELD <s> GET <field> <bit>", "BITFIELD_RO <s> GET <field> <bit> [GET u8 0]", "BITFIELD_RO <s> SET u8 0 1",
    // Keys
    "DUMP <k>", "RESTORE <k> <ms> <v> [REPLACE] [ABSTTL] [{IDLETIME <i>|FREQ <i>}]", "RESTORE nosuch <n> <v> [{NOPE|REPLACE}]",
    "RPUSH {o1|o2} <i>+", "RPUSH {o1|o2} <v>+", "RPUSH o1 <int>*", "SADD {p1|p2} <i>+", "SADD {p1|p2} <m>+", "DEL {o1|o2|p1|p2}", "HSET unsortable f v",
    "SORT <sortable> [LIMIT <i> <i>] [{ASC|DESC}]", "SORT <sortable> ALPHA [LIMIT <i> <i>] [{ASC|DESC}]", "SORT <sortable> BY nosort [DESC] [LIMIT <i> <i>]", "SORT <sortable> BY {s*|h1->*|*} [LIMIT <i> <i>] [DESC] [GET #] [GET s*]",
    "SORT <sortable> BY h*->f1 GET h*->f1 GET # [GET {s1|s*|#->f|*->f}]", "SORT <sortable> ALPHA [GET {#|s*}] [{ASC|DESC}] STORE {l1|l2|s2}", "SORT <sortable> BY nosort STORE l2", "SORT_RO <sortable> [ALPHA] [LIMIT <i> <i>] [STORE l1]", "SORT <sortable> [BY] [GET] [LIMIT 1] [NOPE]",
    "DEL <k>", "UNLINK <k> <k>", "EXISTS <k>+", "TYPE <k>", "TOUCH <k>+",
    "EXPIRE <k> <seconds> [{NX|XX|GT|LT}] [{XX|GT}]", "PEXPIRE <k> <ms> [{NX|XX|GT|LT}]",
    "EXPIREAT <k> <at> [{NX|XX|GT|LT}]", "PEXPIREAT <k> <atms> [{NX|XX|GT|LT|ZZ}]",
    "TTL <k>", "PTTL <k>", "EXPIRETIME <k>", "PEXPIRETIME <k>", "PERSIST <k>",
    "RENAME <k> <k>", "RENAMENX <k> <k>", "COPY <k> <k> [DB <db>] [REPLACE]", "MOVE <k> <db>",
    "KEYS <pattern>", "SCAN <cursor> [MATCH <pattern>] [COUNT {1000|<n>}] [TYPE {string|hash|zset|no}]",
    "RANDOMKEY", "DBSIZE", "SELECT <db>", "SELECT 0", "SELECT 0",
    "OBJECT {ENCODING|REFCOUNT|IDLETIME} <k>", "OBJECT ENCODING <k>", "OBJECT {FREQ|NOPE} <k>", "MEMORY USAGE <k>",
    // Hashes
    "HSET <h> (<f> <v>)+", "HSET <h> (<f> <v>)+", "HMSET <h> (<f> <v>)+", "HSET hbig (<name> <i>)*", "HSET hbig (<name> <i>)*", "HSET h2 (<name> <i>)*", "HSETNX <h> <f> <v>",
    "HGET <h> <f>", "HMGET <h> <f>+", "HDEL <h> <f>+", "HLEN <h>", "HSTRLEN <h> <f>", "HEXISTS <h> <f>",
    "HGETALL <h>", "HKEYS <h>", "HVALS <h>", "HINCRBY <h> <f> <i>", "HINCRBYFLOAT <h> <f> <float>",
    "HRANDFIELD <h> [<n>] [WITHVALUES]", "HRANDFIELD <h> -3 [WITHVALUES]", "HRANDFIELD <h> <manyof> [WITHVALUES]",
    "HSCAN <h> <cursor> [MATCH <pattern>] [COUNT {1000|<n>}]",
    // Lists
    "LPUSH <l> <v>+", "RPUSH <l> <v>+", "RPUSH <l> <m>+", "RPUSH lbig <m>*", "LPUSH l2 <m>*", "LPUSHX <l> <v>+", "RPUSHX <l> <v>+", "LPOP <l> [<n>]", "RPOP <l> [<n>]",
    "LLEN <l>", "LINDEX <l> <i>", "LSET <l> <i> <v>", "LRANGE <l> <i> <i>", "LRANGE <l> 0 -1", "LTRIM <l> <i> <i>",
    "LREM <l> <i> <v>", "LREM <l> 0 <m>", "LINSERT <l> {BEFORE|AFTER|WITHIN} <m> <v>",
    "LPOS <l> <m> [RANK <i>] [COUNT <i>] [MAXLEN <i>]", "LMOVE <l> <l> {LEFT|RIGHT} {LEFT|RIGHT|UP}", "RPOPLPUSH <l> <l>",
    "LMPOP <n> <l>+ {LEFT|RIGHT} [COUNT <n>]", "LMPOP 1 <l> {LEFT|RIGHT} [COUNT <n>]",
    "BLPOP <l>+ <timeout>", "BRPOP <l> <timeout>", "BLMOVE <l> <l> LEFT {LEFT|RIGHT|UP} <timeout>", "BRPOPLPUSH <l> <l> <timeout>",
    "BLMPOP <timeout> 1 <l> {LEFT|RIGHT} [COUNT <n>]",
    // Sets
    "SADD <t> <m>+", "SADD <t> <m>+", "SADD tbig <int>*", "SADD tbig <int>*", "SADD t1 {1|2|3|-4|55}+", "SADD t2 <name>*", "SREM <t> <m>+", "SISMEMBER <t> <m>", "SMISMEMBER <t> <m>+",
    "SMEMBERS <t>", "SCARD <t>", "SMOVE <t> <t> <m>", "SPOP <t> [<n>]", "SRANDMEMBER <t> [<n>]", "SRANDMEMBER <t> -4", "SRANDMEMBER <t> <manyof>",
    "SINTER <t>+", "SUNION <t>+", "SDIFF <t>+", "SINTERSTORE <t> <t>+", "SUNIONSTORE <t> <t>+", "SDIFFSTORE <t> <t>+",
    "SINTERCARD <n> <t>+ [LIMIT <i>]", "SINTERCARD 2 <t> <t> [LIMIT <i>]", "SSCAN <t> <cursor> [MATCH <pattern>] [COUNT {1000|<n>}]",
    // Sorted sets
    "ZADD <z> (<score> <m>)+", "ZADD <z> (<score> <m>)+", "ZADD zbig (<int> <name>)*", "ZADD z2 (<int> <name>)*",
    "ZADD <z> [{NX|XX}] [{GT|LT}] [CH] [INCR] (<score> <m>)+", "ZINCRBY <z> <score> <m>", "ZREM <z> <m>+",
    "ZSCORE <z> <m>", "ZMSCORE <z> <m>+", "ZCARD <z>", "ZRANK <z> <m>", "ZREVRANK <z> <m>",
    "ZCOUNT <z> <bound> <bound>", "ZRANGE <z> <i> <i> [WITHSCORES]", "ZRANGE <z> 0 -1 WITHSCORES", "ZREVRANGE <z> <i> <i> [WITHSCORES]",
    "ZRANGE <z> <bound> <bound> BYSCORE [REV] [LIMIT <i> <i>] [WITHSCORES]", "ZRANGE <z> <i> <i> [REV] [LIMIT <i> <i>] [{BYLEX|BYSCORE}]",
    "ZRANGEBYSCORE <z> <bound> <bound> [WITHSCORES] [LIMIT <i> <i>]", "ZREVRANGEBYSCORE <z> <bound> <bound> [WITHSCORES] [LIMIT <i> <i>]",
    "ZREMRANGEBYSCORE <z> <bound> <bound>", "ZREMRANGEBYRANK <z> <i> <i>", "ZRANGESTORE <z> <z> <bound> <bound> BYSCORE [LIMIT <i> <i>]",
    "ZRANGESTORE <z> <z> <i> <i> [REV]", "ZPOPMIN <z> [<n>]", "ZPOPMAX <z> [<n>]", "ZMPOP <n> <z>+ {MIN|MAX} [COUNT <n>]", "ZMPOP 1 <z> MIN",
    "BZPOPMIN <z>+ <timeout>", "BZPOPMAX <z> <timeout>", "BZMPOP <timeout> 1 <z> {MIN|MAX} [COUNT <n>]",
    "ZRANDMEMBER <z> [<n>] [WITHSCORES]", "ZRANDMEMBER <z> -3 [WITHSCORES]", "ZRANDMEMBER <z> <manyof> [WITHSCORES]", "ZSCAN <z> <cursor> [MATCH <pattern>] [COUNT {1000|<n>}]",
    "ZUNION 2 <z> {<z>|<t>} [WEIGHTS <score> <score>] [AGGREGATE {SUM|MIN|MAX|AVG}] [WITHSCORES]",
    "ZINTER <n> <z>+ [AGGREGATE {SUM|MIN|MAX}] [WITHSCORES]", "ZDIFF 2 <z> <z> [WITHSCORES]", "ZDIFF <n> <z>+ [WEIGHTS 1]",
    "ZUNIONSTORE <z> 2 <z> {<z>|<t>} [WEIGHTS <score> <score>] [AGGREGATE {SUM|MIN|MAX}]", "ZINTERSTORE <z> <n> <z>+", "ZDIFFSTORE <z> 2 <z> <z>",
    "ZINTERCARD <n> <z>+ [LIMIT <i>]", "ZINTERCARD 2 <z> <z> [LIMIT <i>]",
    "ZADD <y> (0 <m>)+", "ZADD <y> (0 <m>)+", "ZADD y2 (0 <name>)*", "ZREM <y> <m>+", "ZRANGEBYLEX <y> <lex> <lex> [LIMIT <i> <i>]", "ZREVRANGEBYLEX <y> <lex> <lex> [LIMIT <i> <i>]",
    "ZLEXCOUNT <y> <lex> <lex>", "ZREMRANGEBYLEX <y> <lex> <lex>", "ZRANGE <y> <lex> <lex> BYLEX [REV] [LIMIT <i> <i>]",
    // Streams
    "XADD <x> <newid> (<f> <v>)+", "XADD <x> <newid> (<f> <v>)+", "XADD <x> <newid> f1 <v>", "XADD <x> <newid> f1 <v>", "XADD <x> {1-*|10-*|300-*} f1 <v>",
    "XADD xbig * f1 <v> f2 <v>", "XADD xbig [NOMKSTREAM] [MAXLEN [{~|=}] {<n>|150|20}] [LIMIT <n>] * (<f> <v>)+",
    "XADD <x> MINID [{~|=}] <id> [LIMIT <n>] <newid> f1 <v>", "XADD xbig MAXLEN ~ 20 MINID 5 * f v", "XADD <x> MAXLEN {~ 3|5} <newid> f1 <v>",
    "XTRIM <x> {MAXLEN|MINID} [{~|=}] <n> [LIMIT <n>]", "XTRIM xbig MAXLEN ~ {150|20|100}", "XTRIM <x> MINID [~] <id>",
    "XDEL <x> <id>+", "XLEN <x>", "XRANGE <x> {-|<id>|<open>} {+|<id>|<open>} [COUNT <i>]", "XREVRANGE <x> {+|<id>} {-|<id>} [COUNT <i>]", "XRANGE <x> - +",
    "XREAD [COUNT <i>] STREAMS <x> {$|<id>}", "XREAD STREAMS <x> <x> {0|<id>} {>|<id>|$}", "XREAD [COUNT <n>] BLOCK <wait> STREAMS <x> {$|<id>}",
    "XREAD [{GROUP a b|NOACK}] [STREAMS] <x> <id>", "XINFO STREAM <x>", "XINFO STREAM <x> [{FULL|FULL COUNT <i>|HALF}]", "XINFO {NOPE|STREAM}", "XSETID <x> <newid> [ENTRIESADDED <i>] [MAXDELETEDID <id>]",
    // Consumer groups. Idle times are far below or far above the limits, so that the speed of a server does not matter.
    "XGROUP CREATE <x> <g> {$|0|<id>} [MKSTREAM] [ENTRIESREAD <i>]", "XGROUP CREATE <x> <g> 0", "XGROUP CREATE xbig <g> {0|$} MKSTREAM", "XGROUP SETID <x> <g> {$|0|-|+|<id>} [ENTRIESREAD <i>] [MKSTREAM]",
    "XGROUP CREATECONSUMER <x> <g> <c>", "XGROUP {NOPE|CREATE|DESTROY <x>|SETID <x> <g>}", "XGROUP CREATE <x> <g> 0 MKSTREAM ENTRIESREAD 1 MKSTREAM",
    "XREADGROUP GROUP <g> <c> [COUNT <i>] [NOACK] STREAMS <x> >", "XREADGROUP GROUP <g> <c> COUNT <n> STREAMS <x> >", "XREADGROUP GROUP <g> <c> COUNT 2 STREAMS <x> >", "XREADGROUP GROUP <g> <c> [COUNT <n>] STREAMS <x> <id>", "XREADGROUP GROUP <g> <c> STREAMS <x> 0",
    "XREADGROUP GROUP <g> <c> [COUNT 1] STREAMS <x> <x> {>|0|$} {>|<id>}", "XREADGROUP [NOACK] GROUP <g> <c> BLOCK <wait> STREAMS <x> {>|0}", "XREADGROUP {COUNT 1|GROUP a} [NOACK] STREAMS <x> >",
    "XACK <x> <g> <id>+", "XACK <x> <g> <id>+", "XPENDING <x> <g>", "XPENDING <x> <g> - + 10", "XPENDING <x> <g> [IDLE {0|250000}] {-|<id>|<open>} {+|<id>|<open>} <n> [<c>]",
    "XCLAIM <x> <g> <c> {0|0|250000} <id>+ [FORCE] [JUSTID] [{IDLE {0|500000|abc}|TIME {0|1000|<atms>}}] [RETRYCOUNT <i>] [LASTID <id>]", "XCLAIM <x> <g> <c> 0 <id>+ FORCE", "XCLAIM <x> <g> <c> 0 <id> [{NOPE|IDLE|FORCE}]",
    "XAUTOCLAIM <x> <g> <c> {0|0|250000} {0|-|<id>|<open>} [COUNT <n>] [JUSTID]", "XAUTOCLAIM <x> <g> <c> 0 0 COUNT {1|2|3}", "XAUTOCLAIM <x> <g> <c> {0|abc|-5} {0|$|+} [{COUNT|NOPE|COUNT 9223372036854775807}]",
    "XINFO GROUPS <x>", "XINFO CONSUMERS <x> <g>", "XINFO STREAM <x> FULL [COUNT <n>]", "XINFO {GROUPS|CONSUMERS} <x> [<g>] [x]",
    // The server itself
    "PING [<v>]", "ECHO <v>", "TIME", "NOSUCH <v>+", "GET", "OBJECT", "MEMORY {USAGE|NOPE}",
];

/// Commands that would keep all values small if they were frequent.
#[rustfmt::skip]
pub(crate) const RARE: &[&str] = &["XGROUP DESTROY <x> <g>", "XGROUP DESTROY <x> <g>", "XGROUP DESTROY <x> <g>", "XGROUP DELCONSUMER <x> <g> <c>", "XGROUP DELCONSUMER <x> <g> <c>", "XGROUP DELCONSUMER <x> <g> <c>", "FLUSHDB [{SYNC|ASYNC|NOW}]", "FLUSHALL [{SYNC|NOW}]"];

/// Commands that are generated in bursts.
#[rustfmt::skip]
pub(crate) const BURSTS: &[&str] = &[
    "XADD xbig * f1 <v> f2 <v>", "XADD xbig * {f1 <i>|f1 <i> f2 <v>}", "XADD xbig MAXLEN ~ 150 * f1 <i>", "XADD x1 <newid> f1 <v>", "XADD xbig * <f> <v>",
    "XADD xbig MAXLEN ~ {10|100|200} * event added jobId <i> <f> <v>", "RPUSH lbig <m>*", "ZADD zbig (<score> <name>)*",
    "XREADGROUP GROUP g1 <c> COUNT 3 STREAMS xbig >", "XACK {xbig|x1} <g> <id>",
    ];
