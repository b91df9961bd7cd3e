"""Choice of the encoding of the values of a page: the smallest in the format, in chunks or item by item."""

from __future__ import annotations

import pyarrow as pa

from lance_dataset.errors import UnsupportedError
from lance_dataset.file.buffers import allocate
from lance_dataset.file.kinds import is_binary_like, is_text
from lance_dataset.file.options import EncodingOptions, encoding_options
from lance_dataset.file.structural.arrays import value_bits
from lance_dataset.file.structural.encodings.fixed_size_list import encode_lists, lists_of, zip_lists
from lance_dataset.file.structural.encodings.flat import Flat, encode_bits
from lance_dataset.file.structural.encodings.fsst import code_items, forced_fsst
from lance_dataset.file.structural.encodings.fsst_tables import FsstTables
from lance_dataset.file.structural.encodings.general import compress_items, compressed, smallest_compressed
from lance_dataset.file.structural.encodings.packed_struct import encode_packed, is_variable_packed, zip_packed
from lance_dataset.file.structural.encodings.registry import compressible_chunks, text_candidates, word_candidates
from lance_dataset.file.structural.encodings.request import Candidate, EncodedChunks, EncodedItems, Request, cheapest
from lance_dataset.file.structural.encodings.values import Strings, Words, fixed_bytes, strings_of, words_of
from lance_dataset.file.structural.encodings.variable import plain_candidate, plain_items
from lance_dataset.file.structural.write.dictionary import (
    Rival,
    dictionary_of_strings,
    dictionary_of_words,
    encode_dictionary_array,
)
from lance_dataset.types.schema import Field
from lancecodec import bitmap

__all__ = ["WIDE_VALUE", "choose_chunks", "encode_items", "prefers_full_zip"]

#: Values of at least this many bytes are zipped with their levels instead of being put into chunks.
WIDE_VALUE = 256
#: Maximum share of the other size for a dictionary where the reference writes none, as lookups cost time: if small
#: files are asked for, and if not.
_UNUSUAL_SHARES = 0.95, 0.8
#: Maximum share of the plain size for a dictionary to be preferred to full-zip.
_DICTIONARY_SHARE = 0.8
#: Minimum bytes to compress strings one by one. Without a request, one string must be longer than this. The reference
#: uses the same limit.
_GENERAL_LEAST_BYTES = 32768


def choose_chunks(
    values: pa.Array,
    validity: pa.Buffer | None,
    field: Field,
    options: EncodingOptions,
    version: str,
    max_values: int = 32768,
    alone: bool = False,
    tables: FsstTables | None = None,
) -> EncodedChunks | None:
    """Encode the values of a mini-block page.

    Every way that the format offers for the type is measured or estimated, with chunk headers, level blocks and
    dictionary. The smallest is taken, and of equal ones the one that is cheapest to decode.

    Parameters
    ----------
    values
        One value per visible item, at least one, of the leaf's storage type; its own validity is ignored.
    validity
        Bitmap of the valid items that starts at bit 0; None if all are valid. Values under nulls are not kept.
    options
        Options in the metadata of the field.
    version
        "2.1" or "2.2".
    max_values
        Maximum values of a chunk, a power of two.
    alone
        True if the page has no levels, so that plain values need no chunks and their headers do not count.
    tables
        FSST tables of the preceding pages of the column; None for a column of one page.

    Returns
    -------
    EncodedChunks or None
        None if the values are too wide for chunks.

    Raises
    ------
    UnsupportedError
        Chunks cannot hold the type, or a packed struct has nulls.
    """
    request = Request(options, version != "2.1", validity is not None, max_values, alone, tables or FsstTables())
    kind = values.type
    if pa.types.is_dictionary(kind):
        encoded: EncodedChunks | None = encode_dictionary_array(values, validity, field, request)
    elif is_binary_like(kind):
        encoded = _choose_strings(strings_of(values, validity), is_text(kind), request)
    elif pa.types.is_fixed_size_list(kind):
        encoded = encode_lists(lists_of(values, validity), request)
    elif pa.types.is_struct(kind):
        encoded = encode_packed(values, validity, field, request)
    elif pa.types.is_boolean(kind):
        encoded = compressed(encode_bits(values.buffers()[1], values.offset, len(values), request), request)
    elif value_bits(kind) == 0:
        raise UnsupportedError(f"column {field.name!r}: values of type {kind} cannot be stored in chunks")
    else:
        return _choose_words(words_of(values, validity), request)  # words never exceed a chunk
    return encoded if encoded is not None and request.fits(encoded) else None


def prefers_full_zip(values: pa.Array, field: Field, options: EncodingOptions, version: str) -> bool:
    """Return whether item by item suits a page better: if the metadata says so, else for wide values without
    dictionary.

    The parameters are those of `choose_chunks`.
    """
    kind = values.type
    if pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return False
    if pa.types.is_struct(kind):
        return is_variable_packed(kind)
    if pa.types.is_fixed_size_list(kind):
        lists = lists_of(values, None)
        if lists.all_null or not lists.zippable:
            return lists.all_null
        return options.structure == "fullzip" or (options.structure is None and lists.row_bytes >= WIDE_VALUE)
    if is_binary_like(kind):
        return _strings_prefer_full_zip(values, options, version)
    if options.structure is None:
        return value_bits(kind) >= 8 * WIDE_VALUE
    return options.structure == "fullzip" and not _words_prefer_dictionary(values, options, version)


def _words_prefer_dictionary(values: pa.Array, options: EncodingOptions, version: str) -> bool:
    """Return whether a dictionary takes precedence over a requested structure, as in the reference."""
    if value_bits(values.type) % 8:
        return False
    request, words = Request(options, version != "2.1", False), words_of(values, None)
    if not (words.bits == 128 or (words.bits == 64 and request.large)):
        return False
    rival = Rival(int(_DICTIONARY_SHARE * words.count * words.width))
    return dictionary_of_words(words, rival, request) is not None


def _strings_prefer_full_zip(values: pa.Array, options: EncodingOptions, version: str) -> bool:
    if options.structure == "miniblock":
        return False
    strings = strings_of(values, None)
    if options.structure != "fullzip" and strings.longest < WIDE_VALUE:
        return False
    request = Request(options, version != "2.1", False)
    return dictionary_of_strings(strings, Rival(int(_DICTIONARY_SHARE * _raw_size(strings))), request) is None


def _raw_size(strings: Strings) -> int:
    return strings.total + (strings.count + 1) * strings.offset_width


# -- fixed width -------------------------------------------------------------------------------------------------


def _choose_words(words: Words, request: Request) -> EncodedChunks | None:
    candidates, runs = word_candidates(words, request)
    if not candidates:
        return None
    indexed = _dictionary_of_words(words, Rival(min(one.size for one in candidates), runs), request)
    if indexed is not None:
        candidates.append(indexed)
    best = cheapest(candidates, request)
    if request.options.compression in ("lz4", "zstd", "fsst"):
        best = smallest_compressed([best, *compressible_chunks(words, request)], request)
    return best


def _dictionary_of_words(words: Words, rival: Rival, request: Request) -> Candidate | None:
    usual = words.bits == 128 or (words.bits == 64 and request.large)
    if words.bits == 8 or (request.options.compression == "none" and not usual):
        return None
    if not usual:
        share = _UNUSUAL_SHARES[0 if request.options.smallest else 1]
        rival = Rival(int(share * rival.size), rival.runs)
    indexed = dictionary_of_words(words, rival, request)
    return indexed if indexed is not None and (usual or indexed.size < rival.size) else None


# -- strings -----------------------------------------------------------------------------------------------------


def _choose_strings(strings: Strings, text: bool, request: Request) -> EncodedChunks:
    plain, asked = plain_candidate(strings, request), request.options.compression
    first = plain
    if asked == "fsst":
        first = forced_fsst(strings, plain.size, request)
    elif asked in ("lz4", "zstd"):
        wrapped = compressed(plain.encode(), request)
        first = Candidate(request.size(wrapped), lambda: wrapped)
    candidates = [first]
    indexed = dictionary_of_strings(strings, Rival(first.size), request)
    if indexed is not None:
        candidates.append(indexed)
    if asked is None or request.options.smallest:
        least = min(one.size for one in candidates)
        candidates.extend(text_candidates(strings, text, plain.size, least, request))
    return cheapest(candidates, request)


# -- item by item -------------------------------------------------------------------------------------------------


def encode_items(
    values: pa.Array,
    validity: pa.Buffer | None,
    field: Field,
    options: EncodingOptions,
    version: str,
    tables: FsstTables | None = None,
) -> EncodedItems:
    """Encode the values of a full-zip page.

    The parameters are those of `choose_chunks`.

    Raises
    ------
    UnsupportedError
        Full-zip pages of the version do not hold the type.
    """
    kind = values.type
    if is_binary_like(kind):
        return _choose_items(strings_of(values, validity), is_text(kind), options, tables or FsstTables())
    if pa.types.is_fixed_size_list(kind):
        return zip_lists(lists_of(values, validity))
    if pa.types.is_struct(kind) and is_variable_packed(kind):
        return _zip_struct(values, validity, field, version)
    if pa.types.is_boolean(kind):
        out = allocate(len(values))
        bitmap.unpack(values.buffers()[1], values.offset, len(values), out)
        return EncodedItems(Flat(8), 1, None, out, None, False, "a byte each")
    bits = value_bits(kind)
    if bits == 0:
        raise UnsupportedError(f"column {field.name!r}: values of type {kind} cannot be stored item by item")
    return EncodedItems(Flat(bits), bits // 8, None, fixed_bytes(values, bits), None, False, f"{bits // 8} bytes each")


# -- strings item by item ----------------------------------------------------------------------------------------


def _choose_items(strings: Strings, text: bool, options: EncodingOptions, tables: FsstTables) -> EncodedItems:
    plain = plain_items(strings)
    asked = options.compression
    if asked == "none" or strings.total == 0:
        return plain
    if strings.total >= _GENERAL_LEAST_BYTES and (asked in ("lz4", "zstd") or strings.longest > _GENERAL_LEAST_BYTES):
        return compress_items(plain, strings, options)
    if asked in ("lz4", "zstd"):
        return plain
    return code_items(plain, strings, text, asked == "fsst", tables)


def _zip_struct(values: pa.StructArray, validity: pa.Buffer | None, field: Field, version: str) -> EncodedItems:
    if version == "2.1":
        raise UnsupportedError(
            f"column {field.name!r}: file version 2.1 packs only fields of a fixed width into a struct; "
            "use file version 2.2 or later"
        )

    def encode_child(child: pa.Array, valid: pa.Buffer | None, own: Field) -> EncodedItems:
        return encode_items(child, valid, own, encoding_options(own), version)

    return zip_packed(values, validity, field, encode_child)
