//! Shortens a failing sequence before a person reads it.

/// Removes ever smaller parts of `steps` while `fails` still holds for the rest.
pub(crate) fn shrink<T: Clone>(mut steps: Vec<T>, mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < steps.len() {
            let end = (at + size).min(steps.len());
            let rest: Vec<T> = [&steps[..at], &steps[end..]].concat();
            if fails(&rest) {
                steps = rest;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    steps
}

#[test]
fn what_does_not_matter_is_removed() {
    let steps: Vec<u32> = (0..1000).collect();
    let fails = |rest: &[u32]| rest.contains(&17) && rest.contains(&900);
    assert_eq!(shrink(steps, fails), [17, 900]);
}
