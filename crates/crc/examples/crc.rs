//! Computes the CRC-32C of bytes in one or several parts.
#![expect(clippy::print_stdout, reason = "an example prints")]

fn main() {
    let whole = haul_crc::crc32c(b"123456789");
    assert_eq!(whole, 0xe306_9283); // the check value of CRC-32C
    assert_eq!(haul_crc::crc32c_append(haul_crc::crc32c(b"1234"), b"56789"), whole);
    println!("{whole:08x}");
}
