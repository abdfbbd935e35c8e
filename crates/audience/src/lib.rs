//! Recipients of campaigns: read from files, with normalised addresses; and the texts that they get.
