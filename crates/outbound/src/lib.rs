//! HTTP to addresses that others choose: guarded, limited, signed.
