//! Selects the media type of a file by its name. Performs no I/O.

/// Extensions whose types the list of `new_mime_guess` does not have as they are registered.
/// Sorted.
const CORRECTED: [(&str, &str); 57] = [
    ("arrow", "application/vnd.apache.arrow.file"),
    ("arrows", "application/vnd.apache.arrow.stream"),
    ("cbor", "application/cbor"),
    ("cbr", "application/vnd.comicbook-rar"),
    ("cbz", "application/vnd.comicbook+zip"),
    ("cjs", "text/javascript"),
    ("dbf", "application/vnd.dbf"),
    ("dcm", "application/dicom"),
    ("dll", "application/vnd.microsoft.portable-executable"),
    ("dmg", "application/x-apple-diskimage"),
    ("emf", "image/emf"),
    ("fdf", "application/fdf"),
    ("gpkg", "application/geopackage+sqlite3"),
    ("ifc", "application/p21"),
    ("jsonl", "application/x-ndjson"),
    ("m2ts", "video/mp2t"),
    ("m3u", "audio/mpegurl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4b", "audio/mp4"),
    ("m4p", "audio/mp4"),
    ("m4r", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("mjs", "text/javascript"),
    ("mka", "audio/matroska"),
    ("mkv", "video/matroska"),
    ("mml", "application/mathml+xml"),
    ("mts", "video/mp2t"),
    ("mvt", "application/vnd.mapbox-vector-tile"),
    ("ndjson", "application/x-ndjson"),
    ("nq", "application/n-quads"),
    ("p12", "application/pkcs12"),
    ("pem", "application/pem-certificate-chain"),
    ("pfx", "application/pkcs12"),
    ("pgn", "application/vnd.chess-pgn"),
    ("rtf", "application/rtf"),
    ("sarif", "application/sarif+json"),
    ("sh", "application/x-sh"),
    ("shp", "application/vnd.shp"),
    ("sql", "application/sql"),
    ("sqlite", "application/vnd.sqlite3"),
    ("sqlite3", "application/vnd.sqlite3"),
    ("step", "model/step"),
    ("stp", "model/step"),
    ("stpx", "model/step+xml"),
    ("stpz", "model/step+zip"),
    ("tbz", "application/x-bzip2"),
    ("tbz2", "application/x-bzip2"),
    ("tgz", "application/gzip"),
    ("txz", "application/x-xz"),
    ("tzst", "application/zstd"),
    ("usda", "model/vnd.usda"),
    ("vcf", "text/vcard"),
    ("wgsl", "text/wgsl"),
    ("xfdf", "application/xfdf"),
    ("xml", "text/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// The longest extension that is looked up.
const EXTENSION_BYTES_MAX: usize = 16;

/// Returns the media type that IANA registers for the extension of a name or path, in any case;
/// `None` if there is none. If IANA registers none, but all browsers know one, returns that.
///
/// # Source
/// IANA, *Media Types*, with the extensions of Debian's `media-types` 10; RFC 2046, RFC 3555
/// (`video/mp2t`), RFC 7292 (`.p12`), RFC 8216 (`.m3u8`), RFC 8555 (`.pem`), RFC 8949 (`.cbor`),
/// RFC 9239 (JavaScript), RFC 9512 (YAML), RFC 9559 (Matroska). An archive that is compressed as a
/// whole has the type of its compression, as `.tar.xz` has.
#[must_use]
pub fn media_type(path: &[u8]) -> Option<&'static str> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let dot = memchr::memrchr(b'.', name)?;
    let extension = str::from_utf8(&name[dot + 1..]).ok()?;
    if extension.len() > EXTENSION_BYTES_MAX {
        return None;
    }
    let lower = extension.to_ascii_lowercase();
    match CORRECTED.binary_search_by_key(&&*lower, |(extension, _)| extension) {
        Ok(index) => Some(CORRECTED[index].1),
        Err(_) => new_mime_guess::from_ext(&lower).first_raw(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The media types that the web uses most, with their extensions.
    const WEB_TYPES: &[(&str, &str)] = &[
        ("text/html", "html htm"),
        ("text/css", "css"),
        ("text/javascript", "js mjs cjs"),
        ("application/json", "json map"),
        ("text/xml", "xml"),
        ("text/csv", "csv"),
        ("text/tab-separated-values", "tsv"),
        ("text/plain", "txt"),
        ("text/markdown", "md"),
        ("text/calendar", "ics"),
        ("text/vcard", "vcf"),
        ("text/vtt", "vtt"),
        ("image/svg+xml", "svg"),
        ("image/png", "png"),
        ("image/apng", "apng"),
        ("image/jpeg", "jpg jpeg"),
        ("image/gif", "gif"),
        ("image/webp", "webp"),
        ("image/avif", "avif"),
        ("image/jxl", "jxl"),
        ("image/heic", "heic"),
        ("image/heif", "heif"),
        ("image/bmp", "bmp"),
        ("image/vnd.microsoft.icon", "ico"),
        ("image/tiff", "tif tiff"),
        ("image/jp2", "jp2"),
        ("image/vnd.adobe.photoshop", "psd"),
        ("audio/mpeg", "mp3"),
        ("audio/mp4", "m4a m4b m4p m4r"),
        ("audio/aac", "aac"),
        ("audio/ogg", "ogg oga opus"),
        ("audio/flac", "flac"),
        ("audio/wav", "wav"),
        ("audio/midi", "mid midi"),
        ("audio/webm", "weba"),
        ("audio/mpegurl", "m3u"),
        ("application/vnd.apple.mpegurl", "m3u8"),
        ("video/mp4", "mp4 m4v"),
        ("video/webm", "webm"),
        ("video/ogg", "ogv"),
        ("video/quicktime", "mov"),
        ("video/mpeg", "mpeg mpg"),
        ("video/mp2t", "ts mts m2ts"),
        ("video/matroska", "mkv"),
        ("audio/matroska", "mka"),
        ("video/x-msvideo", "avi"),
        ("video/3gpp", "3gp"),
        ("application/dash+xml", "mpd"),
        ("font/woff", "woff"),
        ("font/woff2", "woff2"),
        ("font/ttf", "ttf"),
        ("font/otf", "otf"),
        ("font/collection", "ttc"),
        ("application/vnd.ms-fontobject", "eot"),
        ("application/pdf", "pdf"),
        ("application/zip", "zip"),
        ("application/gzip", "gz tgz"),
        ("application/zstd", "zst tzst"),
        ("application/x-bzip2", "bz2 tbz tbz2"),
        ("application/x-xz", "xz txz"),
        ("application/x-7z-compressed", "7z"),
        ("application/vnd.rar", "rar"),
        ("application/x-tar", "tar"),
        ("application/java-archive", "jar"),
        ("application/msword", "doc"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("application/vnd.ms-excel", "xls"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
        ("application/vnd.ms-powerpoint", "ppt"),
        ("application/vnd.openxmlformats-officedocument.presentationml.presentation", "pptx"),
        ("application/vnd.oasis.opendocument.text", "odt"),
        ("application/vnd.oasis.opendocument.spreadsheet", "ods"),
        ("application/vnd.oasis.opendocument.presentation", "odp"),
        ("application/rtf", "rtf"),
        ("application/epub+zip", "epub"),
        ("application/wasm", "wasm"),
        ("application/manifest+json", "webmanifest"),
        ("application/ld+json", "jsonld"),
        ("application/geo+json", "geojson"),
        ("application/yaml", "yaml yml"),
        ("application/toml", "toml"),
        ("application/xhtml+xml", "xhtml"),
        ("application/rss+xml", "rss"),
        ("application/atom+xml", "atom"),
        ("application/xslt+xml", "xsl xslt"),
        ("application/sql", "sql"),
        ("application/x-sh", "sh"),
        ("application/vnd.android.package-archive", "apk"),
        ("application/vnd.debian.binary-package", "deb"),
        ("application/x-rpm", "rpm"),
        ("application/x-iso9660-image", "iso"),
        ("application/x-apple-diskimage", "dmg"),
        ("application/vnd.microsoft.portable-executable", "exe dll"),
        ("application/octet-stream", "bin"),
        ("application/x-bittorrent", "torrent"),
        ("model/gltf-binary", "glb"),
        ("model/gltf+json", "gltf"),
        ("model/stl", "stl"),
        ("model/obj", "obj"),
        ("model/vnd.usdz+zip", "usdz"),
        ("application/vnd.apache.parquet", "parquet"),
        ("application/x-ndjson", "ndjson jsonl"),
        ("application/postscript", "ps"),
        ("application/vnd.sqlite3", "sqlite sqlite3"),
        ("application/geopackage+sqlite3", "gpkg"),
        ("application/vnd.google-earth.kml+xml", "kml"),
        ("application/vnd.google-earth.kmz", "kmz"),
        ("application/ttml+xml", "ttml"),
        ("application/vnd.apache.arrow.file", "arrow"),
        ("application/vnd.apache.arrow.stream", "arrows"),
        ("application/cbor", "cbor"),
        ("application/vnd.comicbook-rar", "cbr"),
        ("application/vnd.comicbook+zip", "cbz"),
        ("application/vnd.dbf", "dbf"),
        ("application/dicom", "dcm"),
        ("image/emf", "emf"),
        ("application/fdf", "fdf"),
        ("application/p21", "ifc"),
        ("application/mathml+xml", "mml"),
        ("application/vnd.mapbox-vector-tile", "mvt"),
        ("application/n-quads", "nq"),
        ("application/pkcs12", "p12 pfx"),
        ("application/pem-certificate-chain", "pem"),
        ("application/vnd.chess-pgn", "pgn"),
        ("application/sarif+json", "sarif"),
        ("application/vnd.shp", "shp"),
        ("model/step", "step stp"),
        ("model/step+xml", "stpx"),
        ("model/step+zip", "stpz"),
        ("model/vnd.usda", "usda"),
        ("text/wgsl", "wgsl"),
        ("image/wmf", "wmf"),
        ("application/xfdf", "xfdf"),
        ("message/rfc822", "eml"),
    ];

    #[test]
    fn types_that_the_web_uses_are_the_registered_ones() {
        for &(expected, extensions) in WEB_TYPES {
            for extension in extensions.split(' ') {
                let name = format!("a.b/name.{extension}");
                assert_eq!(media_type(name.as_bytes()), Some(expected), "{extension}");
                let upper = name.to_uppercase();
                assert_eq!(media_type(upper.as_bytes()), Some(expected), "{upper}");
            }
        }
    }

    #[test]
    fn corrections_are_sorted_and_needed() {
        assert!(CORRECTED.is_sorted_by(|a, b| a.0 < b.0));
        for (extension, corrected) in CORRECTED {
            let listed = new_mime_guess::from_ext(extension).first_raw();
            assert_ne!(listed, Some(corrected), "{extension}");
        }
    }

    #[test]
    fn names_without_a_known_extension_have_no_type() {
        for name in ["", "file", "file.", "a.d/file", "a.\u{e4}", "a.unknown-extension", ".", "a./"]
        {
            assert_eq!(media_type(name.as_bytes()), None, "{name}");
        }
        assert_eq!(media_type(b"a.\xff\xfe"), None);
        assert_eq!(media_type(b"a.tar.gz"), Some("application/gzip"));
        assert_eq!(media_type(b".css"), Some("text/css"));
    }
}
