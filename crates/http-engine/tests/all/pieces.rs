//! Bodies of responses for tests.

use std::collections::VecDeque;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_http_engine::{BoxError, Piece, ResponseBody, Window};

/// A body of pieces, of a known length or not, that may end with an error.
pub(crate) struct Pieces {
    pub(crate) pieces: VecDeque<Piece>,
    pub(crate) declared: Option<u64>,
    pub(crate) fails: bool,
    /// The last piece was a window.
    pub(crate) is_window: bool,
}

impl Pieces {
    pub(crate) fn of(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: Vec<Bytes> = pieces.into_iter().collect();
        let declared = Some(pieces.iter().map(|piece| piece.len() as u64).sum());
        Self {
            pieces: pieces.into_iter().map(Piece::Bytes).collect(),
            declared,
            fails: false,
            is_window: false,
        }
    }

    /// Bytes, a window of a file that has `file_bytes`, and bytes.
    pub(crate) fn with_window(file_bytes: u64) -> Self {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&file_content()[..as_usize(file_bytes)]).unwrap();
        let window = Window { file: Arc::new(file), offset: WINDOW.start, bytes: WINDOW_BYTES };
        let [before, after] = ["before", "after"].map(|text| Piece::Bytes(Bytes::from(text)));
        let pieces = VecDeque::from([before, Piece::Window(window), after]);
        Self { pieces, declared: Some(WINDOW_BYTES + 11), fails: false, is_window: false }
    }
}

/// The range of the file that is sent from `/window`.
pub(crate) const WINDOW: Range<u64> = 1_000..5_000_001;
const WINDOW_BYTES: u64 = WINDOW.end - WINDOW.start;

pub(crate) fn as_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

fn file_content() -> Vec<u8> {
    (0..6_000_000u32).map(|at| b'!' + u8::try_from(at % 89).unwrap()).collect()
}

/// Returns the body of the response to `/window`.
pub(crate) fn window_body() -> String {
    let window = file_content().drain(as_usize(WINDOW.start)..as_usize(WINDOW.end)).collect();
    ["before", &String::from_utf8(window).unwrap(), "after"].concat()
}

impl ResponseBody for Pieces {
    type Source = ();

    fn poll_piece(&mut self, _context: &mut Context<'_>) -> Poll<Option<Result<Piece, BoxError>>> {
        self.is_window = matches!(self.pieces.front(), Some(Piece::Window(_)));
        if let Some(Piece::Window(window)) = self.pieces.front() {
            // It is removed when the socket has taken all of it.
            return Poll::Ready(Some(Ok(Piece::Window(window.clone()))));
        }
        match self.pieces.pop_front() {
            Some(piece) => Poll::Ready(Some(Ok(piece))),
            None if self.fails => Poll::Ready(Some(Err("as tested".into()))),
            None => Poll::Ready(None),
        }
    }

    fn is_end(&self) -> bool {
        false
    }

    fn bytes_left(&self) -> Option<u64> {
        self.declared
    }

    fn on_sent(&mut self, bytes: u64) {
        if let Some(Piece::Window(window)) = self.pieces.front_mut().filter(|_| self.is_window) {
            window.advance(bytes);
            self.pieces.pop_front_if(|piece| piece.bytes() == 0);
        }
    }
}
