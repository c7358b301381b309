//! The compression function of MD5, over one block of each of several messages.

/// Bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 64;

/// One block of a message.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// The four words of the state, of each lane.
pub(crate) type States<const N: usize> = [[u32; N]; 4];

/// The words of one block of each lane, sorted by word.
pub(crate) type Words<const N: usize> = [[u32; N]; 16];

/// The state before the first block.
pub(crate) const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// The integer parts of the sines of 1 to 64, times 2 to the 32nd power.
const SINES: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];

/// Adds a block of each lane to the states. `sines` comes from [`sines`].
///
/// The loop over the lanes is the outer loop and its body has no branch, so that the compiler
/// replaces the whole loop by one pass over vectors, as wide as the caller's target features allow.
#[inline(always)]
pub(crate) fn compress<const N: usize>(
    states: &mut States<N>,
    words: &Words<N>,
    sines: &[u32; 64],
) {
    for lane in 0..N {
        let before = [states[0][lane], states[1][lane], states[2][lane], states[3][lane]];
        let word = |k: usize| words[k % 16][lane];
        let mut s = before;
        s = round(s, f::<N>, word, &sines[..16], [7, 12, 17, 22]);
        s = round(s, g::<N>, |i| word(1 + 5 * i), &sines[16..32], [5, 9, 14, 20]);
        s = round(s, h::<N>, |i| word(5 + 3 * i), &sines[32..48], [4, 11, 16, 23]);
        s = round(s, i::<N>, |i| word(7 * i), &sines[48..], [6, 10, 15, 21]);
        for k in 0..4 {
            states[k][lane] = before[k].wrapping_add(s[k]);
        }
    }
}

/// Executes a round of 16 steps. `word` returns the word of the block for a step.
#[inline(always)]
fn round(
    state: [u32; 4],
    mix: impl Fn(u32, u32, u32, u32) -> u32,
    word: impl Fn(usize) -> u32,
    sines: &[u32],
    shifts: [u32; 4],
) -> [u32; 4] {
    let four_steps = |[a, b, c, d]: [u32; 4], first: usize| {
        let step = |number: usize, [a, b, c, d]: [u32; 4]| {
            let sum = a.wrapping_add(word(first + number)).wrapping_add(sines[first + number]);
            mix(sum, b, c, d).rotate_left(shifts[number]).wrapping_add(b)
        };
        let a = step(0, [a, b, c, d]);
        let d = step(1, [d, a, b, c]);
        let c = step(2, [c, d, a, b]);
        let b = step(3, [b, c, d, a]);
        [a, b, c, d]
    };
    // Not a loop, which the compiler might leave inside of the loop over the lanes.
    four_steps(four_steps(four_steps(four_steps(state, 0), 4), 8), 12)
}

/// Adds the function F of the first round to `sum`.
#[inline(always)]
fn f<const N: usize>(sum: u32, b: u32, c: u32, d: u32) -> u32 {
    sum.wrapping_add(d ^ (b & (c ^ d)))
}

/// Adds the function G of the second round to `sum`.
///
/// Only AVX-512 has 16 lanes, and computes any function of three operands in one instruction. The
/// other form is longer, but only its last two operations wait for `b`.
#[inline(always)]
fn g<const N: usize>(sum: u32, b: u32, c: u32, d: u32) -> u32 {
    if N == 16 {
        sum.wrapping_add(c ^ (d & (b ^ c)))
    } else {
        sum.wrapping_add(c & !d).wrapping_add(b & d)
    }
}

/// Adds the function H of the third round to `sum`.
#[inline(always)]
fn h<const N: usize>(sum: u32, b: u32, c: u32, d: u32) -> u32 {
    sum.wrapping_add(b ^ (c ^ d))
}

/// Adds the function I of the fourth round to `sum`.
#[inline(always)]
fn i<const N: usize>(sum: u32, b: u32, c: u32, d: u32) -> u32 {
    sum.wrapping_add(c ^ (b | !d))
}

/// Returns the constants of the steps in such a form that the compiler does not know their values.
///
/// It would move a known constant to the end of a sum, where the addition would wait for the
/// preceding step. Unknown values are added first: a step then takes four fifths of the time.
#[inline(always)]
pub(crate) fn sines() -> &'static [u32; 64] {
    std::hint::black_box(&SINES)
}
