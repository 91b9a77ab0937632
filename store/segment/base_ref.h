// Names the base of a delta: the whole chunk from which a delta is inflated (docs/glossary.md). A
// base is named by its content, not by its location, so that it may move. docs/format.md ("Blocks
// with deltas") lists the bytes.
//
// Thread-safety: a plain value.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "store/base/chunk_name.h"
#include "store/base/coding.h"

namespace siltfs {

inline constexpr uint32_t kBaseRefSize = 32;

struct BaseRef {
  ChunkName name;
  ChunkTag tag = 0;
  uint32_t length = 0;  // uncompressed bytes

  auto operator<=>(const BaseRef&) const = default;

  // For messages: the name in hex, and the length.
  std::string ToString() const;
};

// A chunk that is stored as a delta, and its base.
struct DeltaBase {
  uint32_t position = 0;  // of the chunk in its block
  BaseRef base;

  auto operator<=>(const DeltaBase&) const = default;
};

// kBaseRefSize bytes. A decoded value may have any length; see IsBaseLength.
void EncodeBaseRef(const BaseRef& base, Encoder& out);
BaseRef DecodeBaseRef(Decoder& in);

// Whether a whole chunk can have this length.
bool IsBaseLength(uint32_t length);

}  // namespace siltfs
