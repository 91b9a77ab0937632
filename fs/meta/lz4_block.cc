#include "fs/meta/lz4_block.h"

#include "store/base/coding.h"

namespace siltfs {
namespace {

constexpr size_t kLeastMatch = 4;
constexpr size_t kMoreFollows = 15;  // in half a token
constexpr uint8_t kEvenMore = 255;

// A length whose first part stood in the token.
size_t ReadLength(Decoder& in, size_t length) {
  if (length != kMoreFollows) return length;
  uint8_t more = kEvenMore;
  while (in.ok() && more == kEvenMore) {
    more = in.U8();
    length += more;
  }
  return length;
}

// One sequence: literals, and what repeats. False where the block ends, or makes no sense.
bool UnpackSequence(Decoder& in, size_t most, Bytes& out) {
  const uint8_t token = in.U8();
  const ByteView literals = in.Raw(ReadLength(in, token >> 4));
  if (!in.ok() || literals.size() > most - out.size()) return false;
  out.insert(out.end(), literals.begin(), literals.end());
  if (in.remaining() == 0) return false;  // the last one has literals alone
  const size_t back = in.U16();
  const size_t length = ReadLength(in, token & kMoreFollows) + kLeastMatch;
  if (!in.ok() || back == 0 || back > out.size() || length > most - out.size()) {
    out.clear();
    return false;
  }
  // May repeat what it has just made.
  for (size_t i = 0; i < length; ++i) out.push_back(out[out.size() - back]);
  return true;
}

}  // namespace

std::optional<Bytes> UnpackLz4(ByteView packed, size_t size) {
  Bytes out;
  out.reserve(size);
  Decoder in(packed);
  while (in.remaining() > 0 && UnpackSequence(in, size, out)) {
  }
  if (!in.Done() || out.size() != size) return std::nullopt;
  return out;
}

Bytes UnpackLz4Start(ByteView packed, size_t size) {
  // Literals are taken as a whole, and a match may be long: a bound for garbage.
  constexpr size_t kMost = size_t{1} << 20;
  Bytes out;
  Decoder in(packed);
  while (out.size() < size && in.remaining() > 0 && UnpackSequence(in, kMost, out)) {
  }
  return out;
}

}  // namespace siltfs
