#include "index/key_value/item.h"

#include "store/base/random.h"
#include "tests/support/catch.h"

namespace siltfs::testing {

TEST_CASE("a key and a value come back from the bytes of their item") {
  Random random(3);
  for (const size_t key_size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, kMaxKeySize}) {
    for (const size_t value_size : {size_t{0}, size_t{1}, size_t{127}, size_t{128}, size_t{16383},
                                    size_t{16384}, kMaxValueSize}) {
      Bytes key(key_size);
      Bytes value(value_size);
      random.Fill(key);
      random.Fill(value);
      const Bytes bytes = EncodeItem({.key = key, .value = value});
      REQUIRE(bytes.size() == ItemSize(key_size, value_size));
      const auto item = DecodeItem(bytes);
      REQUIRE_OK(item);
      REQUIRE(Bytes(item->key.begin(), item->key.end()) == key);
      REQUIRE(Bytes(item->value.begin(), item->value.end()) == value);
      const size_t header = std::min(bytes.size(), kMaxItemHeaderSize);
      const auto size = ItemSizeOf(ByteView(bytes).first(header));
      REQUIRE_OK(size);
      REQUIRE(*size == bytes.size());
    }
  }
}

TEST_CASE("an item with any wrong bit, or cut off, is refused") {
  const Bytes whole =
      EncodeItem({.key = AsBytes("key"), .value = AsBytes("a value of some bytes")});
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<uint8_t>(1U << bit % 8);
    INFO("bit " << bit);
    REQUIRE(DecodeItem(damaged).status().Is(StatusCode::kCorruption));
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO("size " << size);
    REQUIRE(DecodeItem(ByteView(whole).first(size)).status().Is(StatusCode::kCorruption));
  }
  REQUIRE(ItemSizeOf(ByteView(whole).first(4)).status().Is(StatusCode::kCorruption));
  // Sizes beyond the end of the bytes.
  const Bytes huge = {0, 0, 0, 0, 0xff, 0xff, 0x7f, 0};
  REQUIRE(ItemSizeOf(huge).status().Is(StatusCode::kCorruption));
}

}  // namespace siltfs::testing
