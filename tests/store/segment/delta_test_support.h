// Chunks that resemble each other, and a source of bases in memory.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "store/segment/base_chooser.h"
#include "store/segment/base_source.h"
#include "tests/store/segment/segment_test_support.h"

namespace siltfs::testing {

inline BaseRef RefOf(const TestChunk& chunk) {
  return {chunk.record.name, chunk.record.tag, chunk.record.length};
}

// A chunk with other bytes than `base` in some places, and another name.
inline TestChunk MakeSimilar(const TestChunk& base, uint64_t seed, size_t changes = 3) {
  TestChunk chunk = MakeChunk(seed, base.record.length, /*compressible=*/false);
  chunk.bytes = base.bytes;
  Random random(seed);
  for (size_t i = 0; i < changes; ++i)
    chunk.bytes[random.Below(chunk.bytes.size())] ^= static_cast<uint8_t>(1 + random.Below(255));
  return chunk;
}

class MemoryBases : public BaseSource {
 public:
  void Add(const TestChunk& chunk) { bases[RefOf(chunk)] = chunk.bytes; }

  Result<BaseBytes> ReadBase(const BaseRef& base) override {
    asked.push_back(base);
    if (const auto failure = failures.find(base); failure != failures.end())
      return Status(failure->second, "no such base").At("/bases", 17);
    const auto found = bases.find(base);
    if (found == bases.end()) return Status(StatusCode::kNotFound, "no such base");
    return BaseBytes{nullptr, found->second};
  }

  std::map<BaseRef, Bytes> bases;
  std::map<BaseRef, StatusCode> failures;
  std::vector<BaseRef> asked;
};

// Offers the bases of a list: for the chunk with this name, these bases in order.
class ListedBases : public BaseChooser {
 public:
  explicit ListedBases(MemoryBases& source) : source_(source) {}

  void Offer(const TestChunk& chunk, const TestChunk& base) {
    source_.Add(base);
    offers[chunk.record.name].push_back(RefOf(base));
  }

  Status Choose(const DecodedBlock& block, const BaseChooser::Offer& offer) override {
    if (!failure.ok()) return failure;
    for (size_t i = 0; i < block.chunk_count(); ++i) {
      for (const BaseRef& base : offers[block.records()[i].name]) {
        SILTFS_RETURN_IF_ERROR(offer(i, base, source_.bases.at(base)));
      }
    }
    return Status::Ok();
  }

  std::map<ChunkName, std::vector<BaseRef>> offers;
  Status failure;

 private:
  MemoryBases& source_;
};

}  // namespace siltfs::testing
