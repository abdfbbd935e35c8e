//! Rules by which two replies that differ count as equal, with reasons.
//!
//! | commands | rule | reason |
//! |---|---|---|
//! | `KEYS`, set algebra; `SMEMBERS`, `HGETALL`, `HKEYS`, `HVALS` of tables | equal after sorting | hash tables have no order; small encodings must agree in order |
//! | the `SCAN` family | equal after sorting, if both scans are complete | hash tables have no order, and cursors are private |
//! | `BLMOVE`, `BRPOPLPUSH` | either kind of nil | Redis times out here; the keyspace alone cannot block |
//! | `SPOP`, `SRANDMEMBER`, `HRANDFIELD`, `ZRANDMEMBER`, `RANDOMKEY` | same shape | random |
//! | `DUMP` | same type | each has a format of its own |
//! | `SORT` by numbers that Redis refuses | anything | Redis 7.0 takes an old `errno` of another command for an error of its own |
//! | `SORT` of sets with `BY nosort` | equal after sorting; same length with `LIMIT` | hash tables have no order |
//! | `TTL`, `PTTL`, `EXPIRETIME`, `PEXPIRETIME` | within two seconds | the clocks are read at different times |
//! | `LPOS … RANK -9223372036854775808` | anything | overflows in Redis 7.0; the engine answers as 7.2 does |
//! | `TIME` | same shape | the clocks are read at different times |
//! | `OBJECT ENCODING` of strings | any of the three | Redis keeps the encoding a string was created with |
//! | `OBJECT ENCODING` of sets | a list for a table | from 7.2 on, small sets are lists; `newer.rs` tests it |
//! | `OBJECT REFCOUNT/IDLETIME`, `MEMORY USAGE` | same type | implementation details |
//! | `XINFO STREAM` | without `radix-tree-nodes` | implementation detail |
//! | `XINFO`, `XPENDING` | idle times and times within two seconds | the clocks are read at different times |

/// A parsed reply.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tree {
    Line(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    Double(Vec<u8>),
    Nil,
    /// Arrays, sets and maps, with their type byte.
    Array(u8, Vec<Tree>),
}

pub(crate) fn parse(bytes: &[u8]) -> Tree {
    let mut at = 0;
    let tree = parse_at(bytes, &mut at);
    assert_eq!(at, bytes.len(), "more than one reply: {}", bytes.escape_ascii());
    tree
}

fn parse_at(bytes: &[u8], at: &mut usize) -> Tree {
    let rest = &bytes[*at..];
    let len = rest.windows(2).position(|pair| pair == b"\r\n").unwrap_or_else(|| {
        panic!("not a reply: {}", bytes.escape_ascii());
    });
    let number = || std::str::from_utf8(&rest[1..len]).unwrap().parse::<i64>().unwrap();
    *at += len + 2;
    match rest[0] {
        b':' => Tree::Int(number()),
        b'$' | b'*' if number() < 0 => Tree::Nil,
        b'$' => {
            let text = bytes[*at..*at + number() as usize].to_vec();
            *at += text.len() + 2;
            Tree::Bulk(text)
        }
        kind @ (b'*' | b'~') => {
            Tree::Array(kind, (0..number()).map(|_| parse_at(bytes, at)).collect())
        }
        b'%' => Tree::Array(b'%', (0..2 * number()).map(|_| parse_at(bytes, at)).collect()),
        b'_' => Tree::Nil,
        b',' => Tree::Double(rest[1..len].to_vec()),
        _ => Tree::Line(rest[..len].to_vec()),
    }
}

/// Whether the value of the command's key has its small, ordered encoding.
pub(crate) type Ordered<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

pub(crate) fn same(args: &[Vec<u8>], ours: &[u8], theirs: &[u8], ordered: Ordered<'_>) -> bool {
    if ours == theirs {
        return true;
    }
    let lowest = args.iter().any(|arg| arg == b"-9223372036854775808");
    if lowest && args[0].eq_ignore_ascii_case(b"LPOS") {
        return true;
    }
    let sorts = args[0].to_ascii_uppercase().starts_with(b"SORT");
    if sorts && theirs.starts_with(b"-ERR One or more scores can't be converted") {
        return true;
    }
    let (ours, theirs) = (parse(ours), parse(theirs));
    if matches!(ours, Tree::Line(_)) || matches!(theirs, Tree::Line(_)) {
        return false;
    }
    let name = args[0].to_ascii_uppercase();
    let sub = args.get(1).map(|arg| arg.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), sub.as_slice()) {
        (b"KEYS" | b"SINTER" | b"SUNION" | b"SDIFF", _) => sorted(&ours, 1) == sorted(&theirs, 1),
        (b"SMEMBERS" | b"HKEYS" | b"HVALS", _) => {
            !ordered(&args[1]) && sorted(&ours, 1) == sorted(&theirs, 1)
        }
        (b"HGETALL", _) => !ordered(&args[1]) && sorted(&ours, 2) == sorted(&theirs, 2),
        (b"SCAN" | b"SSCAN" | b"HSCAN" | b"ZSCAN", _) if !from_start(args) => {
            shape(&ours) == shape(&theirs)
        }
        (b"BLMOVE" | b"BRPOPLPUSH", _) => ours == theirs,
        (b"SCAN" | b"SSCAN", _) => scanned(&ours, &theirs, 1),
        (b"HSCAN" | b"ZSCAN", _) => scanned(&ours, &theirs, 2),
        (b"SPOP" | b"SRANDMEMBER" | b"HRANDFIELD" | b"ZRANDMEMBER" | b"RANDOMKEY" | b"TIME", _) => {
            shape(&ours) == shape(&theirs)
        }
        (b"DUMP", _) => shape(&ours) == shape(&theirs),
        (b"SORT" | b"SORT_RO", _) if unordered_sort(args) => {
            let part = args.iter().any(|arg| arg.eq_ignore_ascii_case(b"LIMIT"));
            shape(&ours) == shape(&theirs) && (part || sorted(&ours, 1) == sorted(&theirs, 1))
        }
        (b"TTL" | b"EXPIRETIME", _) => near(&ours, &theirs, 2),
        (b"PTTL" | b"PEXPIRETIME", _) => near(&ours, &theirs, 2000),
        (b"OBJECT", b"ENCODING") => {
            let is = |tree: &Tree, word: &[u8]| matches!(tree, Tree::Bulk(text) if text == word);
            let small_set =
                is(&ours, b"listpack") && is(&theirs, b"hashtable") && !ordered(&args[2]);
            small_set || string_encoding(&ours) && string_encoding(&theirs)
        }
        (b"OBJECT", b"REFCOUNT" | b"IDLETIME") | (b"MEMORY", _) => {
            matches!((ours, theirs), (Tree::Int(_), Tree::Int(_)))
        }
        (b"XINFO", b"STREAM") => alike(&without_nodes(ours), &without_nodes(theirs), is_time),
        (b"XINFO", b"CONSUMERS") => alike(&ours, &theirs, |items, at| is_after(items, at, b"idle")),
        // Entry, consumer, idle time, deliveries.
        (b"XPENDING", _) => alike(&ours, &theirs, |items, at| items.len() == 4 && at == 2),
        _ => false,
    }
}

/// Whether `SORT` leaves the order open: a set in its own order, by a pattern without a star.
fn unordered_sort(args: &[Vec<u8>]) -> bool {
    let constant =
        |pair: &[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"BY") && !pair[1].contains(&b'*');
    args[1].starts_with(b"p") && args.windows(2).any(constant)
}

fn from_start(args: &[Vec<u8>]) -> bool {
    let at = if args[0].eq_ignore_ascii_case(b"SCAN") { 1 } else { 2 };
    args.get(at).is_some_and(|cursor| cursor.is_empty() || cursor == b"0")
}

fn sorted(tree: &Tree, width: usize) -> Option<(u8, Vec<&[Tree]>)> {
    let Tree::Array(kind, items) = tree else { return None };
    let mut groups: Vec<&[Tree]> = items.chunks(width).collect();
    groups.sort();
    Some((*kind, groups))
}

fn scanned(ours: &Tree, theirs: &Tree, width: usize) -> bool {
    let (Tree::Array(_, ours), Tree::Array(_, theirs)) = (ours, theirs) else { return false };
    let end = Tree::Bulk(b"0".to_vec());
    if ours[0] != end || theirs[0] != end {
        return true;
    }
    sorted(&ours[1], width) == sorted(&theirs[1], width)
}

/// The type and length of a reply.
fn shape(tree: &Tree) -> (u8, usize) {
    match tree {
        Tree::Line(_) => (0, 0),
        Tree::Int(_) => (1, 0),
        Tree::Bulk(_) => (2, 0),
        Tree::Nil => (3, 0),
        Tree::Double(_) => (4, 0),
        Tree::Array(kind, items) => (*kind, items.len()),
    }
}

fn near(ours: &Tree, theirs: &Tree, most: i64) -> bool {
    match (ours, theirs) {
        (Tree::Int(ours), Tree::Int(theirs)) => {
            *ours >= 0 && *theirs >= 0 && (ours - theirs).abs() <= most
        }
        _ => false,
    }
}

fn string_encoding(tree: &Tree) -> bool {
    matches!(tree, Tree::Bulk(word) if [&b"int"[..], b"embstr", b"raw"].contains(&&**word))
}

/// Whether two replies are equal, except for times, which may differ by two seconds.
fn alike(ours: &Tree, theirs: &Tree, is_time: fn(&[Tree], usize) -> bool) -> bool {
    match (ours, theirs) {
        (Tree::Array(our_kind, our_items), Tree::Array(their_kind, their_items)) => {
            let pairs = our_items.iter().zip(their_items).enumerate();
            our_kind == their_kind
                && our_items.len() == their_items.len()
                && pairs.into_iter().all(|(at, (ours, theirs))| {
                    ours == theirs
                        || is_time(our_items, at) && near(ours, theirs, 2000)
                        || alike(ours, theirs, is_time)
                })
        }
        _ => ours == theirs,
    }
}

/// Whether an element is a time in milliseconds since 1970.
fn is_time(items: &[Tree], at: usize) -> bool {
    matches!(items[at], Tree::Int(ms) if ms > 1_000_000_000_000)
}

fn is_after(items: &[Tree], at: usize, name: &[u8]) -> bool {
    at > 0 && items[at - 1] == Tree::Bulk(name.to_vec())
}

fn without_nodes(mut tree: Tree) -> Tree {
    if let Tree::Array(_, items) = &mut tree
        && let Some(nodes) = items.get_mut(5)
    {
        *nodes = Tree::Nil;
    }
    tree
}
