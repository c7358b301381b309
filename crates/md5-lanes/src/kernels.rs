//! Kernels: loops over the blocks of all lanes, compiled for one set of vector instructions each.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls of functions with target features, and vector loads")
)]

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{
    __m512i, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_shuffle_i32x4, _mm512_storeu_si512,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use crate::rounds::{Block, States, Words, compress, sines};

/// Adds blocks of each lane to the states: as many as the shortest of the slices has.
pub(crate) type Kernel<const N: usize> = fn(&mut States<N>, &[&[Block]; N]);

/// Returns the kernel for 16 lanes if the processor has the instructions.
pub(crate) fn sixteen() -> Option<Kernel<16>> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the processor has the target features of the function.
        return Some(|states, blocks| unsafe { with_avx512(states, blocks) });
    }
    None
}

/// Returns the kernel for 8 lanes if the processor has the instructions.
pub(crate) fn eight() -> Option<Kernel<8>> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
        // SAFETY: the processor has the target features of the function.
        return Some(|states, blocks| unsafe { with_avx512vl(states, blocks) });
    }
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the target features of the function.
        return Some(|states, blocks| unsafe { with_avx2(states, blocks) });
    }
    None
}

/// Adds blocks of each lane to the states, with the instructions that every processor has.
#[inline(always)]
pub(crate) fn portable<const N: usize>(states: &mut States<N>, blocks: &[&[Block]; N]) {
    let sines = sines();
    for number in 0..shortest(blocks) {
        compress(states, &transpose(blocks, number), sines);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(states: &mut States<8>, blocks: &[&[Block]; 8]) {
    portable(states, blocks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn with_avx512vl(states: &mut States<8>, blocks: &[&[Block]; 8]) {
    portable(states, blocks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn with_avx512(states: &mut States<16>, blocks: &[&[Block]; 16]) {
    let sines = sines();
    for number in 0..shortest(blocks) {
        compress(states, &transpose_in_registers(blocks, number), sines);
    }
}

#[inline(always)]
fn shortest<const N: usize>(blocks: &[&[Block]; N]) -> usize {
    let mut shortest = usize::MAX;
    for lane in blocks {
        shortest = shortest.min(lane.len());
    }
    shortest
}

/// Returns the words of block `number` of all lanes, sorted by word.
#[inline(always)]
fn transpose<const N: usize>(blocks: &[&[Block]; N], number: usize) -> Words<N> {
    let mut words = [[0; N]; 16];
    for (lane, blocks) in blocks.iter().enumerate() {
        let (chunks, _) = blocks[number].as_chunks();
        for (word, bytes) in words.iter_mut().zip(chunks) {
            word[lane] = u32::from_le_bytes(*bytes);
        }
    }
    words
}

/// Returns the words of block `number` of all lanes, sorted by word.
///
/// The 16 blocks are the rows of a matrix of 16 by 16 words. The first half transposes each square
/// of 4 by 4 words, the second half the matrix of these squares. The compiler vectorizes the plain
/// loop of [`transpose`] poorly for so many lanes: a block of 16 lanes takes 210 ns then, not 125.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_in_registers(blocks: &[&[Block]; 16], number: usize) -> Words<16> {
    // No closures: one given to a function without these target features is not inlined.
    let mut rows = [_mm512_setzero_si512(); 16];
    for (row, blocks) in rows.iter_mut().zip(blocks) {
        let block: &Block = &blocks[number];
        // SAFETY: the block has the 64 bytes that are read.
        *row = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    }
    let mut squares = [_mm512_setzero_si512(); 16];
    for (rows, squares) in rows.as_chunks::<4>().0.iter().zip(squares.as_chunks_mut::<4>().0) {
        *squares = transpose_squares(*rows);
    }
    let mut words = [[0; 16]; 16];
    for k in 0..4 {
        let column = [squares[k], squares[4 + k], squares[8 + k], squares[12 + k]];
        for (square, word) in gather_quarters(column).into_iter().enumerate() {
            let target: &mut [u32; 16] = &mut words[4 * square + k];
            // SAFETY: the array has the 64 bytes that are written.
            unsafe { _mm512_storeu_si512(target.as_mut_ptr().cast(), word) };
        }
    }
    words
}

/// Transposes the four squares of 4 by 4 words of four rows.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose_squares([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (low_ab, high_ab) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
    let (low_cd, high_cd) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
    [
        _mm512_unpacklo_epi64(low_ab, low_cd),
        _mm512_unpackhi_epi64(low_ab, low_cd),
        _mm512_unpacklo_epi64(high_ab, high_cd),
        _mm512_unpackhi_epi64(high_ab, high_cd),
    ]
}

/// Returns the first quarters of the four vectors, then the second ones, and so on.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn gather_quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    let even = (_mm512_shuffle_i32x4::<EVEN>(a, b), _mm512_shuffle_i32x4::<EVEN>(c, d));
    let odd = (_mm512_shuffle_i32x4::<ODD>(a, b), _mm512_shuffle_i32x4::<ODD>(c, d));
    [
        _mm512_shuffle_i32x4::<EVEN>(even.0, even.1),
        _mm512_shuffle_i32x4::<EVEN>(odd.0, odd.1),
        _mm512_shuffle_i32x4::<ODD>(even.0, even.1),
        _mm512_shuffle_i32x4::<ODD>(odd.0, odd.1),
    ]
}
