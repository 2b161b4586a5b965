//! Bodies as gzip and zlib write them. They are stored, not made smaller: a reader can't tell, and no other crate is needed.

/// RFC 1952.
pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    bytes.extend(deflate(body));
    bytes.extend(crc32(body).to_le_bytes());
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes
}

/// RFC 1950, which is what `Content-Encoding: deflate` means.
pub(crate) fn zlib(body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x78, 0x01];
    bytes.extend(deflate(body));
    bytes.extend(adler32(body).to_be_bytes());
    bytes
}

/// RFC 1951, without what zlib puts around it, as some servers send it.
pub(crate) fn deflate(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut blocks = body.chunks(0xffff).peekable();
    if blocks.peek().is_none() {
        bytes.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        bytes.push(u8::from(blocks.peek().is_none()));
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(block);
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
}

fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_documents() {
        assert_eq!((crc32(b"123456789"), adler32(b"Wikipedia")), (0xcbf4_3926, 0x11e6_0398));
    }

    #[test]
    fn a_long_body_has_several_blocks_and_one_end() {
        let bytes = deflate(&[7; 0x1_0001]);
        assert_eq!((bytes[0], bytes[0x1_0004], bytes.len()), (0, 1, 0x1_0001 + 10));
    }
}
