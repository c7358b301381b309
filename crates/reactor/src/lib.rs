//! One thread, its sockets, their deadlines.
